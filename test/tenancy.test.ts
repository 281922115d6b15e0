/**
 * Tenancy (design section 2): what belongs to another customer answers exactly as what does not exist, lists never
 * show it, and no value of one customer is in the way of another.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPERATIONS } from '../src/app.ts'
import {
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
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'
const TRANSFERS = '/v2/transfer/transfers'
const DEPOSITS = '/v2/sandbox/fiat-deposits'
const QUOTE = { asset: 'USDP', crypto_network: 'ETHEREUM', destination_address: DESTINATION, amount: '10' }

const TABLES: Record<string, string> = {
  '/v2/profiles': 'profiles',
  [TRANSFERS]: 'transfers',
  [INSTRUCTIONS]: 'fiat_deposit_instructions',
}

/** What identifies the records of one customer. */
interface Marks {
  profile_id: string
  nickname: string
  transfer_id: string
  ref_id: string
  crypto_tx_hash: string
  instructions_id: string
  instructions_ref_id: string
  memo_id: string
  fee_id: string
}

let service: TestService
let owner: TestCustomer
let stranger: TestCustomer
let owners: Marks
let strangers: Marks

const NOBODYS: Marks = {
  profile_id: crypto.randomUUID(),
  nickname: 'Nobody',
  transfer_id: crypto.randomUUID(),
  ref_id: 'nobody',
  crypto_tx_hash: `0x${'0'.repeat(64)}`,
  instructions_id: crypto.randomUUID(),
  instructions_ref_id: 'nobody',
  memo_id: '0000000000000000',
  fee_id: crypto.randomUUID(),
}

beforeAll(async () => {
  service = await startTestService()
  owner = await newCustomer(service)
  stranger = await newCustomer(service)
  owners = await recordsOf(owner, 'Acme')
  strangers = await recordsOf(stranger, 'Zenith')
})
afterAll(() => service.close())

async function made(by: TestCustomer, url: string, body: object): Promise<Record<string, string>> {
  const answer = await by.call<Record<string, string>>('POST', url, body)
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function recordsOf(customer: TestCustomer, name: string): Promise<Marks> {
  await fund(customer, '1000')
  const { profile_id } = customer
  const profile = await made(customer, '/v2/profiles', { nickname: name })
  const ref_id = `${name}'s instructions`
  const instructions = await made(customer, INSTRUCTIONS, { profile_id, fiat_network: 'WIRE', ref_id })
  const transfer = await made(customer, WITHDRAWALS, withdrawalOf(customer, { ref_id: name }))
  const crypto_tx_hash = `0x${name}`
  await service.db.query('update transfers set crypto_tx_hash = $2 where id = $1', [
    transfer.id,
    crypto_tx_hash,
  ])
  const quote = await made(customer, QUOTES, QUOTE)
  return {
    profile_id,
    nickname: profile.nickname!,
    transfer_id: transfer.id!,
    ref_id: name,
    crypto_tx_hash,
    instructions_id: instructions.id!,
    instructions_ref_id: ref_id,
    memo_id: instructions.memo_id!,
    fee_id: quote.id!,
  }
}

type Method = 'GET' | 'POST'
type Request = [url: string, body?: object]

/** For each operation, the requests that can name a record, with the marks of its owner. */
const REQUESTS: Record<string, (marks: Marks) => Request[]> = {
  [`POST ${WITHDRAWALS}`]: ({ profile_id, fee_id, ref_id }) => [
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id, amount: '5000' })],
    [WITHDRAWALS, withdrawalOf(stranger, { fee_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { profile_id, ref_id })],
    [WITHDRAWALS, withdrawalOf(stranger, { amount: '5000', ref_id })],
  ],
  [`POST ${DEPOSITS}`]: ({ memo_id }) => [
    [DEPOSITS, { amount: '1', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }],
  ],
  'POST /v2/profiles': ({ nickname }) => [['/v2/profiles', { nickname }]],
  'GET /v2/profiles': ({ profile_id, nickname }) => [
    [`/v2/profiles?ids=${profile_id}`],
    [`/v2/profiles?nickname=${nickname}`],
  ],
  'GET /v2/profiles/:id': ({ profile_id }) => [[`/v2/profiles/${profile_id}`]],
  'GET /v2/profiles/:id/balances': ({ profile_id }) => [
    [`/v2/profiles/${profile_id}/balances`],
    [`/v2/profiles/${profile_id}/balances?assets=USD`],
  ],
  'GET /v2/profiles/:id/balances/:asset': ({ profile_id }) => [
    [`/v2/profiles/${profile_id}/balances/USD`],
    [`/v2/profiles/${profile_id}/balances/NOPE`],
  ],
  [`GET ${TRANSFERS}/:id`]: ({ transfer_id }) => [[`${TRANSFERS}/${transfer_id}`]],
  [`GET ${TRANSFERS}`]: ({ transfer_id, profile_id, ref_id, crypto_tx_hash }) => [
    [`${TRANSFERS}?ids=${transfer_id}`],
    [`${TRANSFERS}?profile_ids=${profile_id}`],
    [`${TRANSFERS}?ref_ids=${ref_id}`],
    [`${TRANSFERS}?crypto_tx_hashes=${crypto_tx_hash}`],
    [`${TRANSFERS}?profile_ids=${profile_id}&order_by=UPDATED_AT&order=ASC`],
  ],
  [`POST ${INSTRUCTIONS}`]: ({ profile_id, instructions_ref_id }) => [
    [INSTRUCTIONS, { profile_id, fiat_network: 'WIRE' }],
    [INSTRUCTIONS, { profile_id, fiat_network: 'WIRE', ref_id: instructions_ref_id }],
  ],
  [`GET ${INSTRUCTIONS}`]: ({ instructions_id, profile_id, instructions_ref_id }) => [
    [`${INSTRUCTIONS}?ids=${instructions_id}`],
    [`${INSTRUCTIONS}?profile_ids=${profile_id}`],
    [`${INSTRUCTIONS}?ref_ids=${encodeURIComponent(instructions_ref_id)}`],
  ],
  // Names no record.
  [`POST ${QUOTES}`]: () => [[QUOTES, QUOTE]],
}

const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`

/** The answer with every id that was asked for, and whatever every new record has of its own, made alike. */
async function answerTo(method: Method, [url, body]: Request, marks: Marks) {
  const answer = await stranger.call(method, url, body)
  const text = Object.values<string>({ ...marks })
    .reduce((rest, mark) => rest.replaceAll(mark, '<mark>'), JSON.stringify(answer.body))
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, '<time>')
    .replaceAll(/"memo_id":"[A-Z0-9]{16}"/g, '"memo_id":"<memo>"')
  return { status: answer.status, body: JSON.parse(text) as unknown }
}

test('every operation is walked here', () => {
  expect(Object.keys(REQUESTS).sort()).toEqual(OPERATIONS.map(nameOf).sort())
})

describe.each(OPERATIONS.map((operation) => [nameOf(operation), operation.method as Method] as const))(
  '%s',
  (name, method) => {
    test("another customer's records answer as those that do not exist, and stay as they are", async () => {
      const before = await everyTable(service.db)
      const requests = REQUESTS[name]!(owners).map((request, index) => ({
        request,
        twin: REQUESTS[name]!(NOBODYS)[index]!,
      }))
      for (const { request, twin } of requests) {
        const answer = await answerTo(method, request, owners)
        expect(answer, request[0]).toEqual(await answerTo(method, twin, NOBODYS))
        expect(JSON.stringify(answer.body)).not.toContain(owner.customer_id)
      }
      // What the stranger made is his own: nothing of the owner's changed.
      expect(ownRows(await everyTable(service.db))).toEqual(ownRows(before))
    })
  },
)

/** The rows that name the owner. */
const ownRows = (tables: Record<string, string[]>) =>
  Object.values(tables).flatMap((rows) => rows.filter((row) => row.includes(owner.customer_id)))

test('the same requests are answered for the records of their owner', async () => {
  for (const { method, url } of OPERATIONS.filter((operation) => operation.method === 'GET')) {
    for (const [path] of REQUESTS[nameOf({ method, url })]!(owners)) {
      const answer = await owner.call<{ items?: unknown[] }>('GET', path)
      if (path.endsWith('/NOPE')) continue
      expect(answer.status, path).toBe(200)
      if (answer.body.items !== undefined) expect(answer.body.items.length, path).toBeGreaterThan(0)
    }
  }
})

describe('lists', () => {
  const lists = OPERATIONS.filter(({ query }) => query?.properties.page_cursor).map(({ url }) => url)

  test.each(lists)('GET %s shows everything of its customer and nothing of another', async (url) => {
    const seen = await Promise.all([owner, stranger].map((customer) => everyPage(customer, url)))
    for (const ids of seen) expect(ids.length).toBeGreaterThan(1)
    const { rows } = await service.db.query<{ id: string; customer_id: string }>(
      `select id, customer_id from ${TABLES[url]!} order by id desc`,
    )
    for (const [index, customer] of [owner, stranger].entries()) {
      const own = rows.filter((row) => row.customer_id === customer.customer_id).map((row) => row.id)
      expect(seen[index]).toEqual(own)
    }
  })

  test.each(lists)("GET %s: another customer's cursor shows nothing of that customer", async (url) => {
    const { body } = await owner.call<{ next_page_cursor: string }>('GET', `${url}?order=ASC&limit=1`)
    const answer = await stranger.call<{ items: { id: string }[] }>(
      'GET',
      `${url}?order=ASC&page_cursor=${body.next_page_cursor}`,
    )
    const own = await everyPage(stranger, url)
    expect(answer.body.items.length).toBeGreaterThan(0)
    for (const { id } of answer.body.items) expect(own).toContain(id)
  })

  async function everyPage(customer: TestCustomer, url: string): Promise<string[]> {
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await customer.call<{ items: { id: string }[]; next_page_cursor?: string }>(
        'GET',
        `${url}?limit=1${cursor === undefined ? '' : `&page_cursor=${cursor}`}`,
      )
      ids.push(...page.body.items.map(({ id }) => id))
      cursor = page.body.next_page_cursor
    } while (cursor !== undefined)
    return ids
  }
})

describe('values that must be unique are so within a customer only:', () => {
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

  test('the nickname of a profile', async () => {
    const nickname = 'Both have it'
    for (const customer of [owner, stranger]) {
      const made = await customer.call('POST', '/v2/profiles', { nickname })
      expect(made.status).toBe(200)
      const again = await customer.call('POST', '/v2/profiles', { nickname })
      expect(again).toMatchObject({ status: 409, body: { meta: { existing: { id: made.body.id } } } })
    }
  })

  test('a memo_id: the deposit is credited to the customer whose token it came with', async () => {
    // Memos are random, so that two alike must be made by hand.
    await service.db.query('update fiat_deposit_instructions set memo_id = $1 where id = any ($2)', [
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

  async function usdOf({ call, profile_id }: TestCustomer): Promise<number> {
    const balance = await call<{ available: string }>('GET', `/v2/profiles/${profile_id}/balances/USD`)
    return Number(balance.body.available)
  }
})
