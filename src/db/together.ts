import { arrayLiteral } from './array-literal.ts'
import { inOrder, mustHold, onCitus, type Transaction } from './database.ts'
import { askTogether } from './shared-transaction.ts'

/**
 * Statements about rows of one customer, each on one table, sent in one round trip. A plain PostgreSQL gets them as one
 * statement, which costs least. Citus has no INSERT in a CTE, so it gets each one by itself, straight to the customer's
 * shard. Customers who share a transaction share the statement, too.
 */

/** A column of the rows that a part writes: a parameter of its statement. */
export interface Column<Row> {
  name: string
  type: string
  of: (row: Row) => string | number | null | undefined
  /** All rows of a customer have the same value. */
  isSame?: boolean
}

/** Columns of these types, whose names are those of the row's own members. With `isSame`, all rows of a customer are alike in them. */
export const columnsOf = <Row extends object>(
  types: { readonly [Name in keyof Row]?: string },
  isSame = false,
): Column<Row>[] =>
  Object.entries<string | undefined>(types).map(([name, type]) => ({
    name,
    type: type!,
    of: (row) => row[name as keyof Row] as string | null,
    isSame,
  }))

/** One of the statements. */
export interface StatementPart<Row> {
  name: string
  /** It inserts any number of rows, or changes rows of the customer by one row of parameters, which it casts itself. */
  inserts: boolean
  columns: readonly Column<Row>[]
  /** Behind a part that changes a row of the customer, it reads `changed`: that row after the change. */
  text: (own: Own) => string
}

/** What a statement says for its customer and its columns: parameters or, for several customers, columns of sets. */
interface Own {
  customer: string
  value: (name: string) => string
  /** The clause `from` with the customers, where there is one. */
  from: string
  /** The clause `from` of an insert which has these `members` of the customer's changed row, with the rows `r`. */
  fromChanged: (members: readonly string[]) => string
}

/** A part with its rows. */
export interface Bound {
  part: StatementPart<never>
  rows: readonly unknown[]
  /** The parameters of these rows, where they are known. */
  values?: readonly string[] | undefined
}

export const bind = <Row>(
  part: StatementPart<Row>,
  rows: readonly Row[],
  values?: readonly string[],
): Bound => ({ part, rows, values })

/** The update of the customer's only row in a table. The parts behind it read that row. */
export interface ChangedRow {
  table: string
  bound: Bound
}

/**
 * Returns the insert that begins with `into`. The columns in `fixed` are SQL. One row of VALUES becomes many rows where its
 * columns are sets. Each array is unnested by itself: one `unnest` of all of them would first store every array as a table
 * (measured: 41 us a withdrawal, not 37.5).
 */
export function insertOf<Row>(
  into: `insert into ${string}`,
  columns: readonly Column<Row>[],
  {
    fixed = {},
    name = into.replace('insert into ', '+'),
  }: { fixed?: Record<string, string>; name?: string } = {},
): StatementPart<Row> {
  const names = ['customer_id', ...Object.keys(fixed), ...columns.map((column) => column.name)]
  return {
    name,
    inserts: true,
    columns,
    text: ({ customer, value }) => {
      const values = [customer, ...Object.values(fixed), ...columns.map((column) => value(column.name))]
      return `${into} (${names.join(', ')}) values (${values.join(', ')})`
    },
  }
}

/** Sends the parts. If one fails, or the row that `changed` updates is missing, all fail, and so does the transaction. */
export async function sendTogether(
  tx: Transaction,
  customerId: string,
  parts: readonly Bound[],
  changed?: ChangedRow,
): Promise<void> {
  const bound = changed === undefined ? parts : [changed.bound, ...parts]
  if (bound.length === 0) return
  const shared = askTogether(tx, `together ${changed?.table}`, { customerId, bound }, (all, asked) =>
    asked.length === 1 ? sendJoined(all, customerId, bound, changed) : sendForAll(all, asked, changed),
  )
  await (shared ?? sendJoined(tx, customerId, bound, changed))
}

async function sendJoined(
  tx: Transaction,
  customerId: string,
  bound: readonly Bound[],
  changed: ChangedRow | undefined,
): Promise<void> {
  const each = bound.map(({ part, rows, values }) => values ?? valuesOf(part, rows))
  if (!onCitus(tx)) {
    const { name, text } = joined(bound, changed, false)
    return void (await tx.query({ name, text, values: [customerId, ...each.flat()] }))
  }
  const required = `select ${mustHold('count(*) = 1')} from ${changed?.table} where customer_id = $1`
  const asNow = `(select * from ${changed?.table} where customer_id = $1) changed`
  await inOrder([
    ...bound.map(({ part }, index) =>
      tx.query({
        name: part.name,
        text: part.text(ownOf(part, 2, asNow, false)),
        values: [customerId, ...each[index]!],
      }),
    ),
    ...(changed === undefined ? [] : [tx.query(required, [customerId])]),
  ])
}

/** Sends the parts of several customers: each part once, with the rows of those customers that have it. */
async function sendForAll(
  tx: Transaction,
  asked: readonly { customerId: string; bound: readonly Bound[] }[],
  changed: ChangedRow | undefined,
): Promise<void> {
  const known = new Map<Bound['part'], Shared>()
  for (const [index, { bound }] of asked.entries())
    for (const { part, rows } of bound) {
      let all = known.get(part)
      if (all === undefined) known.set(part, (all = { part, numbers: [], rows: [], first: [] }))
      all.first[index] = rows[0]
      for (const row of rows) {
        all.numbers.push(index + 1)
        all.rows.push(row)
      }
    }
  const placeOf = ({ part }: Bound) => (part === changed?.bound.part ? '' : part.name)
  const bound = [...known.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  const { name, text } = joined(bound, changed, true)
  const values = bound.flatMap(({ part, numbers, rows, first }) => [
    arrayLiteral(numbers),
    ...part.columns.map(({ of, isSame }) => arrayOf(isSame === true ? first : rows, of)),
  ])
  await tx.query({ name, text, values: [arrayLiteral(asked.map(({ customerId }) => customerId)), ...values] })
}

/** The rows of several customers, with the customers' numbers from 1, and the first row of each of them. */
interface Shared extends Bound {
  numbers: number[]
  rows: unknown[]
  first: unknown[]
}

const valuesOf = ({ inserts, columns }: Bound['part'], rows: Bound['rows']) =>
  columns.map(({ of, isSame }) => (inserts && isSame !== true ? arrayOf(rows, of) : of(rows[0] as never)))

/** The values of a column. Where all are null, an empty array, which `unnest` fills with nulls. */
function arrayOf(rows: readonly unknown[], of: Column<never>['of']): string {
  const values = Array.from(rows, (row) => (row === undefined ? null : (of(row as never) ?? null)))
  return values.every((value) => value === null) ? '{}' : arrayLiteral(values)
}

/** What the part says where its first parameter is `$first`; the statement of one customer has that customer in `$1`. */
function ownOf(
  { columns, inserts }: StatementPart<never>,
  first: number,
  changed: string,
  isOfMany: boolean,
): Own {
  const start = isOfMany ? first + 1 : first
  const names = columns.map(({ name }) => name).join(', ')
  const arrays = columns.map(({ type }, index) => `$${start + index}::${type}[]`)
  const value = (name: string) => {
    const index = columns.findIndex((column) => column.name === name)
    const { type, isSame } = columns[index]!
    if (!inserts) return isOfMany ? `s.${name}` : `$${start + index}`
    if (isSame !== true) return `unnest(${arrays[index]})`
    return isOfMany ? `(${arrays[index]})[unnest($${first}::int[])]` : `$${start + index}::${type}`
  }
  if (!isOfMany)
    return {
      customer: '$1',
      value,
      from: '',
      fromChanged: () => `from ${changed} cross join unnest(${arrays.join(', ')}) as r (${names})`,
    }
  return {
    customer: `($1::uuid[])[${inserts ? `unnest($${first}::int[])` : 's.n'}]`,
    value,
    from: `from unnest($${first}::int[], ${arrays.join(', ')}) as s (n, ${names})`,
    fromChanged: (members) => {
      const ofCustomer = members.map(
        (name) => `(select array_agg(${name} order by n) from ${changed})[r.n] as ${name}`,
      )
      return `from unnest($${first}::int[], ${arrays.join(', ')}) as r (n, ${names})
      cross join lateral (select ${ofCustomer.join(', ')}) changed`
    },
  }
}

/**
 * The joined statements by the names of their parts: few combinations occur. PostgreSQL cuts names after 63 characters, so a longer
 * one is a number.
 */
const known = new Map<string, { name: string; text: string }>()
const NAME_LENGTH_MAX = 63

function joined(
  bound: readonly Bound[],
  changed: ChangedRow | undefined,
  isOfMany: boolean,
): { name: string; text: string } {
  const names = `${isOfMany ? '*' : ''}${bound.map(({ part }) => part.name).join(', ')}`
  const joinedBefore = known.get(names)
  if (joinedBefore !== undefined) return joinedBefore
  let first = 2
  const steps = bound.map(({ part }, index) => {
    const step = part.text(ownOf(part, first, 'changed', isOfMany))
    first += part.columns.length + (isOfMany ? 1 : 0)
    return changed !== undefined && index === 0
      ? `changed as (${step} returning ${changed.table}.*${isOfMany ? ', s.*' : ''})`
      : `part_${index + 1} as (${step})`
  })
  const count = `(select count(*) from changed) = ${isOfMany ? 'cardinality($1::uuid[])' : 1}`
  const text = `with ${steps.join(',\n  ')}\n${changed === undefined ? 'select' : `select ${mustHold(count)}`}`
  const made = { name: names.length > NAME_LENGTH_MAX ? `together ${known.size}` : names, text }
  known.set(names, made)
  return made
}
