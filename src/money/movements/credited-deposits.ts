import type { Queryable } from '../../db/database.ts'
import type { Transfer } from '../ledger/transfer.ts'
import type { RecordKind } from '../records/need.ts'
import type { Arrival } from './seen-deposits.ts'
import { arraysOf } from '../../db/rows.ts'

/**
 * The outputs and logs that were credited. Their rows are inserted with the entries, and the service's role can neither
 * change nor delete them. Whoever has that role can reset a deposit and its transfer, but cannot have the deposit credited
 * again.
 */
export const CREDITED_DEPOSITS: RecordKind<never, never, Transfer> = {
  read: () => Promise.reject(new Error('a deposit is credited once by a constraint, without a look')),
  write: (tx, customerId, credited) => [
    insertCredited(
      tx,
      customerId,
      credited.map(({ id, crypto_network, crypto_tx_hash, crypto_tx_index }) => ({
        network: crypto_network!,
        crypto_tx_hash: crypto_tx_hash!,
        crypto_tx_index: crypto_tx_index!,
        transfer_id: id,
      })),
    ),
  ],
}

/** The constraint that a second credit breaks. */
export const CREDITED_ONCE = 'credited_deposits_pkey'

/** Records that these outputs are credited by these transfers. Breaks `CREDITED_ONCE` where an output was credited before. */
export async function insertCredited(
  tx: Queryable,
  customerId: string,
  credited: readonly (Arrival & { transfer_id: string })[],
): Promise<void> {
  await tx.query(
    `
    insert into credited_deposits (customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id)
    select $1, network, hash, index, transfer_id
    from unnest($2::text[], $3::text[], $4::text[], $5::uuid[]) as c (network, hash, index, transfer_id)`,
    [customerId, ...arraysOf(credited, 'network', 'crypto_tx_hash', 'crypto_tx_index', 'transfer_id')],
  )
}

/** Returns the id of the transfer that credited an output or log; undefined if none did. */
export async function creditedAs(
  db: Queryable,
  customerId: string,
  { network, crypto_tx_hash, crypto_tx_index }: Arrival,
): Promise<string | undefined> {
  const { rows } = await db.query<{ transfer_id: string }>(
    `
    select transfer_id from credited_deposits
    where customer_id = $1 and network = $2 and crypto_tx_hash = $3 and crypto_tx_index = $4`,
    [customerId, network, crypto_tx_hash, crypto_tx_index],
  )
  return rows[0]?.transfer_id
}
