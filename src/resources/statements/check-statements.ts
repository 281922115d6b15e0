import type { Database } from '../../db/database.ts'
import { orElse, warn, type Finding } from '../../finding.ts'
import { LACKING } from './generate-statements.ts'
import { lastPeriod, monthsSince } from './period.ts'
import { REWARD_ASSET } from './statement.ts'

/** Warns of ended months that a holder of the reward asset has no statement for, though a rate was in force. */
export async function checkStatements(db: Database): Promise<Finding[]> {
  // The worker has an hour for a month's statements.
  const { rows: moments } = await db.query<{ at: string }>(
    `select clock_timestamp() - interval '1 hour' as at`,
  )
  const last = lastPeriod(moments[0]!.at)
  const { rows } = await db.query<{ customer_id: string; since: string; present: string[] }>(
    `
    select h.customer_id, to_char(h.since, 'YYYY-MM') as since,
           (select coalesce(json_agg(to_char(s.period_start, 'YYYY-MM')), '[]') from statements s
            where s.customer_id = h.customer_id and s.status <> 'STATEMENT_STATUS_INITIATED') as present
    ${LACKING}
    limit 5`,
    [REWARD_ASSET, last.next],
  )
  const missing = rows.map(({ customer_id, since, present }) => {
    const months = monthsSince(since, last)
      .map(({ name }) => name)
      .filter((name) => !present.includes(name))
    return warn(
      `customer ${customer_id} held ${REWARD_ASSET}, and has no statement of ${months.join(', ')}`,
      'bursar statements generate --period <YYYY-MM> for each, then bursar statements pay',
    )
  })
  return orElse(missing, 'no ended month is missing')
}
