import type { Queryable } from '../db/database.ts'

export interface RewardRate {
  /** YYYY-MM-DD, UTC: the first day it is in force. */
  effective_from: string
  /** Annual, as a decimal string: 0.0376 is 3.76 %. */
  rate: string
  set_at: string
}

/** Sets the annual rate of the reward from a day on, until the day of the next one. Earlier settings stay on record. */
export async function setRewardRate(db: Queryable, effectiveFrom: string, rate: string): Promise<RewardRate> {
  // One statement, so that the clock is read behind its lock on the table: generating waits for that.
  const { rows } = await db.query<RewardRate>(
    `
    insert into reward_rates (effective_from, set_at, rate) values ($1, clock_timestamp(), $2)
    returning effective_from::text, set_at, trim_scale(rate)::text as rate`,
    [effectiveFrom, rate],
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
