import { inOrder, mustHold, onCitus, type Transaction } from './database.ts'
import { ownParameters, ownRows, ownSet, valuesOfRows, valuesOfSet, type Own, type OwnValues } from './own.ts'
import { askTogether } from './shared-transaction.ts'

/**
 * Statements about rows of one customer, each on one table, sent in one round trip. A plain PostgreSQL gets them as one
 * statement, which costs least. Citus has no INSERT in a CTE, so it gets each one by itself, straight to the customer's
 * shard.
 */

/**
 * One of the statements. `text` gets what it says for the customer and its own parameters and, behind a part that changes a row
 * of the customer, the table expression `changed`: that row after the change.
 */
export interface StatementPart {
  name: string
  text: (own: Own, changed: string) => string
  /** How many of its last parameters are columns of the rows that it inserts. */
  columns?: number
  /** The types of the parameters of a part that does not insert rows. */
  types?: readonly string[]
}

/** A part with the values of its own parameters. */
export type Bound = readonly [part: StatementPart, values: readonly string[]]

/** The update of the customer's only row in a table. The parts behind it read that row. */
export interface ChangedRow {
  table: string
  part: Bound
}

/**
 * Returns the insert that begins with `into`. Its first parameter is a time, where there are columns `at`. The other
 * `columns`, given with their types, come from array parameters in their order. The columns in `fixed` are SQL. One row of
 * VALUES becomes many rows where its columns are sets. Each array is unnested by itself: one `unnest` of all of them would
 * first store every array as a table (measured: 41 us a withdrawal, not 37.5).
 */
export function insertOf(
  into: `insert into ${string}`,
  {
    at,
    columns,
    fixed = {},
  }: { at: string[]; columns: Record<string, string>; fixed?: Record<string, string> },
  name = into.replace('insert into ', '+'),
): StatementPart {
  const names = ['customer_id', ...at, ...Object.keys(fixed), ...Object.keys(columns)].join(', ')
  return {
    name,
    columns: Object.keys(columns).length,
    text: (own) => {
      const times = at.map(() => own.constant(1, 'timestamptz'))
      const before = Math.min(at.length, 1)
      const sets = Object.values(columns).map(
        (type, index) => `unnest(${own.value(before + index + 1)}::${type}[])`,
      )
      const row = [own.customer, ...times, ...Object.values(fixed), ...sets]
      return `${into} (${names}) values (${row.join(', ')})`
    },
  }
}

/** The number of the first parameter that is a part's own. */
const OWN = 2

/** Sends the parts. If one fails, or the row that `changed` updates is missing, all fail, and so does the transaction. */
export async function sendTogether(
  tx: Transaction,
  customerId: string,
  parts: readonly Bound[],
  changed?: ChangedRow,
): Promise<void> {
  const bound = [...(changed === undefined ? [] : [changed.part]), ...parts]
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
  if (onCitus(tx)) {
    const required = `select ${mustHold('count(*) = 1')} from ${changed?.table} where customer_id = $1`
    const asNow = `(select * from ${changed?.table} where customer_id = $1) changed`
    await inOrder([
      ...bound.map(([{ name, text }, values]) =>
        tx.query({ name, text: text(ownParameters(OWN), asNow), values: [customerId, ...values] }),
      ),
      ...(changed === undefined ? [] : [tx.query(required, [customerId])]),
    ])
    return
  }
  let first = OWN
  const { name, text } = joined(bound.map(([part]) => part.name).join(', '), changed, () =>
    bound.map(([part, values]) => {
      const own = ownParameters(first)
      first += values.length
      return [part, own]
    }),
  )
  await tx.query({ name, text, values: [customerId, ...bound.flatMap(([, values]) => values)] })
}

/** Sends the parts of several customers: each part once, for those customers that have it. */
async function sendForAll(
  tx: Transaction,
  asked: readonly { customerId: string; bound: readonly Bound[] }[],
  changed: ChangedRow | undefined,
): Promise<void> {
  const customersOf = new Map<StatementPart, OwnValues[]>()
  for (const [index, { customerId, bound }] of asked.entries())
    for (const [part, values] of bound) {
      const isBehind = changed !== undefined && part !== changed.part[0]
      const own = [isBehind ? String(index + 1) : customerId, ...values]
      const known = customersOf.get(part)
      if (known === undefined) customersOf.set(part, [own])
      else known.push(own)
    }
  const placeOf = (part: StatementPart) => (part === changed?.part[0] ? '' : part.name)
  const parts = [...customersOf].sort(([a], [b]) => (placeOf(a) < placeOf(b) ? -1 : 1))
  let first = 1
  const { name, text } = joined(`*${parts.map(([part]) => part.name).join(', ')}`, changed, () =>
    parts.map(([part, [own]]) => {
      const made = part.types === undefined ? ownRows(first) : ownSet(first, part.types)
      first += own!.length
      return [part, made]
    }),
  )
  const values = parts.flatMap(([{ columns = 0, types }, each]) =>
    types === undefined ? valuesOfRows(each, columns) : valuesOfSet(each),
  )
  await tx.query({ name, text, values })
}

/**
 * The joined statements by the names of their parts: few combinations occur, and a part has the same number of parameters each
 * time. PostgreSQL cuts names after 63 characters, so a longer one is a number.
 */
const known = new Map<string, { name: string; text: string }>()
const NAME_LENGTH_MAX = 63

function joined(
  names: string,
  changed: ChangedRow | undefined,
  partsOf: () => (readonly [part: StatementPart, own: Own])[],
): { name: string; text: string } {
  const joinedBefore = known.get(names)
  if (joinedBefore !== undefined) return joinedBefore
  const parts = partsOf()
  const steps = parts.map(([part, own], index) => {
    const step = part.text(own, 'changed')
    return changed !== undefined && index === 0
      ? `changed as (${step} returning ${changed.table}.*${own.from && ', s.*'})`
      : `part_${index + 1} as (${step})`
  })
  const count = `(select count(*) from changed) = ${parts[0]![1].count}`
  const text = `with ${steps.join(',\n  ')}\n${changed === undefined ? 'select' : `select ${mustHold(count)}`}`
  const made = { name: names.length > NAME_LENGTH_MAX ? `together ${known.size}` : names, text }
  known.set(names, made)
  return made
}
