import { HOPS_MAX } from '../movements/deposit.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { WITHDRAWAL_TYPES } from '../../contract/payout-sql.ts'

/**
 * The rules that compare events with records, one to one (API behaviour, Events). They cover the changes since
 * `event_history.complete_from`: older changes have no events, or their events are dropped.
 */

/** In SQL: since when each change has its event. */
const COMPLETE_FROM = '(select complete_from from event_history)'

/**
 * In SQL: whether a record was created in its last status. Times alone do not tell that: while the clock is behind a
 * balance's last entry, a payment is made and ends at the moment of that entry. A deposit is seen at the clock's own time.
 */
const TRANSFER_BEGAN_ENDED = `(type not in ${WITHDRAWAL_TYPES} and status = 'COMPLETED' and updated_at = created_at)`
const ORCHESTRATION_BEGAN_ENDED = `(hops >= ${HOPS_MAX} or orchestration_rule_id is null and destination ? 'profile')`

/** The changes that the records show, as `id`, `at`, `type`. */
const CHANGES = `
  select id, created_at as at, 'transfer.' || lower(type collate "C") || '.' ||
         case when ${TRANSFER_BEGAN_ENDED} then lower(status collate "C") else 'pending' end as type
  from transfers where customer_id = $1 and customer_id <> '${PLATFORM_ID}'
  union all
  select id, updated_at, 'transfer.' || lower(type collate "C") || '.' || lower(status collate "C")
  from transfers where customer_id = $1 and customer_id <> '${PLATFORM_ID}'
    and status <> 'PENDING' and not ${TRANSFER_BEGAN_ENDED}
  union all
  select id, created_at, 'orchestration.' || case when ${ORCHESTRATION_BEGAN_ENDED} then lower(status collate "C") else 'processing' end
  from orchestrations where customer_id = $1
  union all
  select id, updated_at, 'orchestration.' || lower(status collate "C")
  from orchestrations where customer_id = $1 and status <> 'PROCESSING' and not ${ORCHESTRATION_BEGAN_ENDED}
  union all
  select id, generated_at, 'statement.generated' from statements where customer_id = $1 and generated_at is not null
  union all
  select id, paid_at, 'statement.paid' from statements where customer_id = $1 and paid_at is not null
  union all
  select id, created_at, 'fiat_account.' || lower(status collate "C")
  from fiat_accounts where customer_id = $1 and status <> 'PENDING'
  union all
  select id, approved_at, 'crypto_destination_address.approved'
  from crypto_destination_addresses where customer_id = $1 and approved_at is not null
  union all
  select id, rejected_at, 'crypto_destination_address.rejected'
  from crypto_destination_addresses where customer_id = $1 and rejected_at is not null
  union all
  select id, created_at, 'approval.requested' from approvals where customer_id = $1
  union all
  select id, approved_at, 'approval.approved' from approvals where customer_id = $1 and approved_at is not null
  union all
  select id, ended_at, 'approval.' || lower(status collate "C")
  from approvals where customer_id = $1 and status in ('REJECTED', 'EXPIRED')`

/** In SQL: the beginning of the id that an event of this time has (src/db/ids.ts). */
const START_OF_ID = `
  (select format('%s-%s-7%s', left(ms, 8), right(ms, 4), lpad(to_hex(micros % 1000 * 4096 / 1000), 3, '0'))
   from (select (extract(epoch from created_at) * 1000000)::bigint as micros) t,
        lateral (select lpad(to_hex(micros / 1000), 12, '0') as ms) m)`

/** In SQL: whether an event's stored object tells the change that its type tells. */
const TELLS_ITS_TYPE = `
  case split_part(type, '.', 1)
    when 'webhook' then true
    when 'approval' then
      object ->> 'id' = object_id::text
        and lower((object ->> 'status') collate "C") = case split_part(type, '.', 2) when 'requested' then 'pending' else split_part(type, '.', 2) end
    when 'statement' then
      object ->> 'id' = object_id::text and object ->> 'status' = 'STATEMENT_STATUS_' || upper(split_part(type, '.', 2) collate "C")
    when 'identity' then
      object ->> 'identity_id' = object_id::text and lower((object ->> 'new_summary_status') collate "C") = split_part(type, '.', 2)
        and object ->> 'old_summary_status' <> object ->> 'new_summary_status'
    when 'account' then
      object ->> 'account_id' = object_id::text and lower((object ->> 'new_summary_status') collate "C") = split_part(type, '.', 2)
        and object ->> 'old_summary_status' <> object ->> 'new_summary_status'
    else object ->> 'id' = object_id::text and lower((object ->> 'status') collate "C") = split_part(type, '.', 2)
  end`

/** The identities and accounts with their summary_status. */
const SUMMARIES = `
  select 'identity' as record, i.id, i.created_at,
         case when i.user_disabled or i.admin_disabled then 'DISABLED' else i.status end as status
  from identities i where i.customer_id = $1
  union all
  select 'account', a.id, a.created_at,
         case when a.user_disabled or a.admin_disabled or i.user_disabled or i.admin_disabled then 'DISABLED'
              else i.status end
  from accounts a
  join identities i on i.customer_id = $1 and i.id = a.identity_id
  where a.customer_id = $1`

export const EVENT_RULES: Record<string, string> = {
  'every change of a status has its event, and every event its change': `
    select format('%s of %s at %s: %s events, %s changes', coalesce(e.type, c.type), coalesce(e.id, c.id),
                  coalesce(e.at, c.at), coalesce(e.count, 0), coalesce(c.count, 0)) as detail
    from (
      select id, at, type, count(*) from (${CHANGES}) changes
      where at >= ${COMPLETE_FROM} group by id, at, type
    ) c
    full join (
      select object_id as id, created_at as at, type, count(*) from events
      where customer_id = $1 and created_at >= ${COMPLETE_FROM} and not is_test
        and split_part(type, '.', 1) not in ('identity', 'account', 'webhook')
      group by object_id, created_at, type
    ) e on e.id = c.id and e.at = c.at and e.type = c.type
    where e.count is distinct from c.count`,
  'every event has the time and the object of its change': `
    select format('event %s (%s) of %s', id, type, object_id) as detail
    from events
    where customer_id = $1
      and (left(id::text, 18) <> ${START_OF_ID}
           or not is_test and case
                when split_part(type, '.', 1) in ('transfer', 'orchestration') then object is not null
                else (${TELLS_ITS_TYPE}) is not true
              end)`,
  'the last event of every identity and account tells its summary_status': `
    select format('%s %s is %s, its last event says %s', s.record, s.id, s.status, coalesce(e.status, 'nothing')) as detail
    from (${SUMMARIES}) s
    full join (
      select distinct on (object_id) object_id as id, object ->> 'new_summary_status' as status
      from events
      where customer_id = $1 and created_at >= ${COMPLETE_FROM} and not is_test
        and split_part(type, '.', 1) in ('identity', 'account')
      order by object_id, events.id desc
    ) e on e.id = s.id
    where s.id is null
       -- Becoming PENDING or ERROR is no event.
       or e.status <> s.status and s.status not in ('PENDING', 'ERROR')
       or e.status is null and s.status not in ('PENDING', 'ERROR') and s.created_at >= ${COMPLETE_FROM}`,
}
