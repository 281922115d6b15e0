import { inOrder, mustHold, onCitus, type Transaction } from './database.ts'

/**
 * Statements of one table each, about rows of one customer, that are sent in one round trip. One PostgreSQL gets them as one
 * statement, which costs least. Citus has no INSERT in a CTE, and sends each of them straight to the customer's shard.
 */

/**
 * One of the statements. `$1` is the customer. `text` gets the number of its first own parameter, and, behind a part that changes
 * a row, the table expression `changed` of that row as it is now.
 */
export interface Part {
  name: string
  text: (first: number, changed: string) => string
}

/** A part with the values of its own parameters. */
export type Bound = readonly [part: Part, values: readonly (string | Buffer)[]]

/** The update of the customer's only row in a table, which those behind it read. */
export interface ChangedRow {
  table: string
  part: Bound
}

/**
 * Returns the insert that begins with `into`, at a time, its first parameter, which the columns `at` get. The other `columns`, given with their types, come
 * from array parameters in their order; those in `fixed` are SQL. One row of VALUES is many rows where its columns are sets. Each
 * array is unnested by itself: one `unnest` of all of them would store every array as a table first (measured: 41 us a
 * withdrawal, not 37.5).
 */
export function insertOf(
  into: `insert into ${string}`,
  {
    at,
    columns,
    fixed = {},
  }: { at: string[]; columns: Record<string, string>; fixed?: Record<string, string> },
  name = into.replace('insert into', 'new'),
): Part {
  const names = ['customer_id', ...at, ...Object.keys(fixed), ...Object.keys(columns)].join(', ')
  return {
    name,
    text: (first) => {
      const times = at.map(() => `$${first}`)
      const sets = Object.values(columns).map((type, index) => `unnest($${first + 1 + index}::${type}[])`)
      return `${into} (${names}) values (${['$1', ...times, ...Object.values(fixed), ...sets].join(', ')})`
    },
  }
}

/** The number of the first parameter that is a part's own. */
const OWN = 2

/** Sends the parts. If one fails, all do, and so does the transaction. Without the row that `changed` updates, it fails, too. */
export async function sendTogether(
  tx: Transaction,
  customerId: string,
  parts: readonly Bound[],
  changed?: ChangedRow,
): Promise<void> {
  const all = [...(changed === undefined ? [] : [changed.part]), ...parts]
  if (all.length === 0) return
  if (onCitus(tx)) {
    const required = `select ${mustHold('count(*) = 1')} from ${changed?.table} where customer_id = $1`
    const asNow = `(select * from ${changed?.table} where customer_id = $1) changed`
    await inOrder([
      ...all.map(([{ name, text }, values]) =>
        tx.query({ name, text: text(OWN, asNow), values: [customerId, ...values] }),
      ),
      ...(changed === undefined ? [] : [tx.query(required, [customerId])]),
    ])
    return
  }
  const name = all.map(([part]) => part.name).join(', ')
  const values = all.flatMap(([, own]) => own)
  await tx.query({ name, text: joined(name, all, changed !== undefined), values: [customerId, ...values] })
}

/** The joined statements by name: few parts are ever joined, and each has the same number of parameters each time. */
const known = new Map<string, string>()

function joined(name: string, parts: readonly Bound[], hasChanged: boolean): string {
  const text = known.get(name)
  if (text !== undefined) return text
  let first = OWN
  const steps = parts.map(([part, values], index) => {
    const step = part.text(first, 'changed')
    first += values.length
    return hasChanged && index === 0 ? `changed as (${step} returning *)` : `part_${index + 1} as (${step})`
  })
  const end = hasChanged ? `select ${mustHold('(select count(*) from changed) = 1')}` : 'select'
  const made = `with ${steps.join(',\n  ')}\n${end}`
  known.set(name, made)
  return made
}
