import type { Origin } from '../../contract/actor.ts'
import { inTransaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'
import { shareLock, takeLock } from '../../db/locks.ts'

export interface RewardRate {
  /** YYYY-MM-DD, UTC: the first day on which it applies. */
  effective_from: string
  /** Annual, as a decimal string: 0.0376 is 3.76 %. */
  rate: string
  set_at: string
}

/**
 * Waits for open transactions that set rates, and blocks new ones until this transaction ends. So all rates set
 * before now are visible, both now and when a statement is explained. It takes an advisory lock, because a lock on the table
 * would need the right to update the table. Throws an Error when a rate was not set with the master key.
 */
export async function holdRewardRates(tx: Transaction): Promise<void> {
  await shareLock(tx, 'rewardRates')
  const { rows } = await tx.query<Seal & { id: string }>(
    `select r.effective_from::text as id, ${sealOf('reward_rates')} from reward_rates r`,
  )
  const macs = await ownRowMacs()
  for (const { id, ...seal } of rows) macs.requireGenuine('reward_rates', id, seal)
}

/** Sets the annual reward rate from a day (YYYY-MM-DD) on, until the day of the next setting. Earlier settings stay on record. */
export const setRewardRate = (
  db: Database | Transaction,
  effectiveFrom: string,
  rate: string,
  origin: Origin,
): Promise<RewardRate> =>
  inTransaction(db, async (tx) => {
    // The clock is read after the lock is taken: statement generation waits for that lock.
    await takeLock(tx, 'rewardRates')
    const { rows } = await tx.query<Omit<RewardRate, 'effective_from'>>(
      `
    insert into reward_rates (effective_from, set_at, rate) values ($1, clock_timestamp(), $2)
    returning set_at, trim_scale(rate)::text as rate`,
      [effectiveFrom, rate],
    )
    const set = { effective_from: effectiveFrom, ...rows[0]! }
    await (await ownRowMacs()).seal(tx, 'reward_rates', set.effective_from, set.set_at)
    const after = { effective_from: set.effective_from, rate: set.rate }
    await recordNow(tx, PLATFORM_ID, audited(origin, 'reward_rate.set', set.effective_from, { after }))
    return set
  })

/** Reads all settings, ordered by their first day and then by the time they were set. For one day the last setting counts. */
export async function listRewardRates(db: Queryable): Promise<RewardRate[]> {
  const { rows } = await db.query<RewardRate>(`
    select effective_from::text, set_at, trim_scale(rate)::text as rate
    from reward_rates
    order by effective_from, set_at`)
  return rows
}
