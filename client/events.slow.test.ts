// @slow
import type { AddressInfo } from 'node:net'
import { BursarProblem, createClient, type Event, type EventCursor } from './src/index.ts'
import { afterAll, expect, test } from 'vitest'
import { transaction } from '../src/db/database.ts'
import { readClock } from '../src/db/ids.ts'
import { insertEvents } from '../src/money/ledger/events.ts'
import { startCuttingProxy } from '../test/cutting-proxy.ts'
import { insertPastEvents } from '../test/past-events.ts'
import { seededRandom } from '../test/seed.ts'
import { newCustomer, ownTestService } from '../test/support.ts'
import { atEnd } from '../test/at-end.ts'

// `client.events()` against the real service over HTTP.

const service = await ownTestService()
await service.app.listen({ host: '127.0.0.1', port: 0 })
const address = `http://127.0.0.1:${(service.app.server.address() as AddressInfo).port}`
afterAll(() => service.app.server.closeAllConnections())

async function start(baseUrl = address) {
  const customer = await newCustomer(service)
  const client = createClient({
    baseUrl,
    clientId: customer.client_id,
    clientSecret: customer.client_secret,
    retries: { attempts: 2, pauseMs: 1, pauseMsMax: 2 },
  })
  return { client, ...customer }
}

/** Takes the first events of an iteration, and ends it. */
async function take(events: AsyncIterable<Event>, count: number): Promise<Event[]> {
  const taken: Event[] = []
  for await (const event of events) if (taken.push(event) === count) break
  return taken
}

/** Writes an event now, as the service does. */
const happen = (customer_id: string, status = 'APPROVED') =>
  transaction(service.db, async (tx) => {
    const id = crypto.randomUUID()
    const type = `fiat_account.${status.toLowerCase()}`
    await insertEvents(tx, customer_id, await readClock(tx), [
      { type, object_id: id, object: { id, status } },
    ])
  })

test('10,000 events come once each and in order, over connections that are cut again and again', async () => {
  const proxy = await startCuttingProxy(address, 60_000, seededRandom())
  atEnd(proxy.close)
  const { client, customer_id } = await start(proxy.address)
  const ids = await insertPastEvents(service.db, customer_id, 10_000)
  const failures: string[] = []
  const onFailure = (error: Error) => void failures.push(error.message)
  const taken = await take(client.events({ pollMs: 1, onFailure }), ids.length)
  expect(taken.map(({ id }) => id)).toEqual(ids)
  expect(proxy.cuts()).toBeGreaterThan(5)
})

test('an iteration continues after its cursor, also in the middle of events of one moment, and waits for more', async () => {
  const { client, customer_id } = await start()
  const ids = await insertPastEvents(service.db, customer_id, 250, { perMoment: 250 })
  const first = await take(client.events(), 120)
  const { created_at, id } = first.at(-1)!
  const cursor: EventCursor = { created_at, id }
  const rest = client.events({ cursor, pollMs: 5 })
  expect((await take(rest, 130)).map((event) => event.id)).toEqual(ids.slice(120))

  const later = client.events({ cursor: { created_at, id: ids.at(-1)! }, pollMs: 5 })
  const waiting = later.next()
  await happen(customer_id)
  expect(await waiting).toMatchObject({ done: false, value: { type: 'fiat_account.approved' } })
  await later.return()
})

test('types, objectId and since select events', async () => {
  const { client, customer_id } = await start()
  await insertPastEvents(service.db, customer_id, 5)
  const since = (await transaction(service.db, readClock)).text
  await happen(customer_id, 'REJECTED')
  await happen(customer_id)
  const [rejected] = await take(client.events({ types: ['fiat_account.rejected'] }), 1)
  expect(rejected).toMatchObject({ type: 'fiat_account.rejected', object: { status: 'REJECTED' } })
  expect((await take(client.events({ since }), 2)).map(({ type }) => type)).toEqual([
    'fiat_account.rejected',
    'fiat_account.approved',
  ])
  expect((await take(client.events({ objectId: rejected!.object.id }), 1))[0]!.id).toBe(rejected!.id)
})

test('the signal ends an iteration that waits, and a refusal is thrown', async () => {
  const { client } = await start()
  const abort = new AbortController()
  const waiting = client.events({ signal: abort.signal }).next()
  setTimeout(() => abort.abort(new Error('enough')), 100)
  await expect(waiting).rejects.toThrow('enough')

  const wrong = client.events({ types: ['no.such.type'] }).next()
  await expect(wrong).rejects.toBeInstanceOf(BursarProblem)
})

test('failures that may pass are tried again for ever, more and more slowly', async () => {
  const { client_id, client_secret, customer_id } = await start()
  const [id] = await insertPastEvents(service.db, customer_id, 1)
  let failing = 4
  const client = createClient({
    baseUrl: address,
    clientId: client_id,
    clientSecret: client_secret,
    retries: { attempts: 1 },
    fetch: async (input, init) => {
      const url = new Request(input, init).url
      if (!url.includes('/v2/events') || failing-- <= 0) return fetch(input, init)
      if (failing % 2 === 0) throw new TypeError('fetch failed')
      return Response.json({ title: 'Unavailable', status: 503 }, { status: 503 })
    },
  })
  const pauses: number[] = []
  const events = client.events({
    onFailure: (_, retryMs) => void pauses.push(retryMs),
  })
  expect((await events.next()).value).toMatchObject({ id })
  await events.return()
  expect(pauses).toHaveLength(4)
  expect(pauses.every((ms, attempt) => ms >= 100 * 2 ** attempt && ms <= 200 * 2 ** attempt)).toBe(true)
})
