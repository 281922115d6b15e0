/*
 * A customer has at most so many records of each kind, whichever process makes them. The limits are lowered here: a million
 * records take too long.
 */
import { LRUCache } from 'lru-cache'
import { afterAll, expect, test } from 'vitest'
import { newCustomer, sharedTestService, type TestCustomer } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { OPERATIONS } from '../../program/app.ts'
import { RECORD_LIMITS, requireRoom, type RecordLimit } from './record-limits.ts'

const LIMIT = 4
const NAMES = Object.keys(RECORD_LIMITS) as RecordLimit[]
// Each rule makes a deposit address, too.
const lowered = (name: RecordLimit) => (name === 'deposit_addresses' ? 2 * LIMIT : LIMIT)
const usual = Object.fromEntries(NAMES.map((name) => [name, RECORD_LIMITS[name].most]))

const person = (name: string) => ({ ref_id: name, person_details: { first_name: 'Ada', last_name: 'L' } })

const service = await sharedTestService()
// Before the first record: a count is used for a minute.
for (const name of NAMES) RECORD_LIMITS[name].most = lowered(name)
const made = await newCustomer(service)
const holder = await made.call<{ id: string }>('POST', '/v2/identity/identities', person('the holder'))
const customer = { ...made, identity_id: holder.body.id }
afterAll(() => {
  for (const name of NAMES) RECORD_LIMITS[name].most = usual[name]!
})

type Holder = Pick<TestCustomer, 'profile_id'> & { identity_id: string }
/** A request that makes one record of each kind, the n-th. */
const requests: Record<
  RecordLimit,
  (n: number, holder: Holder) => [method: 'POST' | 'PUT', url: string, body: object]
> = {
  profiles: (n) => ['POST', '/v2/profiles', { nickname: `profile ${n}` }],
  identities: (n) => ['POST', '/v2/identity/identities', person(`person ${n}`)],
  accounts: (_, { identity_id }) => ['POST', '/v2/identity/accounts', { account: { identity_id } }],
  orchestration_rules: (n, { profile_id }) => [
    'POST',
    '/v2/orchestration/rules',
    {
      ref_id: `rule ${n}`,
      profile_id,
      source_asset: 'USDG',
      destination_asset: 'USD',
      source: { crypto: { network: 'SOLANA' } },
    },
  ],
  deposit_addresses: (_, { profile_id }) => [
    'POST',
    '/v2/transfer/deposit-addresses',
    { profile_id, crypto_network: 'ETHEREUM' },
  ],
  destination_addresses: (n) => [
    'PUT',
    '/v2/transfer/crypto-destination-address',
    { crypto_network: 'ETHEREUM', address: `0x${String(n + 1).padStart(40, '1')}` },
  ],
  fiat_accounts: () => [
    'POST',
    '/v2/transfer/fiat-accounts',
    {
      fiat_account_owner: { institution_details: { name: 'Acme' } },
      fiat_network_instructions: { wire: { account_number: '1' } },
    },
  ],
  fiat_deposit_instructions: (_, { profile_id }) => [
    'POST',
    '/v2/transfer/fiat-deposit-instructions',
    { profile_id, fiat_network: 'WIRE' },
  ],
  policy_versions: (n) => [
    'PUT',
    '/v2/policy',
    { rules: [{ id: `rule-${n}`, match: { assets: ['BTC'] }, action: 'BLOCK' }] },
  ],
  webhooks: (n) => [
    'POST',
    '/v2/webhooks',
    { name: `hook ${n}`, url: 'https://hooks.example.com/', event_types: ['*'], status: 'DISABLED' },
  ],
}

test.each(Object.entries(requests))('%s: the limit holds, and names itself', async (key, request) => {
  const name = key as RecordLimit
  const limit = lowered(name)
  const statuses: number[] = []
  for (let n = 0; n < limit + 1; n++) {
    const { status, body } = await customer.call(...request(n, customer))
    statuses.push(status)
    if (status === 200) continue
    expect(body.detail).toBe(`the customer has ${limit} ${name.replaceAll('_', ' ')}, the most allowed`)
    break
  }
  expect(statuses.at(-1)).toBe(400)
  const { rows } = await service.db.query<{ count: number }>(
    `select count(*)::int from ${RECORD_LIMITS[name].table} where customer_id = $1`,
    [customer.customer_id],
  )
  expect(rows[0]!.count).toBe(limit)
})

test('a repeated ref_id beyond the limit is still told of its record', async () => {
  const again = await customer.call('POST', '/v2/identity/identities', person('the holder'))
  expect(again).toMatchObject({ status: 409, body: { meta: { existing: { id: customer.identity_id } } } })
})

test('every operation that creates a record for good has a limit', () => {
  const limited = Object.values(requests).map((request) => {
    const [method, url] = request(0, customer)
    return `${method} ${url}`
  })
  const creating = OPERATIONS.filter(
    ({ method, problems }) => method !== 'GET' && problems?.includes('already-exists'),
  )
  // Money, quotes that are deleted, and changes of a record.
  const others =
    /transfer\/(crypto-withdrawal|fiat-withdrawal|internal|paxos)|conversion\/|orchestration\/orchestrations|institution-members|account-members|sandbox|:/
  for (const { method, url } of creating)
    if (!others.test(url)) expect(limited, `${method} ${url}`).toContain(`${method} ${url}`)
})

test('many processes exceed a limit by no more than their allowance and the requests under way', async () => {
  const owner = await newCustomer(service)
  RECORD_LIMITS.profiles.most = 100
  let made = 0
  const create = (known: Parameters<typeof requireRoom>[3], nickname: string) =>
    transaction(service.db, async (tx) => {
      await requireRoom(tx, owner.customer_id, 'profiles', known)
      await tx.query(
        `insert into profiles (customer_id, id, created_at, type, nickname)
         values ($1, gen_random_uuid(), clock_timestamp(), 'NORMAL', $2)`,
        [owner.customer_id, nickname],
      )
    }).then(
      () => (made += 1),
      () => undefined,
    )
  const callers = [0, 1, 2].flatMap((index) => {
    const ofProcess: Parameters<typeof requireRoom>[3] = new LRUCache({ max: 10 })
    return [0, 1].map(async (lane) => {
      for (let n = 0; n < 60; n++) await create(ofProcess, `${index} ${lane} ${n}`)
    })
  })
  await Promise.all(callers)
  const { rows } = await service.db.query<{ count: number }>(
    'select count(*)::int from profiles where customer_id = $1',
    [owner.customer_id],
  )
  expect(made).toBe(rows[0]!.count - 1)
  expect(rows[0]!.count).toBeGreaterThanOrEqual(100)
  // One of each process, and the six requests under way.
  expect(rows[0]!.count).toBeLessThanOrEqual(100 + 3 + 6)
})
