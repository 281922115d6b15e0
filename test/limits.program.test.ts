import { originOfLoop } from '../src/contract/actor.ts'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { transaction, type Transaction } from '../src/db/database.ts'
import { TokenBuckets } from '../src/http/rate-limit.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import type { Movement } from '../src/money/movements/decision.ts'
import { Ledger, WAITING_MAX, WAITING_TOTAL_MAX } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { readSettings } from '../src/settings.ts'
import {
  ROW_MACS,
  caller,
  cloneDatabase,
  credit,
  everyTable,
  fetchToken,
  newCustomer,
  remoteCaller,
  startTestService,
  withdrawalOf,
  type RemoteCaller,
  type TestDatabase,
  type TestService,
  ownTestService,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd } from './at-end.ts'

/*
 * Nothing waits without a limit. Requests above the rate get 429. Requests that wait too long, or meet a full queue,
 * get 503, which says whether something was done. Afterwards the service works as before.
 */

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'

/** Stops the clock that rates are measured by, until the test ends: a busy machine must not refill a bucket meanwhile. */
function stopClock(): (milliseconds: number) => void {
  vi.useFakeTimers({ toFake: ['performance'] })
  atEnd(async () => {
    vi.useRealTimers()
  })
  return (milliseconds) => vi.advanceTimersByTime(milliseconds)
}

describe('the rate of an API client', () => {
  test('is limited, with Retry-After; other clients are unaffected', async () => {
    const moveClock = stopClock()
    const service = await startTestService({
      BURSAR_RATE_LIMIT_PER_SECOND: '2',
      BURSAR_RATE_LIMIT_BURST: '5',
    })
    atEnd(() => service.close())
    const [one, two] = [await newCustomer(service), await newCustomer(service)]
    const statuses: number[] = []
    for (let n = 0; n < 7; n++) statuses.push((await one.call('GET', '/v2/profiles')).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
    const refused = await one.call('GET', '/v2/profiles')
    expect(refused).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1', 'content-type': 'application/problem+json' },
      body: { type: 'about:blank', title: 'Too Many Requests', status: 429 },
    })
    // Another token belongs to the same client.
    const again = caller(service.app, await fetchToken(service.app, one))
    expect((await again('GET', '/v2/profiles')).status).toBe(429)
    const other = await createApiClient(service.db, ROW_MACS, one.customer_id, SCOPES)
    const beside = caller(service.app, await fetchToken(service.app, other))
    expect((await beside('GET', '/v2/profiles')).status).toBe(200)
    expect((await two.call('GET', '/v2/profiles')).status).toBe(200)
    // Requests without a valid token use up no client's rate.
    const forged = caller(service.app, 'x.y.z')
    expect((await forged('GET', '/v2/profiles')).status).toBe(401)
    moveClock(1_100)
    expect((await one.call('GET', '/v2/profiles')).status).toBe(200)
  })

  test('is a tenth for access tokens, before one is signed, and for all clients of its customer', async () => {
    stopClock()
    const service = await startTestService({
      BURSAR_RATE_LIMIT_PER_SECOND: '20',
      BURSAR_RATE_LIMIT_BURST: '200',
    })
    atEnd(() => service.close())
    const [one, two] = [await newCustomer(service), await newCustomer(service)]
    const tokenOf = ({ client_id, client_secret }: typeof one) =>
      service.app.inject({
        method: 'POST',
        url: '/oauth2/token',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id,
          client_secret,
        }).toString(),
      })
    const answers = await Promise.all(Array.from({ length: 100 }, () => tokenOf(one)))
    const issued = answers.filter(({ statusCode }) => statusCode === 200).length
    expect(issued).toBeGreaterThanOrEqual(19)
    expect(issued).toBeLessThanOrEqual(20)
    const refused = answers.find(({ statusCode }) => statusCode === 429)!
    expect(refused.json()).toMatchObject({ error: 'temporarily_unavailable' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await tokenOf(two)).statusCode).toBe(200)
    // The requests of the client have their own rate.
    expect((await one.call('GET', '/v2/profiles')).status).toBe(200)
  })

  test('is 200 a second with a burst of 1,000 by default, and unlimited when set to 0', async () => {
    expect(readSettings({})).toMatchObject({ rateLimitPerSecond: 200, rateLimitBurst: 1_000 })
    const service = await ownTestService({ BURSAR_RATE_LIMIT_PER_SECOND: '0' })
    const { call } = await newCustomer(service)
    const answers = await Promise.all(Array.from({ length: 300 }, () => call('GET', '/v2/profiles?limit=1')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('is remembered for a limited number of clients', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1 })
    for (let key = 0; key < 50_000; key++) expect(buckets.take(`client ${key}`)).toBe(0)
    expect(buckets.take('client 49999')).toBeGreaterThan(0.5)
    expect(buckets.take('client 0')).toBe(0)
  })
})

describe('failed token requests', () => {
  test('are limited by client and address, and never lock out the right secret', async () => {
    stopClock()
    const service = await ownTestService({ BURSAR_TOKEN_FAILURES_PER_MINUTE: '3' })
    const [one, two] = [await newCustomer(service), await newCustomer(service)]
    const ask = (client_id: string, client_secret: string, remoteAddress = '192.0.2.1') =>
      service.app.inject({
        method: 'POST',
        url: '/oauth2/token',
        remoteAddress,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id,
          client_secret,
        }).toString(),
      })
    for (let n = 0; n < 3; n++) expect((await ask(one.client_id, `guess-${n}`)).statusCode).toBe(401)
    const refused = await ask(one.client_id, 'guess')
    expect(refused.statusCode).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(10)
    expect(refused.json()).toMatchObject({ error: 'temporarily_unavailable' })
    // The right secret gets a token, from this address and from others.
    expect((await ask(one.client_id, one.client_secret)).statusCode).toBe(200)
    expect((await ask(one.client_id, one.client_secret, '192.0.2.2')).statusCode).toBe(200)
    expect((await ask(two.client_id, two.client_secret)).statusCode).toBe(200)
    // One address tries the ids of many clients; a /64 counts as one address.
    const statuses: number[] = []
    for (let n = 0; n < 40; n++)
      statuses.push((await ask(crypto.randomUUID(), 'guess', `2001:db8::${n}`)).statusCode)
    expect(statuses.filter((status) => status === 401).length).toBeLessThan(35)
    expect(statuses.at(-1)).toBe(429)
    expect((await ask(two.client_id, two.client_secret, '2001:db8::1')).statusCode).toBe(200)
  })
})

describe('requests that wait for PostgreSQL', () => {
  let database: TestDatabase
  let customer: { customer_id: string; profile_id: string; client_id: string; client_secret: string }
  beforeAll(async () => {
    database = await cloneDatabase()
    const { customer_id, profile_id } = await createCustomer(database.db, 'Test')
    customer = {
      customer_id,
      profile_id,
      ...(await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)),
    }
    await credit(new Ledger(database.db), customer, 'USD', '100000')
  })
  afterAll(() => database.drop())

  const start = async (environment: Record<string, string>) => {
    const process = await ownBursar({
      DATABASE_URL: database.url,
      BURSAR_WORKER: 'false',
      BURSAR_METRICS_PORT: '0',
      ...environment,
    })
    return { process, call: await remoteCaller(process.address, customer) }
  }
  const withdraw = (call: RemoteCaller, ref_id: string) =>
    call<{ detail: string }>('POST', WITHDRAWALS, {
      ...withdrawalOf({ profile_id: customer.profile_id }),
      ref_id,
    })

  /** Does the work while another session holds a lock. */
  const locked = <T>(statement: string, work: (tx: Transaction) => Promise<T>): Promise<T> =>
    transaction(database.owner, async (tx) => {
      await tx.query(statement)
      return work(tx)
    })

  test('a statement that waits too long is cancelled: 503, nothing changed, and the next works', async () => {
    const { call } = await start({ BURSAR_STATEMENT_TIMEOUT_MS: '400' })
    const before = await everyTable(database.db)
    await locked('lock table balances in access exclusive mode', async () => {
      const began = performance.now()
      const [movement, read] = await Promise.all([
        withdraw(call, 'cut'),
        call<{ detail: string }>('GET', `/v2/profiles/${customer.profile_id}/balances`),
      ])
      expect(performance.now() - began).toBeLessThan(3_000)
      expect(movement).toMatchObject({
        status: 503,
        body: { detail: 'the database took too long; nothing was moved; try again' },
      })
      expect(read).toMatchObject({
        status: 503,
        body: { detail: 'the database took too long; nothing was changed; try again' },
      })
    })
    expect(await everyTable(database.db)).toEqual(before)
    // The same connections serve this request.
    expect((await withdraw(call, 'cut')).status).toBe(200)
    expect((await call('GET', `/v2/profiles/${customer.profile_id}/balances`)).status).toBe(200)
  })

  test('a request is answered in time, and a retry with its ref_id finds the outcome', async () => {
    const { call } = await start({ BURSAR_REQUEST_TIMEOUT_MS: '500' })
    await locked('lock table balances in access exclusive mode', async () => {
      const began = performance.now()
      const [movement, read] = await Promise.all([
        withdraw(call, 'late'),
        call<{ detail: string }>('GET', `/v2/profiles/${customer.profile_id}/balances`),
      ])
      expect(performance.now() - began).toBeLessThan(3_000)
      expect(movement.status).toBe(503)
      expect(movement.body.detail).toContain('retry with the same ref_id')
      expect(read).toMatchObject({ status: 503, body: { detail: 'timed out; try again' } })
    })
    // The database already had the first request and executed it.
    await expect.poll(async () => (await withdraw(call, 'late')).status, { timeout: 10_000 }).toBe(409)
    expect((await call('GET', '/v2/profiles')).status).toBe(200)
  })

  test('the worker and other work outside of requests are not cancelled', async () => {
    const process = await ownBursar({
      DATABASE_URL: database.url,
      BURSAR_STATEMENT_TIMEOUT_MS: '300',
      BURSAR_WORKER_INTERVAL_MS: '20',
      BURSAR_SIMULATED_CONFIRMATION_MS: '0',
      BURSAR_METRICS_PORT: '0',
    })
    await locked('lock table outgoing_transfers in access exclusive mode', () => pause(1_500))
    const pending = async () =>
      (await database.db.query(`select from transfers where status = 'PENDING'`)).rowCount
    await expect.poll(pending, { timeout: 20_000 }).toBe(0)
    expect(process.log()).not.toContain('a round of the worker failed')
  })

  test('requests of a customer above its share of the open requests are refused at once; memory is bounded and it recovers', async () => {
    const { process, call } = await start({ BURSAR_REQUESTS_MAX: '50', BURSAR_REQUEST_TIMEOUT_MS: '120000' })
    const [, metrics] = /metrics at (\S+)"/.exec(process.log())!
    const residentMiB = async () => {
      const text = await (await fetch(metrics!)).text()
      return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1]) / 2 ** 20
    }
    for (let n = 0; n < 300; n++) await call('GET', '/v2/profiles')
    const { waiting } = await locked('lock table balances in access exclusive mode', async () => {
      const waiting = Array.from({ length: 25 }, (_, n) => withdraw(call, `full-${n}`))
      await pause(500)
      const before = await residentMiB()
      const refusals = new Map<number, unknown>()
      // At once: those that wait still wait.
      await Promise.all(
        Array.from({ length: 20 }, async (_, client) => {
          for (let n = 0; n < 50; n++) {
            const { status, body } = await withdraw(call, `refused-${client}-${n}`)
            refusals.set(status, body)
          }
        }),
      )
      expect(refusals).toEqual(new Map([[429, expect.anything()]]))
      expect((await residentMiB()) - before).toBeLessThan(60)
      return { waiting }
    })
    const answers = await Promise.all(waiting)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await withdraw(call, 'refused-0-0')).status).toBe(200)
  })
})

/** Linux lists a process's open files and sockets here; `prlimit` changes how many it may have. */
const PROCESSES = '/proc'

function canLimitDescriptors(): boolean {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' })
    return existsSync(`${PROCESSES}/self/fd`)
  } catch {
    return false
  }
}

test.runIf(canLimitDescriptors())(
  'a process without free descriptors answers on open connections, with 503 if it needs another, and recovers',
  async () => {
    const { url, db } = await ownDatabase()
    const { customer_id, profile_id } = await createCustomer(db, 'Test')
    const client = await createApiClient(db, ROW_MACS, customer_id, SCOPES)
    await credit(new Ledger(db), { customer_id, profile_id }, 'USD', '1000')
    const bursar = await ownBursar({ DATABASE_URL: url, BURSAR_WORKER: 'false' })
    const token = await fetch(`${bursar.address}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
    })
    const { access_token } = (await token.json()) as { access_token: string }
    const kept = new Agent({ keepAlive: true, maxSockets: 8 })
    atEnd(async () => kept.destroy())

    /** Returns the status, or the code of the error that closes the connection. */
    const statusOf = (path: string, { body, agent = kept }: { body?: object; agent?: Agent | false } = {}) =>
      new Promise<number | string | undefined>((resolve) => {
        const asked = request(`${bursar.address}${path}`, {
          agent,
          method: body === undefined ? 'GET' : 'POST',
          headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
        })
        asked.on('response', (answer) => answer.resume().on('end', () => resolve(answer.statusCode)))
        asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
        asked.end(body === undefined ? undefined : JSON.stringify(body))
      })
    const all = (count: number, ask: (n: number) => Promise<number | string | undefined>) =>
      Promise.all(Array.from({ length: count }, (_, n) => ask(n)))
    const withdraw = (n: number) => {
      const body = withdrawalOf({ profile_id }, { ref_id: `few-${n}`, amount: '10' })
      return statusOf(WITHDRAWALS, { body })
    }
    const mayOpen = (descriptors: number) =>
      execFileSync('prlimit', ['--pid', String(bursar.pid), `--nofile=${descriptors}:`])

    expect(new Set(await all(8, () => statusOf('/health/live')))).toEqual(new Set([200]))
    mayOpen(readdirSync(`${PROCESSES}/${bursar.pid}/fd`).length)
    // Some open connections may have been closed meanwhile; these replace them.
    const { port } = new URL(bursar.address)
    const others = Array.from({ length: 5 }, () =>
      connect(Number(port), '127.0.0.1').on('error', () => undefined),
    )
    atEnd(async () => others.forEach((socket) => socket.destroy()))
    await pause(200)
    expect(new Set(await all(16, () => statusOf('/health/live')))).toEqual(new Set([200]))
    expect(new Set(await all(3, () => statusOf('/health/live', { agent: false })))).toEqual(
      new Set(['ECONNRESET']),
    )
    const reads = new Set(await all(50, () => statusOf('/v2/profiles')))
    const moves = await all(20, withdraw)
    expect([200, 503]).toEqual(expect.arrayContaining([...reads, ...moves]))
    expect(reads).toContain(503)

    mayOpen(4_096)
    await expect.poll(() => statusOf('/health/ready', { agent: false })).toBe(200)
    // Refused requests had no effect, and accepted requests took effect once.
    const again = await all(20, withdraw)
    expect(again).toEqual(moves.map((status) => (status === 200 ? 409 : 200)))
    expect(new Set(await all(50, () => statusOf('/v2/profiles', { agent: false })))).toEqual(new Set([200]))
    const { rows } = await db.query('select count(*)::int from transfers where ref_id is not null')
    expect(rows).toEqual([{ count: 20 }])
  },
)

test('a customer never has more movements waiting than places are left for the others', async () => {
  const { db } = await ownDatabase()
  let refused = 0
  const ledger = new Ledger(db, { meter: { batch: () => undefined, refused: () => (refused += 1) } })
  const customers = Array.from({ length: 4 }, () => crypto.randomUUID())
  const movement: Movement = {
    origin: originOfLoop('test'),
    balances: [],
    decide: () => {
      throw new Error('as ordered')
    },
  }
  // Submitted in one turn of the event loop, so that all wait before the first one is executed.
  const answers = customers.flatMap((id) =>
    Array.from({ length: WAITING_MAX }, () =>
      ledger.submit(id, movement).catch((error: Error) => error.message),
    ),
  )
  const taken = (WAITING_TOTAL_MAX * 15) / 16
  expect(ledger.waiting).toBe(taken)
  expect(refused).toBe(4 * WAITING_MAX - taken)
  const messages = await Promise.all(answers)
  const decided = (n: number) =>
    messages.slice(n * WAITING_MAX, (n + 1) * WAITING_MAX).filter((message) => message === 'as ordered')
  expect(customers.map((_, n) => decided(n).length)).toEqual([5_000, 2_500, 1_250, 625])
  expect(messages.at(-1)).toBe(
    'unavailable: too many movements of this customer are waiting; nothing was moved; try again',
  )
  expect(ledger.waiting).toBe(0)
})

test('a movement that waited too long for its batch is refused and not posted', async () => {
  const { db, owner } = await ownDatabase()
  const { customer_id, profile_id } = await createCustomer(db, 'Test')
  const ledger = new Ledger(db, { waitMsMax: 300 })
  const deposit = () => credit(ledger, { customer_id, profile_id }, 'USD', '1')
  await deposit()
  const { first, second } = await transaction(owner, async (tx) => {
    await tx.query('lock table balances in access exclusive mode')
    const first = deposit()
    await pause(50)
    const second = deposit().catch((error: unknown) => error)
    await pause(600)
    return { first: [first], second: [second] }
  })
  await first[0]
  expect(await second[0]).toMatchObject({
    slug: 'unavailable',
    detail: expect.stringContaining('nothing was moved') as string,
  })
  const { rows } = await db.query('select available from balances where customer_id = $1', [customer_id])
  expect(rows).toEqual([{ available: '2' }])
  await deposit()
})

describe('below requests', () => {
  let service: TestService
  let port: number
  beforeAll(async () => {
    service = await startTestService()
    await service.app.listen({ host: '127.0.0.1', port: 0 })
    port = (service.app.server.address() as AddressInfo).port
  })
  afterAll(() => service.close())

  /** Returns everything that the server sends for these bytes until the connection closes. */
  async function sent(bytes: string): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    // A server that closes with unread bytes may reset the connection after its answer.
    const chunks: Buffer[] = []
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('error', () => resolve())
      socket.on('close', () => resolve())
    })
    return Buffer.concat(chunks).toString()
  }

  test.each([
    ['what is not HTTP', 'nonsense\r\n\r\n', 400, 'not an HTTP request'],
    ['an unknown method', 'BREW / HTTP/1.1\r\nhost: x\r\n\r\n', 400, 'not an HTTP request'],
    [
      'a header of 200 KB',
      `GET / HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(200_000)}\r\n\r\n`,
      431,
      'the request line and headers are larger than 131072 bytes',
    ],
  ])('%s is refused with a problem', async (_, bytes, status, detail) => {
    const answer = await sent(bytes)
    const [head, body] = answer.split('\r\n\r\n') as [string, string]
    expect(head).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} .*\r\ncontent-type: application/problem\\+json\r\n`, 'i'),
    )
    expect(JSON.parse(body)).toMatchObject({ type: 'about:blank', status, detail })
  })

  test('filters accept their maximum number of values, however long', async () => {
    const customer = await newCustomer(service)
    const remote = await remoteCaller(`http://127.0.0.1:${port}`, customer)
    const each = (name: string, value: string) => Array.from({ length: 100 }, () => `${name}=${value}`)
    const query = [
      ...each('ref_ids', encodeURIComponent('ü'.repeat(100))),
      ...each('crypto_tx_hashes', 'ab'.repeat(32)),
      ...each('ids', crypto.randomUUID()),
    ].join('&')
    expect(query.length).toBeGreaterThan(70_000)
    expect(await remote('GET', `/v2/transfer/transfers?${query}`)).toMatchObject({
      status: 200,
      body: { items: [] },
    })
  })
})
