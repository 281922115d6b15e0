import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { insertEndpoint, writeEvents } from './endpoints.ts'
import { startReceiver } from './receivers.ts'
import { spawnBursar, ownDatabase } from './support.ts'

// Deliveries by `bursar serve`, in processes of their own, that are killed.

const database = await ownDatabase()

const EVENTS = 60

/** Makes the deliveries due whose attempts failed: on a busy machine an attempt may take longer than it may. */
const retryNow = (customerId: string) =>
  database.owner.query(
    `update webhook_deliveries set due_at = (select clock_timestamp())
     where customer_id = $1 and status = 'PENDING' and attempts > 0 and leased_until is null`,
    [customerId],
  )

test('three processes share the rate limit of an endpoint, also when one of them is killed', async () => {
  const { customer_id } = await createCustomer(database.db, 'Test')
  const receiver = await startReceiver()
  await insertEndpoint(database, customer_id, { url: receiver.url, rate_limit: RATE_LIMIT })
  const environment = { DATABASE_URL: database.url }
  const processes = await Promise.all([1, 2, 3].map(() => spawnBursar(environment)))
  const ids = await writeEvents(database.db, customer_id, EVENTS)
  await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(EVENTS / 3), { timeout: 15_000 })
  await processes[0]!.end('SIGKILL')
  // The events that the killed process had leased are sent when the leases end: that is now.
  await database.owner.query(
    'update webhook_deliveries set leased_until = (select clock_timestamp()) where customer_id = $1 and leased_until is not null',
    [customer_id],
  )
  await vi.waitFor(
    async () => {
      await retryNow(customer_id)
      expect(new Set(receiver.ids())).toEqual(new Set(ids))
    },
    { timeout: 15_000 },
  )
  await Promise.all(processes.slice(1).map((one) => one.end('SIGTERM')))
  const times = receiver.received.map(({ at }) => at)
  for (const [index, at] of times.entries()) {
    const withinASecond = times.slice(index).filter((later) => later - at < 1_000)
    // Requests of three processes may each take somewhat longer or shorter to arrive than their slots are apart.
    expect(withinASecond.length).toBeLessThanOrEqual(RATE_LIMIT * 1.5)
  }
})

const RATE_LIMIT = 20

test('kill -9 of a deliverer loses nothing, and repeats at most the attempts under way', async () => {
  const { customer_id } = await createCustomer(database.db, 'Test')
  const held: ServerResponse[] = []
  let answered = 0
  let isKilled = false
  // Half of the requests hang until the process is killed.
  const receiver = await startReceiver((_, response) => {
    if (isKilled || answered++ % 2 === 0) response.writeHead(204).end()
    else held.push(response)
  })
  const { id } = await insertEndpoint(database, customer_id, { url: receiver.url })
  const environment = { DATABASE_URL: database.url }
  const first = await spawnBursar(environment)
  const ids = await writeEvents(database.db, customer_id, EVENTS)
  const counts = async () => {
    const { rows } = await database.db.query<{ delivered: number; leased: number; failed: number }>(
      `select count(*) filter (where status = 'DELIVERED')::int as delivered,
              count(*) filter (where leased_until is not null)::int as leased,
              (sum(attempts) - count(*) filter (where status = 'DELIVERED'))::int as failed
       from webhook_deliveries where customer_id = $1 and webhook_id = $2`,
      [customer_id, id],
    )
    return rows[0]!
  }
  // The window is full of requests that hang.
  await vi.waitFor(
    async () => {
      expect((await counts()).delivered).toBeGreaterThan(3)
      const hanging = held.filter(({ destroyed }) => !destroyed).length
      expect(hanging).toBe((await counts()).leased)
      expect(hanging).toBeGreaterThan(3)
    },
    { timeout: 15_000, interval: 50 },
  )
  isKilled = true
  await first.end('SIGKILL')
  const underWay = (await counts()).leased
  const sentBefore = receiver.received.length
  expect(underWay).toBeGreaterThan(0)

  const second = await spawnBursar(environment)
  // The rest is sent at once, the attempts under way when their leases end: that is now.
  await vi.waitFor(
    async () => {
      await retryNow(customer_id)
      expect((await counts()).delivered).toBe(EVENTS - underWay)
    },
    { timeout: 15_000 },
  )
  await database.owner.query(
    `update webhook_deliveries set leased_until = (select clock_timestamp()) where customer_id = $1 and webhook_id = $2 and leased_until is not null`,
    [customer_id, id],
  )
  await vi.waitFor(
    async () => {
      await retryNow(customer_id)
      expect(await counts()).toMatchObject({ delivered: EVENTS, leased: 0 })
    },
    { timeout: 15_000 },
  )
  await second.end('SIGTERM')
  expect(second.exitCode()).toBe(0)
  expect(new Set(receiver.ids())).toEqual(new Set(ids))
  expect(receiver.received.length).toBeLessThanOrEqual(EVENTS + underWay + (await counts()).failed)
  expect(receiver.received.length).toBeGreaterThan(sentBefore)
})
