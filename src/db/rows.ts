/** A row without its nulls: a record as the contract writes it, where absent fields are omitted. */
export type Present<Row> = {
  [K in keyof Row as null extends Row[K] ? never : K]: Row[K]
} & { [K in keyof Row as null extends Row[K] ? K : never]?: Exclude<Row[K], null> }

/** Drops the columns of a database row that are null. */
export const presentOf = <Row extends object>(row: Row): Present<Row> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Present<Row>

/** Returns the values of these columns, an array for each: what `unnest` reads as rows. */
export const arraysOf = <Row, Column extends keyof Row>(
  rows: readonly Row[],
  ...columns: readonly Column[]
): Row[Column][][] => columns.map((column) => rows.map((row) => row[column]))

export function grouped<Key, Row>(rows: Iterable<Row>, keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}

/** The rows of each customer, by the customer's id. */
export const byCustomer = <T extends { customer_id: string }>(rows: readonly T[]): Map<string, T[]> =>
  grouped(rows, ({ customer_id }) => customer_id)

/** Reads pages of this many rows, each after the last row of the one before, until one is shorter. */
export async function* pagesOf<Row>(
  size: number,
  read: (last: Row | undefined) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let page: Row[] | undefined; page === undefined || page.length === size;)
    yield (page = await read(page?.at(-1)))
}
