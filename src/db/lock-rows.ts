import type pg from 'pg'
import { onCitus, type Transaction } from './database.ts'

/** A statement that selects rows of any customers, in parts. `from` ends with its conditions, and names `customer_id` in one table. */
export interface Locking {
  columns: string
  from: string
  order: string
}

/**
 * Selects rows of any customers and locks them to the end of the transaction. A distributed database locks only rows of one
 * customer with a statement, so there each customer's rows are locked by one, in the order of the customers.
 */
export async function lockRows<Row extends pg.QueryResultRow>(
  tx: Transaction,
  { columns, from, order }: Locking,
  values: readonly unknown[],
): Promise<Row[]> {
  const locking = (condition: string) =>
    `select ${columns} from ${from} ${condition} order by customer_id, ${order} for update`
  if (!onCitus(tx)) return (await tx.query<Row>(locking(''), [...values])).rows
  const { rows: owners } = await tx.query<{ customer_id: string }>(
    `select distinct customer_id from ${from} order by customer_id`,
    [...values],
  )
  const locked: Row[] = []
  for (const { customer_id } of owners) {
    const own = await tx.query<Row>(locking(`and customer_id = $${values.length + 1}`), [
      ...values,
      customer_id,
    ])
    locked.push(...own.rows)
  }
  return locked
}

/** Limits each wait for a lock in this transaction, on a cluster also on the other nodes. */
export async function limitLockWaits(tx: Transaction, milliseconds: number): Promise<void> {
  if (onCitus(tx)) await tx.query(`set local citus.propagate_set_commands = 'local'`)
  await tx.query(`set local lock_timeout = ${milliseconds}`)
}
