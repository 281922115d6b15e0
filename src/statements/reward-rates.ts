import type { Queryable, Transaction } from '../db/database.ts'

export interface RewardRate {
  /** YYYY-MM-DD, UTC: the first day it is in force. */
  effective_from: string
  /** Annual, as a decimal string: 0.0376 is 3.76 %. */
  rate: string
  set_at: string
}

const ADVISORY_LOCK = 7_311_004

/**
 * Has rates that are being set wait until this transaction ends, and waits for those: each that was set before now is
 * there to be read, now and when a statement is explained. No lock on the table: that takes the right to update it.
 */
export async function holdRewardRates(tx: Transaction): Promise<void> {
  await tx.query('select pg_advisory_xact_lock_shared($1)', [ADVISORY_LOCK])
}

/** Sets the annual rate of the reward from a day on, until the day of the next one. Earlier settings stay on record. */
export async function setRewardRate(db: Queryable, effectiveFrom: string, rate: string): Promise<RewardRate> {
  // One statement, in which the clock is read behind the lock: generating waits for that.
  const { rows } = await db.query<RewardRate>(
    `
    with locked as materialized (select pg_advisory_xact_lock($3))
    insert into reward_rates (effective_from, set_at, rate)
    select $1::date, clock_timestamp(), $2::numeric from locked
    returning effective_from::text, set_at, trim_scale(rate)::text as rate`,
    [effectiveFrom, rate, ADVISORY_LOCK],
  )
  return rows[0]!
}

/** All settings, in the order of the days they are from, and then as they were set: the last one counts. */
export async function listRewardRates(db: Queryable): Promise<RewardRate[]> {
  const { rows } = await db.query<RewardRate>(`
    select effective_from::text, set_at, trim_scale(rate)::text as rate
    from reward_rates
    order by effective_from, set_at`)
  return rows
}
