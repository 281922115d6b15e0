import type { Queryable } from '../db/database.ts'

/** Tells which of these addresses are deposit addresses that Bursar gave out, by `placeKey`. */
export type AreGiven = (
  db: Queryable,
  places: readonly { customer_id: string; address: string }[],
) => Promise<ReadonlySet<string>>
export const placeKey = ({ customer_id, address }: { customer_id: string; address: string }): string =>
  `${customer_id} ${address}`

/** The rows whose deposit address Bursar gave out. An invented address belongs to nobody, or is a customer's own wallet. */
export async function givenAmong<T extends { customer_id: string; address: string }>(
  { areGiven }: { areGiven?: AreGiven | undefined },
  db: Queryable,
  rows: T[],
): Promise<T[]> {
  if (areGiven === undefined) return rows
  const given = await areGiven(db, rows)
  return rows.filter((row) => given.has(placeKey(row)))
}
