import { originOfLoop } from '../../contract/actor.ts'
import { insertAccount } from '../../resources/accounts/create-account.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import type { Context } from '../../resources/context.ts'
import { Problem } from '../../contract/problems.ts'
import { SCOPES } from '../../contract/scopes.ts'
import { insertIdentity } from '../../resources/identities/create-identity.ts'
import type { Ledger } from '../../money/movements/queue.ts'
import { deposit } from '../../money/movements/deposit.ts'
import { requireBankAccount } from '../../money/movements/fiat-withdrawal.ts'
import { insertFiatAccount } from '../../money/records/fiat-account.ts'
import { insertInstructions, type InstructionsRow } from '../../money/records/fiat-deposit-instructions.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'
import { insertWebhook } from '../../resources/webhooks/create-webhook.ts'
import { insertRule } from '../../resources/orchestrations/create-orchestration-rule.ts'
import {
  addresses,
  credentialsFile,
  followBaseUrl,
  knownClient,
  writeCredentials,
  type SandboxCredentials,
} from './credentials.ts'
import { DEMO, firstCustomer } from './demo-records.ts'
import { firstMoment, lastMonths, makeHistory, makeStatements, monthsFrom } from './history.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { takeLock } from '../../db/locks.ts'

const DEMO_ORIGIN = originOfLoop('demo')

/**
 * Creates the demo customer in an empty database; undefined where a customer exists. Of processes that start
 * together, one creates it. The credentials file is written before the commit. The customer has three months of
 * history. Then wires arrive, one for its profile and one for its rule, and its statements are generated, so that
 * there are records to read and money to spend. The next start completes an interrupted demo.
 */
export async function makeDemo(
  {
    db,
    ledger,
    networks,
    rowMacs,
    webhookSecrets,
  }: Pick<Context, 'db' | 'ledger' | 'networks' | 'rowMacs' | 'webhookSecrets'>,
  { dataDir, baseUrl }: { dataDir: string; baseUrl: string },
): Promise<SandboxCredentials | undefined> {
  const credentials = await transaction(db, async (tx) => {
    await takeLock(tx, 'demo')
    const { rows } = await tx.query('select 1 from customers limit 1')
    if (rows.length > 0) {
      await followBaseUrl(credentialsFile(dataDir), baseUrl)
      return undefined
    }

    const months = lastMonths(await readClock(tx))
    const { customer_id, profile_id } = await createCustomer(tx, DEMO.name, firstMoment(months))
    await makeHistory(tx, { customer_id, profile_id }, months)
    // Suites go on with the credentials that they have when the sandbox begins anew.
    const credentials = await knownClient(credentialsFile(dataDir))
    const client = await createApiClient(tx, rowMacs, customer_id, SCOPES, { name: DEMO.client, credentials })
    // The examples of the API reference rotate and delete this client. Its secret is discarded.
    const spare = await createApiClient(tx, rowMacs, customer_id, [DEMO.spareScope], {
      name: DEMO.spareClient,
    })
    const wires = { account: requireBankAccount(networks), rowMacs }
    const instructions = await insertInstructions(tx, wires, customer_id, {
      profile_id,
      fiat_network: 'WIRE',
    })
    const { identity, account } = await makeIdentities(tx, customer_id, client.client_id)
    await insertFiatAccount(tx, customer_id, {
      ref_id: DEMO.fiatAccount,
      identity_id: identity.id,
      fiat_account_owner: { person_details: ADA },
      fiat_network_instructions: { wire: WIRE },
      status: 'APPROVED',
    })
    const asked = {
      ref_id: DEMO.rule,
      profile_id: account.profile_id!,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: { network: 'WIRE' } },
      destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
      nickname: 'Wires become USDP on Ethereum',
    } as const
    const rule = await insertRule(tx, { networks, rowMacs }, customer_id, asked, DEMO_ORIGIN)
    for (const name of [DEMO.webhook, DEMO.unusedWebhook])
      await insertWebhook(tx, webhookSecrets, customer_id, {
        name,
        url: RECEIVER,
        event_types: ['webhook.disabled'],
      })
    const written: SandboxCredentials = {
      ...addresses(baseUrl),
      ...client,
      customer_id,
      profile_id,
      memo_id: instructions.memo_id,
      identity_id: identity.id,
      account_id: account.id,
      orchestration_rule_id: rule.id,
      orchestration_memo_id: rule.source.fiat!.memo_id,
    }
    await recordNow(
      tx,
      customer_id,
      audited(DEMO_ORIGIN, 'customer.create', customer_id),
      audited(DEMO_ORIGIN, 'api_client.create', client.client_id, { after: { scopes: SCOPES } }),
      audited(DEMO_ORIGIN, 'api_client.create', spare.client_id, { after: { scopes: [DEMO.spareScope] } }),
    )
    await writeCredentials(credentialsFile(dataDir), written)
    return written
  })
  await finishDemo(db, ledger)
  return credentials
}

/** Where a receiver under development may listen. Only tests and resent events are sent to it. */
const RECEIVER = 'http://127.0.0.1:4000/webhooks'

const ADDRESS = {
  country: 'USA',
  address1: '2 Example Street',
  city: 'New York',
  province: 'NY',
  zip_code: '10001',
}
const WIRE = {
  account_number: '000987654321',
  fiat_account_owner_address: ADDRESS,
  routing_details: {
    routing_number_type: 'ABA' as const,
    routing_number: '021000021',
    bank_name: 'First Example Bank',
    bank_address: { ...ADDRESS, address1: '1 Example Plaza' },
  },
}
const ADA = { first_name: 'Ada', last_name: 'Example' }

/**
 * An approved person with an account, a second person who is a member of the account, and an institution with that
 * person as a member.
 */
async function makeIdentities(tx: Transaction, customerId: string, clientId: string) {
  const identityOf = (identity: Parameters<typeof insertIdentity>[2]) =>
    insertIdentity(tx, customerId, identity, 'APPROVED')
  const identity = await identityOf({ ref_id: DEMO.identity, person_details: ADA })
  const member = await identityOf({
    ref_id: DEMO.member,
    person_details: { first_name: 'Grace', last_name: 'Example' },
  })
  await identityOf({
    ref_id: DEMO.institution,
    institution_details: { name: 'Example Ltd' },
    institution_members: [{ identity_id: member.id, roles: ['BENEFICIAL_OWNER'], ownership: '60' }],
  })
  const account = await insertAccount(
    tx,
    customerId,
    clientId,
    {
      identity_id: identity.id,
      ref_id: DEMO.account,
      description: 'Savings of Ada Example',
      members: [{ identity_id: member.id, roles: ['AUTHORIZED_USER'] }],
    },
    true,
  )
  return { identity, account }
}

const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

/** Completes the demo. Each step happens once, despite concurrent processes and interruptions. */
async function finishDemo(db: Database, ledger: Ledger): Promise<void> {
  const unfinished = await selectUnfinished(db)
  if (unfinished === undefined) return
  const { customer_id, created_at, own, of_rule } = unfinished
  await wire(ledger, customer_id, own, { ref_id: DEMO.wire, minor: 10_000_00n })
  await wire(ledger, customer_id, of_rule, { ref_id: DEMO.ruleWire, minor: 100_00n })
  await makeStatements(db, customer_id, monthsFrom(created_at))
}

type Instructions = Pick<InstructionsRow, 'id' | 'profile_id' | 'memo_id'>
interface Unfinished {
  customer_id: string
  created_at: string
  own: Instructions
  of_rule: Instructions
}

/**
 * Finds the demo customer, which is the first customer, and the instructions of its profile and its rule. Undefined
 * when the last step is done: the statements of its first two months are paid.
 */
async function selectUnfinished(db: Database): Promise<Unfinished | undefined> {
  const { rows } = await db.query<Unfinished>(
    `
    select c.id as customer_id, c.created_at, own.instructions as own, of_rule.instructions as of_rule
    from customers c
    join profiles p on p.customer_id = $3 and p.type = 'DEFAULT'
    join orchestration_rules r on r.customer_id = $3 and r.ref_id = $2
    join lateral (
      select to_json(i) as instructions from fiat_deposit_instructions i
      where customer_id = $3 and profile_id = p.id order by id limit 1
    ) own on true
    join lateral (
      select to_json(i) as instructions from fiat_deposit_instructions i
      where customer_id = $3 and id = r.source_id
    ) of_rule on true
    where c.id = $3 and c.name = $1
      and (
        select count(*) from statements s
        where s.customer_id = $3 and s.status = 'STATEMENT_STATUS_PAID'
          and s.period_start < date_trunc('month', c.created_at) + interval '2 months'
      ) < 2`,
    [DEMO.name, DEMO.rule, await firstCustomer(db)],
  )
  return rows[0]
}

/** Simulates a wire with the memo of these instructions, once. */
async function wire(
  ledger: Ledger,
  customerId: string,
  { id, profile_id, memo_id }: Instructions,
  { ref_id, minor }: { ref_id: string; minor: bigint },
): Promise<void> {
  const arrived = deposit(
    customerId,
    {
      profile_id,
      type: 'WIRE_DEPOSIT',
      asset: 'USD',
      minor,
      arrivedAt: 'bank',
      place: { id },
      record: { ref_id, memo: memo_id },
    },
    DEMO_ORIGIN,
  )
  try {
    await ledger.submit(customerId, { ...arrived, ref_id })
  } catch (error) {
    if (!(error instanceof Problem && error.slug === 'already-exists')) throw error
  }
}
