/**
 * What operations accept: the good request of each, unusual spellings, and all forms of records. Each answer is one that
 * the API document allows. Then dates, Idempotency-Key, and what clients send beside the contract.
 */
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { transaction } from '../src/db/database.ts'
import { keyHooks } from '../src/http/idempotency-key.ts'
import { PARTS } from '../src/http/lists.ts'
import { bodyLimitOf } from '../src/http/mount.ts'
import type { Operation } from '../src/http/operation.ts'
import { REJECTED_ACCOUNT_NUMBER } from '../src/networks/simulated/magic-addresses.ts'
import { lockMarket, writePrices } from '../src/money/records/write-prices.ts'
import { setRewardRate } from '../src/resources/statements/reward-rates.ts'
import { DocumentSchemas } from './api-document.ts'
import {
  changed,
  evaluated,
  goodOf,
  idIn,
  nameOf,
  OPERATIONS,
  PAGED,
  pathWith,
  queryWith,
  type Change,
} from './good-requests.ts'
import { INSTRUCTIONS, ORCHESTRATIONS, PROFILES, RESET, RULES, WITHDRAWALS } from './paths.ts'
import { ask, raw, show } from './refusals.ts'
import { partOf, runs } from './seed.ts'
import { BASE_URL, DESTINATION, TEST_ORIGIN, withdrawalOf } from './support.ts'
import {
  depositOf,
  ETHEREUM_ADDRESS,
  fiatAccountOf,
  hookOf,
  made,
  openWorld,
  PERSON,
  ruleOf,
  service,
  world,
  type Kind,
} from './world.ts'
import { refusedWith } from './matchers.ts'

await openWorld()
const schemas = await DocumentSchemas.of(service)
afterAll(() => service.close())

const bearer = () => `Bearer ${world.customer.token}`
const own = (kind: Kind) => world.own[kind].id
const NOBODYS = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
/** The operations of one run, with their names: what is walked here is done by one hook, or by one list, for all of them. */
const drawn = (operations: readonly Operation[]) =>
  partOf(operations, 4).map((one) => [nameOf(one), one] as const)
const byName = new Map(OPERATIONS.map((operation) => [nameOf(operation), operation]))

/** Sends a request, and requires an answer that the API document allows. */
async function accepted(name: string, change: Change): Promise<unknown> {
  const operation = byName.get(name)!
  const answer = await ask({
    ...{ method: operation.method, ...changed(goodOf(operation), change) },
    authorization: `bearer ${world.customer.token}`,
  })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  expect(answer.headers['content-type']).toMatch(/^application\/json\b/)
  expect(schemas.reply(operation)(answer.body), JSON.stringify(answer.body)).toEqual([])
  return answer.body
}

// ---------------------------------------------------------------------------------------------------------------
// By hand.

type Accepted = [name: string, change: Change, reply?: object | (() => object)]

const LONGEST = '\u{1F4B5}'.repeat(100)
const SIX_PAIRS = Object.fromEntries([0, 1, 2, 3, 4, 5].map((n) => [`${n}`.padEnd(100, 'k'), LONGEST]))
const ODD_PAIRS = { '': '', 'a\nb': '\n', constructor: 'x', toString: '\u2028' }
const ON_ETHEREUM = { crypto: { network: 'ETHEREUM', address: DESTINATION } }
const held = () => ({ identity_id: own('identity'), account_id: own('account'), metadata: { a: 'b' } })
const anywhere = () => [
  { destination: { profile: { profile_id: own('second') } } },
  { destination: ON_ETHEREUM },
  { destination_asset: 'USD', destination: { fiat: { fiat_account_id: own('fiat_account'), memo: 'm' } } },
]
const another = () => ({ ref_id: crypto.randomUUID() })
const member = (identity_id: string, more: object = {}) => ({ identity_id, ...more })

/** Free members, in every place that has them. */
const WIRE = { iban: 5, routing_details: { bank_address: { city: 'London', floor: 1 }, x: {} } }
const OWNER = { institution_details: { name: 'A', x: [1] }, y: { z: null } }
const WHOLE_PERSON = {
  person_details: {
    ...PERSON,
    ...{ date_of_birth: '2024-02-29', address: { city: 'London', floor: 2 }, email: 'ada@example.com' },
    ...{ phone_number: '1', nationality: 'GB', x: [null], toString: null },
  },
  tax_details: [{ tax_payer_id: '1', tax_payer_country: 'GB', x: 1 }],
  tax_details_not_required: false,
  customer_due_diligence: { source_of_wealth: 'INHERITANCE', x: [null] },
  is_merchant: true,
  metadata: { a: 'b' },
}
const WHOLE_INSTITUTION = () => ({
  person_details: undefined,
  institution_details: { name: 'A', business_address: {}, institution_type: 'LLC', email: 'a@b.c' },
  institution_members: [
    member(own('identity'), { roles: ['TRUSTEE', 'GRANTOR'], ownership: '1', position: 'p', name: 'n' }),
  ],
})

const DEPOSIT = 'POST /v2/sandbox/profiles/:id/deposit'
const CANCEL = 'POST /v2/transfer/transfers/:id/cancel'
const END_RULE = 'DELETE /v2/orchestration/rules/:id'
const WRITE_POLICY = 'PUT /v2/policy'

const AMOUNTS: Accepted[] = [
  [
    `POST ${WITHDRAWALS}`,
    {
      body: {
        crypto_network: 'SOLANA',
        destination_address: '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA',
        amount: '.5',
      },
    },
    { amount: '0.5' },
  ],
  [`POST ${WITHDRAWALS}`, { body: { amount: '00010' } }, { amount: '10' }],
  [`POST ${WITHDRAWALS}`, { body: { amount: `10.5${'0'.repeat(30)}` } }, { amount: '10.5', total: '11.5' }],
  [`POST ${WITHDRAWALS}`, { body: { amount: undefined, total: '11.000' } }, { amount: '10', total: '11' }],
  ...['.5', '0000.01'].map((amount): Accepted => ['POST /v2/sandbox/fiat-deposits', { body: { amount } }]),
  ...['POST /v2/transfer/internal', 'POST /v2/transfer/fiat-withdrawals'].flatMap((name): Accepted[] => [
    [name, { body: { amount: '.5' } }, { amount: '0.5', total: '0.5', fee: '0' }],
    [name, { body: { amount: `0001.5${'0'.repeat(30)}` } }, { amount: '1.5' }],
  ]),
  [
    'POST /v2/transfer/fiat-withdrawals',
    { body: { amount: undefined, total: '.50' } },
    { amount: '0.5', total: '0.5' },
  ],
  [DEPOSIT, { body: { amount: '.5' } }],
  [DEPOSIT, { body: { amount: '9'.repeat(15) } }],
  [DEPOSIT, { body: { asset: 'USD', amount: '0000.010', crypto_network: undefined } }],
  [DEPOSIT, { body: { asset: 'BTC', crypto_network: undefined } }],
  [
    `POST ${ORCHESTRATIONS}`,
    { body: { ref_id: 'amount', source_amount: '.5' } },
    { source_amount: '0.5', status: 'COMPLETED' },
  ],
  [
    `POST ${ORCHESTRATIONS}`,
    { body: { ref_id: 'zeros', source_amount: `2.5${'0'.repeat(30)}`, destination: ON_ETHEREUM } },
    { source_amount: '2.5', status: 'PROCESSING' },
  ],
]

/** Metadata and memos, wherever both are taken. */
const TEXTS: Accepted[] = OPERATIONS.filter(
  ({ method, body }) => method === 'POST' && body?.properties.memo,
).flatMap((operation) =>
  [SIX_PAIRS, ODD_PAIRS].map((metadata): Accepted => {
    const changes = { metadata, memo: 'ü'.repeat(256) }
    return [nameOf(operation), { body: changes }, changes]
  }),
)

const addressAt = (change: (address: string) => string, more: object = {}) => ({
  body: { crypto_address: change(String(world.own.address.address)), crypto_network: 'ETHEREUM', ...more },
})

const FORMS: Accepted[] = [
  [`POST ${PROFILES}`, { body: { nickname: LONGEST } }, { nickname: LONGEST }],
  [`POST ${PROFILES}`, raw('{"nickname":"a"}', { 'content-type': 'application/json; charset=utf-8' })],
  [`POST ${PROFILES}`, raw('{"nickname":"b"}', { 'content-type': 'APPLICATION/JSON' })],
  [
    `POST ${WITHDRAWALS}`,
    {
      body: { beneficiary: { person_details: { first_name: 'A', last_name: 'B', x: [1] }, y: { z: null } } },
    },
  ],
  [`POST ${WITHDRAWALS}`, { body: { beneficiary: { institution_details: { name: 'Example Ltd' } } } }],
  [
    `POST ${WITHDRAWALS}/bulk`,
    () => {
      const bodies = [{ ref_id: 'bulk' }, { ref_id: 'bulk' }, { ref_id: 'too much', amount: '5000' }]
      return { body: { withdrawals: [...bodies.map((one) => withdrawalOf(world.customer, one)), {}] } }
    },
  ],
  [
    'POST /v2/sandbox/fiat-deposits',
    {
      body: {
        fiat_network_instructions: { wire: WIRE },
        fiat_account_owner: {
          person_details: { first_name: 5 },
          institution_details: { name: 'A', x: null },
        },
      },
    },
  ],
  [
    'POST /v2/transfer/fiat-accounts',
    () => ({
      body: {
        ...{ fiat_account_owner: OWNER, fiat_network_instructions: { wire: WIRE } },
        ...{ ref_id: 'whole', ...held() },
      },
    }),
    { status: 'APPROVED', fiat_account_owner: OWNER, fiat_network_instructions: { wire: WIRE } },
  ],
  [
    'POST /v2/transfer/fiat-accounts',
    { body: fiatAccountOf(REJECTED_ACCOUNT_NUMBER) },
    { status: 'REJECTED' },
  ],
  ['POST /v2/transfer/fiat-withdrawals', () => ({ body: { memo: 'm', ...another(), ...held() } })],
  ['POST /v2/transfer/paxos', () => ({ body: { recipient_metadata: {}, ...another(), ...held() } })],
  ['POST /v2/conversion/stablecoins', () => ({ body: { ...another(), ...held() } })],
  [
    `POST ${INSTRUCTIONS}`,
    () => ({ body: { routing_number_type: 'SWIFT', ...another(), metadata: { a: 'b' } } }),
  ],
  [
    'POST /v2/transfer/deposit-addresses',
    () => ({
      body: { crypto_network: 'STELLAR', conversion_target_asset: 'USD', ...another(), ...held() },
    }),
  ],
  [DEPOSIT, () => addressAt((address) => address)],
  [DEPOSIT, () => addressAt((address) => address.toLowerCase())],
  // Another network with the same addresses.
  [DEPOSIT, () => addressAt((address) => address, { crypto_network: 'INK', asset: 'USDG' })],
  ['POST /v2/sandbox/customers', { body: { name: undefined } }],
  [
    'POST /v2/identity/identities',
    { body: { ref_id: 'whole person', ...WHOLE_PERSON } },
    { person_details: WHOLE_PERSON.person_details },
  ],
  ['POST /v2/identity/identities', () => ({ body: { ref_id: 'whole institution', ...WHOLE_INSTITUTION() } })],
  [
    'PUT /v2/identity/identities/:id',
    () => ({
      path: `/v2/identity/identities/${own('identity')}`,
      body: {
        ...{ institution_details: undefined, person_details: { phone_number: '2' }, is_merchant: false },
        ...{ tax_details: [{ tax_payer_id: '1' }], set_tax_details_not_required: true, metadata: {} },
        ...{ customer_due_diligence: { x: 1 }, last_kyc_refresh_date: '2026-01-31T09:30:00Z' },
        set_user_disabled: false,
      },
    }),
  ],
  ...[
    { status: 'ERROR', user_disabled: true },
    { status: undefined, id_verification_status: 'PENDING', admin_disabled: { disabled: false } },
    { status: 'APPROVED', user_disabled: false },
  ].map((body): Accepted => ['PUT /v2/identity/identities/:id/sandbox-status', { body }]),
  [
    'POST /v2/identity/accounts',
    () => ({
      body: {
        account: {
          ...{
            identity_id: own('identity').toUpperCase(),
            ref_id: 'whole',
            type: 'ROTH_IRA',
            description: 'd',
          },
          metadata: { a: 'b' },
          members: [
            member(own('identity').toUpperCase(), { roles: ['BENEFICIAL_OWNER', 'FINANCIAL_ADVISOR'] }),
          ],
        },
        create_profile: true,
      },
    }),
    () => {
      const its = { type: 'BENEFICIAL_OWNER', roles: ['BENEFICIAL_OWNER', 'FINANCIAL_ADVISOR'] }
      const members = [{ id: expect.any(String) as unknown, ...member(own('identity'), its) }]
      return { identity_id: own('identity'), members }
    },
  ],
  [
    'PUT /v2/identity/accounts',
    () => ({ body: { account: { id: own('account') }, set_user_disabled: false } }),
  ],
  [
    'POST /v2/identity/account-members',
    () => ({
      body: { account_id: own('account'), members: [member(own('identity'), { type: 'FINANCIAL_ADVISOR' })] },
    }),
  ],
  ...[0, 1, 2].map((which): Accepted => [
    `POST ${RULES}`,
    () => ({ body: { ...another(), ...anywhere()[which] } }),
  ]),
  ...[
    { source: { fiat: { network: 'WIRE', account_type: 'CHECKING' } }, nickname: 'n' },
    { source_asset: 'USDG', destination_asset: 'USD', source: { crypto: { network: 'SOLANA' } } },
  ].map((form): Accepted => [`POST ${RULES}`, () => ({ body: { ...another(), ...form } })]),
  ...[0, 1, 2].map((which): Accepted => [
    `POST ${ORCHESTRATIONS}`,
    () => ({ body: { ...another(), ...held(), ...anywhere()[which] } }),
  ]),
  [
    `POST ${ORCHESTRATIONS}`,
    // bank_account_id, in another spelling beside fiat_account_id, and the profile twice.
    () => ({
      body: {
        ...{ ref_id: 'orchestration_id.mine', profile_id: world.customer.profile_id.toUpperCase() },
        destination_asset: 'USD',
        destination: {
          fiat: {
            fiat_account_id: own('fiat_account'),
            bank_account_id: own('fiat_account').toUpperCase(),
          },
        },
      },
    }),
    () => ({ destination: { fiat: { bank_account_id: own('fiat_account') } } }),
  ],
  [
    'PUT /v2/transfer/crypto-destination-address',
    () => ({
      body: {
        ...{ address: ETHEREUM_ADDRESS, identity_id: own('identity'), nickname: 'Supplier' },
        ...{ bookmarked_status: true, travelrule_metadata: { custodian_type: 'VASP' } },
      },
    }),
  ],
  [
    'POST /v2/webhooks',
    () => ({
      body: hookOf({
        payload: 'FULL',
        auth: { type: 'API_KEY', header: 'x-api-key', key: 'k' },
        ...{ profile_ids: [world.customer.profile_id], status: 'DISABLED' },
      }),
    }),
  ],
  ['PUT /v2/webhooks/:id', { body: { status: 'ACTIVE', profile_ids: [] } }],
  [
    WRITE_POLICY,
    {
      body: {
        rules: [
          { id: 'day', limit: { amount: '1000000', asset: 'USD', period_seconds: 86400 }, action: 'BLOCK' },
          { match: { destination: 'ADDRESS_BOOK' }, action: 'ALLOW' },
        ],
        address_book: { cooling_seconds: 0 },
      },
    },
  ],
  [WRITE_POLICY, { body: { rules: [] } }],
  ...['{}', ''].map((body): Accepted => [
    CANCEL,
    () => ({ ...raw(body), path: `/v2/transfer/transfers/${own('cancellable').toUpperCase()}/cancel` }),
    () => ({ id: own('cancellable'), status: 'FAILED' }),
  ]),
  // A body that nobody looks at.
  ...['', '{', '[1]', 'x'.repeat(bodyLimitOf({}) + 1)].map((body): Accepted => [END_RULE, raw(body)]),
  [END_RULE, raw('x', { 'content-type': 'text/plain' })],
  [
    END_RULE,
    () => ({ path: `${RULES}/${own('rule').toUpperCase()}` }),
    () => ({ rule: { ...world.own.rule, status: 'DELETED', updated_at: expect.any(String) as unknown } }),
  ],
  [
    'POST /v2/transfer/fees/crypto-withdrawal',
    {
      body: {
        ...{ asset: 'BTC', crypto_network: 'BITCOIN', amount: '1' },
        destination_address: 'tb1qqv9pzxqlyckngw6zf9g9whn9d3eh4qvgdtujvv',
      },
    },
  ],
]

const NOTHING = { items: [] }
const ofNames = (count: number) => Array.from({ length: count }, (_, n) => `V${n}`)
const NO_PRICES = { market: 'BTCUSD', prices: [], items: [], total_count: 0 }
const QUERIES: [name: string, query: string, reply?: object][] = [
  ...['PENDING', 'REJECTED'].map((status): [string, string, object] => [
    `GET ${ORCHESTRATIONS}`,
    `status=${status}`,
    { ...NOTHING, orchestrations: [] },
  ]),
  ...['source_asset', 'destination_asset'].map((filter): [string, string, object] => [
    `GET ${ORCHESTRATIONS}`,
    `${filter}=LINK`,
    { ...NOTHING, orchestrations: [] },
  ]),
  ...[
    'max_data_points=1',
    'max_data_points=9223372036854775807',
    'pagination.offset=2147483647&pagination.limit=1000',
    'range.begin=2026-01-01T00:00:00Z&range.end=2026-01-01T00:00:00Z',
    'range.begin=2026-01-01T00:00:00Z&range.end=2026-01-01T01:00:00%2B01:00&increment=ONE_DAY',
    'range.begin=0001-01-01T00:00:00Z&range.end=9999-12-31T23:59:59.999999999Z&increment=ONE_MINUTE',
    'range.begin=9999-12-31T23:59:59.999999999Z',
    'range.end=0001-01-01T00:00:00Z',
  ].map((query): [string, string, object] => ['GET /v2/markets/:market/historical-prices', query, NO_PRICES]),
  ...[
    'max_data_points=9223372036854775807',
    'limit=1000&order=ASC',
    'range.begin=0001-01-01T00:00:00Z&range.end=9999-12-31T23:59:59.999999999Z&increment=ONE_DAY',
    'range.begin=9999-12-31T23:59:59.999999999Z&increment=ONE_DAY',
    'range.end=0001-01-01T00:00:00Z&increment=ONE_DAY',
  ].map((query): [string, string, object] => [
    'GET /v2/markets/:market/historical-candles',
    query,
    { market: 'BTCUSD', ...NOTHING },
  ]),
  ['GET /v2/identity/identities', 'include_details=true&include_institution_members=true'],
  ['GET /v2/identity/identities/:id', 'include_details=false&include_institution_members=true'],
  ['GET /v2/profiles/:id/balances', 'at=2200-01-01T00:00:00Z'],
  ['GET /v2/transfer/fiat-accounts', 'include_deleted=true'],
  ['GET /v2/audit-log', 'actor_type=API_CLIENT'],
  ['GET /v2/policy/versions', 'before=2'],
  ['GET /v2/transfer/limits/utilizations', 'transfer_type=WIRE_WITHDRAWAL'],
  ['GET /v2/transfer/volumes', 'created_at.lt=2026-01-01T00:00:00Z'],
  ['GET /v2/balances/history', 'assets=BTC&days=1'],
  ['GET /v2/all-markets/prices', 'markets=BTCUSD&markets=ETHUSD'],
  ['GET /v2/search', `q=10`],
]

// ---------------------------------------------------------------------------------------------------------------
// Walked.

const properties = ({ query }: Operation) => query!.properties as Record<string, { type: string }>
const hasBounds = (operation: Operation) => properties(operation)['created_at.gt'] !== undefined

/** Queries of a list that match nothing, or everything. */
function queriesOf(operation: Operation): [query: string, matches: boolean][] {
  const ids = Object.entries(properties(operation))
    .filter(([name, { type }]) => type === 'array' && /(^|_)ids?$/.test(name))
    .map(([name]) => name)
  const none = [
    ...ids.flatMap((name) => [`${name}=me`, `${name}=`, `${name}=${NOBODYS}`]),
    ...ids.map((name) => ofNames(100).join(`&${name}=`).replace(/^/, `${name}=`)),
    ...(hasBounds(operation)
      ? [
          'created_at.gt=9999-12-31T23:59:59.999999999Z',
          'created_at.lt=0001-01-01T00:00:00Z',
          'created_at.lt=1970-01-01t00:00:00.000z',
          'created_at.eq=2026-01-01T00:00:00.123456789%2B05:30',
        ]
      : []),
  ]
  const { maximum } = properties(operation).limit as { maximum?: number }
  const order = properties(operation).order === undefined ? '' : '&order=DESC'
  const since = 'created_at.gte=2026-01-01T00:00:00-00:30&created_at.gt=1970-01-01T00:00:00Z'
  return [
    ...none.map((query): [string, boolean] => [query, false]),
    ...(hasBounds(operation) ? [[`limit=${maximum!}${order}&${since}`, true] as [string, boolean]] : []),
  ]
}

const upperCased = (text: string) =>
  text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => id.toUpperCase())

/** The sandbox of tests has no program that could start it again. */
const ANSWERED = OPERATIONS.filter(({ url }) => url !== RESET)

describe.each(ANSWERED.map((operation) => [nameOf(operation), operation] as const))(
  '%s',
  (name, operation) => {
    test('accepts its good request, and ids in capitals', async () => {
      const good = goodOf(operation)
      const first = await accepted(name, {})
      const { path, query } = good
      if (operation.method === 'GET') {
        const again = await accepted(name, {
          path: upperCased(path),
          ...(query && { query: upperCased(query) }),
        })
        // Some answers say the time at which they were made.
        if (
          idIn(operation.url) !== undefined &&
          !/balances|history|explanation|statement$|proof$/.test(operation.url)
        )
          expect(again).toEqual(first)
        return
      }
      const body = good.body && {
        ...(JSON.parse(upperCased(JSON.stringify(good.body))) as object),
        ...('ref_id' in good.body && another()),
      }
      // A webhook that is deleted is gone.
      const deletable =
        name === 'DELETE /v2/webhooks/:id' ? pathWith(operation.url, own('disabled_webhook')) : path
      const { status } = await ask({
        ...{ method: operation.method, ...good, path: upperCased(deletable), ...(body && { body }) },
        authorization: bearer(),
      })
      // What the first request made may exist once only.
      expect(status).toBeOneOf([200, 409])
    })

    if (PAGED.includes(operation))
      test('accepts filters that match nothing, or everything', async () => {
        for (const [query, matches] of queriesOf(operation)) {
          const found = Object.values((await accepted(name, { query })) as object).filter(Array.isArray)
          expect(found.length, query).toBeGreaterThan(0)
          for (const items of found) expect((items as unknown[]).length > 0, query).toBe(matches)
        }
      })
  },
)

test.each([...AMOUNTS, ...TEXTS, ...FORMS].map((row) => [row[0], show(row[1]), row] as const))(
  '%s: %s',
  async (name, _, [, change, reply = {}]) => {
    expect(await accepted(name, change)).toEqual(expect.objectContaining(evaluated(reply)))
  },
)
test.each(QUERIES)('%s?%s', async (name, query, reply = {}) => {
  expect(await accepted(name, { query })).toEqual(expect.objectContaining(reply))
})
test('prices and rates', async () => {
  await transaction(service.db, async (tx) => {
    const id = await lockMarket(tx, 'BTCUSD', 'REAL')
    const prices: [string[]] = [['63450.125', '63450', '1']]
    await writePrices(tx, id!, { coversMinutes: 1, minute: [1, 2, 3], second: [0, 0, 0], prices })
  })
  await setRewardRate(service.db, '2026-01-01', '0.0376', TEST_ORIGIN)
  for (const name of ['prices', 'candles'].map((of) => `GET /v2/markets/:market/historical-${of}`))
    for (const query of ['', 'increment=ONE_MINUTE', 'max_data_points=1']) await accepted(name, { query })
  for (const name of ['markets', 'all-markets/prices', 'markets/:market/ticker', 'rewards/rates'])
    await accepted(`GET /v2/${name}`, {})
})

test('orchestrations of rules, by wire and by crypto, and one that failed', async () => {
  const { customer } = world
  const { rule: wired } = await made<{ rule: { source: { fiat: { memo_id: string } } } }>(
    ...[customer, RULES, ruleOf(customer, another())],
  )
  await made(customer, '/v2/sandbox/fiat-deposits', depositOf(wired.source.fiat.memo_id, { amount: '1' }))
  const onChain = { source_asset: 'USDG', destination_asset: 'USD', source: { crypto: { network: 'INK' } } }
  const { rule: sent } = await made<{ rule: { source: { crypto: { address: string } } } }>(
    ...[customer, RULES, ruleOf(customer, { ...another(), ...onChain })],
  )
  await made(customer, pathWith('/v2/sandbox/profiles/:id/deposit', customer.profile_id), {
    ...{ asset: 'USDG', amount: '1', crypto_network: 'INK', crypto_address: sent.source.crypto.address },
  })
  // As the worker leaves a failed orchestration.
  await service.db.query(
    "update orchestrations set status = 'FAILED', fail_reason = 'why' where source_asset = 'USDG'",
  )
  const { rows } = await service.db.query<{ status: string }>(
    'select distinct status from orchestrations order by 1',
  )
  expect(rows.map(({ status }) => status)).toEqual(['COMPLETED', 'FAILED', 'PROCESSING'])
})

test('a delivery with an attempt', async () => {
  await service.owner.query(
    `update webhook_deliveries set status = 'DELIVERED', attempts = 1, due_at = null, ended_at = created_at
     where event_id = $1`,
    [own('event')],
  )
  await service.owner.query(
    `insert into webhook_attempts (customer_id, webhook_id, event_id, id, created_at, attempt, status_code, duration_ms,
                                   response)
     select customer_id, webhook_id, event_id, event_id, created_at, 1, 200, 12, 'ok'
     from webhook_deliveries where event_id = $1`,
    [own('event')],
  )
  const { items } = (await accepted('GET /v2/webhooks/:id/deliveries/:delivery_id/attempts', {})) as {
    items: unknown[]
  }
  expect(items).toHaveLength(1)
  await accepted('GET /v2/webhooks/:id/deliveries', {})
})

describe('each record of a list', () => {
  const one = OPERATIONS.filter(({ url }) => byName.has(`GET ${url.replace(/\/:(id|client_id)$/, '')}`))
    .filter(({ method, url }) => method === 'GET' && idIn(url) !== undefined && /:(id|client_id)$/.test(url))
    .map(({ url }) => url)

  test.each(one)('GET %s', async (url) => {
    const list = byName.get(`GET ${url.replace(/\/:(id|client_id)$/, '')}`)!
    const { items } = (await accepted(nameOf(list), { query: 'limit=100' })) as { items: { id: string }[] }
    expect(items.length).toBeGreaterThan(0)
    for (const { id } of items) await accepted(`GET ${url}`, { path: pathWith(url, id) })
  })
})

// ---------------------------------------------------------------------------------------------------------------

describe('a page of records that do not fit into memory together', () => {
  // Entries of the general ledger are small: a page of the most has half of what is read at once.
  const isLarge = ({ url }: { url: string }) => url !== '/v2/reports/general-ledger'
  const sizes = PAGED.filter(({ query }) => query!.properties.limit !== undefined).filter(isLarge)

  test('every parameter `limit` is of a list that reads its page in parts', () => {
    const limited = OPERATIONS.filter(({ query }) => query?.properties.limit).filter(isLarge)
    expect(limited.map(nameOf)).toEqual(sizes.map(nameOf))
  })

  test.each(drawn(sizes))('%s', async (name, { query }) => {
    const authorization = bearer()
    const { maximum } = query!.properties.limit as unknown as { maximum: number }
    const asked = (limit: number) => {
      const good = goodOf(byName.get(name)!)
      return ask({
        ...good,
        method: 'GET',
        query: queryWith(good.query ?? '', `limit=${limit}`),
        authorization,
      })
    }
    const { bytesMax } = PARTS
    for (const limit of [1, 2, maximum]) {
      const whole = await asked(limit)
      expect(whole.status).toBe(200)
      PARTS.bytesMax = 1
      const inParts = await asked(limit).finally(() => (PARTS.bytesMax = bytesMax))
      expect(inParts.body).toEqual(whole.body)
      // A page of one part has a length.
      const records = Object.values(whole.body as object).find((value) => Array.isArray(value)) as unknown[]
      expect(inParts.headers['content-length'] === undefined).toBe(records.length > 1)
    }
  })
})

describe('dates', () => {
  /** The places of an operation's dates: a name in its query, or the path of a member of its body. */
  const placesIn = (schema: object, at: string[] = []): string[][] => {
    const { format, properties = {} } = schema as { format?: string; properties?: Record<string, object> }
    const here = format?.startsWith('date') ? [at] : []
    return [...here, ...Object.entries(properties).flatMap(([name, inner]) => placesIn(inner, [...at, name]))]
  }
  const places = OPERATIONS.flatMap((operation) => [
    ...placesIn(operation.query ?? {}).map((at) => ({ operation, part: 'query', at })),
    ...placesIn(operation.body ?? {}).map((at) => ({ operation, part: 'body', at })),
  ])
  const withMember = (object: unknown, [name, ...inner]: string[], value: string): object | string =>
    name === undefined
      ? value
      : {
          ...(object as object),
          [name]: withMember((object as Record<string, unknown> | undefined)?.[name], inner, value),
        }

  const number = (digits: number, min: number, max: number, ...often: number[]) =>
    fc
      .oneof(fc.constantFrom(min, max, ...often), fc.integer({ min, max }))
      .map((value) => String(value).padStart(digits, '0'))
  const date = fc
    .tuple(
      number(4, 0, 10_000, 1, 1684, 1685, 1970, 2255, 9999),
      number(2, 0, 13, 1, 12),
      number(2, 0, 32, 1, 31),
    )
    .map((parts) => parts.join('-'))
  const dateTime = fc
    .tuple(
      date,
      fc.constantFrom('T', 't', ' ', ''),
      fc
        .tuple(number(2, 0, 24, 23), number(2, 0, 60, 59), number(2, 0, 61, 59, 60))
        .map((parts) => parts.join(':')),
      fc.oneof(
        fc.constantFrom('', '.9', '.999999999', '.9999995', '.0000001', '.1234567890'),
        number(9, 0, 999_999_999).map((nanos) => `.${nanos}`),
      ),
      fc.oneof(
        fc.constantFrom('Z', 'z', '', '+00:00', '-00:00', '+23:59', '-23:59', '+24:00', '+14:00'),
        fc
          .tuple(fc.constantFrom('+', '-'), number(2, 0, 24), number(2, 0, 60))
          .map(([sign, h, m]) => `${sign}${h}:${m}`),
      ),
    )
    .map((parts) => parts.join(''))

  test('no date on any parameter or member is more than refused', async () => {
    expect(new Set(places.map(({ part }) => part))).toEqual(new Set(['query', 'body']))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...places),
        fc.oneof({ weight: 4, arbitrary: dateTime }, date),
        async (place, text) => {
          const { operation, part, at } = place
          const good = goodOf(operation)
          const changes =
            part === 'query'
              ? { query: queryWith(good.query ?? '', `${at[0]!}=${encodeURIComponent(text)}`) }
              : { body: withMember(good.body, at, text) as object }
          const authorization = bearer()
          const { status } = await ask({ method: operation.method, ...good, ...changes, authorization })
          expect([200, 400, 404, 409]).toContain(status)
        },
      ),
      runs(4_000),
    )
  })

  const limits = [
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+23:59',
    '9999-12-31T23:59:59.9999995Z',
    '9999-12-31T23:59:60Z',
  ]
  test.each(limits)('balances at %s', async (at) => {
    const path = `/v2/profiles/${world.customer.profile_id}/balances`
    const { status, body } = await world.customer.call<{ items: unknown[] }>(
      'GET',
      `${path}?at=${encodeURIComponent(at)}`,
    )
    const now = (await world.customer.call('GET', path)).body
    // What is still to come is not in the balances of a future moment.
    const future = { ...now, complete_until: expect.any(String) as string }
    expect({ status, body }).toEqual({ status: 200, body: at < '1970' ? { items: [] } : future })
  })
})

describe('Idempotency-Key', () => {
  const POSTS = OPERATIONS.filter(({ method }) => method === 'POST')
  /** Every object of a body without its ref_id. */
  const withoutRefId = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value).flatMap(([name, inner]) =>
            name === 'ref_id' ? [] : [[name, withoutRefId(inner)]],
          ),
        )
      : value

  test.each(drawn(POSTS))('%s never ignores it', async (name, operation) => {
    const { preValidation, onRequest } = keyHooks(operation)
    const good = goodOf(byName.get(name)!)
    const send = (headers: Record<string, string>, body: unknown = withoutRefId(good.body)) =>
      ask({ ...good, method: 'POST', body: body as object, headers, authorization: bearer() })
    if (preValidation === undefined) {
      if (onRequest === undefined) return expect(operation.repeats).toBe('HARMLESS')
      for (const header of ['idempotency-key', 'x-idempotency-key'])
        expect(await send({ [header]: 'k' })).toMatchObject({
          status: 400,
          body: { detail: `this operation takes no Idempotency-Key: ${operation.repeats!}` },
        })
      return
    }
    const key = `key of ${name}`
    const first = await send({ 'idempotency-key': key })
    expect({ status: first.status, body: first.body }).toMatchObject({ status: 200 })
    const repeats: Record<string, string>[] = [
      { 'idempotency-key': key },
      { 'x-idempotency-key': key },
      { 'idempotency-key': `"${key}"`, 'x-idempotency-key': `"${key}"` },
    ]
    for (const again of repeats)
      expect(await send(again)).toMatchObject({
        status: 409,
        body: { type: `${BASE_URL}/problems/already-exists`, meta: { existing: { ref_id: key } } },
      })
    const withRefId = (ref_id: string) =>
      operation.body!.properties.ref_id === undefined
        ? { ...good.body, account: { ...(good.body as { account: object }).account, ref_id } }
        : { ...good.body, ref_id }
    expect(await send({ 'idempotency-key': key }, withRefId(key))).toMatchObject({ status: 409 })
    for (const [headers, ref_id, detail] of [
      [{ 'idempotency-key': key }, 'other', 'Idempotency-Key and ref_id differ'],
      [{ 'idempotency-key': key, 'x-idempotency-key': 'k' }, key, 'X-Idempotency-Key differ'],
      [{ 'idempotency-key': 'k\u00e9' }, key, 'printable ASCII'],
    ] as const)
      expect(await send(headers, withRefId(ref_id))).toMatchObject(refusedWith(400, detail))
    for (const bad of ['', ' ', 'k'.repeat(101)])
      expect(await send({ 'idempotency-key': bad })).toMatchObject(refusedWith(400, 'ref_id must'))
  })

  test('each operation says what a repeat does', () => {
    for (const operation of POSTS)
      expect([nameOf(operation), operation.repeats === undefined]).toEqual([
        nameOf(operation),
        keyHooks(operation).preValidation !== undefined,
      ])
  })
})

describe('what clients send beside the contract', () => {
  const BODIES = OPERATIONS.filter(({ body }) => body !== undefined)

  interface Shape {
    properties?: Record<string, Shape>
    required?: string[]
  }
  /** A body with null for each optional member that it lacks, at every level that it has. */
  const withNulls = (value: unknown, { properties, required = [] }: Shape): unknown =>
    properties === undefined || typeof value !== 'object' || value === null
      ? value
      : Object.fromEntries([
          ...Object.keys(properties)
            .filter((name) => !required.includes(name))
            .map((name) => [name, null]),
          ...Object.entries(value).map(([name, inner]) => [name, withNulls(inner, properties[name] ?? {})]),
        ])

  test.each(drawn(BODIES))(
    '%s: null for an optional member is as if it were absent',
    async (name, operation) => {
      const good = goodOf(byName.get(name)!)
      const body = withNulls(good.body, operation.body as Shape) as object
      const { status, body: answer } = await ask({
        ...{ method: operation.method, ...good, body },
        authorization: bearer(),
      })
      // Behind the schema: the records of some good requests are gone or exist by now.
      expect({ status, answer }).toEqual({
        status: expect.toBeOneOf([200, 404, 409]) as unknown,
        answer: expect.not.objectContaining({ errors: expect.anything() as unknown }) as unknown,
      })
    },
  )

  test('null for a required member, and in metadata, is refused', async () => {
    const { call } = world.customer
    expect(await call('POST', '/v2/profiles', { nickname: null })).toMatchObject({
      status: 400,
      body: { detail: 'nickname must be a string' },
    })
    const metadata = { a: null }
    expect(await call('POST', WITHDRAWALS, withdrawalOf(world.customer, { metadata }))).toMatchObject({
      status: 400,
      body: { detail: 'metadata.a must be a string' },
    })
  })

  test.each(drawn(OPERATIONS))(
    '%s ignores unknown names for a client that prefers lenient handling, and says so',
    async (name, operation) => {
      const good = goodOf(byName.get(name)!)
      const send = (prefer: string) =>
        ask({
          ...{ method: operation.method, ...good },
          query: queryWith(good.query ?? '', 'nothing=1'),
          ...(operation.body && { body: { ...good.body, nothing: { of: 'this' } } }),
          headers: { prefer },
          ...(operation.scope !== null && { authorization: bearer() }),
        })
      for (const prefer of ['respond-async, handling=lenient', 'handling = "lenient"; x=1']) {
        const { status, headers } = await send(prefer)
        // Behind the schema: the records of some good requests are gone or exist by now.
        expect(name === `POST ${RESET}` ? [403] : [200, 404, 409]).toContain(status)
        expect(headers['preference-applied']).toBe('handling=lenient')
      }
      for (const prefer of ['handling=strict', 'lenient', 'xhandling=lenient']) {
        const { status, headers } = await send(prefer)
        expect({ status, applied: headers['preference-applied'] }).toEqual({
          status: 400,
          applied: undefined,
        })
      }
    },
  )
})
