import type { AuditAction } from '../../contract/audit-actions.ts'
import type { Queryable } from '../../db/database.ts'
import { forgedOrders } from '../records/orchestration.ts'
import { endedLater, SEALED_TABLES, type RowMacs, type SealedName } from '../../audit/sealed-rows.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { arraysOf } from '../../db/rows.ts'

/** The rules of rows that must not come from the database alone: their MACs, and what the audit log says of them. */

/** SQL: which rows `r` are of operators of the customer `$1`, or of the platform. */
const OF_OPERATORS = `r.operator_id in (select id from operators where coalesce(customer_id, '${PLATFORM_ID}') = $1)`
const OF: Partial<Record<SealedName, string>> = {
  operators: `coalesce(r.customer_id, '${PLATFORM_ID}') = $1`,
  operator_sessions: OF_OPERATORS,
  operator_links: OF_OPERATORS,
  operator_passkeys: OF_OPERATORS,
}

/** Tables whose rows never begin again: which are in use, and the actions that end them. */
const ENDED: readonly [table: string, live: string, ...actions: AuditAction[]][] = [
  ['approvals', "r.status in ('PENDING', 'APPROVED')", 'approval.use', 'approval.reject', 'approval.expire'],
  ['fiat_accounts', 'r.deleted_at is null', 'fiat_account.delete'],
  ['orchestration_rules', "r.status = 'ACTIVE'", 'orchestration_rule.delete'],
  ['profiles', 'r.deactivated_at is null', 'profile.deactivate'],
  ['webhooks', 'true', 'webhook.delete'],
]

/**
 * Rows that authenticate, as the audit log of `$1` should have them. The log lacks the records of a customer that was made
 * before the log, and those of the platform from before it. A sign-in is recorded a moment before its session, in the same
 * transaction.
 */
const AUDITED = {
  'every API client is in the audit log, and is as the log left it': `
    select format('API client %s', r.id) as detail
    from api_clients r
    where r.customer_id = $1 and r.disabled_at is null
      and (
        exists (select 1 from audit_log l where l.customer_id = $1 and l.subject_id = r.id::text and ${endedLater('r.sealed_at')})
        or exists (select 1 from audit_log l where l.customer_id = $1 and l.action = 'customer.create')
        and not exists (
          select 1 from audit_log l
          where l.customer_id = $1 and l.subject_id = r.id::text and l.action = 'api_client.create'
        )
      )`,
  'nothing is in use that has ended, says the audit log': ENDED.map(
    ([table, live, ...actions]) => `
    select format('${table} %s', r.id) as detail from ${table} r
    where r.customer_id = $1 and ${live} and exists (
      select 1 from audit_log l
      where l.customer_id = $1 and l.subject_id = r.id::text and l.outcome = 'DONE'
        and l.action in (${actions.map((action) => `'${action}'`).join(', ')})
    )`,
  ).join(' union all '),
} as const

const OPERATORS = `
  select r.id, r.sealed_at, r.created_at
  from operators r
  where coalesce(r.customer_id, '${PLATFORM_ID}') = $1 and r.disabled_at is null`
const SESSIONS = `
  select r.id, r.operator_id, r.sealed_at, r.created_at
  from operator_sessions r
  join operators o on o.id = r.operator_id
  where coalesce(o.customer_id, '${PLATFORM_ID}') = $1 and r.ended_at is null and r.expires_at > now()`

/** Operators and signing keys belong to no customer, the audit log does: the statement is given their rows. */
const UNRECORDED = {
  'every operator is in the audit log, and is as the log left it': {
    rows: OPERATORS,
    found: `
      exists (select 1 from audit_log l where l.customer_id = $1 and l.subject_id = s.id and ${endedLater('s.sealed_at')})
      or s.created_at > (select covered_from from audit_heads where customer_id = $1) and not exists (
        select 1 from audit_log l where l.customer_id = $1 and l.subject_id = s.id and l.action = 'operator.create'
      )`,
  },
  'every session of an operator is in the audit log, and was not ended': {
    rows: SESSIONS,
    found: `
      exists (select 1 from audit_log l where l.customer_id = $1 and l.subject_id = s.id and ${endedLater('s.sealed_at')})
      or s.created_at > (select covered_from from audit_heads where customer_id = $1) and not exists (
        select 1 from audit_log l
        where l.customer_id = $1 and l.actor_id = s.operator_id and l.action = 'operator.sign_in' and l.outcome = 'DONE'
          and l.created_at between s.created_at - interval '1 minute' and s.created_at + interval '1 minute'
      )`,
  },
  'no passkey or link of an operator that was removed or used is in use': {
    rows: `
      select r.id::text, r.operator_id, r.sealed_at, r.created_at from operator_passkeys r
      where ${OF_OPERATORS} and r.removed_at is null
      union all
      select encode(r.hash, 'hex'), r.operator_id, r.sealed_at, r.created_at from operator_links r
      where ${OF_OPERATORS} and r.used_at is null`,
    found: `
      exists (select 1 from audit_log l where l.customer_id = $1 and l.subject_id = s.id and ${endedLater('s.sealed_at')})
      or exists (
        select 1 from audit_log l
        where l.customer_id = $1 and l.subject_id = s.operator_id and l.action = 'operator.sign_in' and l.outcome = 'DONE'
          and l.changes #>> '{after,proof}' = s.id)`,
  },
  'no signing key that was retired is in use': {
    rows: `
      select r.id, null as sealed_at, r.created_at from signing_keys r
      where $1::uuid = '${PLATFORM_ID}' and r.retired_at is null`,
    found: `
      exists (select 1 from audit_log l
              where l.customer_id = $1 and l.action = 'signing_key.retire' and l.subject_id = s.id)`,
  },
} as const

/** What breaks these rules, for one customer or the platform. */
export async function rowDisagreements(
  db: Queryable,
  customerId: string,
  macs: RowMacs,
): Promise<{ rule: string; detail: string }[]> {
  const found: { rule: string; detail: string }[] = []
  for (const table of SEALED_TABLES)
    for (const { id, objection } of await macs.notGenuine(db, table, customerId, OF[table]))
      found.push({ rule: `every row of ${table} matches its MAC`, detail: `${table} ${id}: ${objection}` })
  for (const { id, objection } of await forgedOrders(db, customerId, macs))
    found.push({ rule: 'every orchestration that is to be paid was ordered', detail: `${id}: ${objection}` })
  for (const [rule, text] of Object.entries(AUDITED)) {
    const { rows } = await db.query<{ detail: string }>(text, [customerId])
    found.push(...rows.map(({ detail }) => ({ rule, detail })))
  }
  for (const [rule, { rows: text, found: condition }] of Object.entries(UNRECORDED)) {
    const { rows } = await db.query<{
      id: string
      operator_id?: string
      sealed_at: string | null
      created_at: string
    }>(text, [customerId])
    if (rows.length === 0) continue
    const bad = await db.query<{ id: string }>(
      `
      select s.id
      from unnest($2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[]) as s (id, operator_id, sealed_at, created_at)
      where ${condition}`,
      [
        customerId,
        rows.map(({ id }) => id),
        rows.map(({ operator_id }) => operator_id ?? null),
        ...arraysOf(rows, 'sealed_at', 'created_at'),
      ],
    )
    found.push(...bad.rows.map(({ id }) => ({ rule, detail: id })))
  }
  return found
}
