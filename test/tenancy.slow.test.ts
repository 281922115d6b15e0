/**
 * Tenancy (API behaviour, Access tokens): another customer's record gets the same answer as a record that does not
 * exist. Lists never show it, and a unique value of one customer never blocks the same value of another. The requests are
 * walked from the declarations: each id in a path, each member of a body and each filter that can name a record.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import type { ClientScope } from '../src/contract/scopes.ts'
import type { Operation } from '../src/http/operation.ts'
import {
  changed,
  goodOf,
  idIn,
  namedBy,
  nameOf,
  OPERATIONS,
  PAGED,
  pathWith,
  referencesOf,
  urlOf,
  type Change,
} from './good-requests.ts'
import {
  ACCOUNTS,
  ADDRESSES,
  APPROVALS,
  AUDIT_LOG,
  BOOK,
  CONVERSIONS,
  CREDENTIALS,
  DEPOSITS,
  EVENTS,
  FIAT_ACCOUNTS,
  IDENTITIES,
  INSTRUCTIONS,
  INTERNAL,
  ORCHESTRATIONS,
  PAYMENTS,
  PROFILES,
  REWARDS,
  RULES,
  STATEMENTS,
  TRANSFERS,
  WEBHOOKS,
  WITHDRAWALS,
} from './paths.ts'
import { caller, everyTable, fetchToken, ROW_MACS, withdrawalOf, type TestCustomer } from './support.ts'
import {
  depositOf,
  fiatAccountOf,
  made,
  openWorld,
  orchestrationOf,
  PERSON,
  ruleOf,
  service,
  world,
  type Kind,
  type Records,
} from './world.ts'

const TABLES: Record<string, string> = {
  [PROFILES]: 'profiles',
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
  [REWARDS]: 'statements',
  [PAYMENTS]: 'statements where total_amount_owed > 0',
}

/** The customer whose records the stranger names. The stranger's own requests are good. */
let owner: TestCustomer
let stranger: TestCustomer
/** The records of the owner, and as many that nobody has. */
let owners: Records
let nobodys: Records
/** A limit that no payment here meets. */
const POLICY = {
  rules: [
    {
      limit: { amount: '1000000000', asset: 'USD', period_seconds: 3600, per: 'CUSTOMER' },
      action: 'BLOCK',
    },
  ],
}

beforeAll(async () => {
  await openWorld()
  ;[stranger, owner] = [world.customer, world.other]
  for (const each of [owner, stranger]) {
    // An orchestration of a rule.
    const { memo_id } = (world[each === owner ? 'others' : 'own'].rule.source as OfWire).fiat
    await made(each, DEPOSITS, depositOf(memo_id, { amount: '1' }))
    expect((await each.call('PUT', '/v2/policy', POLICY)).status).toBe(200)
  }
  const crypto_tx_hash = `0x${'a'.repeat(64)}`
  await service.db.query('update transfers set crypto_tx_hash = $2 where id = $1', [
    world.others.transfer.id,
    crypto_tx_hash,
  ])
  owners = { ...world.others, transfer: { ...world.others.transfer, crypto_tx_hash } }
  nobodys = Object.fromEntries(
    Object.entries(owners).map(([kind, record]) => [
      kind,
      Object.fromEntries(marksOf(record).map(([name, value]) => [name, unlike(name, value)])),
    ]),
  ) as Records
})
afterAll(() => service.close())

interface OfWire {
  fiat: { memo_id: string }
}

/** The members by which a request can name a record. */
const MARKS = ['id', 'ref_id', 'nickname', 'address', 'memo_id', 'crypto_tx_hash', 'approver_id']
const marksOf = (record: Records[Kind]) =>
  Object.entries({ transfer_id: undefined, ...record }).filter(
    (member): member is [string, string] =>
      [...MARKS, 'transfer_id'].includes(member[0]) && typeof member[1] === 'string',
  )
/** A value of the same form that nobody has. */
function unlike(name: string, value: string): string {
  if (name === 'address') return '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB'
  if (name === 'crypto_tx_hash') return `0x${'0'.repeat(64)}`
  return UUID.test(value) ? value.replace(UUID, crypto.randomUUID()) : `nobody's ${name}`
}
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/

/** What a filter with this name selects, in a list of records of this kind. */
const FILTERS: Record<string, (marks: Records, kind: Kind) => unknown> = {
  ids: (marks, kind) => marks[kind].id,
  ref_ids: (marks, kind) => marks[kind].ref_id,
  ref_id: (marks, kind) => marks[kind].ref_id,
  nickname: (marks) => marks.second.nickname,
  profile_ids: (marks) => marks.profile.id,
  profile_id: (marks) => marks.profile.id,
  identity_ids: (marks) => marks.identity.id,
  identity_id: (marks) => marks.identity.id,
  account_ids: (marks) => marks.account.id,
  group_ids: (marks) => marks.conversion.id,
  crypto_tx_hashes: (marks) => marks.transfer.crypto_tx_hash,
  fiat_account_ids: (marks) => marks.fiat_account.id,
  addresses: (marks) => marks.address.address,
  orchestration_rule_id: (marks) => marks.rule.id,
  orchestration_id: (marks) => marks.orchestration.id,
  statement_ids: (marks) => marks.statement.id,
  payment_ids: (marks) => marks.statement.id,
  transfer_ids: (marks) => marks.approval.transfer_id,
  client_ids: (marks) => marks.client.id,
  object_id: (marks) => marks.transfer.id,
  subject_ids: (marks) => marks.transfer.id,
}
/** Filters that find nothing among the records of the owner. */
const FIND_NOTHING = /fiat_account_ids|volumes|payments\?ref_ids|(book|addresses)\?addresses/

const behind = (identity_id: string) => ({ identity_id, roles: ['TRUSTEE'] })
/** Every form of an orchestration's destination that can name a record. */
const destinations = ({ profile, fiat_account, address }: Records): object[] => [
  { destination: { profile: { profile_id: profile.id } } },
  { destination_asset: 'USD', destination: { fiat: { fiat_account_id: fiat_account.id } } },
  { destination_asset: 'USD', destination: { fiat: { bank_account_id: fiat_account.id } } },
  // Any customer may pay to this address, but must not learn who owns it.
  { destination: { crypto: { network: 'ETHEREUM', address: address.address } } },
]
const ofSource = ({ profile }: Records) => ({ source: { profile: { profile_id: profile.id } } })
const bodies = (...changes: object[]): Change[] => changes.map((body) => ({ body }))
const queries = (...texts: string[]): Change[] => texts.map((query) => ({ query }))

/** Requests that name a record in a place of their own. */
const BY_HAND: Record<string, (marks: Records, by: TestCustomer) => Change[]> = {
  'POST /v2/transfer/crypto-withdrawals/bulk': (marks) =>
    bodies(
      { withdrawals: [] },
      {
        withdrawals: [
          { identity_id: marks.identity.id },
          { account_id: marks.account.id },
          { destination_address: marks.address.address },
          { profile_id: marks.profile.id },
          { profile_id: marks.profile.id, amount: '5000' },
          { fee_id: marks.quote.id },
          { profile_id: marks.profile.id, ref_id: marks.transfer.ref_id },
        ].map((changes) => withdrawalOf(stranger, { ref_id: crypto.randomUUID(), ...changes })),
      },
    ),
  'POST /v2/transfer/crypto-withdrawals': ({ address, profile, transfer }) =>
    bodies({ destination_address: address.address }, { profile_id: profile.id, ref_id: transfer.ref_id }),
  'POST /v2/sandbox/fiat-deposits': ({ instructions }) => bodies({ memo_id: instructions.memo_id }),
  'POST /v2/sandbox/profiles/:id/deposit': ({ address }) => bodies({ crypto_address: address.address }),
  'POST /v2/profiles': ({ second }) => bodies({ nickname: second.nickname }),
  'PUT /v2/profiles/:id': ({ profile, second }) => [
    { path: `${PROFILES}/${profile.id}`, body: { nickname: second.nickname } },
  ],
  'GET /v2/profiles/:id/balances/:asset': ({ profile }) => [
    { path: `${PROFILES}/${profile.id}/balances/NOPE` },
  ],
  // Each kind of name, and parts of names.
  'GET /v2/search': ({ address, transfer, statement, instructions, ...marks }) =>
    [
      ...[transfer.id, transfer.crypto_tx_hash, statement.id, statement.ref_id, instructions.memo_id],
      ...[address.id, address.address, instructions.id, marks.conversion.id, marks.profile.id],
      ...[marks.orchestration.id, marks.rule.id, marks.identity.id, marks.account.id, marks.book.id],
      ...[marks.fiat_account.id, marks.webhook.id, marks.event.id, marks.approval.id],
      ...[transfer.id.slice(0, -6), String(address.address).slice(0, 12)],
    ].map((text) => ({ query: `q=${encodeURIComponent(String(text))}` })),
  // Whom a customer pays is not hidden from it: the profile of another one is a receiver.
  'POST /v2/transfer/paxos': ({ profile, second }) =>
    bodies({ from_profile_id: profile.id, to_profile_id: second.id }),
  'POST /v2/transfer/internal': ({ profile, second }) =>
    bodies({ from_profile_id: profile.id, to_profile_id: second.id }),
  'POST /v2/identity/identities': ({ identity }) =>
    bodies({
      ref_id: crypto.randomUUID(),
      ...{ person_details: undefined, institution_details: { name: 'Acme' } },
      institution_members: [behind(identity.id)],
    }),
  'POST /v2/identity/institution-members': ({ identity, institution }) =>
    bodies(
      { institution_id: institution.id, members: [behind(identity.id)] },
      { members: [behind(identity.id)] },
    ),
  'POST /v2/identity/accounts': ({ identity, account }) =>
    [
      { identity_id: identity.id },
      { identity_id: identity.id, ref_id: account.ref_id },
      { members: [{ identity_id: world.own.identity.id }, { identity_id: identity.id }] },
      { ref_id: account.ref_id },
    ].map((named) => ({
      body: { account: { identity_id: world.own.identity.id, ...named }, create_profile: true },
    })),
  'PUT /v2/identity/accounts': ({ account: { id } }) =>
    bodies({ account: { id, description: 'x' } }, { account: { id }, set_user_disabled: true }),
  'POST /v2/identity/account-members': ({ identity, account }) =>
    bodies(
      { account_id: account.id, members: [{ identity_id: identity.id }] },
      { members: [{ identity_id: identity.id, roles: ['AUTHORIZED_USER'] }] },
    ),
  'POST /v2/orchestration/rules': (marks) =>
    [{ profile_id: marks.profile.id, ...ofSource(marks) }, ...destinations(marks)].map((named) => ({
      body: { ref_id: crypto.randomUUID(), ...named },
    })),
  'POST /v2/orchestration/orchestrations': (marks) =>
    [
      ofSource(marks),
      { ...ofSource(marks), source_amount: '5000' },
      ...destinations(marks),
      ...destinations(marks).map((to) => ({ ...ofSource(marks), ...to })),
    ].map((named) => ({ body: { ref_id: crypto.randomUUID(), ...named } })),
  'GET /v2/statements': ({ customer }) => queries(`customer_id=${customer.id}`),
  'GET /v2/statements/payments': ({ customer, statement }, by) =>
    queries(
      `ref_ids=${encodeURIComponent(`${customer.id}-${String(statement.ref_id)}-USDG-1.5-seq#1`)}`,
      `customer_id=${by.customer_id}&payment_ids=${statement.id}`,
    ),
  'PUT /v2/transfer/crypto-destination-address': ({ book }) =>
    bodies({ id: book.id, crypto_network: undefined, address: undefined, nickname: 'mine now' }),
  'POST /v2/webhooks': ({ profile }) => bodies({ name: crypto.randomUUID(), profile_ids: [profile.id] }),
  'PUT /v2/webhooks/:id': ({ profile, webhook }) => [
    ...bodies({ profile_ids: [profile.id] }),
    { path: `${WEBHOOKS}/${webhook.id}`, body: { url: 'https://stranger.example.com/' } },
  ],
  'GET /v2/webhooks/:id/deliveries/:delivery_id/attempts': ({ webhook, event }) =>
    [webhook, world.own.webhook].map(({ id }) => ({
      path: `${WEBHOOKS}/${id}/deliveries/${event.id}/attempts`,
    })),
  'PUT /v2/policy': () => bodies({ rules: [], replaces: 9 }),
  ...Object.fromEntries(
    ['approve', 'reject'].map((kind) => [
      `POST /v2/approvals/:id/${kind}`,
      ({ approval }: Records) => bodies({ approver_id: approval.approver_id }),
    ]),
  ),
}

/** The changes of a good request that name one of these records. */
function changesOf(operation: Operation, marks: Records, by: TestCustomer): Change[] {
  const { url, body, query, problems = [] } = operation
  const kind = idIn(url) === undefined ? undefined : namedBy(url).kind
  const whose = url === STATEMENTS ? `customer_id=${by.customer_id}&` : ''
  const members = body?.properties ?? {}
  const tooMuch = 'source_amount' in members ? { source_amount: '5000' } : { amount: '5000' }
  const named = [
    ...referencesOf(operation).map(({ field, kind: its }) => ({ [field]: marks[its].id })),
    ...('ref_id' in members && operation.method === 'POST' ? [{ ref_id: marks.transfer.ref_id }] : []),
  ]
  return [
    ...(kind === undefined ? [] : [{ path: pathWith(url, marks[kind].id) }]),
    ...bodies(...named),
    // A refusal for the money must not come before the record is looked for.
    ...(problems.includes('insufficient-funds')
      ? bodies(...named.map((one) => ({ ...one, ...tooMuch })))
      : []),
    ...Object.keys(query?.properties ?? {}).flatMap((filter) => {
      if (kind !== undefined || FILTERS[filter] === undefined) return []
      const value = FILTERS[filter](marks, PAGED.includes(operation) ? namedInList(url) : 'transfer')
      return queries(`${whose}${filter}=${encodeURIComponent(String(value))}`)
    }),
    ...(BY_HAND[nameOf(operation)]?.(marks, by) ?? []),
  ]
}
const namedInList = (url: string): Kind =>
  url === AUDIT_LOG || url.startsWith('/v2/markets') ? 'transfer' : namedBy(url).kind

test('each operation is asked for a record of somebody else, or names none', () => {
  const asked = OPERATIONS.filter((operation) => changesOf(operation, owners, stranger).length > 0)
  const others = OPERATIONS.filter((operation) => !asked.includes(operation)).map(nameOf)
  expect(others.sort()).toEqual([
    ...['GET /v2/all-markets/prices', 'GET /v2/assets', 'GET /v2/audit-log/verification'],
    ...['GET /v2/balances/history', 'GET /v2/markets', 'GET /v2/markets/:market/historical-candles'],
    ...['GET /v2/markets/:market/historical-prices', 'GET /v2/markets/:market/ticker', 'GET /v2/networks'],
    ...['GET /v2/policy', 'GET /v2/policy/versions', 'GET /v2/reports/accounts', 'GET /v2/reports/activity'],
    ...['GET /v2/reports/closed-days', 'GET /v2/reports/liabilities', 'GET /v2/reports/trial-balance'],
    'GET /v2/rewards/rates',
    'GET /v2/rewards/statements',
    ...['GET /v2/webhooks', 'POST /v2/sandbox/clock', 'POST /v2/sandbox/customers', 'POST /v2/sandbox/reset'],
    'POST /v2/transfer/fees/crypto-withdrawal',
  ])
})

/** Returns the answer, with the requested ids and the generated values replaced by placeholders. */
async function answerTo(operation: Operation, change: Change, marks: Records) {
  const request = changed(goodOf(operation), change)
  const answer = await stranger.call(operation.method, urlOf(request), request.body)
  const values = [
    ...new Set(Object.values(marks).flatMap((record) => marksOf(record).map(([, value]) => value))),
  ]
  const text = values
    .sort((a, b) => b.length - a.length)
    .reduce((rest, mark) => rest.replaceAll(mark, '<mark>'), JSON.stringify(answer.body))
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, '<time>')
    .replaceAll(/"memo_id":"[A-Z0-9]{16}"/g, '"memo_id":"<memo>"')
    .replaceAll(/"address":"0x[0-9a-fA-F]{40}"/g, '"address":"<address>"')
  return { status: answer.status, body: JSON.parse(text) as unknown }
}

describe.each(OPERATIONS.map((operation) => [nameOf(operation), operation] as const))(
  '%s',
  (_, operation) => {
    test("another customer's records get the same answers as unknown records, and do not change", async () => {
      const before = await everyTable(service.db)
      const twins = changesOf(operation, nobodys, stranger)
      for (const [index, change] of changesOf(operation, owners, stranger).entries()) {
        const answer = await answerTo(operation, change, owners)
        expect(answer, JSON.stringify(change)).toEqual(await answerTo(operation, twins[index]!, nobodys))
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
  for (const operation of OPERATIONS.filter(({ method }) => method === 'GET')) {
    for (const change of changesOf(operation, owners, owner)) {
      const url = urlOf(changed(goodOf(operation), change))
      // The webhook or the delivery of the stranger.
      if (
        /\/(NOPE|attempts)$/.test(url) &&
        !url.includes(`${owners.webhook.id}/deliveries/${owners.event.id}`)
      )
        continue
      const answer = await owner.call<Listed>('GET', url)
      expect(answer.status, url).toBe(200)
      const items =
        /\/attempts$/.test(operation.url) || FIND_NOTHING.test(url) ? undefined : itemsOf(answer.body)
      if (items !== undefined) expect(items.length, url).toBeGreaterThan(0)
    }
  }
})

describe('lists', () => {
  // Some lists are missing here: entries belong to one profile and have no id (see below), deliveries belong to one
  // webhook, and candles to no customer. The general ledger has entries: src/resources/reports/reports.db.test.ts.
  const lists = PAGED.map(({ url }) => url).filter(
    (url) => idIn(url) === undefined && !url.startsWith('/v2/markets') && !url.startsWith('/v2/reports'),
  )

  test.each(lists)('GET %s shows all records of its customer and no other', async (url) => {
    const seen = await Promise.all([owner, stranger].map((customer) => everyPage(customer, url)))
    for (const ids of seen) expect(ids.length).toBeGreaterThan(1)
    const { rows } = await service.db.query<{ id: string; customer_id: string }>(
      `select id, customer_id from ${TABLES[url]!} order by id desc`,
    )
    const ofOwner = rows.filter((row) => row.customer_id === owner.customer_id).map((row) => row.id)
    // The order of List Events is ascending by default.
    expect(seen[0]).toEqual(url === EVENTS ? ofOwner.reverse() : ofOwner)
    // The stranger also has records that are deleted.
    const ofStranger = rows.filter((row) => row.customer_id === stranger.customer_id).map((row) => row.id)
    expect(ofStranger).toEqual(expect.arrayContaining(seen[1]!))
  })

  test.each(lists)("GET %s: another customer's cursor shows nothing of that customer", async (url) => {
    const { body } = await owner.call<Listed>('GET', `${listOf(url, owner)}order=DESC&limit=1`)
    const again = `order=DESC&page_cursor=${body.next_page_cursor!}`
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
/** Both customers with their records. */
const sides = () => [[owner, world.others] as const, [stranger, world.own] as const]
const moved = ({ profile, second }: Records) => ({
  ...{ asset: 'USD', amount: '1', from_profile_id: profile.id, to_profile_id: second.id },
})

describe('unique only within a customer:', () => {
  test.each<[string, string, (marks: Records) => object]>([
    ['a withdrawal', WITHDRAWALS, ({ profile }) => withdrawalOf({ profile_id: profile.id })],
    ['an identity', IDENTITIES, () => ({ person_details: PERSON })],
    ['an account', ACCOUNTS, ({ identity }) => ({ account: { identity_id: identity.id, ref_id: BOTH } })],
    ['a deposit address', ADDRESSES, ({ profile }) => ({ profile_id: profile.id, crypto_network: 'SOLANA' })],
    [
      'deposit instructions',
      INSTRUCTIONS,
      ({ profile }) => ({ profile_id: profile.id, fiat_network: 'WIRE' }),
    ],
    ['a fiat account', FIAT_ACCOUNTS, () => fiatAccountOf('1')],
    ['an orchestration rule', RULES, ({ profile }) => ruleOf({ profile_id: profile.id })],
    ['an orchestration', ORCHESTRATIONS, ({ profile }) => orchestrationOf({ profile_id: profile.id })],
  ])('the ref_id of %s', async (_, url, bodyOf) => {
    for (const [customer, marks] of sides()) {
      const ref_id = `${BOTH}: ${url}`.slice(0, 100)
      const body = url === ACCOUNTS ? bodyOf(marks) : { ...bodyOf(marks), ref_id }
      const { rule, ...record } = await made<{ rule?: object }>(customer, url, body)
      const again = await customer.call('POST', url, body)
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: rule ?? record } } })
    }
  })

  test.each<[ClientScope, string, (marks: Records) => object]>([
    ['identity:write_identity', IDENTITIES, () => ({ person_details: PERSON })],
    ['transfer:write_fiat_account', FIAT_ACCOUNTS, () => fiatAccountOf('1')],
    ['transfer:write_internal_transfer', INTERNAL, moved],
  ])(
    "a client with only %s reads, by a 409, its own customer's record with the ref_id",
    async (scope, url, bodyOf) => {
      // The contract requires this, and it shows no other customer's record (API behaviour, Retries and ref_id).
      for (const [customer, marks] of sides()) {
        const body = { ...bodyOf(marks), ref_id: `write only ${scope}` }
        const record = await made(customer, url, body)
        const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, [scope])
        const call = caller(service.app, await fetchToken(service.app, client))
        expect(await call('POST', url, body)).toMatchObject({
          status: 409,
          body: { meta: { existing: record } },
        })
        for (const read of [TRANSFERS, IDENTITIES]) expect((await call('GET', read)).status).toBe(403)
      }
    },
  )

  test('the nickname of a profile', async () => {
    const nickname = BOTH
    for (const customer of [owner, stranger]) {
      const { id } = await made(customer, PROFILES, { nickname })
      const again = await customer.call('POST', PROFILES, { nickname })
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: { id } } } })
    }
  })

  test("a memo_id: the deposit is credited to the token's customer", async () => {
    // Memos are random, so the test sets two equal ones directly.
    await service.owner.query('update fiat_deposit_instructions set memo_id = $1 where id = any ($2)', [
      'BOTHHAVETHISMEMO',
      [owners.instructions.id, world.own.instructions.id],
    ])
    const before = await Promise.all([owner, stranger].map(usdOf))
    await made(stranger, DEPOSITS, depositOf('BOTHHAVETHISMEMO', { amount: '7' }))
    expect(await Promise.all([owner, stranger].map(usdOf))).toEqual([before[0], before[1]! + 7])
  })

  test("an address: a deposit to it is credited to one customer and triggers only that customer's rules", async () => {
    // Addresses are random, so the test sets two equal ones directly.
    const crypto_address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    await service.owner.query('update deposit_addresses set address = $1 where id = any ($2)', [
      crypto_address,
      [owners.address.id, world.own.address.id],
    ])
    const usdp = { source_asset: 'USDP', destination_asset: 'USD' }
    const source = ({ profile_id }: TestCustomer) => ({ ...usdp, source: { profile: { profile_id } } })
    for (const each of [owner, stranger]) {
      await made(each, RULES, ruleOf(each, { ref_id: 'of an address', ...source(each) }))
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
