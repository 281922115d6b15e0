import type { Queryable } from '../../db/database.ts'
import { EXAMPLE, type ExampleRecords } from '../../contract/example-records.ts'
import { presentOf } from '../../db/rows.ts'

/** The name of the demo customer, and the ref_ids of its records. */
export const DEMO = {
  name: 'Demo',
  identity: 'demo-identity',
  member: 'demo-member',
  institution: 'demo-institution',
  account: 'demo-account',
  fiatAccount: 'demo-bank',
  rule: 'demo-rule',
  wire: 'demo-wire',
  ruleWire: 'demo-rule-wire',
  webhook: 'Tests',
  unusedWebhook: 'Unused',
  client: 'Demo',
  spareClient: 'Unused',
  /** The only scope of the unused client. */
  spareScope: 'funding:read_profile' as const,
}

/**
 * Returns the demo's records by the names that examples use; undefined until all exist. The demo is created only in
 * an empty database, so its customer is the first one. What examples have deleted keeps its fixed id.
 */
export async function demoRecords(db: Queryable): Promise<ExampleRecords | undefined> {
  const { rows } = await db.query<ExampleRecords>(
    `
    select c.id as customer_id, p.id as profile_id, d.memo_id, d.id as instructions_id, i.id as identity_id,
           n.institution_id, n.id as institution_member_id, m.id as account_member_id, a.id as account_id,
           ap.id as account_profile_id, f.id as fiat_account_id, r.id as orchestration_rule_id,
           o.id as orchestration_id, o.source_transfer_id as transfer_id, k.id as client_id,
           s.id as statement_id, e.id as event_id, w.id as webhook_id, u.id as unused_webhook_id
    from customers c
    join profiles p on p.customer_id = $10 and p.type = 'DEFAULT'
    join lateral (
      select id, memo_id from fiat_deposit_instructions
      where customer_id = $10 and profile_id = p.id order by id limit 1
    ) d on true
    join identities i on i.customer_id = $10 and i.ref_id = $2
    join accounts a on a.customer_id = $10 and a.identity_id = i.id and a.ref_id = $3
    left join lateral (
      select id from account_members where customer_id = $10 and account_id = a.id order by id limit 1
    ) m on true
    left join identities g on g.customer_id = $10 and g.ref_id = $6
    left join lateral (
      select id, institution_id from institution_members
      where customer_id = $10 and institution_id = g.id order by id limit 1
    ) n on true
    join profiles ap on ap.customer_id = $10 and ap.account_id = a.id
    join fiat_accounts f on f.customer_id = $10 and f.ref_id = $4
    join orchestration_rules r on r.customer_id = $10 and r.ref_id = $5
    join lateral (
      select id, source_transfer_id from orchestrations
      where customer_id = $10 and orchestration_rule_id = r.id order by id limit 1
    ) o on true
    left join lateral (
      select id from api_clients where customer_id = $10 and scopes = array[$7] order by id limit 1
    ) k on true
    join lateral (select id from statements where customer_id = $10 order by period_start limit 1) s on true
    left join lateral (select id from events where customer_id = $10 order by id desc limit 1) e on true
    left join webhooks w on w.customer_id = $10 and w.name = $8
    left join webhooks u on u.customer_id = $10 and u.name = $9
    where c.id = $10 and c.name = $1`,
    [
      ...[DEMO.name, DEMO.identity, DEMO.account, DEMO.fiatAccount, DEMO.rule, DEMO.institution],
      ...[DEMO.spareScope, DEMO.webhook, DEMO.unusedWebhook, await firstCustomer(db)],
    ],
  )
  return rows[0] && { ...EXAMPLE, ...presentOf(rows[0]) }
}

/** Returns the id of the oldest customer, which the demo's is; undefined where there is none. */
export async function firstCustomer(db: Queryable): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>('select id from customers order by id limit 1')
  return rows[0]?.id
}
