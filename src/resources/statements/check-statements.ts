import type { Database } from '../../db/database.ts'
import { orElse, warn, type Finding } from '../../finding.ts'
import { LACKING } from './generate-statements.ts'
import { REWARD_ASSET } from './statement.ts'

/** Warns of ended months that a holder of the reward asset has no statement for, though a rate was in force. */
export async function checkStatements(db: Database): Promise<Finding[]> {
  // The worker has an hour for a month's statements.
  const { rows: ended } = await db.query<{ until: string }>(
    `select date_trunc('month', clock_timestamp() - interval '1 hour') as until`,
  )
  const { rows } = await db.query<{ customer_id: string; months: string }>(
    `
    select h.customer_id,
           (select string_agg(to_char(m.month, 'YYYY-MM'), ', ' order by m.month)
            from generate_series(h.since, $2::timestamptz - interval '1 month', interval '1 month') m (month)
            where not exists (select 1 from statements s
                              where s.customer_id = h.customer_id and s.period_start = m.month
                                and s.status <> 'STATEMENT_STATUS_INITIATED')) as months
    ${LACKING}
    limit 5`,
    [REWARD_ASSET, ended[0]!.until],
  )
  const missing = rows.map(({ customer_id, months }) =>
    warn(
      `customer ${customer_id} held ${REWARD_ASSET}, and has no statement of ${months}`,
      'bursar statements generate --period <YYYY-MM> for each, then bursar statements pay',
    ),
  )
  return orElse(missing, 'no ended month is missing')
}
