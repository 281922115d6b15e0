import type { Queryable } from '../../src/db/database.ts'

/**
 * Marks a balance to be read again: the chain has none where this database has one, as after a sweep that a restored
 * database does not know.
 */
export async function markStale(
  db: Queryable,
  { network }: { network: string },
  { customer_id, address, asset }: { customer_id: string; address: string; asset: string },
): Promise<void> {
  await db.query(
    `update evm_holdings set stale_at = (select clock_timestamp())
     where customer_id = $1 and network = $2 and address = $3 and asset = $4`,
    [customer_id, network, address, asset],
  )
}
