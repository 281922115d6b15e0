/*
 * The limits of requests: of an API client, of its customer over all its clients, and of the customer's changes in a day.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { httpLoad } from '../bench/http-load.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { TokenBuckets } from '../src/http/rate-limit.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { readSettings } from '../src/settings.ts'
import {
  ROW_MACS,
  caller,
  credit,
  fetchToken,
  newCustomer,
  remoteCaller,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd } from './at-end.ts'

const person = {
  ref_id: 'person',
  person_details: { first_name: 'Ada', last_name: 'L' },
}

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
    const answer = await byOther('POST', '/v2/identity/identities', person)
    // The client has a request left, and its customer may have been refilled meanwhile.
    if (answer.status === 429) {
      expect(answer.body.detail).toBe(
        'the rate limit of this customer, for all its clients, is 3 requests per second',
      )
      expect(answer.headers['retry-after']).toBe('1')
    }
    expect((await two.call('GET', '/v2/profiles')).status).toBe(200)
  })
})

describe('the changes of a customer in a day', () => {
  test('are limited; reads are not, and each withdrawal of a request for many counts', async () => {
    const limited = await ownTestService({ BURSAR_CUSTOMER_CHANGES_PER_DAY: '4' })
    const [customer, other] = [await newCustomer(limited), await newCustomer(limited)]
    await credit(new Ledger(limited.db), customer, 'USD', '1000')
    const withdraw = (count: number) =>
      customer.call('POST', '/v2/transfer/crypto-withdrawals/bulk', {
        withdrawals: Array.from({ length: count }, () =>
          withdrawalOf(customer, { ref_id: crypto.randomUUID() }),
        ),
      })
    expect((await withdraw(4)).status).toBe(200)
    const refused = await withdraw(1)
    expect(refused).toMatchObject({
      status: 429,
      body: { detail: 'the limit of this customer is 4 requests in a day that are not reads' },
    })
    // A quarter of a day for each change.
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(20_000)
    const change = (by: TestCustomer) => by.call('PUT', `/v2/profiles/${by.profile_id}`, {})
    expect((await change(customer)).status).toBe(429)
    expect((await customer.call('GET', '/v2/profiles')).status).toBe(200)
    // Also of a change that is refused for its content.
    for (let n = 0; n < 4; n++) expect((await change(other)).status).toBe(400)
    expect((await change(other)).status).toBe(429)
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

test('a client at full speed does not raise the latency of another customer beyond a second', async () => {
  // The service with its default limits, in a process of its own.
  const { db, url } = await ownDatabase()
  const process = await ownBursar({
    DATABASE_URL: url,
    BURSAR_METRICS_PORT: '0',
    BURSAR_RATE_LIMIT_PER_SECOND: '50',
    BURSAR_RATE_LIMIT_BURST: '50',
  })
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
    const { status } = await other!.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(other!))
    expect(status).toBe(200)
    return performance.now() - before
  }
  const alone: number[] = []
  while (alone.length < 20) alone.push(await pay())
  const attack = httpLoad({
    baseUrl: process.address,
    customers: [{ token, profileIds: [attacker!.profile_id] }],
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
