import type { ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { Webhook as Verifier } from 'standardwebhooks'
import { describe, expect, test, vi } from 'vitest'
import { usualMs } from '../db/changes.ts'
import { createCustomer } from '../money/records/customer.ts'
import { newSigningSecret, WebhookSecrets } from '../money/records/webhook-secrets.ts'
import { insertEndpoint, writeEvents, writeEventsIn, type EndpointOptions } from '../../test/endpoints.ts'
import { idOf, startReceiver, type Received } from '../../test/receivers.ts'
import { freePort } from '../../test/free-port.ts'
import { MASTER_KEYS, testSettings, refusing, ownDatabase } from '../../test/support.ts'
import { Deliverer, type DelivererOptions } from './deliver.ts'
import { atEnd } from '../../test/at-end.ts'

const secrets = new WebhookSecrets(MASTER_KEYS)

const database = await ownDatabase(20)

const ID = /^[0-9a-f-]{36}$/

const newEndpoint = (customer_id: string, options: EndpointOptions) =>
  insertEndpoint(database, customer_id, options)

const newCustomer = async () => (await createCustomer(database.db, 'Test')).customer_id

const write = (customer_id: string, count?: number, object_id?: string) =>
  writeEvents(database.db, customer_id, count, object_id)

/** A deliverer that runs until the end of the test. */
function startDeliverer(options: Partial<DelivererOptions> = {}) {
  const deliverer = new Deliverer({
    db: database.db,
    secrets,
    settings: testSettings(),
    log: pino({ level: 'silent' }),
    ...options,
  })
  let stopped: Promise<void> | undefined
  let isStopping = false
  const running = (async () => {
    while (!isStopping) await pause(Math.min(usualMs(await deliverer.round()), 100))
  })()
  const stop = (graceMs = 100) =>
    (stopped ??= (async () => {
      isStopping = true
      await running
      await deliverer.stop(graceMs)
    })())
  atEnd(() => stop())
  return { stop }
}

const until = (check: () => void | Promise<void>, timeout = 10_000) =>
  vi.waitFor(check, { timeout, interval: 20 })

const deliveriesOf = async ({ customer_id, id }: { customer_id: string; id: string }) => {
  const { rows } = await database.db.query<{
    event_id: string
    status: string
    attempts: number
    seconds: number | null
    leased: boolean
  }>(
    `select event_id, status, attempts, extract(epoch from due_at - clock_timestamp())::float8 as seconds,
            leased_until > clock_timestamp() as leased
     from webhook_deliveries where customer_id = $1 and webhook_id = $2 order by event_id`,
    [customer_id, id],
  )
  return rows
}

const attemptsOf = async ({ customer_id, id }: { customer_id: string; id: string }) => {
  const { rows } = await database.db.query<{
    event_id: string
    attempt: number
    status_code: number | null
    error: string | null
    response: string | null
    duration_ms: number
  }>(
    `select event_id, attempt, status_code, error, response, duration_ms
     from webhook_attempts where customer_id = $1 and webhook_id = $2 order by id`,
    [customer_id, id],
  )
  return rows
}

const endpointRow = async ({ customer_id, id }: { customer_id: string; id: string }) => {
  const { rows } = await database.db.query<{
    status: string
    disabled_reason: string | null
    failing_since: string | null
    next_in: number
    slow_for: number | null
  }>(
    `select status, disabled_reason, failing_since, extract(epoch from next_at - clock_timestamp())::float8 as next_in,
            extract(epoch from slow_until - clock_timestamp())::float8 as slow_for
     from webhooks where customer_id = $1 and id = $2`,
    [customer_id, id],
  )
  return rows[0]!
}

/** Makes the next attempts due now. */
const makeDue = ({ customer_id, id }: { customer_id: string; id: string }) =>
  database.owner.query(
    `update webhook_deliveries set due_at = (select clock_timestamp()) where customer_id = $1 and webhook_id = $2 and status = 'PENDING'`,
    [customer_id, id],
  )

describe('a delivery', () => {
  test('has the thin body, the headers, and a signature that standardwebhooks verifies', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer({ settings: testSettings({ BURSAR_WEBHOOK_SOURCE: 'com.paxos' }) })
    const [id] = await write(customer)
    await until(() => expect(receiver.received).toHaveLength(1))
    const { headers, body } = receiver.received[0]!
    const parsed = JSON.parse(body) as Record<string, unknown>
    expect(body).toBe(
      `{"id":"${id}","type":"fiat_account.approved","source":"com.paxos","time":"${parsed.time as string}","object":"event","is_test":false}`,
    )
    expect(new Verifier(endpoint.secrets.signing).verify(body, headers)).toEqual(parsed)
    expect(headers).toMatchObject({
      'webhook-id': id,
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Bursar-Webhooks\/\d+\.\d+\.\d+$/) as string,
      traceparent: expect.stringMatching(
        new RegExp(`^00-${id!.replaceAll('-', '')}-[0-9a-f]{16}-01$`),
      ) as string,
    })
    await until(async () =>
      expect(await deliveriesOf(endpoint)).toEqual([
        { event_id: id, status: 'DELIVERED', attempts: 1, seconds: null, leased: null },
      ]),
    )
    expect(await attemptsOf(endpoint)).toMatchObject([
      { event_id: id, attempt: 1, status_code: 204, error: null },
    ])
  })

  test('with the payload FULL is a CloudEvent with the object', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url, payload: 'FULL' })
    startDeliverer()
    const [id] = await write(customer)
    await until(() => expect(receiver.received).toHaveLength(1))
    const { headers, body } = receiver.received[0]!
    const { time, subject, ...rest } = JSON.parse(body) as Record<string, unknown>
    expect(rest).toEqual({
      id,
      type: 'fiat_account.approved',
      source: 'bursar',
      object: 'event',
      is_test: false,
      specversion: '1.0',
      datacontenttype: 'application/json',
      timestamp: time,
      object_type: 'fiat_account_status_change',
      data: { id: subject, status: 'APPROVED' },
    })
    expect(subject).toMatch(ID)
    expect(headers['content-type']).toBe('application/cloudevents+json; charset=utf-8')
    new Verifier(endpoint.secrets.signing).verify(body, headers)
  })

  test('verifies with both secrets during a rotation, and with the new one only afterwards', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const both = { signing: newSigningSecret(), previous: newSigningSecret() }
    const endpoint = await newEndpoint(customer, {
      url: receiver.url,
      secrets: both,
      previous_secret_until: '2100-01-01T00:00:00Z',
    })
    startDeliverer()
    await write(customer)
    await until(() => expect(receiver.received).toHaveLength(1))
    const verify = (secret: string, { body, headers }: Received) => new Verifier(secret).verify(body, headers)
    for (const secret of Object.values(both)) verify(secret, receiver.received[0]!)
    await database.owner.query(
      `update webhooks set previous_secret_until = (select clock_timestamp()) where customer_id = $1 and id = $2`,
      [customer, endpoint.id],
    )
    await write(customer)
    await until(() => expect(receiver.received).toHaveLength(2))
    verify(both.signing, receiver.received[1]!)
    expect(() => verify(both.previous, receiver.received[1]!)).toThrow()
  })

  test('goes to the endpoints whose types and profiles match, and to no other customer', async () => {
    const [customer, other] = [await newCustomer(), await newCustomer()]
    const receiver = await startReceiver()
    const matching = await newEndpoint(customer, { url: receiver.url, event_types: ['fiat_account.*'] })
    const silent = [
      await newEndpoint(customer, { url: receiver.url, event_types: ['transfer.*'] }),
      await newEndpoint(customer, { url: receiver.url, profile_ids: [crypto.randomUUID()] }),
      await newEndpoint(other, { url: receiver.url }),
    ]
    startDeliverer()
    const ids = await write(customer, 30)
    await until(async () => expect(await deliveriesOf(matching)).toHaveLength(30))
    await until(() => expect(new Set(receiver.ids())).toEqual(new Set(ids)))
    for (const endpoint of silent) expect(await deliveriesOf(endpoint)).toEqual([])
  })
})

describe('failures', () => {
  test('are repeated by the schedule, at last FAILED', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver((_, response) => response.writeHead(500).end('not now'))
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    const [id] = await write(customer)
    await until(async () =>
      expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts: 1, status: 'PENDING' }]),
    )
    const { seconds } = (await deliveriesOf(endpoint))[0]!
    expect(seconds).toBeGreaterThan(2)
    expect(seconds).toBeLessThanOrEqual(6)
    expect((await endpointRow(endpoint)).failing_since).not.toBeNull()
    for (let attempts = 2; attempts <= 12; attempts++) {
      await makeDue(endpoint)
      await until(async () => expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts }]))
    }
    expect(await deliveriesOf(endpoint)).toEqual([
      { event_id: id, status: 'FAILED', attempts: 12, seconds: null, leased: null },
    ])
    const attempts = await attemptsOf(endpoint)
    expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    expect(attempts[0]).toMatchObject({ status_code: 500, response: 'not now', error: null })
    // All attempts have the event's id and a signature of their own.
    expect(new Set(receiver.ids())).toEqual(new Set([id]))
    for (const { body, headers } of receiver.received)
      new Verifier(endpoint.secrets.signing).verify(body, headers)
  })

  test('end with the first success', async () => {
    const customer = await newCustomer()
    let status = 503
    const receiver = await startReceiver((_, response) => response.writeHead(status).end())
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    await write(customer)
    await until(async () => expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts: 1 }]))
    const failing = await endpointRow(endpoint)
    expect(failing.failing_since).not.toBeNull()
    expect(failing.slow_for).toBeGreaterThan(50)
    status = 200
    await makeDue(endpoint)
    await until(async () =>
      expect(await deliveriesOf(endpoint)).toMatchObject([{ status: 'DELIVERED', attempts: 2 }]),
    )
    expect((await endpointRow(endpoint)).failing_since).toBeNull()
  })

  test.each([429, 502, 503, 504])('with %i halve the rate for a minute', async (status) => {
    const customer = await newCustomer()
    const receiver = await startReceiver((_, response) => response.writeHead(status).end())
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    await write(customer)
    await until(async () => expect((await endpointRow(endpoint)).slow_for).toBeGreaterThan(50))
    expect((await endpointRow(endpoint)).slow_for).toBeLessThanOrEqual(60)
  })

  test.each([
    ['seconds', () => '120', 120],
    ['a date', () => new Date(Date.now() + 240_000).toUTCString(), 240],
    ['more than an hour', () => '999999', 3600],
  ])('honour Retry-After as %s, for the delivery and the endpoint', async (_, header, seconds) => {
    const customer = await newCustomer()
    const receiver = await startReceiver((__, response) =>
      response.writeHead(503, { 'retry-after': header() }).end(),
    )
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    await write(customer)
    await until(async () => expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts: 1 }]))
    const [delivery] = await deliveriesOf(endpoint)
    expect(delivery!.seconds).toBeGreaterThan(seconds - 10)
    expect(delivery!.seconds).toBeLessThanOrEqual(seconds + 1)
    const { next_in } = await endpointRow(endpoint)
    expect(next_in).toBeGreaterThan(seconds - 10)
    expect(next_in).toBeLessThanOrEqual(seconds + 1)
    await write(customer)
    await pause(300)
    expect(receiver.received).toHaveLength(1)
  })

  test('of redirects: the target of a redirect gets nothing', async () => {
    const customer = await newCustomer()
    const target = await startReceiver()
    const receiver = await startReceiver((_, response) =>
      response.writeHead(307, { location: target.url }).end(),
    )
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    await write(customer)
    await until(async () => expect(await attemptsOf(endpoint)).toMatchObject([{ status_code: 307 }]))
    expect(target.received).toEqual([])
  })

  test('with 410 disable the endpoint at once, and the others are told', async () => {
    const customer = await newCustomer()
    const gone = await startReceiver((_, response) => response.writeHead(410).end())
    const healthy = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: gone.url })
    const other = await newEndpoint(customer, { url: healthy.url, payload: 'FULL' })
    startDeliverer()
    const [id] = await write(customer)
    await until(() => expect(healthy.received).toHaveLength(2))
    const disabled = healthy.received.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
    expect(disabled.find(({ type }) => type === 'webhook.disabled')).toMatchObject({
      subject: endpoint.id,
      data: { id: endpoint.id, name: endpoint.id, failing_since: expect.any(String) as string },
    })
    expect(await endpointRow(endpoint)).toMatchObject({
      status: 'DISABLED',
      disabled_reason: expect.stringContaining('410') as string,
    })
    // Its delivery waits until it is ACTIVE again, and it gets nothing more.
    await write(customer)
    await makeDue(endpoint)
    await until(() => expect(healthy.received).toHaveLength(3))
    expect(gone.ids()).toEqual([id])
    expect(await deliveriesOf(endpoint)).toMatchObject([{ event_id: id, status: 'PENDING', attempts: 1 }])
    expect(await endpointRow(other)).toMatchObject({ status: 'ACTIVE', failing_since: null })
  })

  test('to open the secrets pause the endpoint, and delay no other', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const damaged = await newEndpoint(customer, { url: receiver.url })
    await database.owner.query(
      `update webhooks set encrypted_secrets = 'damaged' where customer_id = $1 and id = $2`,
      [damaged.customer_id, damaged.id],
    )
    const healthy = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    const [id] = await write(customer)
    await until(async () => expect((await endpointRow(damaged)).next_in).toBeGreaterThan(50))
    await until(async () => expect(await deliveriesOf(healthy)).toMatchObject([{ status: 'DELIVERED' }]))
    expect(receiver.ids()).toEqual([id])
    expect(await deliveriesOf(damaged)).toMatchObject([{ event_id: id, status: 'PENDING', attempts: 0 }])
    expect(await endpointRow(damaged)).toMatchObject({ status: 'ACTIVE', failing_since: null })
  })

  test('to record one attempt keep no other from being recorded', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    const [one, odd, other] = await write(customer, 3)
    await refusing(database, 'webhook_attempts', `event_id <> '${odd}'`, async () => {
      const { stop } = startDeliverer()
      const statuses = async () =>
        new Map((await deliveriesOf(endpoint)).map(({ event_id, status }) => [event_id, status]))
      await until(async () =>
        expect(await statuses()).toEqual(
          new Map([
            [one, 'DELIVERED'],
            [odd, 'PENDING'],
            [other, 'DELIVERED'],
          ]),
        ),
      )
      await stop()
    })
    expect(receiver.ids().filter((id) => id !== odd)).toEqual([one, other])
  })

  test('to read one event keep no other from being delivered', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    const [one, odd, other] = await write(customer, 3)
    const db = new Proxy(database.db, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (name !== 'query' || typeof value !== 'function') return value
        return (query: { name?: string; values?: unknown[] }, ...rest: unknown[]) =>
          query.name === 'read events' && (query.values![1] as string[]).includes(odd!)
            ? Promise.reject(new Error('an odd event'))
            : (value.call(target, query, ...rest) as unknown)
      },
    })
    startDeliverer({ db })
    await until(() => expect(receiver.ids().toSorted()).toEqual([one, other].toSorted()))
    await until(async () =>
      expect((await deliveriesOf(endpoint)).map(({ status }) => status)).toEqual([
        'DELIVERED',
        'PENDING',
        'DELIVERED',
      ]),
    )
  })

  test('to know the type of an event are no failures: a process of a newer version delivers it', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    const [unknown, known] = await writeEvents(database.db, customer, 2)
    await until(async () =>
      expect((await deliveriesOf(endpoint)).map(({ status }) => status)).toEqual(['DELIVERED', 'DELIVERED']),
    )
    await database.owner.query(`update events set type = 'future.kind' where customer_id = $1 and id = $2`, [
      customer,
      unknown,
    ])
    await database.owner.query(
      `update webhook_deliveries set status = 'PENDING', due_at = (select clock_timestamp()), ended_at = null
       where customer_id = $1`,
      [customer],
    )
    await until(() => expect(receiver.ids()).toEqual([unknown, known, known]))
    expect(await deliveriesOf(endpoint)).toMatchObject([
      { event_id: unknown, status: 'PENDING', attempts: 1, leased: true },
      { event_id: known },
    ])
    expect(await endpointRow(endpoint)).toMatchObject({ status: 'ACTIVE', failing_since: null })
  })

  test('for five days without a success disable the endpoint', async () => {
    const customer = await newCustomer()
    const dead = await startReceiver((_, response) => response.writeHead(500).end())
    const healthy = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: dead.url })
    await newEndpoint(customer, { url: healthy.url, event_types: ['webhook.*'] })
    startDeliverer()
    await write(customer)
    await until(async () => expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts: 1 }]))
    const since = (days: number) =>
      database.owner.query(
        `update webhooks set failing_since = (select clock_timestamp() - make_interval(days => $3)) where customer_id = $1 and id = $2`,
        [customer, endpoint.id, days],
      )
    await since(4)
    await makeDue(endpoint)
    await until(async () => expect(await deliveriesOf(endpoint)).toMatchObject([{ attempts: 2 }]))
    expect((await endpointRow(endpoint)).status).toBe('ACTIVE')
    await since(5)
    await makeDue(endpoint)
    await until(async () => expect((await endpointRow(endpoint)).status).toBe('DISABLED'))
    await until(() => expect(healthy.received).toHaveLength(1))
    expect(JSON.parse(healthy.received[0]!.body)).toMatchObject({ type: 'webhook.disabled' })
  })
})

describe('order and completeness', () => {
  test('an event waits for the first attempt of an earlier one of its record', async () => {
    const customer = await newCustomer()
    const held: ServerResponse[] = []
    const receiver = await startReceiver((_, response) => void held.push(response))
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    const record = crypto.randomUUID()
    const first = await write(customer, 2, record)
    await until(() => expect(receiver.ids()).toEqual([first[0]]))
    const [third] = await write(customer, 1, record)
    const [other] = await write(customer)
    await until(() => expect(receiver.ids()).toEqual([first[0], other]))
    await pause(300)
    expect(receiver.received).toHaveLength(2)
    // The first attempt may fail: then the order does not matter any more.
    held[0]!.writeHead(500).end()
    await until(() => expect(receiver.ids()).toEqual([first[0], other, first[1]]))
    held[2]!.writeHead(204).end()
    await until(() => expect(receiver.ids()).toEqual([first[0], other, first[1], third]))
    for (const response of held) if (!response.writableEnded) response.writeHead(204).end()
    await until(async () =>
      expect((await deliveriesOf(endpoint)).filter(({ status }) => status === 'DELIVERED')).toHaveLength(3),
    )
  })

  test('an event that commits late, with an earlier id, is delivered, and does not delay the others', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    const late = await database.db.connect()
    await late.query('begin')
    const [lateId] = await writeEventsIn(late, customer)
    const early: string[] = []
    for (let round = 0; round < 15; round++) {
      early.push(...(await write(customer, 3)))
      await pause(100)
    }
    await until(() => expect(new Set(receiver.ids())).toEqual(new Set(early)))
    await late.query('commit')
    late.release()
    await until(() => expect(receiver.ids()).toContain(lateId))
    await pause(200)
    expect(receiver.received).toHaveLength(46)
    expect(await deliveriesOf(endpoint)).toHaveLength(46)
  })

  test('a stop gives leases back, and the next process sends what is left, once', async () => {
    const customer = await newCustomer()
    const held: ServerResponse[] = []
    let holds = true
    const receiver = await startReceiver((_, response) =>
      holds ? void held.push(response) : void response.writeHead(204).end(),
    )
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    const { stop } = startDeliverer()
    const ids = await write(customer, 40)
    await until(() => expect(held.length).toBeGreaterThan(2))
    const underWay = held.length
    await stop(50)
    expect((await deliveriesOf(endpoint)).filter(({ leased }) => leased)).toEqual([])
    holds = false
    startDeliverer()
    await until(async () =>
      expect((await deliveriesOf(endpoint)).filter(({ status }) => status === 'DELIVERED')).toHaveLength(40),
    )
    expect(new Set(receiver.ids())).toEqual(new Set(ids))
    expect(receiver.received.length).toBeLessThanOrEqual(40 + Math.max(underWay, 8))
  })

  test('an attempt whose lease another process took over is not recorded twice', async () => {
    const customer = await newCustomer()
    let held: ServerResponse | undefined
    const receiver = await startReceiver((_, response) => {
      if (held === undefined) held = response
      else response.writeHead(204).end()
    })
    const endpoint = await newEndpoint(customer, { url: receiver.url })
    startDeliverer()
    await write(customer)
    await until(() => expect(receiver.received).toHaveLength(1))
    await database.owner.query(
      `update webhook_deliveries set leased_until = (select clock_timestamp()) where customer_id = $1 and webhook_id = $2`,
      [customer, endpoint.id],
    )
    await until(async () =>
      expect(await deliveriesOf(endpoint)).toMatchObject([{ status: 'DELIVERED', attempts: 1 }]),
    )
    held!.writeHead(500).end()
    await pause(300)
    expect(await deliveriesOf(endpoint)).toMatchObject([{ status: 'DELIVERED', attempts: 1 }])
    expect(await attemptsOf(endpoint)).toMatchObject([{ status_code: 204 }])
  })

  test('two processes share the rate limit', async () => {
    const customer = await newCustomer()
    const receiver = await startReceiver()
    const endpoint = await newEndpoint(customer, { url: receiver.url, rate_limit: 10 })
    startDeliverer()
    startDeliverer()
    await write(customer, 25)
    await until(() => expect(receiver.received).toHaveLength(25))
    const seconds = (receiver.received.at(-1)!.at - receiver.received[0]!.at) / 1000
    // 24 intervals of 0.1 s, less what one slot may come early or late.
    expect(seconds).toBeGreaterThan(2.2)
    expect(seconds).toBeLessThan(6)
    expect(new Set(receiver.ids()).size).toBe(25)
    await until(async () =>
      expect((await deliveriesOf(endpoint)).filter(({ status }) => status === 'DELIVERED')).toHaveLength(25),
    )
  })
})

describe('isolation', () => {
  test('a dead endpoint, a slow one and one that never reads do not delay a healthy one', async () => {
    const customer = await newCustomer()
    const sentAt = new Map<string, number>()
    const delays: number[] = []
    const healthy = await startReceiver((received, response) => {
      delays.push(received.at - sentAt.get(idOf(received))!)
      response.writeHead(204).end()
    })
    const slow = await startReceiver(
      (_, response) => void setTimeout(() => response.writeHead(204).end(), 29_000),
    )
    const deaf = createTcpServer({ pauseOnConnect: true }, (socket) => socket.on('error', () => undefined))
    await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve))
    atEnd(async () => void deaf.close())
    const endpoints = {
      dead: await newEndpoint(customer, { url: `http://127.0.0.1:${await freePort()}/` }),
      slow: await newEndpoint(customer, { url: slow.url }),
      deaf: await newEndpoint(customer, { url: `http://127.0.0.1:${(deaf.address() as AddressInfo).port}/` }),
      healthy: await newEndpoint(customer, { url: healthy.url }),
    }
    startDeliverer()
    const ids: string[] = []
    for (const end = performance.now() + 17_000; performance.now() < end; await pause(100)) {
      const before = performance.now()
      for (const id of await write(customer, 2)) {
        sentAt.set(id, before)
        ids.push(id)
      }
    }
    await until(() => expect(healthy.received).toHaveLength(ids.length))
    expect(healthy.ids().sort()).toEqual(ids.sort())
    delays.sort((a, b) => a - b)
    // 0.1 s on a quiet machine. What waited for one of the others would take 15 s.
    expect(delays[Math.floor(delays.length * 0.99)]).toBeLessThan(10_000)
    const errorsOf = async (endpoint: { customer_id: string; id: string }) => [
      ...new Set((await attemptsOf(endpoint)).map(({ error }) => error)),
    ]
    expect(await errorsOf(endpoints.dead)).toEqual(['the connection was refused'])
    expect(await errorsOf(endpoints.slow)).toEqual(['no answer within 15 s'])
    expect(await errorsOf(endpoints.deaf)).toEqual(['no answer within 15 s'])
    // Nothing else is sent to them while their requests hang, and a backlog has no rows.
    expect(slow.received.length).toBeLessThan(30)
    expect((await deliveriesOf(endpoints.slow)).length).toBeLessThan(30)
  })
})
