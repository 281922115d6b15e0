import type { Database } from '../../db/database.ts'
import { orElse, warn, type Finding } from '../../finding.ts'
import { REWARD_ASSET } from './statement.ts'

/** Most customers that are listed. */
const TOLD_MAX = 5

/** Warns of ended months that a holder of the reward asset has no statement for, though a rate was in force. */
export async function checkStatements(db: Database): Promise<Finding[]> {
  // The worker has an hour for a month's statements.
  const { rows: rates } = await db.query<{ since: string | null; until: string }>(`
    select date_trunc('month', min(effective_from)::timestamptz) as since,
           date_trunc('month', clock_timestamp() - interval '1 hour') as until
    from reward_rates`)
  const { since, until } = rates[0]!
  const { rows } = await db.query<{ customer_id: string; months: string }>(
    `
    select h.customer_id,
           (select string_agg(to_char(m.month, 'YYYY-MM'), ', ' order by m.month)
            from generate_series(h.since, $3::timestamptz - interval '1 month', interval '1 month') m (month)
            where not exists (select 1 from statements s
                              where s.customer_id = h.customer_id and s.period_start = m.month
                                and s.status <> 'STATEMENT_STATUS_INITIATED')) as months
    from (
      select b.customer_id,
             date_trunc('month', greatest($2::timestamptz, min(
               (select min(e.created_at) from entries e
                where e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = $1
                  and e.profile_id is not null)))) as since
      from balances b
      where b.asset = $1
      group by b.customer_id
    ) h
    where (select count(*) from statements s
           where s.customer_id = h.customer_id and s.period_start >= h.since and s.period_start < $3
             and s.status <> 'STATEMENT_STATUS_INITIATED')
      < extract(year from age($3::timestamptz, h.since)) * 12 + extract(month from age($3::timestamptz, h.since))
    limit ${TOLD_MAX}`,
    [REWARD_ASSET, since ?? until, until],
  )
  const missing = rows.map(({ customer_id, months }) =>
    warn(
      `customer ${customer_id} held ${REWARD_ASSET}, and has no statement of ${months}`,
      'bursar statements generate --period <YYYY-MM> for each, then bursar statements pay',
    ),
  )
  return orElse(missing, 'no ended month is missing')
}
