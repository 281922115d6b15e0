import type { Queryable } from '../db/database.ts'
import { orElse, warn, type Finding } from '../finding.ts'
import type { Settings } from '../settings.ts'
import { faultOfAddress, targetRules } from './targets.ts'

/** Addresses of this machine and of cloud providers' metadata, which hands out credentials. */
const NEVER_OPEN = ['127.0.0.1', '::1', '169.254.169.254', 'fd00:ec2::254']
const TOLD_MAX = 5

/** Warns of private addresses that webhooks may reach, and of failing webhooks. Without a database, only of the former. */
export async function checkWebhooks(db: Queryable | undefined, settings: Settings): Promise<Finding[]> {
  const rules = targetRules(settings)
  const open = NEVER_OPEN.filter(
    (address) => settings.mode === 'live' && faultOfAddress(address, rules) === undefined,
  )
  const unsafe = open.map((address) =>
    warn(
      `BURSAR_WEBHOOK_ALLOWED_NETWORKS lets customers reach ${address}`,
      'allow only the networks of the receivers',
    ),
  )
  if (db === undefined) return unsafe
  const { rows } = await db.query<{
    customer_id: string
    name: string
    status: string
    since: string | null
  }>(
    `select customer_id, name, status, failing_since as since
     from webhooks
     where status = 'ACTIVE' and failing_since < clock_timestamp() - interval '10 minutes'
        or status = 'DISABLED' and disabled_reason is not null
     order by failing_since
     limit $1`,
    [TOLD_MAX],
  )
  const failing = rows.map(({ customer_id, name, status, since }) =>
    warn(
      status === 'ACTIVE'
        ? `deliveries to webhook "${name}" of customer ${customer_id} have failed since ${since}`
        : `webhook "${name}" of customer ${customer_id} is disabled, because deliveries failed since ${since}`,
      'tell the customer: the attempts of its deliveries have the cause (docs/guides/operating.md)',
    ),
  )
  return orElse([...unsafe, ...failing], 'none fails')
}
