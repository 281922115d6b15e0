/**
 * Bad input, for every operation: each row is a good request with one fault (or two, in the last part) and the
 * problem it must get (design section 5, "Errors"). Afterwards every table is as it was.
 */
import { generateKeyPair, SignJWT, UnsecuredJWT, type JWTHeaderParameters, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { BODY_LIMIT, OPERATIONS } from '../src/app.ts'
import { SCOPES } from '../src/http/scopes.ts'
import { loadSigningKeys, type SigningKeys } from '../src/oauth/signing-keys.ts'
import {
  BASE_URL,
  DESTINATION,
  everyTable,
  fund,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const QUOTES = '/v2/transfer/fees/crypto-withdrawal'
const DEPOSITS = '/v2/sandbox/fiat-deposits'
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'

// Addresses from BIP-173, BIP-350 and EIP-55.
const ETHEREUM_ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const BITCOIN_ADDRESS = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'
const BITCOIN_TEST_ADDRESS = 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx'
const SOLANA_ADDRESS = '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA'
const STELLAR_ADDRESS = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'

/** Within the body limit, and enough to show a check whose time grows with the square of the length. */
const LONG = 60_000
const ANSWER_MS_MAX = 1_000

// ---------------------------------------------------------------------------------------------------------------
// The records that the rows refer to.

interface World {
  customer: TestCustomer
  other: TestCustomer
  keys: SigningKeys
  /** The customer's own, both with the ref_id `taken`. */
  instructions: { memo_id: string }
  transfer: Record<string, unknown>
  /** Fee quotes, each for 10 USDP on ETHEREUM to DESTINATION; the one of `other` is the other customer's. */
  quotes: Record<'good' | 'used' | 'expired' | 'other', string>
  others: { memo_id: string; transfer_id: string }
  cursors: Record<string, string>
}

let service: TestService
let world: World
let tables: Record<string, string[]>

const TYPED_PROBLEMS = [
  'exceed-precision',
  'below-min-withdraw-limit',
  'exceed-max-withdraw-limit',
  'unsupported-address',
  'unsupported-network',
  'insufficient-funds',
  'expired',
  'disabled',
  'already-exists',
]

const NOBODYS = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'

beforeAll(async () => {
  service = await startTestService()
  const customer = await newCustomer(service)
  const other = await newCustomer(service)
  for (const each of [customer, other]) {
    await fund(each, '1011')
    await made(each, '/v2/profiles', { nickname: 'Second' })
  }
  const used = await made(customer, QUOTES, quoteOf({}))
  const expired = await made(customer, QUOTES, quoteOf({}))
  await service.db.query('update fee_quotes set expires_at = created_at where id = $1', [expired.id])
  const own = await made(customer, INSTRUCTIONS, instructionsOf(customer, { ref_id: 'taken' }))
  const others = await made(other, INSTRUCTIONS, instructionsOf(other))
  world = {
    customer,
    other,
    keys: await loadSigningKeys(service.db),
    instructions: { ...own, memo_id: String(own.memo_id) },
    // Takes 10 and the fee of 1, so that 1000 USD are left.
    transfer: await made(customer, WITHDRAWALS, withdrawalOf(customer, { ref_id: 'taken', fee_id: used.id })),
    quotes: {
      good: String((await made(customer, QUOTES, quoteOf({}))).id),
      used: String(used.id),
      expired: String(expired.id),
      other: String((await made(other, QUOTES, quoteOf({}))).id),
    },
    others: {
      memo_id: String(others.memo_id),
      transfer_id: String((await made(other, WITHDRAWALS, withdrawalOf(other))).id),
    },
    cursors: {},
  }
  for (const url of ['/v2/profiles', '/v2/transfer/transfers', INSTRUCTIONS]) {
    const page = await customer.call<{ next_page_cursor: string }>('GET', `${url}?limit=1`)
    world.cursors[url] = page.body.next_page_cursor
  }
  tables = await everyTable(service.db)
})
afterAll(() => service.close())

async function made(by: TestCustomer, url: string, body: object): Promise<Record<string, unknown>> {
  const answer = await by.call('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

const quoteOf = (changes: object) => ({
  asset: 'USDP',
  crypto_network: 'ETHEREUM',
  destination_address: DESTINATION,
  amount: '10',
  ...changes,
})

const instructionsOf = ({ profile_id }: { profile_id: string }, changes: object = {}) => ({
  profile_id,
  fiat_network: 'WIRE',
  ...changes,
})

// ---------------------------------------------------------------------------------------------------------------
// What rows are made of.

interface Request {
  path: string
  query?: string
  body?: object
  /** Sent as it is, in place of `body`. */
  payload?: string
  headers?: Record<string, string>
}
/** What is different from the good request: `body` and `query` are added to what it has. */
type Change = Partial<Request> | (() => Partial<Request>)

interface Refusal {
  status: number
  /** Of a typed problem. */
  slug?: string
  /** What the detail must hold: the field and the rule. */
  detail: string[]
  meta?: unknown
  headers?: Record<string, unknown>
}

type Row = [fault: string, change: Change, refusal: Refusal | (() => Refusal)]

const bad = (...detail: string[]): Refusal => ({ status: 400, detail })
const notFound = (...detail: string[]): Refusal => ({ status: 404, detail: [...detail, 'not found'] })
const typed = (status: number, slug: string, meta: unknown, ...detail: string[]): Refusal => {
  return { status, slug, detail, meta }
}
const exists = (field: string, existing: unknown) => typed(409, 'already-exists', { existing }, field)
const tooMuch = (field: string) =>
  typed(400, 'exceed-max-withdraw-limit', { asset: 'USDP', maximum: '1000000' }, field, 'above the maximum')
const tooLittle = (field: string) =>
  typed(400, 'below-min-withdraw-limit', { asset: 'USDP', minimum: '1' }, field, 'below the minimum')
const tooPrecise = (field: string, asset: string, decimals: number) =>
  typed(400, 'exceed-precision', { asset, decimals }, field, `more than ${decimals} decimals`)
const notCarried = (asset: string, crypto_network: string, ...supported: string[]) =>
  typed(
    400,
    'unsupported-network',
    { asset, crypto_network, supported },
    `crypto_network ${crypto_network}`,
    asset,
  )
const noAddress = (destination_address: string, crypto_network: string) =>
  typed(
    400,
    'unsupported-address',
    { destination_address, crypto_network },
    'destination_address',
    crypto_network,
  )
const insufficient = (asset: string, available: string, needed: string) => () => {
  const { profile_id } = world.customer
  return typed(403, 'insufficient-funds', { profile_id, asset, available, needed }, available, asset, needed)
}
const spent = (fee_id: string, why: string) => typed(403, 'expired', { fee_id }, 'fee quote', why)

const challenge = (error?: string) => ({
  'www-authenticate': expect.stringMatching(
    error === undefined ? /^Bearer realm="[^"]+"$/ : new RegExp(`^Bearer realm="[^"]+", error="${error}"`),
  ) as unknown,
})
const unauthorized = (detail: string, error?: string): Refusal => {
  return { status: 401, detail: [detail], headers: challenge(error) }
}
const forbidden = (scope: string, found: string[]): Refusal => ({
  status: 403,
  detail: [`required ${scope}`, `found ${found.length === 0 ? 'none' : found.join(' ')}`],
  meta: { required_scope: scope, found_scopes: found },
  headers: challenge('insufficient_scope'),
})

// ---------------------------------------------------------------------------------------------------------------
// Rows by kind of field.

const show = (value: unknown) => (JSON.stringify(value) ?? 'absent').slice(0, 50)

/** `{ wire: { account_number: value } }` for 'wire.account_number'. */
const nest = (field: string, value: unknown) =>
  field.split('.').reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as object

/** Each of these values in a body field must be refused, naming the field and the rule. */
const inBody = (field: string, rule: string, ...values: unknown[]) =>
  values.map((value): Row => [`${field} ${show(value)}`, { body: nest(field, value) }, bad(field, rule)])
/** The same for a query parameter. */
const inQuery = (field: string, rule: string, ...values: string[]) =>
  values.map((value): Row => {
    const query = `${field}=${value}`
    return [`?${query.slice(0, 50)}`, { query }, bad(field, rule)]
  })

const required = (field: string) => inBody(field, 'is required', undefined)
const text = (field: string, most: number) => [
  ...inBody(field, 'must be a string', 5, true, null, [], {}),
  ...inBody(field, `at most ${most} characters`, 'x'.repeat(most + 1), 'x'.repeat(LONG)),
  ...inBody(field, 'must not hold the NUL character', 'a\0b', '\ud800'),
]
const uuid = (field: string) => [
  ...inBody(field, 'must be a string', 5, null, []),
  ...inBody(field, 'must be a UUID', '', 'me', NOBODYS.replaceAll('-', ''), NOBODYS.replace(/.$/, 'g')),
  ...inBody(field, 'at most 36 characters', `${NOBODYS}\n`, `urn:uuid:${NOBODYS}`, '1'.repeat(LONG)),
]
const choice = (field: string, ...wrong: string[]) => [
  ...inBody(field, 'must be a string', 5, null, []),
  ...inBody(field, 'must be one of', '', 'NOPE', ...wrong),
]
const object = (field: string) => inBody(field, 'must be an object', 5, null, 'x', [])
const amountText = (field: string) => [
  ...inBody(field, 'must be a string', 10, 0.5, null, true, ['10'], {}),
  ...inBody(
    field,
    'must match the pattern',
    '1.',
    '1e5',
    '-1',
    '',
    ' 1',
    '1 ',
    '1\n',
    '1,5',
    '+1',
    '0x10',
    '.',
  ),
  ...inBody(field, 'must match the pattern', '1.2.3', '..5', '1_000', '\u0661', 'NaN', 'Infinity'),
  ...inBody(field, 'at most 40 characters', '1'.repeat(41), '1'.repeat(LONG), `${'1'.repeat(LONG)}x`),
]
const metadata = [
  ...object('metadata'),
  ...inBody('metadata', 'at most 6 pairs', { a: '', b: '', c: '', d: '', e: '', f: '', g: '' }),
  ...inBody('metadata', 'key must have at most 100 characters', { ['k'.repeat(101)]: '' }),
  ...inBody('metadata.k', 'at most 100 characters', 'v'.repeat(101), 'v'.repeat(LONG)),
  ...inBody('metadata.k', 'must be a string', 5, null, true, [], {}),
  ...inBody('metadata.k\nl', 'must be a string', 5),
  ...inBody('metadata', 'must not hold the NUL character', { a: '\0' }, { '\0': 'a' }, { a: '\udfff' }),
]
/** A record that must be the customer's own. */
const record = (field: string, what: string, ...others: (() => string)[]) =>
  [() => NOBODYS, ...others].map((id): Row => [
    `unknown ${field}`,
    () => ({ body: { [field]: id() } }),
    () => notFound(what, id()),
  ])

const many = Array.from({ length: 101 }, (_, index) => `V${index}`)
/** A filter whose values may hold a comma. */
const textFilter = (field: string) => [
  ...inQuery(field, 'at most 100 values', many.join(`&${field}=`)),
  ...inQuery(field, 'at most 100 characters', 'r'.repeat(101)),
  ...inQuery(field, 'must not hold the NUL character', '%00'),
]
const idFilter = (field: string) => [
  ...textFilter(field),
  ...inQuery(field, 'at most 100 values', many.join(), `a,b&${field}=${many.slice(2).join()}`),
]
const choiceFilter = (field: string, good: string) => [
  ...inQuery(
    field,
    'must be one of',
    '',
    'NOPE',
    good.toLowerCase(),
    `${good},NOPE`,
    `${good}&${field}=NOPE`,
  ),
  ...inQuery(field, 'at most 100 values', many.map(() => good).join()),
]
const timeBounds = (field: string) =>
  ['lt', 'lte', 'eq', 'gte', 'gt']
    .map((comparison) => `${field}.${comparison}`)
    .flatMap((bound) => [
      ...inQuery(bound, 'date-time', '', 'yesterday', '1767225600', '2026-01-01', '2026-01-01T00:00:00'),
      ...inQuery(bound, 'date-time', '2026-02-30T00:00:00Z', '2026-01-01T25:00:00Z'),
      ...inQuery(bound, 'date-time', '2026-01-01T00:00:00.1234567890Z'),
      ...inQuery(bound, 'must be a string', `2026-01-01T00:00:00Z&${bound}=2026-01-01T00:00:00Z`),
    ])

const LISTS = ['/v2/profiles', '/v2/transfer/transfers', INSTRUCTIONS]
const CURSOR_EDITS: [string, (cursor: string) => string][] = [
  ['without its end', (cursor) => cursor.slice(0, -1)],
  ['without its beginning', (cursor) => cursor.slice(1)],
  ['cut to its digest', (cursor) => cursor.slice(0, 24)],
  ['with something added', (cursor) => `${cursor}A`],
  ['with padding', (cursor) => `${cursor}=`],
  ['edited at the beginning', (cursor) => cursor.replace(/^./, (one) => (one === 'A' ? 'B' : 'A'))],
  ['edited at the end', (cursor) => cursor.replace(/.(?=.{9}$)/, (one) => (one === 'A' ? 'B' : 'A'))],
  ['of the other order', (cursor) => `${cursor}&order=ASC`],
  ['of other filters', (cursor) => `${cursor}&ids=${NOBODYS}`],
]
const list = (url: string) => [
  ...inQuery('limit', 'must be at least 1', '0', '-1'),
  ...inQuery('limit', 'must be at most 1000', '1001', '1e9'),
  ...inQuery('limit', 'must be an integer', 'abc', '1.5', '', '1&limit=2', 'NaN'),
  ...inQuery('order', 'must be one of DESC, ASC', 'desc', '', 'created_at'),
  ...inQuery('order', 'must be a string', 'ASC&order=DESC'),
  ...timeBounds('created_at'),
  ...inQuery('page_cursor', 'not a cursor of this list', '', 'abc', '%20', 'A'.repeat(28)),
  ...inQuery('page_cursor', 'at most 300 characters', 'A'.repeat(301), 'A'.repeat(8_000)),
  ...inQuery('page_cursor', 'must not hold the NUL character', '%00'),
  ...[
    ...CURSOR_EDITS.map(([edit, apply]) => [edit, () => apply(world.cursors[url]!)] as const),
    ...LISTS.filter((one) => one !== url).map((one) => [`of ${one}`, () => world.cursors[one]!] as const),
  ].map(([fault, cursor]): Row => [
    `a page_cursor ${fault}`,
    () => ({ query: `page_cursor=${cursor()}` }),
    bad('page_cursor', 'not a cursor of this list'),
  ]),
]

/** A path with an id that is no UUID, and with one that nobody or somebody else has. */
const pathId = (url: (id: string) => string, what: string, others: () => string) => [
  ...['', 'me', '123', `%7B${NOBODYS.slice(2)}%7D`, NOBODYS.slice(1), '..%2Fprofiles', '%F0%9F%92%B5'].map(
    (id): Row => [`id ${id}`, { path: url(id) }, bad('id', 'must be a UUID')],
  ),
  ...[`urn:uuid:${NOBODYS}`, '1'.repeat(201), '1'.repeat(8_000)].map((id): Row => [
    `id ${id.slice(0, 50)}`,
    { path: url(id) },
    bad('id', 'at most 36 characters'),
  ]),
  ...([
    ['NUL in the id', { path: url('%00') }, bad('id', 'must not hold the NUL character')],
    ['bad percent-encoding', { path: url('%zz') }, bad('the path')],
    ["nobody's id", { path: url(NOBODYS) }, notFound(what, NOBODYS)],
    ["another customer's id", () => ({ path: url(others()) }), () => notFound(what, others())],
  ] satisfies Row[]),
]

/** What a withdrawal and a quote for one have in common: amount or total, asset, network, address. */
const terms = (ownAsset: object): Row[] => [
  ...amountText('amount'),
  ...amountText('total'),
  ['amount and total', { body: { total: '11' } }, bad('exactly one of amount and total')],
  ['neither', { body: { amount: undefined } }, bad('exactly one of amount and total')],
  ...['0', '0.00', '.5', '0.99', '000'].map((amount): Row => [
    `amount ${amount}`,
    { body: { amount } },
    tooLittle('amount'),
  ]),
  ...['0', '.5', '1', '1.99'].map((total): Row => [
    `total ${total}, fee 1`,
    { body: { amount: undefined, total } },
    tooLittle('total'),
  ]),
  ...['1000000.01', '9'.repeat(40)].map((amount): Row => [
    `amount ${amount}`,
    { body: { amount } },
    tooMuch('amount'),
  ]),
  ['total 1000001.01, fee 1', { body: { amount: undefined, total: '1000001.01' } }, tooMuch('total')],
  ['amount too precise', { body: { amount: `10.${'0'.repeat(18)}1` } }, tooPrecise('amount', 'USDP', 18)],
  [
    'total too precise',
    { body: { amount: undefined, total: `10.${'0'.repeat(18)}1` } },
    tooPrecise('total', 'USDP', 18),
  ],
  [
    'amount too precise for the network',
    { body: { amount: '10.0000001', crypto_network: 'SOLANA', destination_address: SOLANA_ADDRESS } },
    tooPrecise('amount', 'USDP', 6),
  ],

  ...required('asset'),
  ...inBody('asset', 'must be a string', 5, null, []),
  ...inBody('asset', 'must match the pattern', 'usdp', 'US DP', 'USDP\n', '__proto__', '\u{1F4B5}'),
  ...inBody('asset', 'at least 1', ''),
  ...inBody('asset', 'at most 16 characters', 'X'.repeat(17), 'X'.repeat(LONG)),
  ...inBody('asset', 'NOPE is not known', 'NOPE'),

  ...required('crypto_network'),
  ...choice('crypto_network', 'ethereum', 'DOGECOIN', 'constructor'),
  [
    'another network',
    { body: { crypto_network: 'BITCOIN' } },
    notCarried('USDP', 'BITCOIN', 'ETHEREUM', 'SOLANA'),
  ],
  [
    'an asset that no network carries',
    { body: { asset: 'EUR', ...ownAsset } },
    notCarried('EUR', 'ETHEREUM'),
  ],

  ...required('destination_address'),
  ...inBody('destination_address', 'must be a string', 5, null, []),
  ...inBody('destination_address', 'at least 1', ''),
  ...inBody('destination_address', 'at most 128 characters', '0'.repeat(129), '0'.repeat(LONG)),
  ...inBody('destination_address', 'must not hold the NUL character', `${ETHEREUM_ADDRESS}\0`),
  ...[
    ETHEREUM_ADDRESS.replace('0x5a', '0x5A'), // the checksum is in the case
    ETHEREUM_ADDRESS.slice(0, -1),
    ` ${ETHEREUM_ADDRESS}`,
    ETHEREUM_ADDRESS.slice(2),
    `0x${'0'.repeat(40)}`,
    BITCOIN_ADDRESS,
    SOLANA_ADDRESS,
    STELLAR_ADDRESS,
  ].map((destination_address): Row => [
    `${destination_address} on ETHEREUM`,
    { body: { destination_address } },
    noAddress(destination_address, 'ETHEREUM'),
  ]),
  ...[
    BITCOIN_ADDRESS.replace(/4$/, '5'),
    '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3', // one character off
    'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9',
    ETHEREUM_ADDRESS,
  ].map((destination_address): Row => [
    `${destination_address} on BITCOIN`,
    { body: { asset: 'BTC', crypto_network: 'BITCOIN', destination_address, ...ownAsset } },
    noAddress(destination_address, 'BITCOIN'),
  ]),
]

/** Their order. An amount at fault has the faults that come later, too. */
const TERMS_ORDER: Row[][] = [
  [['amount and total', { body: { total: '11' } }, bad('exactly one of')]],
  [['no such asset', { body: { asset: 'NOPE' } }, bad('NOPE is not known')]],
  [
    [
      'another network',
      { body: { crypto_network: 'XLAYER' } },
      notCarried('USDP', 'XLAYER', 'ETHEREUM', 'SOLANA'),
    ],
  ],
  [
    [
      'another address',
      { body: { destination_address: BITCOIN_ADDRESS } },
      noAddress(BITCOIN_ADDRESS, 'ETHEREUM'),
    ],
  ],
  [['too precise', { body: { amount: '5000000.0000000000000000001' } }, tooPrecise('amount', 'USDP', 18)]],
  [['too much', { body: { amount: '5000000' } }, tooMuch('amount')]],
]

// ---------------------------------------------------------------------------------------------------------------
// The operations.

interface Case {
  good: () => Request
  rows: Row[]
  /**
   * Faults in the order in which the operation looks for them, after token and scope: a request with two is
   * refused for the earlier. Those within one array come at the same place.
   */
  order: Row[][]
}

const quote = (
  fault: string,
  which: keyof World['quotes'],
  body: object,
  refusal: (id: string) => Refusal,
): Row => [
  `fee quote ${fault}`,
  () => ({ body: { fee_id: world.quotes[which], ...body } }),
  () => refusal(world.quotes[which]),
]
const UNKNOWN_PARAMETER: Row[] = [['?x=1', { query: 'x=1' }, bad('x')]]
const nobodys = (path: string): Row[] => [["nobody's id", { path }, notFound(NOBODYS)]]
const LIST_ORDER: Row[][] = [
  [['limit 0', { query: 'limit=0' }, bad('limit')]],
  [['page_cursor abc', { query: 'page_cursor=abc' }, bad('page_cursor')]],
]
const WIRE = 'fiat_network_instructions.wire'
const OWNER = 'fiat_account_owner.institution_details'

const CASES: Record<string, Case> = {
  [`POST ${WITHDRAWALS}`]: {
    good: () => ({ path: WITHDRAWALS, body: withdrawalOf(world.customer) }),
    rows: [
      ...terms({ balance_asset: undefined }),
      ...required('profile_id'),
      ...['profile_id', 'identity_id', 'account_id', 'fee_id'].flatMap(uuid),
      ...text('ref_id', 100),
      ...inBody('ref_id', 'at least 1', ''),
      ...text('memo', 256),
      ...metadata,
      ...['beneficiary', 'beneficiary.person_details', 'beneficiary.institution_details'].flatMap(object),
      ...inBody('beneficiary.person_details', 'last_name is required', { first_name: 'Ada' }),
      ...inBody('beneficiary.person_details', 'first_name is required', { last_name: 'Lovelace' }, {}),
      ...inBody('beneficiary.institution_details', 'name is required', {}),
      ...text('beneficiary.institution_details.name', 200),
      ...inBody('beneficiary.institution_details.name', 'at least 1', ''),
      ...inBody('beneficiary.note', 'must not hold the NUL character', '\0', '\ud800', { deeper: ['\0'] }),
      [
        'a beneficiary without end',
        () => raw(`{"beneficiary":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`),
        bad('beneficiary.a.a', 'nested at most'),
      ],

      ['amount too precise for USD', { body: { amount: '10.123' } }, tooPrecise('amount', 'USD', 2)],
      [
        'total too precise for USD',
        { body: { amount: undefined, total: '10.123' } },
        tooPrecise('total', 'USD', 2),
      ],
      ...inBody('balance_asset', 'must be USDP or USD', 'EUR', 'usd', '', 'PYUSD', '__proto__'),
      ...inBody('balance_asset', 'must be a string', 5, null),
      ...inBody('balance_asset', 'at most 16', 'X'.repeat(17)),
      ['ETH from USD', { body: { asset: 'ETH', amount: '1' } }, bad('balance_asset must be ETH')],

      [
        'ref_id again, with another body',
        { body: { ref_id: 'taken', amount: '12', memo: 'again' } },
        () => exists('ref_id', world.transfer),
      ],
      ...record('profile_id', 'profile', () => world.other.profile_id),
      ...record('identity_id', 'identity'),
      ...record('account_id', 'account'),
      ...record('fee_id', 'fee quote', () => world.quotes.other),
      quote('used twice', 'used', {}, (id) => spent(id, 'used')),
      quote('expired', 'expired', {}, (id) => spent(id, 'expired')),
      quote('for another asset', 'good', { asset: 'USDG' }, () => bad('fee_id', 'another asset')),
      quote(
        'for another network',
        'good',
        { crypto_network: 'SOLANA', destination_address: SOLANA_ADDRESS },
        () => bad('fee_id', 'another crypto_network'),
      ),
      quote('for another address', 'good', { destination_address: ETHEREUM_ADDRESS }, () =>
        bad('fee_id', 'another destination_address'),
      ),
      quote('for less', 'good', { amount: '10.01' }, () => bad('fee_id', 'amount', 'larger')),
      quote('for less in total', 'good', { amount: undefined, total: '11.01' }, () =>
        bad('fee_id', 'amount', 'larger'),
      ),
      quote('with too little', 'good', { amount: '.5' }, () => tooLittle('amount')),
      quote('with too little in total', 'good', { amount: undefined, total: '1.5' }, () =>
        tooLittle('total'),
      ),

      ['one cent more than there is', { body: { amount: '999.01' } }, insufficient('USD', '1000', '1000.01')],
      [
        'one cent more in total',
        { body: { amount: undefined, total: '1000.01' } },
        insufficient('USD', '1000', '1000.01'),
      ],
      ['from a balance of nothing', { body: { balance_asset: undefined } }, insufficient('USDP', '0', '11')],
      ['from itself, named', { body: { balance_asset: 'USDP' } }, insufficient('USDP', '0', '11')],
    ],
    order: [
      [['memo 5', { body: { memo: 5 } }, bad('memo')]],
      ...TERMS_ORDER,
      [['ref_id again', { body: { ref_id: 'taken' } }, () => exists('ref_id', world.transfer)]],
      [['no such profile', { body: { profile_id: NOBODYS } }, notFound('profile')]],
      [['no such account', { body: { account_id: NOBODYS } }, notFound('account')]],
      [['no such identity', { body: { identity_id: NOBODYS } }, notFound('identity')]],
      [['no such fee quote', { body: { fee_id: NOBODYS } }, notFound('fee quote')]],
      [['no funds', { body: { amount: '5000' } }, insufficient('USD', '1000', '5001')]],
    ],
  },

  [`POST ${DEPOSITS}`]: {
    good: () => ({
      path: DEPOSITS,
      body: {
        amount: '250.00',
        asset: 'USD',
        memo_id: world.instructions.memo_id,
        fiat_network_instructions: { wire: {} },
      },
    }),
    rows: [
      ...required('amount'),
      ...amountText('amount'),
      ...inBody('amount', 'must match the pattern', '1.234', '0.001', '1.000'),
      ...inBody('amount', 'must be greater than zero', '0', '0.00', '.0', '000'),
      ...required('asset'),
      ...choice('asset', 'EUR', 'usd', 'USDP', 'X'.repeat(LONG)),
      ...required('memo_id'),
      ...text('memo_id', 100),
      ...inBody('memo_id', 'at least 1', ''),
      ...record(
        'memo_id',
        'memo_id',
        () => world.instructions.memo_id.toLowerCase(),
        () => world.others.memo_id,
      ),
      ...required('fiat_network_instructions'),
      ...object('fiat_network_instructions'),
      ...inBody('fiat_network_instructions', 'wire is required', {}),
      ...inBody('fiat_network_instructions', 'fiat_network_instructions.', { cubix: {} }, { Wire: {} }),
      ...inBody('fiat_network_instructions', 'cubix is not a known field', { wire: {}, cubix: {} }),
      ...object(WIRE),
      ...text(`${WIRE}.account_number`, 200),
      ...[`${WIRE}.fiat_account_owner_address`, `${WIRE}.routing_details.bank_address`].flatMap((address) => [
        ...object(address),
        ...['country', 'address1', 'address2', 'city', 'province', 'zip_code'].flatMap((line) =>
          text(`${address}.${line}`, 200),
        ),
      ]),
      ...object(`${WIRE}.routing_details`),
      ...text(`${WIRE}.routing_details.routing_number_type`, 200),
      ...text(`${WIRE}.routing_details.routing_number`, 200),
      ...text(`${WIRE}.routing_details.bank_name`, 200),
      ...object('fiat_account_owner'),
      ...object(OWNER),
      ...text(`${OWNER}.name`, 200),
    ],
    order: [
      [['EUR', { body: { asset: 'EUR' } }, bad('asset')]],
      [['amount 0', { body: { amount: '0' } }, bad('amount')]],
      [['no such memo', { body: { memo_id: 'X' } }, notFound('memo_id')]],
    ],
  },

  'POST /v2/profiles': {
    good: () => ({ path: '/v2/profiles', body: { nickname: 'Third' } }),
    rows: [
      ...required('nickname'),
      ...text('nickname', 100),
      ...inBody('nickname', 'at least 1', ''),
      ...text('description', 500),
      [
        'nickname again',
        { body: { nickname: 'Default', description: 'again' } },
        () => exists('nickname', { id: world.customer.profile_id, nickname: 'Default', type: 'DEFAULT' }),
      ],
    ],
    order: [
      [['description 5', { body: { description: 5 } }, bad('description')]],
      [['nickname again', { body: { nickname: 'Default' } }, exists('nickname', expect.anything())]],
    ],
  },

  'GET /v2/profiles': {
    good: () => ({ path: '/v2/profiles' }),
    rows: [
      ...list('/v2/profiles'),
      ...idFilter('ids'),
      ...inQuery('nickname', 'at most 100 characters', 'n'.repeat(101)),
      ...inQuery('nickname', 'must be a string', 'a&nickname=b'),
      ...inQuery('nickname', 'must not hold the NUL character', '%00', 'a%00b'),
    ],
    order: LIST_ORDER,
  },

  'GET /v2/profiles/:id': {
    good: () => ({ path: `/v2/profiles/${world.customer.profile_id}` }),
    rows: pathId(
      (id) => `/v2/profiles/${id}`,
      'profile',
      () => world.other.profile_id,
    ),
    order: [UNKNOWN_PARAMETER, nobodys(`/v2/profiles/${NOBODYS}`)],
  },

  'GET /v2/profiles/:id/balances': {
    good: () => ({ path: `/v2/profiles/${world.customer.profile_id}/balances` }),
    rows: [
      ...pathId(
        (id) => `/v2/profiles/${id}/balances`,
        'profile',
        () => world.other.profile_id,
      ),
      ...inQuery('assets', 'must match the pattern', 'usd', 'USD,e', 'USD&assets=U%20D', '%20', 'U%C3%9C'),
      ...inQuery('assets', 'at least 1', '', 'USD,', ','),
      ...inQuery('assets', 'at most 16 characters', 'X'.repeat(17)),
      ...inQuery('assets', 'at most 100 values', many.join(), many.join('&assets=')),
      ...inQuery('assets', 'must not hold the NUL character', '%00'),
    ],
    order: [
      [['assets=usd', { query: 'assets=usd' }, bad('assets')]],
      nobodys(`/v2/profiles/${NOBODYS}/balances`),
    ],
  },

  'GET /v2/profiles/:id/balances/:asset': {
    good: () => ({ path: `/v2/profiles/${world.customer.profile_id}/balances/USD` }),
    rows: [
      ...pathId(
        (id) => `/v2/profiles/${id}/balances/USD`,
        'profile',
        () => world.other.profile_id,
      ),
      ...(
        [
          ['usd', bad('asset', 'must match the pattern')],
          ['%20USD', bad('asset', 'must match the pattern')],
          ['__proto__', bad('asset', 'must match the pattern')],
          ['X'.repeat(17), bad('asset', 'at most 16 characters')],
          ['%00', bad('asset', 'must not hold the NUL character')],
          ['NOPE', notFound('asset', 'NOPE')],
        ] as const
      ).map(([asset, refusal]): Row => [`asset ${asset}`, () => balanceOf(asset), refusal]),
    ],
    order: [
      UNKNOWN_PARAMETER,
      nobodys(`/v2/profiles/${NOBODYS}/balances/NOPE`),
      [['no such asset', () => balanceOf('NOPE'), notFound('asset')]],
    ],
  },

  'GET /v2/transfer/transfers/:id': {
    good: () => ({ path: `/v2/transfer/transfers/${String(world.transfer.id)}` }),
    rows: pathId(
      (id) => `/v2/transfer/transfers/${id}`,
      'transfer',
      () => world.others.transfer_id,
    ),
    order: [UNKNOWN_PARAMETER, nobodys(`/v2/transfer/transfers/${NOBODYS}`)],
  },

  'GET /v2/transfer/transfers': {
    good: () => ({ path: '/v2/transfer/transfers' }),
    rows: [
      ...list('/v2/transfer/transfers'),
      ...timeBounds('updated_at'),
      ...inQuery('order_by', 'must be one of CREATED_AT, UPDATED_AT', 'created_at', '', 'ID'),
      ...['ids', 'profile_ids', 'identity_ids', 'account_ids', 'group_ids'].flatMap(idFilter),
      ...textFilter('ref_ids'),
      ...inQuery('crypto_tx_hashes', 'at most 128 characters', 'h'.repeat(129)),
      ...inQuery('crypto_tx_hashes', 'at most 100 values', many.join()),
      ...choiceFilter('type', 'WIRE_DEPOSIT'),
      ...choiceFilter('statuses', 'PENDING'),
      ...choiceFilter('secondary_statuses', 'CUSTOMER_REJECTED'),
    ],
    order: LIST_ORDER,
  },

  [`POST ${INSTRUCTIONS}`]: {
    good: () => ({ path: INSTRUCTIONS, body: instructionsOf(world.customer) }),
    rows: [
      ...required('profile_id'),
      ...['profile_id', 'identity_id', 'account_id'].flatMap(uuid),
      ...required('fiat_network'),
      ...choice('fiat_network', 'wire', 'CUBIX'),
      ...choice('routing_number_type', 'aba', 'IBAN'),
      ...text('ref_id', 100),
      ...inBody('ref_id', 'at least 1', ''),
      ...metadata,
      [
        'ref_id again, with another body',
        { body: { ref_id: 'taken', routing_number_type: 'SWIFT' } },
        () => exists('ref_id', world.instructions),
      ],
      ...record('profile_id', 'profile', () => world.other.profile_id),
      ...record('identity_id', 'identity'),
      ...record('account_id', 'account'),
    ],
    order: [
      [['metadata 5', { body: { metadata: 5 } }, bad('metadata')]],
      [['ref_id again', { body: { ref_id: 'taken' } }, () => exists('ref_id', world.instructions)]],
      [
        ['no such profile', { body: { profile_id: NOBODYS } }, notFound('profile')],
        ['no such account', { body: { account_id: NOBODYS } }, notFound('account')],
        ['no such identity', { body: { identity_id: NOBODYS } }, notFound('identity')],
      ],
    ],
  },

  [`GET ${INSTRUCTIONS}`]: {
    good: () => ({ path: INSTRUCTIONS }),
    rows: [...list(INSTRUCTIONS), ...['ids', 'profile_ids'].flatMap(idFilter), ...textFilter('ref_ids')],
    order: LIST_ORDER,
  },

  [`POST ${QUOTES}`]: {
    good: () => ({ path: QUOTES, body: quoteOf({}) }),
    rows: terms({}),
    order: [[['profile_id', { body: { profile_id: NOBODYS } }, bad('profile_id')]], ...TERMS_ORDER],
  },
}

function balanceOf(asset: string) {
  return { path: `/v2/profiles/${world.customer.profile_id}/balances/${asset}` }
}

// ---------------------------------------------------------------------------------------------------------------
// Rows that every operation has.

function raw(payload: string, headers: Record<string, string> = { 'content-type': 'application/json' }) {
  return { payload, headers }
}
const wrongType: Refusal = { status: 415, detail: ['content type', 'application/json'] }
const tooLarge: Refusal = { status: 413, detail: ['the body', `${BODY_LIMIT} bytes`] }
const eachRaw = (payloads: string[], refusal: Refusal) =>
  payloads.map((payload): Row => [`the body ${payload}`, raw(payload), refusal])

const BODY_ROWS: Row[] = [
  ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'json'].map(
    (type): Row => [`content type ${type}`, raw('{}', { 'content-type': type }), wrongType],
  ),
  [
    'content type application/problem+json',
    raw('{}', { 'content-type': 'application/problem+json' }),
    wrongType,
  ],
  ['no content type', raw('{}', {}), wrongType],
  ['no body', raw('', {}), bad('the body must be an object')],
  ['an empty body', raw(''), bad('the body is empty')],
  ...eachRaw(
    ['{', '{}}', '{"a":1,}', "{'a':1}", '{"a":NaN}', '{"a":"\n"}'],
    bad('the body is not valid JSON'),
  ),
  ...eachRaw(['undefined', '{"a":"\0"}', '\u{FEFF}{', 'a=b'], bad('the body is not valid JSON')),
  ...eachRaw(['null', '[]', '"x"', '5', 'true', '[{}]'], bad('the body must be an object')),
  ...eachRaw(
    [
      '{"__proto__":{"amount":"1"}}',
      '{"__proto__":null}',
      '{"metadata":{"__proto__":"x"}}',
      '{"a":{"b":[{"__proto__":[]}]}}',
      '{"\\u005f_proto__":{}}',
      '{"constructor":{"prototype":{"asset":"USD"}}}',
    ],
    bad('__proto__ or constructor.prototype'),
  ),
  ...['customer_id', 'toString', 'constructor', 'Amount', 'a.b', ''].map((name): Row => [
    `unknown field ${name}`,
    { body: { [name]: 'x' } },
    bad(name, 'is not a known field'),
  ]),
  ['80 kB of digits', { body: { amount: '1'.repeat(80_000) } }, tooLarge],
  ['one byte too many', raw(`"${'x'.repeat(BODY_LIMIT - 1)}"`), tooLarge],
  ['as many bytes as may be', raw(`"${'x'.repeat(BODY_LIMIT - 2)}"`), bad('the body must be an object')],
  ['endless nesting', raw(`${'['.repeat(20_000)}${']'.repeat(20_000)}`), bad('nested at most')],
]

/** Found before any field is looked at; the fields that are at fault in a good body are still there. */
const UNREADABLE: Row[] = [
  ['a wrong content type', { headers: { 'content-type': 'text/plain' } }, wrongType],
  ['an oversize body', { body: { padding: 'x'.repeat(BODY_LIMIT) } }, tooLarge],
]

const QUERY_ROWS = [
  'x=1',
  'limits=1',
  '__proto__=1',
  'ids[]=a',
  'customer_id=x',
  'LIMIT=1',
  'access_token=x',
].map((query): Row => [
  `unknown query parameter ${query}`,
  { query },
  bad(query.split('=')[0]!, 'is not a known query parameter'),
])

const BAD_HEADERS = ['Basic YTpi', 'Bearer', 'Bearer ', 'Bearer a b', 'Bearer ä', 'token', '']
const BAD_TOKENS: [string, () => Promise<string>][] = [
  ['that is no JWT', async () => 'abc'],
  ['that is expired', () => tokenOf({ exp: now() - 60 })],
  ['that is not valid yet', () => tokenOf({ nbf: now() + 60 })],
  ['signed with another key', async () => tokenOf({}, {}, await anotherKey())],
  ['of an unknown key', async () => tokenOf({}, { kid: 'another' }, await anotherKey())],
  ['with no signature', async () => new UnsecuredJWT(claims()).encode()],
  ['signed with the public key as a secret', () => tokenOf({}, { alg: 'HS256' }, publicKeyAsSecret())],
  ['for another audience', () => tokenOf({ aud: 'https://bursar.example' })],
  ['of another issuer', () => tokenOf({ iss: 'https://bursar.example' })],
  ['that is no access token', () => tokenOf({}, { typ: 'JWT' })],
  ['that never expires', () => tokenOf({ exp: undefined })],
  ['of no customer', () => tokenOf({ customer_id: undefined })],
  ['of a customer that is no id', () => tokenOf({ customer_id: "' or true --" })],
  ['with an edited claim', async () => edited(await tokenOf({}))],
  ['without its signature', async () => (await tokenOf({})).replace(/[^.]*$/, '')],
]

const now = () => Math.floor(Date.now() / 1000)
const anotherKey = async () => (await generateKeyPair('RS256')).privateKey
const publicKeyAsSecret = () => new TextEncoder().encode(JSON.stringify(world.keys.jwks.keys[0]))

function claims(changes: JWTPayload = {}): JWTPayload {
  const { customer_id, client_id } = world.customer
  const times = { iat: now(), exp: now() + 60 }
  const whose = { sub: client_id, client_id, customer_id, scope: SCOPES.join(' ') }
  return { iss: BASE_URL, aud: BASE_URL, ...times, ...whose, ...changes }
}

/** A token like those that the service issues, but for these changes. */
const tokenOf = (
  changes: JWTPayload,
  header: Partial<JWTHeaderParameters> = {},
  key: SigningKeys['privateKey'] | Uint8Array = world.keys.privateKey,
) =>
  new SignJWT(claims(changes))
    .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: world.keys.id, ...header })
    .sign(key)

function edited(token: string): string {
  const [header, payload, signature] = token.split('.') as [string, string, string]
  const text = Buffer.from(payload, 'base64url').toString()
  const other = text.replace(world.customer.customer_id, world.other.customer_id)
  return [header, Buffer.from(other).toString('base64url'), signature].join('.')
}

// ---------------------------------------------------------------------------------------------------------------
// Asking and judging.

interface Call extends Request {
  method: string
  /** The whole header; absent for none. */
  authorization?: string | undefined
}

async function ask({ method, path, query, body, payload, headers, authorization }: Call, on = service) {
  const reply = await on.app.inject({
    method: method as 'GET',
    url: query === undefined ? path : `${path}?${query}`,
    ...(payload === undefined ? body !== undefined && { payload: body } : payload !== '' && { payload }),
    headers: { ...headers, ...(authorization !== undefined && { authorization }) },
  })
  const answered = reply.body === '' ? undefined : reply.json<unknown>()
  return { status: reply.statusCode, headers: reply.headers, body: answered }
}

const evaluated = <T extends object>(value: T | (() => T)): T =>
  typeof value === 'function' ? value() : value

function changed(good: Request, change: Change): Request {
  const { body, query, ...rest } = evaluated(change)
  return {
    ...good,
    ...rest,
    ...(body !== undefined && { body: { ...good.body, ...body } }),
    ...(query !== undefined && { query: good.query === undefined ? query : `${good.query}&${query}` }),
  }
}

async function expectRefusal(call: Call, refusal: Refusal, on = service): Promise<void> {
  const started = performance.now()
  const answer = await ask(call, on)
  expect(performance.now() - started, 'milliseconds').toBeLessThan(ANSWER_MS_MAX)
  const { status, slug, detail, meta, headers = {} } = refusal
  expect(answer.body).toEqual({
    type: slug === undefined ? 'about:blank' : `${BASE_URL}/problems/${slug}`,
    title: expect.stringMatching(/./) as unknown,
    status,
    detail: expect.any(String) as unknown,
    ...(meta !== undefined && { meta }),
  })
  for (const part of detail) expect((answer.body as { detail: string }).detail).toContain(part)
  expect(answer.status).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json\b/)
  expect(answer.headers).toMatchObject(headers)
}

const nothingChanged = async () => expect(await everyTable(service.db)).toEqual(tables)

/** Each row with each of a later place. */
const pairs = (order: Row[][]) =>
  order.flatMap((place, index) => {
    const later = order.slice(index + 1).flat()
    return place.flatMap((one) => later.map((other) => [one[0], other[0], one, other] as const))
  })

interface ApiDocument {
  paths: Record<string, Record<string, { responses: Record<string, { content: Record<string, Media> }> }>>
}
type Media = { examples: object }

const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`

// ---------------------------------------------------------------------------------------------------------------

test('every operation has its rows here, and every field and parameter of it', () => {
  expect(Object.keys(CASES).sort()).toEqual(OPERATIONS.map(nameOf).sort())
  for (const operation of OPERATIONS) {
    const changes = CASES[nameOf(operation)]!.rows.map(([, change]) => evaluated(change))
    const touched = new Set([
      ...changes.flatMap(({ body = {} }) => Object.keys(body)),
      ...changes.flatMap(({ query = '' }) => query.split('=')[0]!),
    ])
    const declared = { ...operation.query?.properties, ...operation.body?.properties }
    expect(Object.keys(declared).filter((name) => !touched.has(name))).toEqual([])
    if (operation.params) expect(changes.some(({ path }) => path)).toBe(true)
  }
})

describe.each(OPERATIONS.map((operation) => [nameOf(operation), operation] as const))(
  '%s',
  (name, operation) => {
    const { method, scope } = operation
    const { good, rows, order } = CASES[name] ?? { good: () => ({ path: '/' }), rows: [], order: [] }
    const authorized = () => ({ method, authorization: `Bearer ${world.customer.token}` })

    test.each([...rows, ...QUERY_ROWS, ...(operation.body ? BODY_ROWS : [])])(
      '%s',
      async (_, change, refusal) => {
        await expectRefusal({ ...authorized(), ...changed(good(), change) }, evaluated(refusal))
      },
    )

    test('no token', () => expectRefusal({ method, ...good() }, unauthorized('Authorization')))
    test.each(BAD_HEADERS)('Authorization: %s', (authorization) =>
      expectRefusal({ method, ...good(), authorization }, unauthorized('Authorization', 'invalid_request')),
    )
    test.each(BAD_TOKENS)('a token %s', async (_, token) => {
      const authorization = `Bearer ${await token()}`
      await expectRefusal({ method, ...good(), authorization }, unauthorized('token', 'invalid_token'))
    })
    test.each([
      ['all scopes but its own', SCOPES.filter((one) => one !== scope)],
      ['a scope that only begins like it', [`${scope}s`]],
      ['no scope', []],
    ])('a token with %s', async (_, found) => {
      const authorization = `Bearer ${await tokenOf({ scope: found.join(' ') })}`
      await expectRefusal({ method, ...good(), authorization }, forbidden(scope, found))
    })

    const places = [...(operation.body ? [UNREADABLE] : []), ...order]
    test.each(places.flat())('the token, then its scope, then %s', async (_, change) => {
      const request = { method, ...changed(good(), change) }
      await expectRefusal(request, unauthorized('Authorization'))
      const authorization = `Bearer ${await tokenOf({ scope: '' })}`
      await expectRefusal({ ...request, authorization }, forbidden(scope, []))
    })
    test.each(pairs(places))('%s, then %s', async (_, __, [, earlier, refusal], [, later]) => {
      const request = changed(changed(good(), later), earlier)
      await expectRefusal({ ...authorized(), ...request }, evaluated(refusal))
    })

    test('the API document has the problems of these rows', async () => {
      const { body } = await ask({ method: 'GET', path: '/openapi.json' })
      const path = operation.url.replaceAll(/:(\w+)/g, '{$1}')
      const { responses } = (body as ApiDocument).paths[path]![method.toLowerCase()]!
      for (const { status, slug } of [...rows, ...order.flat()].map(([, , refusal]) => evaluated(refusal))) {
        const { examples } = responses[status]!.content['application/problem+json']!
        if (slug !== undefined) expect(Object.keys(examples)).toContain(slug)
      }
    })

    test('none of it has changed a table', nothingChanged)
  },
)

describe('routes', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/v2'],
    ['GET', '/v1/profiles'],
    ['GET', '/v2/Profiles'],
    ['GET', `/v2/profiles/${NOBODYS}/secrets`],
    ['POST', '/v2/transfer'],
    ['DELETE', '/v2/transfer/nothing'],
    ['GET', '/problems/nothing'],
    ['GET', '/v2/profiles%2F'],
  ])('%s %s is not found, whoever asks', async (method, path) => {
    await expectRefusal({ method, path }, notFound(path))
    await expectRefusal({ method, path, authorization: `Bearer ${world.customer.token}` }, notFound(path))
  })

  test.each([...new Set(OPERATIONS.map(({ url }) => url))])(
    '%s: other methods are not allowed',
    async (url) => {
      const allowed = OPERATIONS.filter((operation) => operation.url === url).map(
        ({ method }): string => method,
      )
      if (allowed.includes('GET')) allowed.push('HEAD')
      const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
      for (const method of methods.filter((one) => !allowed.includes(one))) {
        const path = url.replace(':id', NOBODYS).replace(':asset', 'USD')
        const answer = await ask({ method, path, ...raw('not JSON') })
        expect(answer.status, method).toBe(405)
        expect(String(answer.headers.allow).split(', ').sort(), method).toEqual(allowed.sort())
        expect(answer.headers['content-type']).toMatch(/^application\/problem\+json\b/)
        if (method !== 'HEAD') expect(answer.body).toMatchObject({ type: 'about:blank', status: 405 })
      }
    },
  )

  test.each(TYPED_PROBLEMS)('the type of %s is the address of a page', async (slug) => {
    const page = await service.app.inject({ url: new URL(`${BASE_URL}/problems/${slug}`).pathname })
    expect(page.statusCode).toBe(200)
    expect(page.headers['content-type']).toMatch(/^text\/html\b/)
    expect(page.body).toContain(slug)
  })

  test('none of it has changed a table', nothingChanged)
})

test('a token is refused once it has expired, also one that has been seen before', async () => {
  const authorization = `Bearer ${await tokenOf({ exp: now() + 60 })}`
  const call = { method: 'GET', path: '/v2/profiles', authorization }
  expect((await ask(call)).status).toBe(200)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 })
  try {
    await expectRefusal(call, unauthorized('expired', 'invalid_token'))
  } finally {
    vi.useRealTimers()
  }
})

describe('live mode', () => {
  let live: TestService
  let customer: TestCustomer

  beforeAll(async () => {
    live = await startTestService({ BURSAR_MODE: 'live' })
    customer = await newCustomer(live)
  })
  afterAll(() => live.close())

  const bitcoin = (destination_address: string) => {
    return { asset: 'BTC', crypto_network: 'BITCOIN', amount: '1', destination_address }
  }
  const withdrawal = (address: string) => ({ ...bitcoin(address), profile_id: customer.profile_id })
  const testAddress = noAddress(BITCOIN_TEST_ADDRESS, 'BITCOIN')
  const retryAfter = { 'retry-after': expect.any(String) as unknown }
  const meta = { request_id: expect.any(String) as unknown }
  const notConnected = { status: 503, detail: ['BITCOIN', 'not connected'], headers: retryAfter, meta }

  test.each<[string, string, () => object, Refusal]>([
    ['to a test network', WITHDRAWALS, () => withdrawal(BITCOIN_TEST_ADDRESS), testAddress],
    ['a fee for a test network', QUOTES, () => bitcoin(BITCOIN_TEST_ADDRESS), testAddress],
    // So that above it is the address that was refused.
    ['to a network that is not connected', WITHDRAWALS, () => withdrawal(BITCOIN_ADDRESS), notConnected],
    ['a fee for one', QUOTES, () => bitcoin(BITCOIN_ADDRESS), notConnected],
    ['sandbox operations', DEPOSITS, () => ({}), notFound(DEPOSITS)],
  ])('%s', async (_, path, body, refusal) => {
    const before = await everyTable(live.db)
    const authorization = `Bearer ${customer.token}`
    await expectRefusal({ method: 'POST', path, body: body(), authorization }, refusal, live)
    expect(await everyTable(live.db)).toEqual(before)
  })
})

// ---------------------------------------------------------------------------------------------------------------
// What looks bad and is not. Last, because it changes the tables.

type Accepted = [route: string, what: string, change: Change, reply: object | (() => object)]

const W = `POST ${WITHDRAWALS}`
const D = `POST ${DEPOSITS}`
const P = 'POST /v2/profiles'
const LONGEST = '\u{1F4B5}'.repeat(100)
const SIX_PAIRS = Object.fromEntries(
  many.slice(0, 6).map((_, index) => [`${index}`.padEnd(100, 'k'), LONGEST]),
)
const ODD_PAIRS = { '': '', 'a\nb': '\n', constructor: 'x', toString: '\u2028' }
const upperCase = (ids: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, String(id).toUpperCase()]))

const ACCEPTED: Accepted[] = [
  ...OPERATIONS.map((operation): Accepted => [nameOf(operation), 'the good request', {}, {}]),

  [
    W,
    'amount .5',
    { body: { crypto_network: 'SOLANA', destination_address: SOLANA_ADDRESS, amount: '.5' } },
    { amount: '0.5' },
  ],
  [W, 'amount 00010', { body: { amount: '00010' } }, { amount: '10' }],
  [W, 'trailing zeros', { body: { amount: `10.5${'0'.repeat(30)}` } }, { amount: '10.5', total: '11.5' }],
  [
    W,
    'trailing zeros of a total',
    { body: { amount: undefined, total: '11.000' } },
    { amount: '10', total: '11' },
  ],
  [D, 'amount .5', { body: { amount: '.5' } }, {}],
  [D, 'amount 0000.01', { body: { amount: '0000.01' } }, {}],
  [W, '6 pairs of 100 characters', { body: { metadata: SIX_PAIRS } }, { metadata: SIX_PAIRS }],
  [W, 'odd pairs', { body: { metadata: ODD_PAIRS } }, { metadata: ODD_PAIRS }],
  [W, 'a memo of 256', { body: { memo: 'ü'.repeat(256) } }, { memo: 'ü'.repeat(256) }],
  [P, '100 characters beyond the basic plane', { body: { nickname: LONGEST } }, { nickname: LONGEST }],
  [
    W,
    'other members of a beneficiary',
    {
      body: { beneficiary: { person_details: { first_name: 'A', last_name: 'B', x: [1] }, y: { z: null } } },
    },
    {},
  ],
  [
    D,
    'other members of wire and of the owner',
    {
      body: {
        fiat_network_instructions: {
          wire: { iban: 5, routing_details: { bank_address: { floor: 1 }, x: {} } },
        },
        fiat_account_owner: {
          person_details: { first_name: 5 },
          institution_details: { name: 'A', x: null },
        },
      },
    },
    {},
  ],
  [P, 'a key twice: the last counts', raw('{"nickname":5,"nickname":"Last"}'), { nickname: 'Last' }],
  [P, 'a charset', raw('{"nickname":"a"}', { 'content-type': 'application/json; charset=utf-8' }), {}],
  [P, 'a content type in capitals', raw('{"nickname":"b"}', { 'content-type': 'APPLICATION/JSON' }), {}],

  [
    W,
    'upper-case ids',
    () => ({ body: upperCase({ profile_id: world.customer.profile_id, fee_id: world.quotes.good }) }),
    () => ({ profile_id: world.customer.profile_id }),
  ],
  [
    `POST ${INSTRUCTIONS}`,
    'an upper-case id',
    () => ({ body: upperCase({ profile_id: world.customer.profile_id }) }),
    () => ({ profile_id: world.customer.profile_id }),
  ],
  [
    'GET /v2/profiles/:id',
    'an upper-case id',
    () => ({ path: `/v2/profiles/${world.customer.profile_id.toUpperCase()}` }),
    () => ({ id: world.customer.profile_id }),
  ],
  [
    'GET /v2/profiles/:id/balances/:asset',
    'an upper-case id',
    () => ({ path: `/v2/profiles/${world.customer.profile_id.toUpperCase()}/balances/USD` }),
    { available: expect.not.stringMatching(/^0$/) as unknown },
  ],
  [
    'GET /v2/transfer/transfers/:id',
    'an upper-case id',
    () => ({ path: `/v2/transfer/transfers/${String(world.transfer.id).toUpperCase()}` }),
    () => world.transfer,
  ],
  [
    'GET /v2/transfer/transfers',
    'an upper-case id in a filter',
    () => ({ query: `ids=${String(world.transfer.id).toUpperCase()}` }),
    () => ({ items: [world.transfer] }),
  ],

  ...OPERATIONS.filter(({ query }) => query?.properties.page_cursor).flatMap((operation) => {
    const idFilters = Object.keys(operation.query!.properties).filter((name) => /(^|_)ids$/.test(name))
    return [
      ...idFilters.flatMap((name) => [`${name}=me`, `${name}=`, `${name}=${NOBODYS}`]),
      ...idFilters.map((name) => `${name}=${many.slice(1).join(`&${name}=`)}`),
      'created_at.gt=9999-12-31T23:59:59.999999999Z',
      'created_at.lt=0001-01-01T00:00:00Z',
      'created_at.lt=1970-01-01t00:00:00.000z',
      'created_at.eq=2026-01-01T00:00:00.123456789%2B05:30',
    ].map((query): Accepted => {
      return [nameOf(operation), `${query.slice(0, 60)} matches nothing`, { query }, { items: [] }]
    })
  }),
  ...OPERATIONS.filter(({ query }) => query?.properties.limit).map((operation): Accepted => {
    const query =
      'limit=1000&order=DESC&created_at.gte=2026-01-01T00:00:00-00:30&created_at.gt=1970-01-01T00:00:00Z'
    return [
      nameOf(operation),
      query,
      { query },
      { items: expect.arrayContaining([expect.any(Object)]) as unknown },
    ]
  }),
]

describe('accepted', () => {
  test.each(ACCEPTED)('%s: %s', async (route, _, change, reply) => {
    const [method] = route.split(' ') as [string]
    const authorization = `bearer ${world.customer.token}`
    const answer = await ask({ method, ...changed(CASES[route]!.good(), change), authorization })
    expect(answer.body).toEqual(expect.objectContaining(evaluated(reply)))
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^application\/json\b/)
  })

  test('a test-network address, in the sandbox', async () => {
    const to = { asset: 'BTC', crypto_network: 'BITCOIN', destination_address: BITCOIN_TEST_ADDRESS }
    expect((await world.customer.call('POST', QUOTES, { ...to, amount: '1' })).status).toBe(200)
  })
})
