/**
 * Two customers with the same records of every kind, for the tests that walk all operations: bad input, tenancy, and the
 * replies against the API document. The operations of the first customer are answered (good-requests.ts).
 */
import { originOfLoop } from '../src/contract/actor.ts'
import type { ApprovalDecision } from '../src/contract/approval.ts'
import type { ClientScope } from '../src/contract/scopes.ts'
import { createApiClient, disableApiClient } from '../src/access/tokens/api-clients.ts'
import { signStatement } from '../src/governance/approvals/approval-statement.ts'
import { REJECTED_ACCOUNT_NUMBER } from '../src/networks/simulated/magic-addresses.ts'
import { readApproval } from '../src/rails/payouts/decide-approval.ts'
import { setAccountDisabled } from '../src/resources/accounts/set-account-disabled.ts'
import { addTestApprover, withdrawWithApproval } from './approvers.ts'
import {
  ACCOUNTS,
  ADDRESSES,
  APPROVALS,
  BOOK_ENTRY,
  CONVERSIONS,
  EVENTS,
  FIAT_ACCOUNTS,
  IDENTITIES,
  INSTRUCTIONS,
  ORCHESTRATIONS,
  PROFILES,
  QUOTES,
  RULES,
  TRANSFERS,
  WEBHOOKS,
  WITHDRAWALS,
} from './paths.ts'
import { setPolicy } from './policies.ts'
import {
  approve,
  credit,
  DESTINATION,
  fund,
  insertStatements,
  newCustomer,
  ROW_MACS,
  startTestService,
  TEST_ORIGIN,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'

/** A record as the service answers it. */
export type Found = Record<string, unknown> & { id: string }

/** What each customer has. Of each kind that is listed there are at least two; those that are named here are whole. */
export type Kind =
  | 'customer'
  | 'profile'
  | 'second'
  | 'identity'
  | 'institution'
  | 'institution_member'
  | 'account'
  | 'joint'
  | 'account_member'
  | 'instructions'
  | 'address'
  | 'address_of_second'
  | 'fiat_account'
  | 'transfer'
  | 'cancellable'
  | 'deposit'
  | 'rule'
  | 'rule_of_second'
  | 'orchestration'
  | 'conversion'
  | 'quote'
  | 'used_quote'
  | 'statement'
  | 'book'
  | 'pending'
  | 'client'
  | 'event'
  | 'webhook'
  | 'second_webhook'
  | 'disabled_webhook'
  | 'approval'
export type Records = Record<Kind, Found>

/** What an approver signed about an approval. */
export interface TestApproval extends Found {
  approver_id: string
  signed: Record<ApprovalDecision, string>
}

export interface World {
  customer: TestCustomer
  other: TestCustomer
  /** The customer's records, with the ref_id `taken` where the kind has one. */
  own: Records
  others: Records
  /** The customer's records that may not withdraw: identities, their accounts and those accounts' profiles. */
  barred: Record<'DENIED' | 'DISABLED', Record<'identity' | 'account' | 'profile', string>>
  /** A fiat account that the bank has rejected, and one that the customer has deleted. */
  rejected: string
  deleted: string
  /** A profile that the customer has deactivated, and one from which the policy lets nothing be paid. */
  deactivated: string
  blocked: string
  /** A fee quote for 10 USDP on ETHEREUM to DESTINATION that is too old. */
  expired_quote: string
  /** API clients: with a scope that the customer's token lacks, and a deleted one. */
  stronger_client: string
  deleted_client: string
  /** Approvals that are decided or have ended; `change` is of a change. */
  approvals: Record<'decided' | 'ended', TestApproval> & { change: string }
}

/** Made by `openWorld`, for one test file at a time. */
export let service: TestService
export let world: World

/** What is left of each customer's USD: the records cost 24. */
const FUNDS = '1024'
/** An address of ETHEREUM beside DESTINATION, from EIP-55. */
export const ETHEREUM_ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const EIP55_ADDRESS = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'

export async function openWorld(): Promise<void> {
  service = await startTestService()
  const [customer, other] = [await newCustomer(service), await newCustomer(service)]
  for (const each of [customer, other]) await fund(each, FUNDS)
  const own = await recordsOf(customer, 'taken')
  const others = await recordsOf(other, 'of another customer')
  const expired = await made(customer, QUOTES, quoteOf({}))
  await service.owner.query('update fee_quotes set expires_at = created_at where id = $1', [expired.id])
  await ROW_MACS.seal(service.owner, 'fee_quotes', customer.customer_id, expired.id)
  const deleted_client = await clientOf(customer, ['funding:read_profile'])
  await disableApiClient(service.db, deleted_client, TEST_ORIGIN)
  world = {
    ...{ customer, other, own, others },
    barred: {
      DENIED: await barredOf(customer, 'DENIED'),
      DISABLED: await barredOf(customer, 'DISABLED', own.identity.id),
    },
    rejected: (await made(customer, FIAT_ACCOUNTS, fiatAccountOf(REJECTED_ACCOUNT_NUMBER))).id,
    deleted: await deletedBy(customer),
    deactivated: await deactivatedBy(customer),
    blocked: await blockedBy(customer),
    expired_quote: expired.id,
    stronger_client: await clientOf(customer, ['funding:read_profile', 'nobody:has_this' as ClientScope]),
    deleted_client,
    approvals: {
      change: await endedChangeOf(customer),
      decided: await approvalOf(customer, 'approve'),
      ended: await approvalOf(customer, 'reject'),
    },
  }
}

async function recordsOf(by: TestCustomer, ref_id: string): Promise<Records> {
  const { customer_id, profile_id } = by
  const second = await made(by, PROFILES, { nickname: `Second: ${ref_id}` })
  const { id: identity_id } = await made(by, IDENTITIES, { ref_id, person_details: PERSON })
  await approve(by, identity_id)
  const identity = (await by.call<Found>('GET', `${IDENTITIES}/${identity_id}`)).body
  const account = await made(by, ACCOUNTS, { account: { identity_id, ref_id } })
  const institution = await made(by, IDENTITIES, {
    ref_id: 'another',
    institution_details: { name: 'Acme' },
    institution_members: [{ identity_id, roles: ['TRUSTEE'] }],
  })
  const joint = await made(by, ACCOUNTS, {
    account: { identity_id, members: [{ identity_id, roles: [] }] },
    create_profile: true,
  })
  const { rule } = await made(by, RULES, ruleOf(by, { ref_id }))
  const source = { profile: { profile_id: second.id } }
  const ofSecond = { ref_id: 'another', profile_id: second.id, source_asset: 'USDG', source }
  const { rule: rule_of_second } = await made(by, RULES, ruleOf(by, ofSecond))
  const toPyusd = { destination_asset: 'PYUSD', source_amount: '1' }
  await made(by, ORCHESTRATIONS, orchestrationOf(by, { ref_id: 'another', ...toPyusd }))
  const onEthereum = { profile_id, crypto_network: 'ETHEREUM' }
  const used_quote = await made(by, QUOTES, quoteOf({}))
  const held = { ref_id, identity_id, account_id: account.id }
  await convert(by)
  await made(by, FIAT_ACCOUNTS, fiatAccountOf('2'))
  const [webhook, second_webhook, disabled_webhook] = [
    await webhookOf(by, { name: `Hook: ${ref_id}` }),
    await webhookOf(by),
    await webhookOf(by, { status: 'DISABLED' }),
  ]
  const pending = await bookOf(by, { address: EIP55_ADDRESS })
  await service.owner.query("update crypto_destination_addresses set status = 'PENDING' where id = $1", [
    pending.id,
  ])
  const records: Omit<Records, 'deposit' | 'event' | 'statement'> = {
    ...{ second, identity, institution, account, joint, used_quote, pending },
    ...{ webhook, second_webhook, disabled_webhook },
    customer: { id: customer_id },
    profile: { id: profile_id, nickname: 'Default', type: 'DEFAULT' },
    institution_member: firstOf(institution.institution_members),
    account_member: firstOf(joint.members),
    instructions: await made(by, INSTRUCTIONS, { profile_id, fiat_network: 'WIRE', ...held }),
    address: await made(by, ADDRESSES, { ...onEthereum, ...held }),
    address_of_second: await made(by, ADDRESSES, { ...onEthereum, profile_id: second.id }),
    fiat_account: await made(by, FIAT_ACCOUNTS, { ...fiatAccountOf('1'), ...held }),
    transfer: await made(by, WITHDRAWALS, withdrawalOf(by, { ...held, fee_id: used_quote.id })),
    cancellable: await made(by, WITHDRAWALS, withdrawalOf(by)),
    rule: rule as Found,
    rule_of_second: rule_of_second as Found,
    orchestration: await made(by, ORCHESTRATIONS, orchestrationOf(by, { ref_id, ...toPyusd })),
    conversion: await convert(by, { ref_id: `converted: ${ref_id}` }),
    quote: await made(by, QUOTES, quoteOf({})),
    book: await bookOf(by, { address: ETHEREUM_ADDRESS, identity_id }),
    client: { id: await clientOf(by, ['funding:read_profile']) },
    approval: await approvalOf(by),
  }
  const event = await firstListed(by, EVENTS)
  await made(by, `${EVENTS}/${event.id}/resend`, { webhook_id: webhook.id })
  const [statement_id] = await insertStatements(service.db, customer_id)
  return {
    ...records,
    event,
    deposit: await firstListed(by, `${TRANSFERS}?type=WIRE_DEPOSIT`),
    statement: { id: statement_id!, ref_id: `USDG_REWARDS-${customer_id}-2026-01` },
  }
}

/** Creates a record over the API. Throws where the service refuses it. */
export async function made<T = Found>(by: TestCustomer, url: string, body: object): Promise<T> {
  const answer = await by.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

const firstOf = (members: unknown) => (members as Found[])[0]!
const firstListed = async ({ call }: TestCustomer, url: string) =>
  (await call<{ items: Found[] }>('GET', url)).body.items[0]!

async function convert(by: TestCustomer, changes: object = {}) {
  await credit(service.ledger, by, 'USDG', '1')
  return made(by, CONVERSIONS, conversionOf(by, { source_asset: 'USDG', target_asset: 'PYUSD', ...changes }))
}

async function bookOf(by: TestCustomer, entry: object): Promise<Found> {
  const put = await by.call<{ address: Found }>('PUT', BOOK_ENTRY, { crypto_network: 'ETHEREUM', ...entry })
  return put.body.address
}

const webhookOf = async (by: TestCustomer, changes: object = {}) =>
  (await made<{ webhook: Found }>(by, WEBHOOKS, hookOf(changes))).webhook

const clientOf = async ({ customer_id }: TestCustomer, scopes: ClientScope[]) =>
  (await createApiClient(service.db, ROW_MACS, customer_id, scopes)).client_id

/** Adds an approval of a change that nobody decided in time. */
async function endedChangeOf({ customer_id }: TestCustomer): Promise<string> {
  const id = crypto.randomUUID()
  await service.owner.query(
    `insert into approvals (customer_id, id, created_at, change, change_digest, required, role, policy_version,
                            initiator_type, initiator_id, deadline, status, ended_at)
     select $1, $2, now, '{"target": {"type": "webhook", "id": "x"}}', 'x', 1, 'APPROVER', 1, 'API_CLIENT', 'x', now,
            'EXPIRED', now
     from clock_timestamp() now`,
    [customer_id, id],
  )
  return id
}

/** Orders two withdrawals that wait for approvers. Returns the approval of the second, with both decisions signed. */
async function approvalOf(by: TestCustomer, decided?: 'approve' | 'reject'): Promise<TestApproval> {
  const origin = originOfLoop('test')
  await withdrawWithApproval(service, by, origin)
  const { id: transfer_id, approval_id: id } = await withdrawWithApproval(service, by, origin)
  const { id: approver_id, jwk } = await addTestApprover(service.owner, by.customer_id)
  const { statements } = await readApproval(service.db, by.customer_id, id)
  const signed = {
    APPROVE: signStatement(statements.APPROVE, jwk).jws,
    REJECT: signStatement(statements.REJECT, jwk).jws,
  }
  if (decided === 'approve')
    await made(by, `${APPROVALS}/${id}/approve`, { approver_id, jws: signed.APPROVE })
  // A rejection would refund the withdrawal, and other rows count the balance.
  if (decided === 'reject')
    await service.owner.query(
      `update approvals set status = 'REJECTED', ended_at = created_at where id = $1`,
      [id],
    )
  return { id, transfer_id, approver_id, signed }
}

/** An account is DENIED with its identity. A DISABLED account has its own flag, and its identity is not disabled. */
async function barredOf(by: TestCustomer, status: 'DENIED' | 'DISABLED', owner?: string) {
  const { id: identity } = await made(by, IDENTITIES, { ref_id: status, person_details: PERSON })
  const change = status === 'DENIED' ? { status } : { user_disabled: true }
  await by.call('PUT', `${IDENTITIES}/${identity}/sandbox-status`, change)
  const body = { account: { identity_id: owner ?? identity }, create_profile: true }
  const { id: account, profile_id } = await made(by, ACCOUNTS, body)
  if (owner !== undefined)
    await setAccountDisabled(service.db, account, { admin_disabled: true }, TEST_ORIGIN)
  return { identity, account, profile: String(profile_id) }
}

async function blockedBy(by: TestCustomer): Promise<string> {
  const { id } = await made(by, PROFILES, { nickname: 'Blocked' })
  await setPolicy(service.db, by.customer_id, {
    rules: [{ id: 'blocked', match: { profile_ids: [id] }, action: 'BLOCK' }],
  })
  return id
}

async function deactivatedBy(by: TestCustomer): Promise<string> {
  const { id } = await made(by, PROFILES, { nickname: 'Deactivated' })
  await by.call('PUT', `${PROFILES}/${id}/deactivate`)
  return id
}

async function deletedBy(by: TestCustomer): Promise<string> {
  const { id } = await made(by, FIAT_ACCOUNTS, fiatAccountOf('3'))
  await by.call('DELETE', `${FIAT_ACCOUNTS}/${id}`)
  return id
}

// ---------------------------------------------------------------------------------------------------------------
// Bodies that are accepted.

type OfProfile = { profile_id: string }
export const PERSON = { first_name: 'Ada', last_name: 'Lovelace' }

export const quoteOf = (changes: object) => ({
  asset: 'USDP',
  crypto_network: 'ETHEREUM',
  destination_address: DESTINATION,
  amount: '10',
  ...changes,
})
export const fiatAccountOf = (account_number: string) => ({
  fiat_account_owner: { person_details: PERSON },
  fiat_network_instructions: { wire: { account_number } },
})
export const ruleOf = ({ profile_id }: OfProfile, changes: object = {}) => ({
  ref_id: 'new',
  profile_id,
  source_asset: 'USD',
  destination_asset: 'USDP',
  source: { fiat: {} },
  ...changes,
})
export const orchestrationOf = ({ profile_id }: OfProfile, changes: object = {}) => ({
  ref_id: 'new',
  source_asset: 'USD',
  destination_asset: 'USDP',
  source_amount: '10',
  source: { profile: { profile_id } },
  ...changes,
})
export const conversionOf = ({ profile_id }: OfProfile, changes: object = {}) => ({
  profile_id,
  amount: '1',
  source_asset: 'USD',
  target_asset: 'USDG',
  ...changes,
})
export const hookOf = (changes: object = {}) => ({
  name: crypto.randomUUID(),
  url: 'https://hooks.example.com/',
  event_types: ['*'],
  ...changes,
})
export const depositOf = (memo_id: unknown, changes: object = {}) => ({
  amount: '250.00',
  asset: 'USD',
  memo_id,
  fiat_network_instructions: { wire: {} },
  ...changes,
})
