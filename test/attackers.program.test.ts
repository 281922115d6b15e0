import { EventEmitter } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Server } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import type { Database } from '../src/db/database.ts'
import { Connections, connectionsMax } from '../src/http/connections.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import {
  ROW_MACS,
  newCustomer,
  onEveryNode,
  remoteCaller,
  startTestService,
  withdrawalOf,
  ownTestService,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd } from './at-end.ts'
import { forCustomer } from '../src/db/parts.ts'

/*
 * Attackers over HTTP, who have no token or only their own. Each test acts as the attacker and keeps the attacker's
 * side of the connection open. A server that closes only its own side still holds the connection.
 */

const attackers: Attacker[] = []
afterEach(() => {
  for (const { socket } of attackers.splice(0)) socket.destroy()
})

interface Attacker {
  socket: Socket
  /** The bytes of the answer. */
  answer: () => string
  /** Whether the server has closed its side, or both. */
  ended: () => boolean
}

/** A connection that sends these bytes and never closes its side. */
function attack(port: number, bytes: string, from = '127.0.0.1'): Attacker {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true })
  let text = ''
  let ended = false
  socket.on('data', (chunk) => (text += String(chunk)))
  socket.on('end', () => (ended = true))
  socket.on('close', () => (ended = true))
  socket.on('error', () => (ended = true))
  socket.write(bytes)
  const attacker = { socket, answer: () => text, ended: () => ended }
  attackers.push(attacker)
  return attacker
}

const attackTimes = (count: number, port: number, bytes: string, from?: string) =>
  Array.from({ length: count }, () => attack(port, bytes, from))

async function listening(environment: Record<string, string> = {}) {
  const service = await ownTestService(environment)
  await service.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = service.app.server.address() as AddressInfo
  const address = `http://127.0.0.1:${port}`
  const health = () => Promise.all(['live', 'ready'].map((one) => fetch(`${address}/health/${one}`)))
  const healthy = async () => expect((await health()).map(({ status }) => status)).toEqual([200, 200])
  return { ...service, port, address, healthy }
}

const openConnections = ({ server }: FastifyInstance) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

/** Generous, because the machine may be busy with other work. */
const PATIENT = { timeout: 20_000 }

const HALF_A_FORM =
  'POST /oauth2/token HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n' +
  'content-length: 200\r\n\r\ngrant_type='

test('a connection without a valid request is closed on both sides, though the client holds its own', async () => {
  const { app, port, healthy } = await listening()
  const all = attackTimes(30, port, 'nonsense\r\n\r\n')
  await expect.poll(() => all.every(({ ended }) => ended()), PATIENT).toBe(true)
  for (const { answer } of all) expect(answer()).toMatch(/^HTTP\/1\.1 400 .*"not an HTTP request"/s)
  await expect.poll(() => openConnections(app), PATIENT).toBe(0)
  await healthy()
})

test('trickling headers get 408 and a closed connection, though the client goes on', async () => {
  const { app, port, healthy } = await listening()
  const trickle = attackTimes(10, port, 'GET /health/live HTTP/1.1\r\nhost: x\r\n')
  const silent = attackTimes(10, port, '')
  const trickling = setInterval(() => trickle.forEach(({ socket }) => socket.write('x: y\r\n')), 500)
  atEnd(() => Promise.resolve(clearInterval(trickling)))
  await healthy()
  await expect.poll(() => trickle.every(({ ended }) => ended()), PATIENT).toBe(true)
  for (const { answer } of [...trickle, ...silent]) expect(answer()).toMatch(/^HTTP\/1\.1 408 /)
  const others = await openConnections(app)
  // The remaining connections are those of the health requests, which are kept alive.
  expect(others).toBeLessThanOrEqual(2)
})

test('half-sent forms of an address are few, and end after five seconds', async () => {
  const service = await listening({ BURSAR_REQUESTS_MAX: '2000' })
  const { port, address, healthy } = service
  const customer = await newCustomer(service)
  const held = attackTimes(150, port, HALF_A_FORM, '127.0.0.2')
  const answered = () => held.filter(({ answer }) => answer() !== '')
  await expect.poll(() => answered().length, PATIENT).toBeGreaterThanOrEqual(50)
  const refused = answered().filter(({ answer }) => answer().startsWith('HTTP/1.1 429 '))
  expect(refused).toHaveLength(50)
  for (const { answer } of refused)
    expect(answer()).toMatch(/retry-after: 1\r\n.*"error":"temporarily_unavailable"/is)
  // Another address is unaffected, and can get a new token.
  const call = await remoteCaller(address, customer)
  expect((await call('GET', '/v2/profiles')).status).toBe(200)
  await healthy()
  await expect.poll(() => held.filter(({ ended }) => ended()).length, PATIENT).toBe(100)
  for (const { answer } of held.filter(({ ended }) => ended())) expect(answer()).toMatch(/^HTTP\/1\.1 408 /)
})

test('half-sent forms that fill their share delay neither health nor requests with a token', async () => {
  const service = await listening({ BURSAR_REQUESTS_MAX: '20' })
  const { app, port, healthy } = service
  const customer = await newCustomer(service)
  const held = attackTimes(4, port, HALF_A_FORM)
  await expect.poll(() => held.filter(({ answer }) => answer() !== '').length, PATIENT).toBe(2)
  const tokenRequest = () =>
    app.inject({
      method: 'POST',
      url: '/oauth2/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: customer.client_id,
        client_secret: customer.client_secret,
      }).toString(),
    })
  const refused = await tokenRequest()
  expect([refused.statusCode, refused.json()]).toEqual([
    503,
    {
      error: 'temporarily_unavailable',
      error_description:
        'too many concurrent requests without an access token; nothing was changed; try again',
    },
  ])
  expect((await customer.call('GET', '/v2/profiles')).status).toBe(200)
  expect((await app.inject('/oauth2/jwks')).statusCode).toBe(200)
  await healthy()
  await expect.poll(async () => (await tokenRequest()).statusCode, PATIENT).toBe(200)
})

test('half-sent bodies with a good token do not delay other clients', async () => {
  const service = await listening({ BURSAR_REQUESTS_MAX: '20' })
  const { port, healthy } = service
  const [one, two] = [await newCustomer(service), await newCustomer(service)]
  attackTimes(
    60,
    port,
    `POST /v2/transfer/crypto-withdrawals HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${one.token}\r\n` +
      'content-type: application/json\r\ncontent-length: 900\r\n\r\n{"amount":',
  )
  await pause(300)
  expect((await two.call('GET', '/v2/profiles')).status).toBe(200)
  expect((await two.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(two))).status).toBe(403)
  await healthy()
})

test('a request that no operation accepts is answered before its body arrives', async () => {
  const { port } = await listening()
  const body = 'content-type: application/json\r\ncontent-length: 900\r\n\r\n{'
  const [nowhere, other] = [
    attack(port, `POST /nowhere HTTP/1.1\r\nhost: x\r\n${body}`),
    attack(port, `POST /health/ready HTTP/1.1\r\nhost: x\r\n${body}`),
  ]
  await expect.poll(nowhere.answer, PATIENT).toMatch(/^HTTP\/1\.1 404 .*"POST \/nowhere not found"/s)
  await expect.poll(other.answer, PATIENT).toMatch(/^HTTP\/1\.1 405 /)
})

test('connections of an address are limited; those of trusted proxies are not', async () => {
  const service = await listening({
    BURSAR_CONNECTIONS_PER_ADDRESS: '5',
    BURSAR_TRUSTED_PROXIES: '10.0.0.1,127.0.0.4/31',
  })
  const count = async (from: string) => {
    const all = attackTimes(8, service.port, '', from)
    await pause(500)
    return all.filter(({ ended }) => !ended()).length
  }
  expect(await count('127.0.0.2')).toBe(5)
  expect(await count('127.0.0.3')).toBe(5)
  expect(await count('127.0.0.5')).toBe(8)
  // A new connection can take the place of a closed one.
  attackers[0]!.socket.destroy()
  await expect.poll(() => openConnections(service.app)).toBeLessThan(18)
  const [again] = attackTimes(1, service.port, 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n', '127.0.0.2')
  await expect.poll(again!.answer, PATIENT).toMatch(/^HTTP\/1\.1 200 /)
})

test('a connection that carries only empty lines is closed; one with a request under way is not', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    const connections = new Connections({
      perAddress: 0,
      trustedProxies: undefined,
      databaseConnections: 20,
      log: pino({ level: 'silent' }),
    })
    const server = new EventEmitter()
    connections.watch(server as Server)
    const opened = () => {
      const destroy = vi.fn()
      const socket = Object.assign(new EventEmitter(), { remoteAddress: '192.0.2.1', destroy })
      server.emit('connection', socket)
      return { socket: socket as unknown as Socket, destroy }
    }
    const [idle, waiting, used] = [opened(), opened(), opened()]
    connections.began(waiting.socket)
    vi.advanceTimersByTime(90_000)
    connections.began(used.socket)
    connections.ended(used.socket)
    vi.advanceTimersByTime(20_000)
    expect(idle.destroy).toHaveBeenCalled()
    expect(used.destroy).not.toHaveBeenCalled()
    vi.advanceTimersByTime(600_000)
    expect(used.destroy).toHaveBeenCalled()
    expect(waiting.destroy).not.toHaveBeenCalled()
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  [20, Infinity, 20_000],
  [20, 1_048_576, 20_000],
  [20, 1_024, 872],
  [500, 600, 16],
])('%d database connections and %d descriptors leave %d connections for clients', (db, files, most) => {
  expect(connectionsMax(db, files)).toBe(most)
})

test('a ready process stays ready while requests hold all connections; a new process does not become ready', async () => {
  const service = await listening()
  const ready = async () => (await fetch(`${service.address}/health/ready`)).status
  const takeAll = () =>
    Promise.all(Array.from({ length: service.db.options.max }, () => service.db.connect()))
  expect(await ready()).toBe(200)
  let taken = await takeAll()
  const answers = await Promise.all(Array.from({ length: 50 }, ready))
  expect(new Set(answers)).toEqual(new Set([200]))
  // One health query waits for the database, not fifty. Beside it wait two looks for disabled clients, on a
  // cluster also one for the places of customers, and others on a busy machine.
  const { waitingCount } = service.db
  for (const connection of taken) connection.release()
  expect(waitingCount).toBeGreaterThanOrEqual(1)
  expect(waitingCount).toBeLessThan(10)

  const other = await listening()
  taken = await Promise.all(Array.from({ length: other.db.options.max }, () => other.db.connect()))
  expect((await fetch(`${other.address}/health/ready`)).status).toBe(503)
  for (const connection of taken) connection.release()
  await expect.poll(async () => (await fetch(`${other.address}/health/ready`)).status, PATIENT).toBe(200)
})

test('the slow reads of one customer leave connections and places to the others, and end with their clients', async () => {
  const service = await listening({ BURSAR_REQUESTS_MAX: '100' })
  const [mallory, victim] = [await newCustomer(service), await newCustomer(service)]
  const lock = await service.owner.connect()
  // Each of mallory's reads takes as long as the lock.
  await lock.query('begin; lock table transfers in access exclusive mode')
  const ask = (path: string) =>
    attack(service.port, `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${mallory.token}\r\n\r\n`)
  const one = `/v2/transfer/transfers/${mallory.profile_id}`
  const asked = Array.from({ length: 60 }, (_, n) => ask(n % 2 === 0 ? '/v2/transfer/volumes' : one))
  // Her share of the places is half of them.
  await expect.poll(() => asked.filter(({ answer }) => answer().includes(' 429 ')).length, PATIENT).toBe(10)
  const balances = `/v2/profiles/${victim.profile_id}/balances`
  for (let n = 0; n < 5; n++) expect((await victim.call('GET', balances)).status).toBe(200)
  await service.healthy()

  const reads = vi.spyOn(forCustomer(service.db, mallory.customer_id), 'query')
  for (const { socket } of asked) socket.destroy()
  await expect.poll(() => openConnections(service.app), PATIENT).toBeLessThan(5)
  await lock.query('rollback')
  lock.release()
  await expect.poll(async () => (await mallory.call('GET', '/v2/transfer/volumes')).status, PATIENT).toBe(200)
  // What waited for its turn was not read any more.
  const ofMallory = (call: unknown[]) => (call[1] as unknown[] | undefined)?.[0] === mallory.customer_id
  expect(reads.mock.calls.filter((call) => ofMallory(call) && String(call[0]).includes('transfers'))).toEqual(
    [],
  )
})

test('a database without free connections and a process without descriptors give 503 and recover', async () => {
  const service = await ownTestService()
  const { call, customer_id } = await newCustomer(service)
  const name = new URL(service.url).pathname.slice(1)
  await onEveryNode(`alter database ${name} connection limit 0`)
  await onEveryNode(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  // The first requests may get a closed connection from the pool, which gives 503 as well.
  const statuses = new Set<number>()
  for (let n = 0; n < 12; n++) statuses.add((await call('GET', '/v2/profiles')).status)
  expect(statuses).toEqual(new Set([503]))
  await onEveryNode(`alter database ${name} connection limit -1`)
  expect((await call('GET', '/v2/profiles')).status).toBe(200)
  vi.spyOn(forCustomer(service.db, customer_id), 'query').mockImplementationOnce(() => {
    throw Object.assign(new Error('connect EMFILE 127.0.0.1:5432'), { code: 'EMFILE' })
  })
  expect(await call('GET', '/v2/profiles')).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    body: { detail: 'the database does not answer; try again' },
  })
})

test('the API document is rendered once, compressed, and not sent again to a client that has it', async () => {
  const { app } = await startTestService()
  atEnd(() => app.close())
  for (const url of ['/docs/json', '/openapi.json']) {
    const plain = await app.inject(url)
    const zipped = await app.inject({ url, headers: { 'accept-encoding': 'br, gzip' } })
    expect(zipped.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-cache',
      vary: 'accept-encoding',
    })
    expect(gunzipSync(zipped.rawPayload).toString()).toBe(plain.body)
    const etag = String(plain.headers.etag)
    expect(zipped.headers.etag).toBe(etag)
    const again = await app.inject({ url, headers: { 'if-none-match': etag } })
    expect([again.statusCode, again.body]).toEqual([304, ''])
    const not = await app.inject({ url, headers: { 'accept-encoding': 'gzip;q=0, identity' } })
    expect(not.headers['content-encoding']).toBeUndefined()
    const cpuOfOne = async () => {
      const began = process.cpuUsage()
      for (let n = 0; n < 50; n++) await app.inject({ url, headers: { 'accept-encoding': 'gzip' } })
      const { user, system } = process.cpuUsage(began)
      return (user + system) / 50
    }
    // Rendering it took 100 ms each as YAML and 6 ms as JSON. Other work of the process may be in one measurement, not in all.
    await expect.poll(cpuOfOne).toBeLessThan(3_000)
  }
  expect((await app.inject('/docs/yaml')).statusCode).toBe(404)
})

test('live mode has no /docs unless it is enabled, and the page then has no field for a secret', async () => {
  const without = await ownTestService({ BURSAR_MODE: 'live' })
  for (const url of ['/docs', '/docs/', '/docs/json', '/docs/static/swagger-ui.css'])
    expect((await without.app.inject(url)).statusCode, url).toBe(404)
  expect((await without.app.inject('/problems/expired')).body).not.toContain('docs/')
  const asked = await ownTestService({ BURSAR_MODE: 'live', BURSAR_DOCS: 'true' })
  const { components } = (await asked.app.inject('/docs/json')).json<{
    components: { securitySchemes: object }
  }>()
  expect(components.securitySchemes).toMatchObject({ oauth2: { type: 'http', scheme: 'bearer' } })
  expect((await asked.app.inject('/docs/')).body).not.toContain('data-scopes')
})

test('a path outside of the pages is 404, without an error in the log', async () => {
  let log = ''
  const service = await startTestService(
    {},
    { log: pino({}, { write: (line: string) => void (log += line) }) },
  )
  atEnd(() => service.close())
  const { app } = service
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const up = attack(port, 'GET /docs/static/../../package.json HTTP/1.1\r\nhost: x\r\n\r\n')
  await expect.poll(up.answer, PATIENT).toMatch(/^HTTP\/1\.1 404 .*application\/problem\+json/s)
  expect(log).not.toContain('"level":50')
})

test('every answer has the security headers, and no cache may store records', async () => {
  const [plain, secure] = [
    await startTestService({ BURSAR_TRUSTED_PROXIES: '127.0.0.1' }),
    await startTestService({}, { baseUrl: 'https://bursar.example' }),
  ]
  atEnd(() => plain.close())
  atEnd(() => secure.close())
  const customer = await newCustomer(plain)
  const ask = async (url: string, headers: Record<string, string> = {}, { app } = plain) => {
    const reply = await app.inject({ url, headers })
    expect(reply.headers, url).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    return reply.headers
  }
  const authorization = `Bearer ${customer.token}`
  for (const [url, headers] of [
    ['/v2/profiles', { authorization }],
    ['/v2/profiles', {}],
    ['/nowhere', {}],
    ['/oauth2/token', {}],
    ['/health/ready', {}],
  ] as const)
    expect(await ask(url, headers)).toMatchObject({ 'cache-control': 'no-store' })
  await ask('/docs/')
  await ask('/problems/expired')
  const hsts = 'strict-transport-security'
  expect(await ask('/nowhere')).not.toHaveProperty(hsts)
  expect(await ask('/nowhere', { 'x-forwarded-proto': 'https' })).toHaveProperty(hsts, 'max-age=31536000')
  expect(await ask('/nowhere', {}, secure)).toHaveProperty(hsts, 'max-age=31536000')
})

describe('lists of large records', () => {
  /** Inserts identities as they were before the limit of 8 KiB: 60 KiB each, and twice that as JSON. */
  const insertLarge = (db: Database, customerId: string, count: number) =>
    db.query(
      `
      insert into identities (customer_id, id, created_at, updated_at, ref_id, type, status, details)
      select $1, ('0192f3a4-7b1c-7d3e-8f00-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(), 'large-' || n, 'PERSON', 'APPROVED',
             jsonb_build_object('first_name', 'A', 'last_name', 'B', 'note', repeat('x', 30000))
      from generate_series(1, $2::integer) n`,
      [customerId, count],
    )

  test('free objects have 8 KiB at most', async () => {
    const service = await ownTestService()
    const { call } = await newCustomer(service)
    const make = (ref_id: string, note: string) =>
      call('POST', '/v2/identity/identities', {
        ref_id,
        person_details: { first_name: 'A', last_name: 'B', note },
      })
    expect((await make('fits', 'x'.repeat(8_100))).status).toBe(200)
    for (const note of ['x'.repeat(8_192), 'ü'.repeat(4_096), '\t'.repeat(4_100) + 'x'])
      expect(await make('does not', note)).toMatchObject({
        status: 400,
        body: { detail: 'person_details must have at most 8192 bytes as JSON' },
      })
  })

  test('have as many records as their limit; the cursor goes on without a gap', async () => {
    const service = await ownTestService()
    const { call, customer_id } = await newCustomer(service)
    await insertLarge(service.db, customer_id, 150)
    for (const order of ['DESC', 'ASC']) {
      const seen: string[] = []
      let cursor = ''
      for (const size of [120, 30]) {
        const { status, body } = await call<{ items: { ref_id: string }[]; next_page_cursor?: string }>(
          'GET',
          `/v2/identity/identities?limit=120&order=${order}${cursor}`,
        )
        expect({ status, size: body.items.length }).toEqual({ status: 200, size })
        seen.push(...body.items.map(({ ref_id }) => ref_id))
        cursor = `&page_cursor=${body.next_page_cursor}`
      }
      expect(cursor).toBe('&page_cursor=undefined')
      expect(new Set(seen).size).toBe(150)
    }
  })

  test('twelve simultaneous lists leave a process with a small heap alive', async () => {
    const database = await ownDatabase()
    const { customer_id } = await createCustomer(database.db, 'Test')
    const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
    await insertLarge(database.db, customer_id, 300)
    const bursar = await ownBursar({
      DATABASE_URL: database.url,
      BURSAR_WORKER: 'false',
      NODE_OPTIONS: '--max-old-space-size=192',
    })
    const call = await remoteCaller(bursar.address, client)
    const lists = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const { status, body } = await call<{ items: unknown[] }>('GET', '/v2/identity/identities?limit=1000')
        return `${status} ${body.items.length}`
      }),
    )
    expect(new Set(lists)).toEqual(new Set(['200 300']))
    expect(bursar.exitCode()).toBeNull()
  })
})
