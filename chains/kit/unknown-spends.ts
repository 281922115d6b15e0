import type { Queryable } from '../../src/db/database.ts'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/**
 * Transactions that a wallet has sent and this database has no record of. After an older backup was restored, one of them
 * may have paid a withdrawal that is about to be signed again: nothing is signed until a person says what they were.
 */

/** Why nothing is signed. `which` names the first; `reviewed` is the setting that says that all up to there were looked at. */
export function unknownSpends(which: string, others: number, reviewed?: string): WaitingReason {
  const detail =
    `the wallet has sent ${which}${others > 0 ? ` and ${others} more` : ''}, which this database has no record of: it was ` +
    `restored from an older backup, or the wallet is used elsewhere; 'bursar withdrawal mark-paid' says what was paid, ` +
    `'bursar wallet acknowledge' what was the platform's own` +
    (reviewed === undefined ? '' : `, ${reviewed} that all up to there were looked at`)
  return { code: 'UNKNOWN_SPENDS', detail }
}

/**
 * Those of these transactions that are not on record: they belong to no withdrawal, not even as a replaced transaction, and
 * no operator has acknowledged them. One that an operator marked as a withdrawal's is on record once all its payments are.
 */
export async function unrecordedAmong(
  db: Queryable,
  network: CryptoNetwork,
  hashes: readonly string[],
): Promise<string[]> {
  if (hashes.length === 0) return []
  const { rows } = await db.query<{ crypto_tx_hash: string }>(
    `
    select crypto_tx_hash from network_transactions n
    where n.network = $1 and n.crypto_tx_hash = any ($2)
      and (n.kind <> 'MARKED' or n.payments <= (select count(distinct id) from unnest(n.transfer_ids) as id))
    union
    select crypto_tx_hash from acknowledged_transactions where network = $1 and crypto_tx_hash = any ($2)`,
    [network, hashes],
  )
  const recorded = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
  return hashes.filter((hash) => !recorded.has(hash))
}
