import { expect, test } from 'vitest'
import { pino } from 'pino'
import { createCustomer } from '../money/records/customer.ts'
import type { Database } from '../db/database.ts'
import { readHorizon } from '../db/horizon.ts'
import { momentAt } from '../db/ids.ts'
import { WebhookSecrets } from '../money/records/webhook-secrets.ts'
import { insertEndpoint, writeEvents } from '../../test/endpoints.ts'
import { startReceiver } from '../../test/receivers.ts'
import { MASTER_KEYS, ownDatabase, testSettings } from '../../test/support.ts'
import { START, claimDeliveries, endpointsWithWork, type Position } from './claim.ts'
import { EVENTS_LOOKED_AT_MAX } from './candidates.ts'
import { Deliverer } from './deliver.ts'
import { recordAttempts } from './record.ts'

const database = await ownDatabase(5)

const newCustomer = async () => (await createCustomer(database.db, 'Test')).customer_id
const URL_OF_NOBODY = 'http://127.0.0.1:9/'

const found = async (admitted?: string[]) =>
  (await endpointsWithWork(database.db, [], admitted)).map(({ id }) => id)

test('an endpoint that gets none of the events does not stand before the others for ever', async () => {
  const customer = await newCustomer()
  const horizon = await readHorizon(database.db)
  const none = await insertEndpoint(database, customer, {
    url: URL_OF_NOBODY,
    event_types: ['statement.paid'],
  })
  const all = await insertEndpoint(database, customer, { url: URL_OF_NOBODY })
  await writeEvents(database.db, customer)
  expect(await found()).toEqual([none.id, all.id])
  // The horizon is before the event, as while a transaction is under way, so that the event stays after the cursor.
  const { claim } = await claimDeliveries(database.db, none, { most: 1, horizon, position: START })
  expect(claim).toBeUndefined()
  expect(await found()).toEqual([all.id, none.id])
  expect(await found([none.id])).toEqual([none.id])
  await database.owner.query('delete from webhooks')
})

/** The database, whose claims of this endpoint fail. */
function failingFor(id: string): Database {
  return {
    query: database.db.query.bind(database.db),
    async connect() {
      const client = await database.db.connect()
      const send = client.query.bind(client) as (...query: unknown[]) => Promise<unknown>
      return {
        query: (...query: unknown[]) => {
          const [{ name, values }] = query as [{ name?: string; values?: unknown[] }]
          if (name === 'lock endpoint' && values?.[1] === id) return Promise.reject(new Error('too slow'))
          return send(...query)
        },
        release: (error?: Error) => client.release(error),
      }
    },
  } as unknown as Database
}

test('a claim that fails holds up no other endpoint', async () => {
  const receiver = await startReceiver()
  const customer = await newCustomer()
  const poisoned = await insertEndpoint(database, customer, { url: receiver.url })
  await insertEndpoint(database, customer, { url: receiver.url })
  const [event] = await writeEvents(database.db, customer)
  const deliverer = new Deliverer({
    db: failingFor(poisoned.id),
    secrets: new WebhookSecrets(MASTER_KEYS),
    settings: testSettings(),
    log: pino({ level: 'silent' }),
  })
  await deliverer.round()
  await expect.poll(() => receiver.ids()).toEqual([event])
  await database.owner.query('delete from webhooks where id <> $1', [poisoned.id])
  await expect(deliverer.round()).rejects.toThrow('too slow')
  await deliverer.stop(1_000)
  await database.owner.query('delete from webhooks')
})

test('a delivery that is resent without end is still recorded', async () => {
  const customer = await newCustomer()
  const endpoint = await insertEndpoint(database, customer, { url: URL_OF_NOBODY })
  await writeEvents(database.db, customer)
  const horizon = await readHorizon(database.db)
  const { claim } = await claimDeliveries(database.db, endpoint, { most: 1, horizon, position: START })
  await database.owner.query('update webhook_deliveries set attempts = 32767 where customer_id = $1', [
    customer,
  ])
  const { event_id, attempts_of_round } = claim!.deliveries[0]!
  await recordAttempts(database.db, endpoint, [
    { event_id, attempts_of_round, leased_until: claim!.leased_until, succeeded: true, duration_ms: 1 },
  ])
  const { rows } = await database.db.query(
    'select status, attempts from webhook_deliveries where customer_id = $1',
    [customer],
  )
  expect(rows).toEqual([{ status: 'DELIVERED', attempts: 32767 }])
})

test('a claim passes a limited number of events that have deliveries, and the next one goes on', async () => {
  const customer = await newCustomer()
  const endpoint = await insertEndpoint(database, customer, { url: URL_OF_NOBODY })
  const passed = await writeEvents(database.db, customer, EVENTS_LOOKED_AT_MAX)
  await database.owner.query(
    `insert into webhook_deliveries (customer_id, webhook_id, event_id, object_id, status, created_at, attempts,
                                     attempts_of_round, ended_at)
     select $1, $2, id, id, 'DELIVERED', now(), 1, 1, now() from events where customer_id = $1`,
    [customer, endpoint.id],
  )
  const [event] = await writeEvents(database.db, customer)
  const claim = async () => {
    const horizon = await readHorizon(database.db)
    const { claim } = await claimDeliveries(database.db, endpoint, { most: 1, horizon, position: START })
    return claim?.deliveries.map(({ event_id }) => event_id)
  }
  const cursor = async () => {
    const { rows } = await database.db.query<object>('select cursor_id from webhooks where id = $1', [
      endpoint.id,
    ])
    return rows[0]
  }
  expect(await claim()).toBeUndefined()
  expect(await cursor()).toEqual({ cursor_id: passed.at(-1) })
  expect(await claim()).toEqual([event])
  expect(await cursor()).toEqual({ cursor_id: event })
})

test('while a transaction is under way for long, each claim is bounded, and passes from the cursor find what commits late', async () => {
  const customer = await newCustomer()
  const endpoint = await insertEndpoint(database, customer, { url: URL_OF_NOBODY })
  // The transaction began before all of these events.
  const { micros } = await readHorizon(database.db)
  const horizon = momentAt(new Date(Math.floor(micros / 1000) - 10_000).toISOString())
  const passed = [
    ...(await writeEvents(database.db, customer, EVENTS_LOOKED_AT_MAX)),
    ...(await writeEvents(database.db, customer, EVENTS_LOOKED_AT_MAX)),
  ]
  await database.owner.query(
    `insert into webhook_deliveries (customer_id, webhook_id, event_id, object_id, status, created_at, attempts,
                                     attempts_of_round, ended_at)
     select $1, $2, id, id, 'DELIVERED', now(), 1, 1, now() from events where customer_id = $1`,
    [customer, endpoint.id],
  )
  const [event] = await writeEvents(database.db, customer)
  let position: Position = START
  const claim = async () => {
    const claimed = await claimDeliveries(database.db, endpoint, { most: 1, horizon, position })
    ;({ position } = claimed)
    return claimed.claim?.deliveries.map(({ event_id }) => event_id)
  }
  expect([await claim(), position.id]).toEqual([undefined, passed[EVENTS_LOOKED_AT_MAX - 1]])
  expect([await claim(), position.id]).toEqual([undefined, passed.at(-1)])
  expect(await claim()).toEqual([event])
  expect(await claim()).toBeUndefined()
  expect(position.passedAt).toBeGreaterThan(0)
  // An event that commits late has no delivery, and stands before what was read.
  const late = passed[5]!
  await database.owner.query('delete from webhook_deliveries where event_id = $1', [late])
  expect(await claim()).toBeUndefined()
  position = { ...position, passedAt: performance.now() - 1_001 }
  expect(await claim()).toEqual([late])
  const { rows } = await database.db.query<object>(
    'select cursor_id < $2 as before from webhooks where id = $1',
    [endpoint.id, passed[0]],
  )
  expect(rows).toEqual([{ before: true }])
})
