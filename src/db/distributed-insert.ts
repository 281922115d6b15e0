/** The columns of an insert: `fixed` are the same in all rows, `columns` come from array parameters of these types. */
export interface Insert {
  table: string
  /** By column, the SQL of the value; `customer_id` is always $1. */
  fixed?: Record<string, string>
  /** By column, the element's type. The arrays are the parameters from `$first` on, in this order. */
  columns: Record<string, string>
  first: number
}

/** From this number of rows on, the SELECT is the cheaper form. */
const MANY = 48

/**
 * Returns an insert of `count` rows of one customer, from the same array parameters that `unnest` takes on a plain
 * PostgreSQL. On a distributed database, only two forms go straight to the customer's shard: VALUES, and a SELECT from a
 * row of that customer. The row is the head of its audit log, which the platform has, too. Planning VALUES takes half
 * the time, but each row costs more. One row of VALUES is many rows where its columns are sets. The statement is named
 * by its form, so that it is prepared.
 */
export function insertRows(
  { table, fixed = {}, columns, first }: Insert,
  count: number,
): { name: string; text: string } {
  const names = ['customer_id', ...Object.keys(fixed), ...Object.keys(columns)].join(', ')
  const into = `insert into ${table} (${names})`
  const arrays = Object.values(columns).map((type, index) => `$${first + index}::${type}[]`)
  if (count < MANY) {
    const row = ['$1', ...Object.values(fixed), ...arrays.map((array) => `unnest(${array})`)].join(', ')
    return { name: `insert few ${table}`, text: `${into} values (${row})` }
  }
  const given = Object.values(fixed)
    .map((value) => `${value}, `)
    .join('')
  return {
    name: `insert many ${table}`,
    text: `${into}
      select h.customer_id, ${given}new.*
      from audit_heads h cross join unnest(${arrays.join(', ')}) as new (${Object.keys(columns).join(', ')})
      where h.customer_id = $1`,
  }
}
