import type { Queryable } from '../../db/database.ts'
import { failed, ok, warn, type Finding } from '../../finding.ts'
import { IS_NOT_BEGUN } from '../../networks/outgoing-transfers.ts'

const OVERDUE_SECONDS_WARN = 30
const OVERDUE_SECONDS_MAX = 300

/** Whether a worker does the due work that waits for nothing but a worker. `isHere`: the settings let this process run one. */
export async function checkWorker(db: Queryable, isHere: boolean): Promise<Finding> {
  const { rows } = await db.query<{ count: number; seconds: number }>(`
  select count(*)::integer as count, coalesce(extract(epoch from clock_timestamp() - min(due_at)), 0)::integer as seconds
  from (
    select due_at from outgoing_transfers where due_at < clock_timestamp() and waiting_code is null
    union all
    select t.created_at from transfers t where ${IS_NOT_BEGUN}
    union all
    select created_at from orchestrations o
    where status = 'PROCESSING' and destination_transfer_id is null
      and not exists (
        select 1 from customer_freezes f
        where f.customer_id = o.customer_id and f.subject in (o.customer_id, o.profile_id) and f.lifted_at is null)
  ) due`)
  const { count, seconds } = rows[0]!
  const advice = isHere
    ? 'run bursar serve, and check its log'
    : 'run bursar serve with BURSAR_WORKER=true on one machine'
  if (seconds > OVERDUE_SECONDS_MAX)
    return failed(`${count} items overdue by ${seconds} s: no worker is running`, advice)
  if (seconds > OVERDUE_SECONDS_WARN) return warn(`${count} items overdue by ${seconds} s`, advice)
  return ok(count === 0 ? 'no work is due' : `${count} items due for ${seconds} s`)
}
