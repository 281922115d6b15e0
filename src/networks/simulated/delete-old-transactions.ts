import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import type { PayoutNetwork } from '../network.ts'

/** For how long the simulated chain keeps a transaction after its withdrawal and its deposit have ended. */
const KEPT_DAYS = 30

/**
 * Looks at the next `max` old transactions of a network after the cursor, and deletes those that nothing needs. Kept are
 * transactions whose withdrawal has not ended, or whose deposit is not recorded yet. Returns the number of deleted ones and the
 * cursor of the next call, undefined at the end.
 */
async function deleteOfNetwork(
  db: Database,
  network: PayoutNetwork,
  max: number,
  after: Cursor | undefined,
): Promise<{ deleted: number; next: Cursor | undefined }> {
  const { rows } = await db.query<Cursor & { arrived: boolean }>(
    `select broadcast_at, hash, arrives is false or arrives is true and dropped_at is not null as arrived from simulated_chain
     where crypto_network = $1 and broadcast_at < clock_timestamp() - make_interval(days => $2)
       and ($3::timestamptz is null or (broadcast_at, hash) > ($3, $4))
     order by broadcast_at, hash
     limit $5`,
    [network, KEPT_DAYS, after?.broadcast_at, after?.hash, max],
  )
  const arrived = rows.filter((row) => row.arrived).map(({ hash }) => hash)
  const { rows: open } = await db.query<{ crypto_tx_hash: string }>(
    `select crypto_tx_hash from outgoing_transfers
     where network = $1 and crypto_tx_hash = any ($2) and state <> 'DONE'`,
    [network, arrived],
  )
  const needed = new Set(open.map(({ crypto_tx_hash }) => crypto_tx_hash))
  const { rowCount } = await db.query(
    'delete from simulated_chain where crypto_network = $1 and hash = any ($2)',
    [network, arrived.filter((hash) => !needed.has(hash))],
  )
  return { deleted: rowCount ?? 0, next: rows.length === max ? rows.at(-1) : undefined }
}

interface Cursor {
  broadcast_at: string
  hash: string
}

const PAGES_MAX = 10

/**
 * Deletes the transactions of the simulated chain that are older than 30 days and that nothing needs any more. Returns
 * their number: at most ten times `max` of each network.
 */
export async function deleteOldTransactions(db: Database, max: number): Promise<number> {
  let total = 0
  for (const network of [...CRYPTO_NETWORKS, 'WIRE'] as const) {
    let cursor: Cursor | undefined
    for (let page = 1; page <= PAGES_MAX; page++) {
      const { deleted, next } = await deleteOfNetwork(db, network, max, cursor)
      total += deleted
      if (next === undefined) break
      cursor = next
    }
  }
  return total
}
