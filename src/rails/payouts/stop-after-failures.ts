import { originOfLoop } from '../../contract/actor.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import { freeze } from '../../money/records/freezes.ts'
import type { Step } from './next-step.ts'

const LOOP = originOfLoop('settlement')

const FAILURES_MAX = 2

/** Records the transactions of these steps that were mined and moved nothing. */
export async function keepFailed(tx: Transaction, steps: readonly Step[]): Promise<void> {
  for (const { withdrawal, failure } of steps) {
    if (failure === undefined || withdrawal.crypto_tx_hash === null) continue
    // All payments of a transaction fail together.
    await tx.query(
      `
      insert into failed_transactions (network, crypto_tx_hash, failed_at, counts)
      values ($1, $2, clock_timestamp(), $3)
      on conflict (network, crypto_tx_hash) do nothing`,
      [withdrawal.network, withdrawal.crypto_tx_hash, failure === 'UNEXPLAINED'],
    )
  }
}

/**
 * Stops payouts over a network (freeze WITHDRAWALS_FAIL) at the second confirmed failure of a transaction within an hour
 * that no recipient can have caused: something is wrong with the wallet or a token, or the nodes give false answers. Each
 * failure counts once, so that the same failures do not freeze the network again once the freeze is lifted.
 */
export async function brakeAfterFailures(db: Database, network: PayoutNetwork): Promise<void> {
  await transaction(db, async (tx) => {
    const { rows } = await tx.query<{ crypto_tx_hash: string }>(
      `
      select crypto_tx_hash from failed_transactions
      where network = $1 and counts and failed_at > clock_timestamp() - interval '1 hour'
      order by failed_at
      for update`,
      [network],
    )
    if (rows.length < FAILURES_MAX) return
    const hashes = rows.map(({ crypto_tx_hash }) => crypto_tx_hash)
    await tx.query(
      'update failed_transactions set counts = false where network = $1 and crypto_tx_hash = any ($2)',
      [network, hashes],
    )
    const detail = `${hashes.join(' and ')} failed within an hour, and no destination can have caused it: their withdrawals were refunded`
    await freeze(tx, LOOP, { kind: 'NETWORK', network }, 'WITHDRAWALS_FAIL', detail)
  })
}

/** Whether a transaction of a network has failed within the last hour, so that its withdrawal was refunded. */
export async function failedLately(db: Queryable, network: PayoutNetwork): Promise<boolean> {
  const { rowCount } = await db.query(
    `select 1 from failed_transactions where network = $1 and failed_at > clock_timestamp() - interval '1 hour' limit 1`,
    [network],
  )
  return rowCount !== 0
}
