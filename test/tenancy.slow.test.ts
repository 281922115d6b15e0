/**
 * Tenancy (API behaviour, Access tokens): another customer's record gets the same answer as a record that does not
 * exist. Lists never show it, and a unique value of one customer never blocks the same value of another.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { originOfLoop } from '../src/contract/actor.ts'
import { addTestApprover, withdrawWithApproval } from './approvers.ts'
import { OPERATIONS } from '../src/program/app.ts'
import type { ClientScope } from '../src/contract/scopes.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import {
  ROW_MACS,
  approve,
  caller,
  DESTINATION,
  everyTable,
  fetchToken,
  fund,
  insertStatements,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const BULK = '/v2/transfer/crypto-withdrawals/bulk'
const QUOTES = '/v2/transfer/fees/crypto-withdrawal'
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'
const TRANSFERS = '/v2/transfer/transfers'
const DEPOSITS = '/v2/sandbox/fiat-deposits'
const INTERNAL = '/v2/transfer/internal'
const ADDRESSES = '/v2/transfer/deposit-addresses'
const PAXOS = '/v2/transfer/paxos'
const CONVERSIONS = '/v2/conversion/stablecoins'
const FIAT_ACCOUNTS = '/v2/transfer/fiat-accounts'
const FIAT_WITHDRAWALS = '/v2/transfer/fiat-withdrawals'
const IDENTITIES = '/v2/identity/identities'
const ACCOUNTS = '/v2/identity/accounts'
const INSTITUTION_MEMBERS = '/v2/identity/institution-members'
const ACCOUNT_MEMBERS = '/v2/identity/account-members'
const RULES = '/v2/orchestration/rules'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'
const STATEMENTS = '/v2/statements'
const BOOK_ENTRY = '/v2/transfer/crypto-destination-address'
const BOOK = '/v2/transfer/crypto-destination-addresses'
const CREDENTIALS = '/v2/api-creds/credentials'
const EVENTS = '/v2/events'
const AUDIT_LOG = '/v2/audit-log'
const WEBHOOKS = '/v2/webhooks'
const APPROVALS = '/v2/approvals'
const QUOTE = { asset: 'USDP', crypto_network: 'ETHEREUM', destination_address: DESTINATION, amount: '10' }

const TABLES: Record<string, string> = {
  '/v2/profiles': 'profiles',
  [TRANSFERS]: 'transfers',
  [INSTRUCTIONS]: 'fiat_deposit_instructions',
  [ADDRESSES]: 'deposit_addresses',
  [IDENTITIES]: 'identities',
  [ACCOUNTS]: 'accounts',
  [FIAT_ACCOUNTS]: 'fiat_accounts',
  [CONVERSIONS]: "transfers where type = 'INTERNAL_TRANSFER_DEBIT' and group_id = id",
  [RULES]: 'orchestration_rules',
  [ORCHESTRATIONS]: 'orchestrations',
  [STATEMENTS]: 'statements',
  [CREDENTIALS]: 'api_clients',
  [EVENTS]: 'events',
  // Each subject of a row is an item of its own.
  [AUDIT_LOG]: `(
    select (left(id::text, 32) || lpad(to_hex(n), 4, '0'))::uuid as id, customer_id
    from audit_log, generate_series(0, coalesce(cardinality(subject_ids), 1) - 1) n
  ) items`,
  [BOOK]: 'crypto_destination_addresses',
  [WEBHOOKS]: 'webhooks',
  [APPROVALS]: 'approvals',
  '/v2/rewards/statements': 'statements',
  '/v2/statements/payments': 'statements where total_amount_owed > 0',
}

/** The values that identify the records of one customer. */
interface Marks {
  customer_id: string
  statement_id: string
  statement_ref_id: string
  profile_id: string
  nickname: string
  transfer_id: string
  ref_id: string
  crypto_tx_hash: string
  instructions_id: string
  instructions_ref_id: string
  memo_id: string
  fee_id: string
  conversion_id: string
  second_profile_id: string
  identity_id: string
  institution_id: string
  institution_member_id: string
  account_id: string
  account_member_id: string
  address_id: string
  address: string
  fiat_account_id: string
  rule_id: string
  orchestration_id: string
  group_id: string
  client_id: string
  event_id: string
  book_id: string
  webhook_id: string
  approval_id: string
  approval_transfer_id: string
  approver_id: string
  /** The ref_id of the identity, the account, the address, the fiat account, the rule and the orchestration. */
  records_ref_id: string
}

let service: TestService
let owner: TestCustomer
let stranger: TestCustomer
let owners: Marks
let strangers: Marks

const NOBODYS: Marks = {
  conversion_id: crypto.randomUUID(),
  customer_id: crypto.randomUUID(),
  statement_id: crypto.randomUUID(),
  statement_ref_id: `USDG_REWARDS-${crypto.randomUUID()}-2026-01`,
  profile_id: crypto.randomUUID(),
  nickname: 'Nobody',
  transfer_id: crypto.randomUUID(),
  ref_id: 'nobody',
  crypto_tx_hash: `0x${'0'.repeat(64)}`,
  instructions_id: crypto.randomUUID(),
  instructions_ref_id: 'nobody',
  memo_id: '0000000000000000',
  fee_id: crypto.randomUUID(),
  second_profile_id: crypto.randomUUID(),
  identity_id: crypto.randomUUID(),
  institution_id: crypto.randomUUID(),
  institution_member_id: crypto.randomUUID(),
  account_id: crypto.randomUUID(),
  account_member_id: crypto.randomUUID(),
  address_id: crypto.randomUUID(),
  address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  fiat_account_id: crypto.randomUUID(),
  rule_id: crypto.randomUUID(),
  orchestration_id: crypto.randomUUID(),
  group_id: crypto.randomUUID(),
  client_id: crypto.randomUUID(),
  event_id: crypto.randomUUID(),
  book_id: crypto.randomUUID(),
  webhook_id: crypto.randomUUID(),
  approval_id: crypto.randomUUID(),
  approval_transfer_id: crypto.randomUUID(),
  approver_id: crypto.randomUUID(),
  records_ref_id: 'no ref_id',
}

beforeAll(async () => {
  service = await startTestService()
  owner = await newCustomer(service)
  stranger = await newCustomer(service)
  owners = await recordsOf(owner, 'Acme')
  strangers = await recordsOf(stranger, 'Zenith')
  for (const { call } of [owner, stranger]) expect((await call('PUT', '/v2/policy', POLICY)).status).toBe(200)
})
afterAll(() => service.close())

async function made<T = Record<string, string>>(by: TestCustomer, url: string, body: object): Promise<T> {
  const answer = await by.call<T>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

const DEPOSIT = { amount: '1', asset: 'USD', fiat_network_instructions: { wire: {} } }
/** A limit that no payment here meets. */
const POLICY = {
  rules: [
    {
      limit: { amount: '1000000000', asset: 'USD', period_seconds: 3600, per: 'CUSTOMER' },
      action: 'BLOCK',
    },
  ],
}
const PERSON = { first_name: 'Ada', last_name: 'Lovelace' }
const FIAT_ACCOUNT = {
  fiat_account_owner: { person_details: PERSON },
  fiat_network_instructions: { wire: { account_number: '1' } },
}
const ruleOf = (profile_id: string, changes: object = {}) => ({
  ref_id: crypto.randomUUID(),
  profile_id,
  source_asset: 'USD',
  destination_asset: 'USDP',
  source: { fiat: {} },
  ...changes,
})
const orchestrationOf = (profile_id: string, changes: object = {}) => ({
  ref_id: crypto.randomUUID(),
  source_asset: 'USD',
  destination_asset: 'USDP',
  source_amount: '10',
  source: { profile: { profile_id } },
  ...changes,
})

async function recordsOf(customer: TestCustomer, name: string): Promise<Marks> {
  await fund(customer, '1000')
  const { profile_id } = customer
  const profile = await made(customer, '/v2/profiles', { nickname: name })
  const instructions_ref_id = `${name}'s instructions`
  const placed = { profile_id, fiat_network: 'WIRE', ref_id: instructions_ref_id }
  const instructions = await made(customer, INSTRUCTIONS, placed)
  // Two of each kind, so that the lists have more than one page.
  await someOf(customer, crypto.randomUUID())
  const records = await someOf(customer, `${name.length}: a ref_id`)
  const { identity_id, account_id } = records
  const held = withdrawalOf(customer, { ref_id: name, identity_id, account_id })
  const transfer = await made(customer, WITHDRAWALS, held)
  const crypto_tx_hash = `0x${name}`
  await service.db.query('update transfers set crypto_tx_hash = $2 where id = $1', [
    transfer.id,
    crypto_tx_hash,
  ])
  const moved = { asset: 'USD', amount: '1', from_profile_id: profile_id, to_profile_id: profile.id }
  const { group_id } = await made(customer, INTERNAL, moved)
  const conversion = await made(customer, CONVERSIONS, conversionOf({ profile_id }))
  await made(customer, CONVERSIONS, conversionOf({ profile_id }))
  const quote = await made(customer, QUOTES, QUOTE)
  const { identity_id: owned } = records
  const { address: booked } = (
    await customer.call<{ address: { id: string } }>('PUT', BOOK_ENTRY, {
      crypto_network: 'ETHEREUM',
      address: DESTINATION,
      identity_id: owned,
    })
  ).body
  await customer.call('PUT', BOOK_ENTRY, { crypto_network: 'BASE', address: DESTINATION })
  const unused = await createApiClient(service.db, ROW_MACS, customer.customer_id, ['funding:read_profile'])
  const { body: told } = await customer.call<{ items: [{ id: string }] }>('GET', `${EVENTS}?limit=1`)
  const [statement_id] = await insertStatements(service.db, customer.customer_id)
  await made(customer, WEBHOOKS, hookOf(crypto.randomUUID()))
  const { webhook } = await made<{ webhook: { id: string } }>(
    customer,
    WEBHOOKS,
    hookOf(`Hook ${name.length}`),
  )
  await withdrawWithApproval(service, customer, originOfLoop('test'))
  const waiting = await withdrawWithApproval(service, customer, originOfLoop('test'))
  const approver = await addTestApprover(service.owner, customer.customer_id)
  await made(customer, `${EVENTS}/${told.items[0].id}/resend`, { webhook_id: webhook.id })
  return {
    ...records,
    customer_id: customer.customer_id,
    statement_id: statement_id!,
    statement_ref_id: `USDG_REWARDS-${customer.customer_id}-2026-01`,
    profile_id,
    second_profile_id: profile.id!,
    nickname: profile.nickname!,
    transfer_id: transfer.id!,
    ref_id: name,
    crypto_tx_hash,
    group_id: group_id!,
    client_id: unused.client_id,
    event_id: told.items[0].id,
    book_id: booked.id,
    webhook_id: webhook.id,
    approval_id: waiting.approval_id,
    approval_transfer_id: waiting.id,
    approver_id: approver.id,
    instructions_id: instructions.id!,
    instructions_ref_id,
    memo_id: instructions.memo_id!,
    fee_id: quote.id!,
    conversion_id: conversion.id!,
  }
}

const hookOf = (name: string, changes: object = {}) => ({
  name,
  url: 'https://hooks.example.com/',
  event_types: ['*'],
  ...changes,
})

/** Creates one record of each kind with this ref_id, and a deposit that triggers the rule. */
async function someOf(customer: TestCustomer, ref_id: string) {
  const { profile_id } = customer
  const identity = await made(customer, IDENTITIES, { ref_id, person_details: PERSON })
  await approve(customer, identity.id!)
  const institution = await made<MadeIdentity>(customer, IDENTITIES, institutionOf(identity.id!))
  const account = await made<MadeAccount>(customer, ACCOUNTS, {
    account: { ref_id, identity_id: identity.id, members: [{ identity_id: identity.id }] },
  })
  const address = await made(customer, ADDRESSES, { ref_id, profile_id, crypto_network: 'ETHEREUM' })
  const fiatAccount = await made(customer, FIAT_ACCOUNTS, { ref_id, ...FIAT_ACCOUNT })
  const { rule } = await made<{ rule: MadeRule }>(customer, RULES, ruleOf(profile_id, { ref_id }))
  await made(customer, DEPOSITS, { ...DEPOSIT, memo_id: rule.source.fiat.memo_id })
  const orchestration = await made(customer, ORCHESTRATIONS, orchestrationOf(profile_id, { ref_id }))
  return {
    identity_id: identity.id!,
    institution_id: institution.id,
    institution_member_id: institution.institution_members[0]!.id,
    account_id: account.id,
    account_member_id: account.members[0]!.id,
    address_id: address.id!,
    address: address.address!,
    fiat_account_id: fiatAccount.id!,
    rule_id: rule.id,
    orchestration_id: orchestration.id!,
    records_ref_id: ref_id,
  }
}
interface MadeIdentity {
  id: string
  institution_members: { id: string }[]
}
interface MadeAccount {
  id: string
  members: { id: string }[]
}
interface MadeRule {
  id: string
  source: { fiat: { memo_id: string } }
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type Request = [url: string, body?: object]

const paxosOf = (changes: object) => ({
  asset: 'USD',
  amount: '1',
  from_profile_id: stranger.profile_id,
  to_profile_id: owner.profile_id,
  ...changes,
})
const conversionOf = (changes: object) => ({
  amount: '1',
  source_asset: 'USD',
  target_asset: 'USDG',
  ...changes,
})
const internalOf = (changes: object) => ({
  asset: 'USD',
  amount: '1',
  from_profile_id: stranger.profile_id,
  to_profile_id: strangers.second_profile_id,
  ...changes,
})
const wireOf = (changes: object) => ({
  profile_id: stranger.profile_id,
  asset: 'USD',
  fiat_account_id: strangers.fiat_account_id,
  amount: '1',
  ...changes,
})
const institutionOf = (identity_id: string) => ({
  ref_id: crypto.randomUUID(),
  institution_details: { name: 'Acme' },
  institution_members: [{ identity_id, roles: ['TRUSTEE'] }],
})
/** Every form of an orchestration's destination that can name a record. */
const destinationsOf = ({ profile_id, fiat_account_id, address }: Marks) => [
  { destination: { profile: { profile_id } } },
  { destination_asset: 'USD', destination: { fiat: { fiat_account_id } } },
  { destination_asset: 'USD', destination: { fiat: { bank_account_id: fiat_account_id } } },
  // Any customer may pay to this address, but must not learn who owns it.
  { destination: { crypto: { network: 'ETHEREUM', address } } },
]

/** For each operation, the requests that can name a record: they name the owner's marks, and `by` sends them. */
const REQUESTS: Record<string, (marks: Marks, by: TestCustomer) => Request[]> = {
  [`POST ${BULK}`]: ({ profile_id, fee_id, ref_id, identity_id, account_id, address }) => [
    [BULK, { withdrawals: [] }],
    [
      BULK,
      {
        withdrawals: [
          { identity_id },
          { account_id },
          { destination_address: address },
          { profile_id },
          { profile_id, amount: '5000' },
          { fee_id },
          { profile_id, ref_id },
        ].map((changes) => withdrawalOf(stranger, { ref_id: crypto.randomUUID(), ...changes })),
      },
    ],
  ],
  [`POST ${WITHDRAWALS}`]: ({ profile_id, fee_id, ref_id, identity_id, account_id, address }) => [
    [WITHDRAWALS, withdrawalOf(stranger, { identity_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { account_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { destination_address: address })],
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id, amount: '5000' })],
    [WITHDRAWALS, withdrawalOf(stranger, { fee_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id, ref_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { amount: '5000', ref_id })],
  ],
  [`POST ${DEPOSITS}`]: ({ memo_id }) => [
    [DEPOSITS, { amount: '1', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }],
  ],
  'POST /v2/sandbox/profiles/:id/deposit': ({ profile_id, address: crypto_address }) => [
    [`/v2/sandbox/profiles/${profile_id}/deposit`, { asset: 'USD', amount: '1' }],
    [
      `/v2/sandbox/profiles/${stranger.profile_id}/deposit`,
      { asset: 'USDP', amount: '1', crypto_network: 'ETHEREUM', crypto_address },
    ],
  ],
  // They name no record.
  'POST /v2/sandbox/customers': () => [],
  'POST /v2/sandbox/clock': () => [],
  'POST /v2/sandbox/reset': () => [],
  'POST /v2/profiles': ({ nickname }) => [['/v2/profiles', { nickname }]],
  'GET /v2/profiles': ({ profile_id, nickname }) => [
    [`/v2/profiles?ids=${profile_id}`],
    [`/v2/profiles?nickname=${nickname}`],
  ],
  'PUT /v2/profiles/:id': ({ profile_id, nickname }) => [
    [`/v2/profiles/${profile_id}`, { description: 'mine' }],
    [`/v2/profiles/${profile_id}`, { nickname }],
  ],
  'PUT /v2/profiles/:id/deactivate': ({ second_profile_id }) => [
    [`/v2/profiles/${second_profile_id}/deactivate`],
  ],
  'GET /v2/profiles/:id': ({ profile_id }) => [[`/v2/profiles/${profile_id}`]],
  'GET /v2/profiles/:id/balances': ({ profile_id }) => [
    [`/v2/profiles/${profile_id}/balances`],
    [`/v2/profiles/${profile_id}/balances?assets=USD`],
    [`/v2/profiles/${profile_id}/balances?at=2200-01-01T00:00:00Z`],
  ],
  'GET /v2/profiles/:id/entries': ({ profile_id }) => [
    [`/v2/profiles/${profile_id}/entries`],
    [`/v2/profiles/${profile_id}/entries?assets=USD&order=ASC`],
  ],
  'GET /v2/profiles/:id/balances/:asset': ({ profile_id }) => [
    [`/v2/profiles/${profile_id}/balances/USD`],
    [`/v2/profiles/${profile_id}/balances/NOPE`],
  ],
  [`GET ${TRANSFERS}/:id`]: ({ transfer_id }) => [[`${TRANSFERS}/${transfer_id}`]],
  [`GET ${TRANSFERS}/:id/history`]: ({ transfer_id }) => [[`${TRANSFERS}/${transfer_id}/history`]],
  [`GET ${TRANSFERS}/:id/verification`]: ({ transfer_id }) => [[`${TRANSFERS}/${transfer_id}/verification`]],
  // Each kind of name. The customers have the same ref_ids.
  'GET /v2/search': ({
    transfer_id,
    profile_id,
    statement_ref_id,
    crypto_tx_hash,
    memo_id,
    address,
    ...marks
  }) =>
    [
      ...[transfer_id, profile_id, statement_ref_id, crypto_tx_hash, memo_id, address],
      ...[marks.orchestration_id, marks.rule_id, marks.identity_id, marks.account_id, marks.fiat_account_id],
      ...[marks.address_id, marks.book_id, marks.webhook_id, marks.event_id, marks.approval_id],
      ...[marks.group_id, marks.instructions_id, marks.statement_id],
      // Parts of names.
      ...[transfer_id.slice(0, -6), address.slice(0, 12)],
    ].map((text) => [`/v2/search?q=${encodeURIComponent(text)}`]),
  [`POST ${TRANSFERS}/:id/cancel`]: ({ transfer_id }) => [[`${TRANSFERS}/${transfer_id}/cancel`]],
  [`GET ${TRANSFERS}`]: ({ transfer_id, profile_id, ref_id, crypto_tx_hash, ...marks }) => [
    [`${TRANSFERS}?ids=${transfer_id}`],
    [`${TRANSFERS}?identity_ids=${marks.identity_id}`],
    [`${TRANSFERS}?account_ids=${marks.account_id}`],
    [`${TRANSFERS}?group_ids=${marks.group_id}`],
    [`${TRANSFERS}?profile_ids=${profile_id}`],
    [`${TRANSFERS}?ref_ids=${ref_id}`],
    [`${TRANSFERS}?crypto_tx_hashes=${crypto_tx_hash}`],
    [`${TRANSFERS}?profile_ids=${profile_id}&order_by=UPDATED_AT&order=ASC`],
  ],
  [`POST ${INTERNAL}`]: ({ profile_id, second_profile_id, ref_id, identity_id, account_id }) => [
    [INTERNAL, internalOf({ from_identity_id: identity_id })],
    [INTERNAL, internalOf({ from_account_id: account_id })],
    [INTERNAL, internalOf({ to_identity_id: identity_id })],
    [INTERNAL, internalOf({ to_account_id: account_id })],
    [INTERNAL, internalOf({ from_profile_id: profile_id })],
    [INTERNAL, internalOf({ to_profile_id: profile_id })],
    [INTERNAL, internalOf({ from_profile_id: profile_id, to_profile_id: second_profile_id })],
    [INTERNAL, internalOf({ to_profile_id: profile_id, amount: '5000' })],
    [INTERNAL, internalOf({ amount: '5000', ref_id })],
  ],
  // Whom a customer pays is not hidden from it: the profile of another one is a receiver.
  [`POST ${PAXOS}`]: ({ profile_id, second_profile_id, identity_id, account_id, ref_id }) => [
    [PAXOS, paxosOf({ from_profile_id: profile_id, to_profile_id: second_profile_id })],
    [PAXOS, paxosOf({ to_profile_id: profile_id, identity_id })],
    [PAXOS, paxosOf({ to_profile_id: profile_id, account_id })],
    [PAXOS, paxosOf({ to_profile_id: profile_id, amount: '5000', ref_id })],
  ],
  [`POST ${CONVERSIONS}`]: ({ profile_id, identity_id, account_id, ref_id }) =>
    [{ profile_id }, { identity_id }, { account_id }, { amount: '5000', ref_id }].map((named) => [
      CONVERSIONS,
      conversionOf({ profile_id: stranger.profile_id, ...named }),
    ]),
  [`GET ${CONVERSIONS}`]: ({ profile_id }) => [[`${CONVERSIONS}?profile_id=${profile_id}`]],
  [`GET ${CONVERSIONS}/:id`]: ({ conversion_id }) => [[`${CONVERSIONS}/${conversion_id}`]],
  [`POST ${ADDRESSES}`]: ({ profile_id, identity_id, account_id, records_ref_id: ref_id }) =>
    [{ profile_id }, { identity_id }, { account_id }, { profile_id, ref_id }, { ref_id }].map((named) => [
      ADDRESSES,
      { profile_id: stranger.profile_id, crypto_network: 'ETHEREUM', ...named },
    ]),
  [`GET ${ADDRESSES}`]: ({ address_id, address, profile_id, records_ref_id }) => [
    [`${ADDRESSES}?ids=${address_id}`],
    [`${ADDRESSES}?addresses=${address}`],
    [`${ADDRESSES}?profile_ids=${profile_id}`],
    [`${ADDRESSES}?ref_ids=${encodeURIComponent(records_ref_id)}`],
    [`${ADDRESSES}?profile_ids=${profile_id}&networks=ETHEREUM&order_by=CREATED_AT`],
  ],
  [`POST ${FIAT_ACCOUNTS}`]: ({ identity_id, account_id, records_ref_id: ref_id }) =>
    [{ identity_id }, { account_id }, { account_id, ref_id }, { ref_id }].map((named) => [
      FIAT_ACCOUNTS,
      { ...FIAT_ACCOUNT, ...named },
    ]),
  [`GET ${FIAT_ACCOUNTS}`]: ({ fiat_account_id, records_ref_id }) => [
    [`${FIAT_ACCOUNTS}?ids=${fiat_account_id}`],
    [`${FIAT_ACCOUNTS}?ref_ids=${encodeURIComponent(records_ref_id)}&include_deleted=true`],
  ],
  [`GET ${FIAT_ACCOUNTS}/:id`]: ({ fiat_account_id }) => [
    [`${FIAT_ACCOUNTS}/${fiat_account_id}`],
    [`${FIAT_ACCOUNTS}/${fiat_account_id}?include_deleted=true`],
  ],
  [`PUT ${FIAT_ACCOUNTS}/:id`]: ({ fiat_account_id }) => [
    [`${FIAT_ACCOUNTS}/${fiat_account_id}`, { metadata: { whose: 'mine' } }],
    [`${FIAT_ACCOUNTS}/${fiat_account_id}`, FIAT_ACCOUNT],
  ],
  [`DELETE ${FIAT_ACCOUNTS}/:id`]: ({ fiat_account_id }) => [[`${FIAT_ACCOUNTS}/${fiat_account_id}`]],
  [`POST ${FIAT_WITHDRAWALS}`]: ({ profile_id, fiat_account_id, identity_id, account_id, ref_id }) =>
    [
      { profile_id },
      { fiat_account_id },
      { fiat_account_id, amount: '5000' },
      { profile_id, fiat_account_id },
      { identity_id },
      { account_id },
      { amount: '5000', ref_id },
    ].map((named) => [FIAT_WITHDRAWALS, wireOf(named)]),

  [`POST ${IDENTITIES}`]: ({ records_ref_id: ref_id, identity_id }) => [
    [IDENTITIES, { ref_id, person_details: PERSON }],
    [IDENTITIES, institutionOf(identity_id)],
  ],
  [`GET ${IDENTITIES}`]: ({ identity_id, records_ref_id }) => [
    [`${IDENTITIES}?ids=${identity_id}`],
    [`${IDENTITIES}?ref_ids=${encodeURIComponent(records_ref_id)}`],
  ],
  [`GET ${IDENTITIES}/:id`]: ({ identity_id }) => [
    [`${IDENTITIES}/${identity_id}`],
    [`${IDENTITIES}/${identity_id}?include_details=true&include_institution_members=true`],
  ],
  [`PUT ${IDENTITIES}/:id`]: ({ identity_id, institution_id }) => [
    [`${IDENTITIES}/${identity_id}`, { person_details: { first_name: 'Eve' } }],
    [`${IDENTITIES}/${institution_id}`, { set_user_disabled: true }],
  ],
  [`POST ${INSTITUTION_MEMBERS}`]: ({ identity_id, institution_id }) =>
    [
      { institution_id },
      { institution_id, members: [{ identity_id, roles: ['TRUSTEE'] }] },
      { members: [{ identity_id, roles: ['TRUSTEE'] }] },
    ].map((named) => [
      INSTITUTION_MEMBERS,
      {
        institution_id: strangers.institution_id,
        members: [{ identity_id: strangers.identity_id, roles: ['TRUSTEE'] }],
        ...named,
      },
    ]),
  [`DELETE ${INSTITUTION_MEMBERS}/:id`]: ({ institution_member_id }) => [
    [`${INSTITUTION_MEMBERS}/${institution_member_id}`],
  ],
  [`PUT ${IDENTITIES}/:id/sandbox-status`]: ({ identity_id }) => [
    [`${IDENTITIES}/${identity_id}/sandbox-status`, { status: 'DENIED', admin_disabled: true }],
  ],
  [`POST ${ACCOUNTS}`]: ({ identity_id, records_ref_id: ref_id }) =>
    [
      { identity_id },
      { identity_id, ref_id },
      { members: [{ identity_id: strangers.identity_id }, { identity_id }] },
      { ref_id },
    ].map((named) => [
      ACCOUNTS,
      { account: { identity_id: strangers.identity_id, ...named }, create_profile: true },
    ]),
  [`GET ${ACCOUNTS}`]: ({ account_id, identity_id, records_ref_id }) => [
    [`${ACCOUNTS}?ids=${account_id}`],
    [`${ACCOUNTS}?identity_ids=${identity_id}`],
    [`${ACCOUNTS}?identity_id=${identity_id}`],
    [`${ACCOUNTS}?ref_ids=${encodeURIComponent(records_ref_id)}`],
  ],
  [`GET ${ACCOUNTS}/:id`]: ({ account_id }) => [[`${ACCOUNTS}/${account_id}`]],
  [`PUT ${ACCOUNTS}`]: ({ account_id: id }) => [
    [ACCOUNTS, { account: { id, description: 'x' } }],
    [ACCOUNTS, { account: { id }, set_user_disabled: true }],
  ],
  [`POST ${ACCOUNT_MEMBERS}`]: ({ account_id, identity_id }) =>
    [
      { account_id },
      { account_id, members: [{ identity_id }] },
      { members: [{ identity_id, roles: ['AUTHORIZED_USER'] }] },
    ].map((named) => [
      ACCOUNT_MEMBERS,
      { account_id: strangers.account_id, members: [{ identity_id: strangers.identity_id }], ...named },
    ]),
  [`DELETE ${ACCOUNT_MEMBERS}/:id`]: ({ account_member_id }) => [[`${ACCOUNT_MEMBERS}/${account_member_id}`]],

  [`POST ${RULES}`]: (marks) =>
    [
      { profile_id: marks.profile_id },
      { profile_id: marks.profile_id, source: { profile: { profile_id: marks.profile_id } } },
      ...destinationsOf(marks),
      { identity_id: marks.identity_id },
      { account_id: marks.account_id },
      { ref_id: marks.records_ref_id },
    ].map((named) => [RULES, ruleOf(stranger.profile_id, named)]),
  [`GET ${RULES}`]: ({ rule_id, profile_id, records_ref_id }) => [
    [`${RULES}?ids=${rule_id}`],
    [`${RULES}?profile_ids=${profile_id}`],
    [`${RULES}?profile_id=${profile_id}&status=ACTIVE&source_asset=USD&destination_asset=USDP`],
    [`${RULES}?ref_ids=${encodeURIComponent(records_ref_id)}&statuses=ACTIVE`],
  ],
  [`DELETE ${RULES}/:id`]: ({ rule_id }) => [[`${RULES}/${rule_id}`]],
  [`POST ${ORCHESTRATIONS}`]: (marks) =>
    [
      { source: { profile: { profile_id: marks.profile_id } } },
      { source: { profile: { profile_id: marks.profile_id } }, source_amount: '5000' },
      ...destinationsOf(marks),
      ...destinationsOf(marks).map((to) => ({
        source: { profile: { profile_id: marks.profile_id } },
        ...to,
      })),
      { identity_id: marks.identity_id },
      { account_id: marks.account_id },
      { ref_id: marks.records_ref_id },
    ].map((named) => [ORCHESTRATIONS, orchestrationOf(stranger.profile_id, named)]),
  [`GET ${ORCHESTRATIONS}`]: ({ orchestration_id, rule_id, profile_id, records_ref_id }) => [
    [`${ORCHESTRATIONS}?ref_id=${encodeURIComponent(records_ref_id)}`],
    [`${ORCHESTRATIONS}?orchestration_id=${orchestration_id}`],
    [`${ORCHESTRATIONS}?orchestration_rule_id=${rule_id}`],
    [`${ORCHESTRATIONS}?orchestration_rule_id=${rule_id}&status=PROCESSING&source_asset=USD`],
    [`${ORCHESTRATIONS}?profile_id=${profile_id}`],
    [`${ORCHESTRATIONS}?profile_id=${profile_id}&status=COMPLETED&destination_asset=USDP&order=ASC`],
  ],
  [`GET ${ORCHESTRATIONS}/:id`]: ({ orchestration_id }) => [[`${ORCHESTRATIONS}/${orchestration_id}`]],

  [`POST ${INSTRUCTIONS}`]: ({ profile_id, instructions_ref_id, identity_id, account_id }) => [
    [INSTRUCTIONS, { profile_id, fiat_network: 'WIRE' }],
    [INSTRUCTIONS, { profile_id: stranger.profile_id, fiat_network: 'WIRE', identity_id }],
    [INSTRUCTIONS, { profile_id: stranger.profile_id, fiat_network: 'WIRE', account_id }],
    [INSTRUCTIONS, { profile_id, fiat_network: 'WIRE', ref_id: instructions_ref_id }],
  ],
  [`GET ${INSTRUCTIONS}`]: ({ instructions_id, profile_id, instructions_ref_id }) => [
    [`${INSTRUCTIONS}?ids=${instructions_id}`],
    [`${INSTRUCTIONS}?profile_ids=${profile_id}`],
    [`${INSTRUCTIONS}?ref_ids=${encodeURIComponent(instructions_ref_id)}`],
  ],
  [`GET ${INSTRUCTIONS}/:id`]: ({ instructions_id }) => [[`${INSTRUCTIONS}/${instructions_id}`]],
  [`GET ${STATEMENTS}`]: ({ customer_id, statement_id, statement_ref_id }, by) => [
    [`${STATEMENTS}?customer_id=${customer_id}`],
    [`${STATEMENTS}?customer_id=${by.customer_id}&statement_ids=${statement_id}`],
    [`${STATEMENTS}?customer_id=${by.customer_id}&ref_ids=${statement_ref_id}`],
  ],
  [`PUT ${BOOK_ENTRY}`]: ({ book_id, identity_id }) => [
    [BOOK_ENTRY, { id: book_id, nickname: 'mine now' }],
    [BOOK_ENTRY, { crypto_network: 'ETHEREUM', address: DESTINATION, identity_id }],
  ],
  [`GET ${BOOK}`]: ({ book_id, identity_id }) => [
    [`${BOOK}?ids=${book_id}`],
    [`${BOOK}?identity_ids=${identity_id}`],
  ],
  [`GET ${EVENTS}`]: ({ transfer_id, identity_id, orchestration_id }) =>
    [transfer_id, identity_id, orchestration_id].map((id) => [`${EVENTS}?object_id=${id}`]),
  [`GET ${AUDIT_LOG}`]: ({ transfer_id, orchestration_id }) => [
    [`${AUDIT_LOG}?subject_ids=${transfer_id},${orchestration_id}`],
  ],
  [`GET ${AUDIT_LOG}/verification`]: () => [[`${AUDIT_LOG}/verification`]],
  [`GET ${EVENTS}/:id`]: ({ event_id }) => [[`${EVENTS}/${event_id}`]],
  [`GET ${CREDENTIALS}`]: () => [[CREDENTIALS], [`${CREDENTIALS}?statuses=APPROVED,DELETED`]],
  [`POST ${CREDENTIALS}/:client_id/rotate`]: ({ client_id }) => [
    [`${CREDENTIALS}/${client_id}/rotate`, { grace_seconds: 0 }],
  ],
  [`DELETE ${CREDENTIALS}/:client_id`]: ({ client_id }) => [[`${CREDENTIALS}/${client_id}`]],
  [`POST ${WEBHOOKS}`]: ({ profile_id }) => [
    [WEBHOOKS, hookOf(crypto.randomUUID(), { profile_ids: [profile_id] })],
  ],
  [`GET ${WEBHOOKS}`]: () => [[WEBHOOKS]],
  [`GET ${WEBHOOKS}/:id`]: ({ webhook_id }) => [[`${WEBHOOKS}/${webhook_id}`]],
  [`PUT ${WEBHOOKS}/:id`]: ({ webhook_id, profile_id }) => [
    [`${WEBHOOKS}/${webhook_id}`, { url: 'https://stranger.example.com/' }],
    [`${WEBHOOKS}/${strangers.webhook_id}`, { profile_ids: [profile_id] }],
  ],
  [`DELETE ${WEBHOOKS}/:id`]: ({ webhook_id }) => [[`${WEBHOOKS}/${webhook_id}`]],
  [`POST ${WEBHOOKS}/:id/rotate-secret`]: ({ webhook_id }) => [
    [`${WEBHOOKS}/${webhook_id}/rotate-secret`, { grace_seconds: 0 }],
  ],
  [`POST ${WEBHOOKS}/:id/test`]: ({ webhook_id }) => [
    [`${WEBHOOKS}/${webhook_id}/test`, { type: 'statement.paid' }],
  ],
  [`POST ${WEBHOOKS}/:id/recover`]: ({ webhook_id }) => [
    [`${WEBHOOKS}/${webhook_id}/recover`, { since: '2026-01-01T00:00:00Z' }],
  ],
  [`GET ${WEBHOOKS}/:id/deliveries`]: ({ webhook_id }) => [
    [`${WEBHOOKS}/${webhook_id}/deliveries`],
    [`${WEBHOOKS}/${webhook_id}/deliveries?type=transfer.*`],
  ],
  [`GET ${WEBHOOKS}/:id/deliveries/:delivery_id/attempts`]: ({ webhook_id, event_id }) => [
    [`${WEBHOOKS}/${webhook_id}/deliveries/${event_id}/attempts`],
  ],
  'POST /v2/events/:id/resend': ({ event_id, webhook_id }) => [
    [`/v2/events/${event_id}/resend`, {}],
    [`/v2/events/${event_id}/resend`, { webhook_id: strangers.webhook_id }],
    [`/v2/events/${strangers.event_id}/resend`, { webhook_id }],
  ],
  [`GET ${APPROVALS}`]: ({ approval_transfer_id }) => [[`${APPROVALS}?transfer_ids=${approval_transfer_id}`]],
  [`GET ${APPROVALS}/:id`]: ({ approval_id }) => [[`${APPROVALS}/${approval_id}`]],
  [`POST ${APPROVALS}/:id/approve`]: ({ approval_id, approver_id }) => [
    [`${APPROVALS}/${approval_id}/approve`, { approver_id, jws: 'e30.e30.e30' }],
    [`${APPROVALS}/${strangers.approval_id}/approve`, { approver_id, jws: 'e30.e30.e30' }],
  ],
  [`POST ${APPROVALS}/:id/reject`]: ({ approval_id, approver_id }) => [
    [`${APPROVALS}/${approval_id}/reject`, { approver_id, jws: 'e30.e30.e30' }],
    [`${APPROVALS}/${strangers.approval_id}/reject`, { approver_id, jws: 'e30.e30.e30' }],
  ],
  'GET /v2/statements/payments': ({ statement_id, statement_ref_id, customer_id }, by) => [
    ['/v2/statements/payments'],
    [`/v2/statements/payments?payment_ids=${statement_id}`],
    [
      `/v2/statements/payments?ref_ids=${encodeURIComponent(`${customer_id}-${statement_ref_id}-USDG-1.5-seq#1`)}`,
    ],
    [`/v2/statements/payments?customer_id=${by.customer_id}&payment_ids=${statement_id}`],
  ],
  'GET /v2/rewards/statements': () => [['/v2/rewards/statements']],
  'GET /v2/statements/:id/explanation': ({ statement_id }) => [
    [`/v2/statements/${statement_id}/explanation`],
  ],
  'GET /v2/rewards/statements/:id': ({ statement_id }) => [[`/v2/rewards/statements/${statement_id}`]],
  'GET /v2/rewards/rates': () => [['/v2/rewards/rates']],
  'GET /v2/policy': () => [['/v2/policy']],
  'PUT /v2/policy': () => [['/v2/policy', { rules: [], replaces: 9 }]],
  'GET /v2/policy/versions': () => [['/v2/policy/versions']],
  'GET /v2/transfer/limits/utilizations': ({ profile_id }) => [
    ['/v2/transfer/limits/utilizations'],
    [`/v2/transfer/limits/utilizations?profile_id=${profile_id}`],
  ],
  // Requests that name no record: markets, assets and networks belong to no customer.
  'GET /v2/assets': () => [['/v2/assets']],
  'GET /v2/transfer/volumes': ({ profile_id }) => [
    ['/v2/transfer/volumes'],
    [`/v2/transfer/volumes?profile_ids=${profile_id}&created_at.gte=1970-01-01T00:00:00Z`],
  ],
  'GET /v2/balances/history': () => [['/v2/balances/history'], ['/v2/balances/history?assets=USD']],
  'GET /v2/networks': () => [['/v2/networks']],
  'GET /v2/markets': () => [['/v2/markets']],
  'GET /v2/all-markets/prices': () => [['/v2/all-markets/prices']],
  'GET /v2/markets/:market/ticker': () => [['/v2/markets/BTCUSD/ticker']],
  'GET /v2/markets/:market/historical-prices': () => [[`/v2/markets/BTCUSD/historical-prices`]],
  'GET /v2/markets/:market/historical-candles': () => [[`/v2/markets/BTCUSD/historical-candles`]],
  [`POST ${QUOTES}`]: () => [[QUOTES, QUOTE]],
}

const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`

/** Returns the answer, with the requested ids and the generated values replaced by placeholders. */
async function answerTo(method: Method, [url, body]: Request, marks: Marks) {
  const answer = await stranger.call(method, url, body)
  const text = Object.values<string>({ ...marks })
    .reduce((rest, mark) => rest.replaceAll(mark, '<mark>'), JSON.stringify(answer.body))
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, '<time>')
    .replaceAll(/"memo_id":"[A-Z0-9]{16}"/g, '"memo_id":"<memo>"')
    .replaceAll(/"address":"0x[0-9a-fA-F]{40}"/g, '"address":"<address>"')
  return { status: answer.status, body: JSON.parse(text) as unknown }
}

test('REQUESTS has every operation', () => {
  expect(Object.keys(REQUESTS).sort()).toEqual(OPERATIONS.map(nameOf).sort())
})

describe.each(OPERATIONS.map((operation) => [nameOf(operation), operation.method] as const))(
  '%s',
  (name, method) => {
    test("another customer's records get the same answers as unknown records, and do not change", async () => {
      const before = await everyTable(service.db)
      const requests = REQUESTS[name]!(owners, stranger).map((request, index) => ({
        request,
        twin: REQUESTS[name]!(NOBODYS, stranger)[index]!,
      }))
      for (const { request, twin } of requests) {
        const answer = await answerTo(method, request, owners)
        expect(answer, request[0]).toEqual(await answerTo(method, twin, NOBODYS))
        expect(JSON.stringify(answer.body)).not.toContain(owner.customer_id)
      }
      // The stranger created only records of the stranger: no row of the owner changed.
      expect(ownRows(await everyTable(service.db))).toEqual(ownRows(before))
    })
  },
)

/** Returns the rows that name the owner. */
const ownRows = (tables: Record<string, string[]>) =>
  Object.values(tables).flatMap((rows) => rows.filter((row) => row.includes(owner.customer_id)))

test('the same requests are answered for the records of their owner', async () => {
  for (const { method, url } of OPERATIONS.filter((operation) => operation.method === 'GET')) {
    for (const [path] of REQUESTS[nameOf({ method, url })]!(owners, owner)) {
      const answer = await owner.call<Listed>('GET', path)
      if (path.endsWith('/NOPE')) continue
      expect(answer.status, path).toBe(200)
      const items = /^\/v2\/(all-)?markets|\/(rates|attempts)$/.test(url) ? undefined : itemsOf(answer.body)
      if (items !== undefined) expect(items.length, path).toBeGreaterThan(0)
    }
  }
})

describe('lists', () => {
  // Some lists are missing here: entries belong to one profile and have no id (see below), deliveries belong to one
  // webhook, and candles to no customer.
  const lists = OPERATIONS.filter(({ query }) => query?.properties.page_cursor)
    .map(({ url }) => url)
    .filter((url) => !url.includes('/:id/') && !url.startsWith('/v2/markets'))

  test.each(lists)('GET %s shows all records of its customer and no other', async (url) => {
    const seen = await Promise.all([owner, stranger].map((customer) => everyPage(customer, url)))
    for (const ids of seen) expect(ids.length).toBeGreaterThan(1)
    const { rows } = await service.db.query<{ id: string; customer_id: string }>(
      `select id, customer_id from ${TABLES[url]!} order by id desc`,
    )
    for (const [index, customer] of [owner, stranger].entries()) {
      const own = rows.filter((row) => row.customer_id === customer.customer_id).map((row) => row.id)
      // The order of List Events is ascending by default.
      expect(seen[index]).toEqual(url === EVENTS ? own.reverse() : own)
    }
  })

  test.each(lists)("GET %s: another customer's cursor shows nothing of that customer", async (url) => {
    const { body } = await owner.call<Listed>('GET', `${listOf(url, owner)}order=ASC&limit=1`)
    const again = `order=ASC&page_cursor=${body.next_page_cursor!}`
    const answer = await stranger.call<Listed>('GET', listOf(url, stranger) + again)
    if (url === STATEMENTS) {
      // The customer is one of the filters that a cursor carries.
      expect(answer.status).toBe(400)
      return
    }
    const own = await everyPage(stranger, url)
    expect(itemsOf(answer.body)!.length).toBeGreaterThan(0)
    for (const { id } of itemsOf(answer.body)!) expect(own).toContain(id)
  })

  test("of a profile's entries never show another profile's, with any cursor", async () => {
    const pathOf = ({ profile_id }: TestCustomer) => `/v2/profiles/${profile_id}/entries?limit=1`
    const first = await owner.call<Listed>('GET', pathOf(owner))
    const cursor = `&page_cursor=${first.body.next_page_cursor!}`
    expect((await owner.call('GET', pathOf(owner) + cursor)).status).toBe(200)
    expect((await stranger.call('GET', pathOf(stranger) + cursor)).status).toBe(400)
    expect((await stranger.call('GET', pathOf(owner) + cursor)).status).toBe(404)
  })

  async function everyPage(customer: TestCustomer, url: string): Promise<string[]> {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await customer.call<Listed>(
        'GET',
        `${listOf(url, customer)}limit=1${cursor === undefined ? '' : `&page_cursor=${cursor}`}`,
      )
      ids.push(...itemsOf(page.body)!.map(({ id }) => id))
      cursor = page.body.next_page_cursor
    } while (cursor !== undefined)
    return ids
  }
})

/** A page of a list, with any name for its items. */
interface Listed {
  items?: { id: string }[]
  statements?: { id: string }[]
  next_page_cursor?: string
}
const itemsOf = ({ items, statements }: Listed) => items ?? statements
const listOf = (url: string, { customer_id }: TestCustomer) =>
  `${url}?${url === STATEMENTS ? `customer_id=${customer_id}&` : ''}`

const BOTH = 'both have it'

describe('unique only within a customer:', () => {
  test('the ref_id of a withdrawal', async () => {
    const body = { ref_id: owners.ref_id, amount: '2' }
    const made = await stranger.call('POST', WITHDRAWALS, withdrawalOf(stranger, body))
    expect(made.body).toMatchObject({ ref_id: owners.ref_id, customer_id: stranger.customer_id, amount: '2' })
    const again = await stranger.call('POST', WITHDRAWALS, withdrawalOf(stranger, body))
    expect(again).toMatchObject({ status: 409, body: { meta: { existing: made.body } } })
    const owned = await owner.call('POST', WITHDRAWALS, withdrawalOf(owner, body))
    expect(owned).toMatchObject({ status: 409, body: { meta: { existing: { id: owners.transfer_id } } } })
  })

  test('the ref_id of deposit instructions', async () => {
    const body = { profile_id: stranger.profile_id, fiat_network: 'WIRE', ref_id: owners.instructions_ref_id }
    const made = await stranger.call('POST', INSTRUCTIONS, body)
    expect(made.body).toMatchObject({ ref_id: body.ref_id, customer_id: stranger.customer_id })
    const again = await stranger.call('POST', INSTRUCTIONS, body)
    expect(again).toMatchObject({ status: 409, body: { meta: { existing: made.body } } })
  })

  test.each<[string, string, (marks: Marks) => object]>([
    ['an identity', IDENTITIES, () => ({ person_details: PERSON })],
    ['an account', ACCOUNTS, ({ identity_id }) => ({ account: { identity_id, ref_id: BOTH } })],
    ['a deposit address', ADDRESSES, ({ profile_id }) => ({ profile_id, crypto_network: 'SOLANA' })],
    ['a fiat account', FIAT_ACCOUNTS, () => FIAT_ACCOUNT],
    [
      'an internal transfer',
      INTERNAL,
      ({ profile_id, second_profile_id }) => ({
        asset: 'USD',
        amount: '1',
        from_profile_id: profile_id,
        to_profile_id: second_profile_id,
      }),
    ],
    ['an orchestration rule', RULES, ({ profile_id }) => ruleOf(profile_id)],
    ['an orchestration', ORCHESTRATIONS, ({ profile_id }) => orchestrationOf(profile_id)],
  ])('the ref_id of %s', async (_, url, bodyOf) => {
    for (const [customer, marks] of [
      [owner, owners],
      [stranger, strangers],
    ] as const) {
      const body = url === ACCOUNTS ? bodyOf(marks) : { ...bodyOf(marks), ref_id: BOTH }
      const { rule, ...record } = await made<{ rule?: object }>(customer, url, body)
      const again = await customer.call('POST', url, body)
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: rule ?? record } } })
    }
  })

  test.each<[ClientScope, string, (marks: Marks) => object]>([
    ['identity:write_identity', IDENTITIES, () => ({ person_details: PERSON })],
    ['transfer:write_fiat_account', FIAT_ACCOUNTS, () => FIAT_ACCOUNT],
    [
      'transfer:write_internal_transfer',
      INTERNAL,
      ({ profile_id, second_profile_id }) => ({
        ...{ asset: 'USD', amount: '1', from_profile_id: profile_id, to_profile_id: second_profile_id },
      }),
    ],
  ])(
    "a client with only %s reads, by a 409, its own customer's record with the ref_id",
    async (scope, url, bodyOf) => {
      // The contract requires this, and it shows no other customer's record (API behaviour, Retries and ref_id).
      for (const [customer, marks] of [
        [owner, owners],
        [stranger, strangers],
      ] as const) {
        const body = { ...bodyOf(marks), ref_id: `write only ${scope}` }
        const record = await made(customer, url, body)
        const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, [scope])
        const call = caller(service.app, await fetchToken(service.app, client))
        expect(await call('POST', url, body)).toMatchObject({
          status: 409,
          body: { meta: { existing: record } },
        })
        expect((await call('GET', `/v2/transfer/transfers`)).status).toBe(403)
        expect((await call('GET', IDENTITIES)).status).toBe(403)
      }
    },
  )

  test('the nickname of a profile', async () => {
    const nickname = BOTH
    for (const customer of [owner, stranger]) {
      const made = await customer.call('POST', '/v2/profiles', { nickname })
      expect(made.status).toBe(200)
      const again = await customer.call('POST', '/v2/profiles', { nickname })
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: { id: made.body.id } } } })
    }
  })

  test("a memo_id: the deposit is credited to the token's customer", async () => {
    // Memos are random, so the test sets two equal ones directly.
    await service.owner.query('update fiat_deposit_instructions set memo_id = $1 where id = any ($2)', [
      'BOTHHAVETHISMEMO',
      [owners.instructions_id, strangers.instructions_id],
    ])
    const before = await Promise.all([owner, stranger].map(usdOf))
    const deposit = { amount: '7', asset: 'USD', memo_id: 'BOTHHAVETHISMEMO' }
    const answer = await stranger.call('POST', DEPOSITS, {
      ...deposit,
      fiat_network_instructions: { wire: {} },
    })
    expect(answer.status).toBe(200)
    expect(await Promise.all([owner, stranger].map(usdOf))).toEqual([before[0], before[1]! + 7])
  })

  test("an address: a deposit to it is credited to one customer and triggers only that customer's rules", async () => {
    // Addresses are random, so the test sets two equal ones directly.
    const crypto_address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    await service.owner.query('update deposit_addresses set address = $1 where id = any ($2)', [
      crypto_address,
      [owners.address_id, strangers.address_id],
    ])
    const usdp = { source_asset: 'USDP', destination_asset: 'USD' }
    const source = ({ profile_id }: TestCustomer) => ({ ...usdp, source: { profile: { profile_id } } })
    for (const each of [owner, stranger]) {
      await made(each, RULES, ruleOf(each.profile_id, source(each)))
    }
    const before = ownRows(await everyTable(service.db))
    const sent = { asset: 'USDP', amount: '7', crypto_network: 'ETHEREUM', crypto_address }
    await made(stranger, `/v2/sandbox/profiles/${stranger.profile_id}/deposit`, sent)
    expect(ownRows(await everyTable(service.db))).toEqual(before)
    const started = `${ORCHESTRATIONS}?source_asset=USDP&limit=1`
    const { body } = await stranger.call<{ items: object[] }>('GET', started)
    expect(body.items).toMatchObject([{ source_amount: '7', profile_id: stranger.profile_id }])
    expect((await owner.call<{ items: object[] }>('GET', started)).body.items).toEqual([])
  })

  async function usdOf({ call, profile_id }: TestCustomer): Promise<number> {
    const balance = await call<{ available: string }>('GET', `/v2/profiles/${profile_id}/balances/USD`)
    return Number(balance.body.available)
  }
})
