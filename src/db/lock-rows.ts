import type pg from 'pg'
import { onCitus, type Transaction } from './database.ts'

/** The parts of a statement that selects rows of any customers. `from` ends with conditions, and has one `customer_id`. */
export interface Locking {
  columns: string
  from: string
  order: string
}

/**
 * Selects rows of any customers and locks them to the end of the transaction. On a distributed database a statement can lock
 * rows of one customer only. There, one statement for each customer locks its rows, in the order of the customers.
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

/** Limits each wait for a lock in this transaction; on a cluster, on the other nodes as well. */
export async function limitLockWaits(tx: Transaction, milliseconds: number): Promise<void> {
  if (onCitus(tx)) await tx.query(`set local citus.propagate_set_commands = 'local'`)
  await tx.query(`set local lock_timeout = ${milliseconds}`)
}
