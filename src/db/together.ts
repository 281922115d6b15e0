import { inOrder, mustHold, onCitus, type Transaction } from './database.ts'

/**
 * Statements about rows of one customer, each on one table, sent in one round trip. A plain PostgreSQL gets them as one
 * statement, which costs least. Citus has no INSERT in a CTE, so it gets each one by itself, straight to the customer's
 * shard.
 */

/**
 * One of the statements. `$1` is the customer. `text` gets the number of its first own parameter and, behind a part that
 * changes a row, the table expression `changed`: that row after the change.
 */
export interface StatementPart {
  name: string
  text: (first: number, changed: string) => string
}

/** A part with the values of its own parameters. */
export type Bound = readonly [part: StatementPart, values: readonly (string | Buffer)[]]

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
    text: (first) => {
      const times = at.map(() => `$${first}`)
      const own = first + Math.min(at.length, 1)
      const sets = Object.values(columns).map((type, index) => `unnest($${own + index}::${type}[])`)
      return `${into} (${names}) values (${['$1', ...times, ...Object.values(fixed), ...sets].join(', ')})`
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
  if (onCitus(tx)) {
    const required = `select ${mustHold('count(*) = 1')} from ${changed?.table} where customer_id = $1`
    const asNow = `(select * from ${changed?.table} where customer_id = $1) changed`
    await inOrder([
      ...bound.map(([{ name, text }, values]) =>
        tx.query({ name, text: text(OWN, asNow), values: [customerId, ...values] }),
      ),
      ...(changed === undefined ? [] : [tx.query(required, [customerId])]),
    ])
    return
  }
  const name = bound.map(([part]) => part.name).join(', ')
  const values = bound.flatMap(([, own]) => own)
  await tx.query({
    name,
    text: joined(name, bound, changed !== undefined),
    values: [customerId, ...values],
  })
}

/** The joined statements by name: few combinations occur, and a part has the same number of parameters each time. */
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
