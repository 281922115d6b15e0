/*
 * The limits of a customer: its requests over all its clients, its changes in a day, and its records. Operators set them for
 * one customer, and every process applies them.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { httpLoad } from '../bench/http-load.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { createCustomer } from '../src/access/customers/create-customer.ts'
import { transaction } from '../src/db/database.ts'
import { TokenBuckets } from '../src/http/rate-limit.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { OPERATIONS } from '../src/program/app.ts'
import {
  CustomerLimits,
  RECORD_LIMITS,
  setLimit,
  type CustomerLimit,
} from '../src/money/records/customer-limits.ts'
import { readSettings } from '../src/settings.ts'
import {
  ROW_MACS,
  atEnd,
  caller,
  cloneDatabase,
  credit,
  fetchToken,
  fund,
  newCustomer,
  remoteCaller,
  runBursar,
  spawnBursar,
  startTestService,
  withdraw,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

/** Each process reads the limits every two seconds; a busy machine needs a few more. */
const SOON = { timeout: 20_000, interval: 100 }

const set = (customer: TestCustomer, name: CustomerLimit, value: number | undefined) =>
  transaction(service.db, (tx) => setLimit(tx, customer.customer_id, name, value))

const person = (n: number | string) => ({
  ref_id: `person ${n}`,
  person_details: { first_name: 'Ada', last_name: 'L' },
})

describe('the rate of a customer', () => {
  test('is five times the rate of a client by default, and has no limit where the client has none', () => {
    expect(readSettings({})).toMatchObject({ customerRateLimitPerSecond: 1_000, customerChangesPerDay: 0 })
    expect(readSettings({ BURSAR_RATE_LIMIT_PER_SECOND: '0' }).customerRateLimitPerSecond).toBe(0)
    expect(
      readSettings({ BURSAR_RATE_LIMIT_PER_SECOND: '10', BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND: '7' })
        .customerRateLimitPerSecond,
    ).toBe(7)
  })

  test('holds for all its clients together, and for no other customer', async () => {
    const limited = await startTestService({
      BURSAR_RATE_LIMIT_PER_SECOND: '1',
      BURSAR_RATE_LIMIT_BURST: '10',
      BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND: '3',
    })
    atEnd(() => limited.close())
    const [one, two] = [await newCustomer(limited), await newCustomer(limited)]
    const other = await createApiClient(limited.db, ROW_MACS, one.customer_id, SCOPES)
    const byOther = caller(limited.app, await fetchToken(limited.app, other))
    // The customer's bucket holds 15 requests, and is refilled by three a second.
    const statuses: number[] = []
    for (let n = 0; n < 9; n++) statuses.push((await one.call('GET', '/v2/profiles')).status)
    for (let n = 0; n < 9; n++) statuses.push((await byOther('GET', '/v2/profiles')).status)
    const refused = statuses.filter((status) => status === 429).length
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThanOrEqual(3)
    const answer = await byOther('POST', '/v2/identity/identities', person(1))
    // The client has a request left, and its customer may have been refilled meanwhile.
    if (answer.status === 429) {
      expect(answer.body.detail).toBe(
        'the rate limit of this customer, for all its clients, is 3 requests per second',
      )
      expect(answer.headers['retry-after']).toBe('1')
    }
    expect((await two.call('GET', '/v2/profiles')).status).toBe(200)
  })

  test('is raised for one customer, with the rate of its clients', async () => {
    const limited = await startTestService({
      BURSAR_RATE_LIMIT_PER_SECOND: '1',
      BURSAR_RATE_LIMIT_BURST: '1',
    })
    atEnd(() => limited.close())
    const [one, two] = [await newCustomer(limited), await newCustomer(limited)]
    const many = async ({ call }: TestCustomer) => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => call('GET', '/v2/profiles')))
      return answers.filter(({ status }) => status === 200).length
    }
    expect(await many(one)).toBeLessThan(5)
    await transaction(limited.db, async (tx) => {
      await setLimit(tx, one.customer_id, 'client_requests_per_second', 1_000)
      await setLimit(tx, one.customer_id, 'requests_per_second', 0)
    })
    await expect.poll(() => many(one), SOON).toBe(20)
    expect(await many(two)).toBeLessThan(5)
  })
})

describe('the changes of a customer in a day', () => {
  test('are limited; reads are not, and each withdrawal of a request for many counts', async () => {
    const customer = await newCustomer(service)
    await fund(customer, '1000')
    await set(customer, 'changes_per_day', 4)
    const withdraw = (count: number) =>
      customer.call('POST', '/v2/transfer/crypto-withdrawals/bulk', {
        withdrawals: Array.from({ length: count }, () =>
          withdrawalOf(customer, { ref_id: crypto.randomUUID() }),
        ),
      })
    await expect
      .poll(async () => (await customer.call('PUT', `/v2/profiles/${customer.profile_id}`, {})).status, SOON)
      .toBe(429)
    const refused = await withdraw(1)
    expect(refused).toMatchObject({
      status: 429,
      body: { detail: 'the limit of this customer is 4 requests in a day that are not reads' },
    })
    // A quarter of a day for each change.
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(20_000)
    expect((await customer.call('GET', '/v2/profiles')).status).toBe(200)
    await set(customer, 'changes_per_day', 0)
    await expect.poll(async () => (await withdraw(1)).status, SOON).toBe(200)

    const other = await newCustomer(service)
    await fund(other, '1000')
    await set(other, 'changes_per_day', 3)
    const bulk = () =>
      other.call('POST', '/v2/transfer/crypto-withdrawals/bulk', {
        withdrawals: Array.from({ length: 3 }, () => withdrawalOf(other, { ref_id: crypto.randomUUID() })),
      })
    await expect.poll(async () => (await bulk()).status, SOON).toBe(429)
  })

  test('give their token back where another limit refuses', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 2 })
    expect(buckets.take('a')).toBe(0)
    buckets.giveBack('a')
    expect([buckets.take('a'), buckets.take('a')]).toEqual([0, 0])
    expect(buckets.take('a')).toBeGreaterThan(0)
    buckets.giveBack('unknown')
  })
})

describe('the records of a customer', () => {
  const account = () => ({
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number: '1' } },
  })
  /** A request that makes one record of each kind, the n-th. */
  const requests: Record<
    keyof typeof RECORD_LIMITS,
    (
      n: number,
      customer: TestCustomer & { identity_id: string },
    ) => [method: 'POST' | 'PUT', url: string, body: object]
  > = {
    profiles: (n) => ['POST', '/v2/profiles', { nickname: `profile ${n}` }],
    identities: (n) => ['POST', '/v2/identity/identities', person(n)],
    accounts: (_, { identity_id }) => ['POST', '/v2/identity/accounts', { account: { identity_id } }],
    // Each makes a deposit address, too.
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
    fiat_accounts: () => ['POST', '/v2/transfer/fiat-accounts', account()],
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

  let customer: TestCustomer & { identity_id: string }
  const LIMIT = 4
  const limitOf = (name: string) => (name === 'deposit_addresses' ? 2 * LIMIT : LIMIT)
  beforeAll(async () => {
    const made = await newCustomer(service)
    const { body } = await made.call<{ id: string }>('POST', '/v2/identity/identities', person('the holder'))
    customer = { ...made, identity_id: body.id }
    // The limits are applied once another customer, with a later limit, is refused.
    const later = await newCustomer(service)
    for (const name of Object.keys(RECORD_LIMITS) as CustomerLimit[]) await set(made, name, limitOf(name))
    await set(later, 'profiles', 1)
    await vi.waitFor(async () => {
      const { status } = await later.call('POST', '/v2/profiles', { nickname: crypto.randomUUID() })
      expect(status).toBe(400)
    }, SOON)
  })

  test.each(Object.entries(requests))('%s: the limit holds, and names itself', async (name, request) => {
    const statuses: number[] = []
    const limit = limitOf(name)
    for (let n = 0; n < limit + 1; n++) {
      const { status, body } = await customer.call(...request(n, customer))
      statuses.push(status)
      if (status === 200) continue
      expect(body.detail).toContain(
        `the customer has ${limit} ${name.replaceAll('_', ' ')}, the most allowed`,
      )
      expect(body.detail).toContain(`the operator can raise the limit ${name}`)
      break
    }
    expect(statuses.at(-1)).toBe(400)
    const { rows } = await service.db.query<{ count: number }>(
      `select count(*)::int from ${RECORD_LIMITS[name as keyof typeof RECORD_LIMITS].table} where customer_id = $1`,
      [customer.customer_id],
    )
    expect(rows[0]!.count).toBe(limit)
  })

  test('a repeated ref_id beyond the limit is still told of its record', async () => {
    const again = await customer.call('POST', '/v2/identity/identities', person('the holder'))
    expect(again).toMatchObject({ status: 409, body: { meta: { existing: { id: customer.identity_id } } } })
  })

  test('a larger limit leaves room again, within seconds', async () => {
    await set(customer, 'webhooks', LIMIT + 1)
    const another = () => customer.call(...requests.webhooks(100, customer))
    await expect.poll(async () => (await another()).status, SOON).toBe(200)
    expect((await customer.call(...requests.webhooks(101, customer))).status).toBe(400)
  })

  test('every operation that creates a record for good has a limit', () => {
    const limited = Object.entries(requests).map(([, request]) => {
      const [method, url] = request(0, { profile_id: '', identity_id: '' } as never)
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
    await set(owner, 'profiles', 100)
    const log = { warn: () => undefined } as never
    const defaults = { client_requests_per_second: 0, requests_per_second: 0, changes_per_day: 0 }
    const processes = await Promise.all(
      Array.from({ length: 3 }, () => CustomerLimits.start(service.db, log, defaults)),
    )
    atEnd(async () => {
      await Promise.all(processes.map((one) => one.stop()))
    })
    let made = 0
    const create = async (limits: CustomerLimits, n: string) => {
      await transaction(service.db, async (tx) => {
        await limits.requireRoom(tx, owner.customer_id, 'profiles')
        await tx.query(
          `insert into profiles (customer_id, id, created_at, type, nickname)
           values ($1, gen_random_uuid(), clock_timestamp(), 'NORMAL', $2)`,
          [owner.customer_id, n],
        )
      }).then(
        () => (made += 1),
        () => undefined,
      )
    }
    const callers = processes.flatMap((limits, index) =>
      [0, 1].map(async (lane) => {
        for (let n = 0; n < 60; n++) await create(limits, `${index} ${lane} ${n}`)
      }),
    )
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
})

test('a client at full speed does not raise the latency of another customer beyond a second', async () => {
  // The service with its default limits, in a process of its own.
  const { db, url, drop } = await cloneDatabase()
  atEnd(drop)
  const process = await spawnBursar({
    DATABASE_URL: url,
    BURSAR_METRICS_PORT: '0',
    BURSAR_RATE_LIMIT_PER_SECOND: '50',
    BURSAR_RATE_LIMIT_BURST: '50',
  })
  atEnd(() => process.end('SIGTERM'))
  const [attacker, other] = await Promise.all(
    ['Attacker', 'Other'].map(async (name) => {
      const made = await createCustomer(db, name)
      for (const asset of ['USD', 'USDP']) await credit(new Ledger(db), made, asset, '1000000')
      const client = await createApiClient(db, ROW_MACS, made.customer_id, SCOPES)
      return { ...made, client, call: await remoteCaller(process.address, client) }
    }),
  )
  const reply = await fetch(`${process.address}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...attacker!.client }),
  })
  const { access_token: token } = (await reply.json()) as { access_token: string }
  /** Pays as the other customer, more slowly than its rate, and tells how long the answer took. */
  const pay = async () => {
    await pause(25)
    const before = performance.now()
    await withdraw(other!)
    return performance.now() - before
  }
  const alone: number[] = []
  while (alone.length < 20) alone.push(await pay())
  const attack = httpLoad({
    baseUrl: process.address,
    token,
    profileIds: [attacker!.profile_id],
    clients: 128,
    seconds: 4,
    prefix: 'attack',
  })
  const latencies: number[] = []
  let isOver = false
  const over = () => (isOver = true)
  attack.then(over, over)
  while (!isOver) latencies.push(await pay())
  const { perSecond, refused } = await attack
  latencies.sort((a, b) => a - b)
  // 50 at once and 50 a second. On a quiet machine it asks for forty times as many, on a busy one for a few more.
  expect(perSecond * 4).toBeLessThan(325)
  expect(refused).toBeGreaterThan(25)
  expect(latencies.length).toBeGreaterThan(1)
  // On a busy machine, a second is little for anybody.
  const limit = Math.max(1_000, 10 * Math.max(...alone))
  expect(latencies[Math.floor(latencies.length * 0.99)]).toBeLessThan(limit)
})

describe('bursar customer limits', () => {
  const run = (...args: string[]) => runBursar(['customer', 'limits', ...args], { DATABASE_URL: service.url })

  test('shows the limits with their defaults and the records, and sets them', async () => {
    const customer = await newCustomer(service)
    const id = customer.customer_id
    expect((await run('set', id, 'webhooks', '3', '--json')).code).toBe(0)
    expect((await run('set', id, 'changes_per_day', '0')).stdout).toContain('changes_per_day: 0')
    const shown = JSON.parse((await run('show', id, '--json')).stdout) as { limits: object[] }
    expect(shown.limits).toContainEqual({ limit: 'webhooks', value: 3, is_default: false, records: 0 })
    expect(shown.limits).toContainEqual({ limit: 'profiles', value: 1_000_000, is_default: true, records: 1 })
    expect(shown.limits).toContainEqual({ limit: 'changes_per_day', value: 0, is_default: false })
    expect((await run('show', id)).stdout).toMatch(/webhooks +3 +operator +0/)
    expect((await run('set', id, 'webhooks', 'default')).stdout).toContain('webhooks: 100 (default)')
    const again = JSON.parse((await run('show', id, '--json')).stdout) as { limits: object[] }
    expect(again.limits).toContainEqual({ limit: 'webhooks', value: 100, is_default: true, records: 0 })
  })

  test.each([
    [['set', 'ID', 'houses', '1'], 2, 'must be one of client_requests_per_second'],
    [['set', 'ID', 'webhooks', '-1'], 2, 'it must be a whole number'],
    [
      ['set', 'ID', 'webhooks', '1000000001'],
      2,
      'it must be a whole number from 0 to 1000000000, or "default"',
    ],
    [['set', crypto.randomUUID(), 'webhooks', '1'], 1, 'there is no customer'],
    [['show', crypto.randomUUID()], 1, 'there is no customer'],
  ])('%j is refused and sets nothing', async (args, code, says) => {
    const { customer_id } = await newCustomer(service)
    const ended = await run(...args.map((one) => (one === 'ID' ? customer_id : one)))
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code,
      stderr: expect.stringContaining(says) as string,
    })
    const { rowCount } = await service.db.query('select from customer_limits where customer_id = $1', [
      customer_id,
    ])
    expect(rowCount).toBe(0)
  })
})
