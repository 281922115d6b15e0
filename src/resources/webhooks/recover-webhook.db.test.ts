import { beforeEach, describe, expect, test } from 'vitest'
import { fund, newCustomer, type TestCustomer, ownTestService } from '../../../test/support.ts'
import { EVENT_TYPES, type EventType } from '../../contract/event-types.ts'
import { newId, readClock } from '../../db/ids.ts'
import { transaction } from '../../db/database.ts'
import { readEvents } from '../../money/records/event.ts'
import type { Webhook } from '../../money/records/webhook.ts'
import type { WebhookDelivery } from '../../money/records/webhook-delivery.ts'
import { createWebhook } from '../../../test/endpoints.ts'

let customer: TestCustomer
const service = await ownTestService()
beforeEach(async () => void (customer = await newCustomer(service)))

const webhookOf = (changes: object = {}, by = customer) => createWebhook(by, changes)

/** Makes wires, and returns the ids of their events. */
async function events(count: number): Promise<string[]> {
  for (let n = 0; n < count; n++) await fund(customer, '1')
  const { rows } = await service.db.query<{ id: string }>(
    'select id from events where customer_id = $1 order by id desc limit $2',
    [customer.customer_id, count],
  )
  return rows.map(({ id }) => id).reverse()
}

/** Moves the endpoint's cursor to now, as the deliverer does once it has looked at all events. */
const passAll = ({ id }: Webhook) =>
  service.db.query(
    `update webhooks set cursor_id = (select id from events where customer_id = $1 order by id desc limit 1) where id = $2`,
    [customer.customer_id, id],
  )

/** Writes a delivery as the deliverer leaves it. */
const leave = (
  webhook: Webhook,
  event: string,
  status: string,
  changes: { leased?: true; due?: string } = {},
) =>
  service.owner.query(
    `insert into webhook_deliveries (customer_id, webhook_id, event_id, object_id, status, created_at, attempts,
                                     attempts_of_round, due_at, leased_until, ended_at)
     select $1, $2, $3, $3, $4::text, now, 3, 3, case when $4 = 'PENDING' then now + $5::interval end,
            case when $6 then now + interval '1 minute' end, case when $4 <> 'PENDING' then now end
     from clock_timestamp() now`,
    [customer.customer_id, webhook.id, event, status, changes.due ?? '1 hour', changes.leased ?? false],
  )

const SINCE = '2026-01-01T00:00:00Z'
const recover = (webhook: Webhook, body: object = { since: SINCE }) =>
  customer.call<{ recovered: number; next_page_cursor?: string }>(
    'POST',
    `/v2/webhooks/${webhook.id}/recover`,
    body,
  )

async function deliveries(webhook: Webhook, query = ''): Promise<WebhookDelivery[]> {
  const answer = await customer.call<{ items: WebhookDelivery[] }>(
    'GET',
    `/v2/webhooks/${webhook.id}/deliveries${query}`,
  )
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.items
}

describe('Recover Webhook', () => {
  test('starts each undelivered matching event once, and leaves the others alone', async () => {
    const webhook = await webhookOf()
    const [missed, failed, waiting, leased, delivered] = await events(5)
    await passAll(webhook)
    await leave(webhook, failed!, 'FAILED')
    await leave(webhook, waiting!, 'PENDING')
    await leave(webhook, leased!, 'PENDING', { leased: true })
    await leave(webhook, delivered!, 'DELIVERED')
    expect(await recover(webhook)).toMatchObject({ status: 200, body: { recovered: 3 } })

    const { rows } = await service.db.query(
      `select event_id, status, attempts, attempts_of_round, due_at <= clock_timestamp() as due, leased_until is not null as leased
       from webhook_deliveries where webhook_id = $1 order by event_id`,
      [webhook.id],
    )
    const started = { status: 'PENDING', attempts_of_round: 0, due: true, leased: false }
    expect(rows).toEqual([
      { event_id: missed, ...started, attempts: 0 },
      { event_id: failed, ...started, attempts: 3 },
      { event_id: waiting, ...started, attempts: 3 },
      { event_id: leased, status: 'PENDING', attempts: 3, attempts_of_round: 3, due: false, leased: true },
      {
        event_id: delivered,
        status: 'DELIVERED',
        attempts: 3,
        attempts_of_round: 3,
        due: null,
        leased: false,
      },
    ])
    expect((await recover(webhook)).body).toEqual({ recovered: 0 })
  })

  test('takes the events of the given time only', async () => {
    const webhook = await webhookOf()
    const ids = await events(4)
    await passAll(webhook)
    const { rows } = await service.db.query<{ created_at: string }>(
      'select created_at from events where customer_id = $1 and id = any ($2) order by id',
      [customer.customer_id, ids],
    )
    const [, second, , fourth] = rows.map(({ created_at }) => created_at)
    expect((await recover(webhook, { since: second, until: fourth })).body).toEqual({ recovered: 2 })
    expect((await deliveries(webhook)).map(({ id }) => id)).toEqual([ids[2], ids[1]])
  })

  test('leaves events that the deliverer has not reached yet to it', async () => {
    const webhook = await webhookOf()
    const [first] = await events(2)
    await service.db.query('update webhooks set cursor_id = $2 where id = $1', [webhook.id, first])
    expect((await recover(webhook)).body).toEqual({ recovered: 1 })
  })

  test('takes types and profiles as the deliverer does: no tests, no events of others', async () => {
    const second = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Second' })
    const [first] = await events(1)
    await fund(customer, '1', second.body.id)
    const ofSecond = await webhookOf({ profile_ids: [second.body.id] })
    const ofFirst = await webhookOf({ profile_ids: [customer.profile_id], event_types: ['*'] })
    const ofOrchestrations = await webhookOf({ event_types: ['orchestration.*'] })
    await customer.call('POST', `/v2/webhooks/${ofFirst.id}/test`, {
      type: 'transfer.wire_deposit.completed',
    })
    for (const webhook of [ofSecond, ofFirst, ofOrchestrations]) await passAll(webhook)
    const stranger = await newCustomer(service)
    await fund(stranger, '1')
    expect((await recover(ofSecond)).body).toEqual({ recovered: 1 })
    expect((await recover(ofOrchestrations)).body).toEqual({ recovered: 0 })
    expect((await recover(ofFirst)).body).toEqual({ recovered: 1 })
    expect((await deliveries(ofFirst)).map(({ id }) => id)).toContain(first)
  })

  test('a million events take many requests, each with a bounded part: 12,000 take three', async () => {
    const webhook = await webhookOf({ event_types: ['*'] })
    const [start] = await events(1)
    await service.owner.query(
      `insert into events (customer_id, id, created_at, type, object_id, object, is_test)
       select $1, ($2 || lpad(to_hex(n), 12, '0'))::uuid, clock_timestamp(), 'identity.approved', $3, '{}', false
       from generate_series(1, 11999) n`,
      [customer.customer_id, `${start!.slice(0, 24)}`, start],
    )
    await service.db.query(
      `update webhooks set cursor_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' where id = $1`,
      [webhook.id],
    )
    const counts: number[] = []
    let body: Awaited<ReturnType<typeof recover>>['body'] | undefined
    do {
      const page_cursor: string | undefined = body?.next_page_cursor
      ;({ body } = await recover(webhook, { since: SINCE, ...(page_cursor && { page_cursor }) }))
      counts.push(body.recovered)
    } while (body.next_page_cursor !== undefined)
    expect(counts).toEqual([5000, 5000, 2000])
    const { rows } = await service.db.query<{ count: number }>(
      'select count(*)::int from webhook_deliveries where webhook_id = $1',
      [webhook.id],
    )
    expect(rows).toEqual([{ count: 12_000 }])
    const other = await recover(webhook, { since: '2026-01-02T00:00:00Z', page_cursor: 'AAAA' })
    expect(other.status).toBe(400)
  })

  test('simultaneous requests start each event once', async () => {
    const webhook = await webhookOf()
    await events(5)
    await passAll(webhook)
    const answers = await Promise.all(Array.from({ length: 4 }, () => recover(webhook)))
    const recovered = answers.map(({ body }) => body.recovered)
    expect(recovered.reduce((sum, count) => sum + count)).toBe(5)
  })
})

describe('Test Webhook', () => {
  test.each(Object.keys(EVENT_TYPES) as EventType[])(
    'sends an example of %s to this endpoint',
    async (type) => {
      const webhook = await webhookOf({ event_types: ['orchestration.failed'] })
      const { status, body } = await customer.call<WebhookDelivery>(
        'POST',
        `/v2/webhooks/${webhook.id}/test`,
        { type },
      )
      expect(status, JSON.stringify(body)).toBe(200)
      expect(body).toEqual({
        id: body.id,
        webhook_id: webhook.id,
        event_type: type,
        object_id: body.object_id,
        status: 'PENDING',
        attempts: 0,
        next_attempt_at: body.created_at,
        created_at: body.created_at,
      })
      const [read] = await readEvents(service.db, customer.customer_id, [body.id])
      expect(read).toMatchObject({ is_test: true, object_id: body.object_id, event: { type } })
      expect(await deliveries(webhook)).toEqual([body])
      // Every required member of the type's object is there, and the answer's schema keeps none back.
      const object = read!.event.object as Record<string, string>
      expect(object.id).toBe(EVENT_TYPES[type].includes('summary') ? body.id : body.object_id)
      expect(Object.keys(object).length).toBeGreaterThan(1)
    },
  )
})

describe('List Webhook Deliveries', () => {
  test('filters by status, type and time, and pages newest first', async () => {
    const webhook = await webhookOf()
    const ids = await events(4)
    const statuses = ['DELIVERED', 'FAILED', 'PENDING', 'DELIVERED']
    for (const [index, id] of ids.entries()) await leave(webhook, id, statuses[index]!)
    const newest = [...ids].reverse()
    const found = async (query: string) => (await deliveries(webhook, query)).map(({ id }) => id)
    expect(await found('')).toEqual(newest)
    expect(await found('?status=FAILED')).toEqual([ids[1]])
    expect(await found('?status=PENDING')).toEqual([ids[2]])
    expect(await found('?status=DELIVERED')).toEqual([ids[3], ids[0]])
    expect(await found('?type=transfer.wire_deposit.completed')).toEqual(newest)
    expect(await found('?type=transfer.*&status=FAILED')).toEqual([ids[1]])
    expect(await found('?type=orchestration.*')).toEqual([])
    const [first] = await deliveries(webhook, '?status=FAILED')
    expect(await found(`?created_at.lt=${first!.created_at}`)).toEqual([ids[0]])
    expect(await found(`?created_at.gt=${first!.created_at}`)).toEqual([ids[3], ids[2]])
    expect(await found(`?created_at.eq=${first!.created_at}`)).toEqual([ids[1]])

    const walked: string[] = []
    let cursor: string | undefined = ''
    while (cursor !== undefined) {
      const path: string = `/v2/webhooks/${webhook.id}/deliveries?limit=1${cursor && `&page_cursor=${cursor}`}`
      const { body } = await customer.call<{ items: WebhookDelivery[]; next_page_cursor?: string }>(
        'GET',
        path,
      )
      walked.push(...body.items.map(({ id }) => id))
      cursor = body.next_page_cursor
    }
    expect(walked).toEqual(newest)
  })
})

describe('List Delivery Attempts', () => {
  test('shows each attempt, newest first, and pages', async () => {
    const webhook = await webhookOf()
    const [event, other] = await events(2)
    await leave(webhook, event!, 'PENDING')
    const attempts = await transaction(service.owner, async (tx) => {
      const now = await readClock(tx)
      const made = [
        {
          id: newId(now, 1),
          attempt: 1,
          error: 'connect ECONNREFUSED',
          duration_ms: 1,
          status_code: null,
          response: null,
        },
        {
          id: newId(now, 2),
          attempt: 2,
          error: 'status 503',
          duration_ms: 20,
          status_code: 503,
          response: 'later',
        },
        { id: newId(now, 3), attempt: 3, error: null, duration_ms: 30, status_code: 200, response: '' },
      ]
      for (const one of made)
        await tx.query(
          `insert into webhook_attempts (customer_id, webhook_id, event_id, id, created_at, attempt, status_code, error,
                                         duration_ms, response)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
          [
            ...[
              customer.customer_id,
              webhook.id,
              event,
              one.id,
              now.text,
              one.attempt,
              one.status_code,
              one.error,
            ],
            ...[one.duration_ms, one.response],
          ],
        )
      return made.map((one) => ({ ...one, created_at: now.text }))
    })
    const path = `/v2/webhooks/${webhook.id}/deliveries/${event}/attempts`
    const shown = attempts
      .map((one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)))
      .reverse()
    expect((await customer.call('GET', path)).body).toEqual({ items: shown })
    const page = await customer.call<{ next_page_cursor: string }>('GET', `${path}?limit=2`)
    const rest = await customer.call('GET', `${path}?limit=2&page_cursor=${page.body.next_page_cursor}`)
    expect(rest.body).toEqual({ items: shown.slice(2) })

    // An event that waits for its first attempt has none; one that does not exist is not found.
    const of = (id: string) => `/v2/webhooks/${webhook.id}/deliveries/${id}/attempts`
    expect(await customer.call('GET', of(other!))).toMatchObject({ status: 200, body: { items: [] } })
    expect((await customer.call('GET', of(crypto.randomUUID()))).status).toBe(404)
    const stranger = await newCustomer(service)
    expect((await stranger.call('GET', path)).status).toBe(404)
  })
})

describe('A webhook that failed', () => {
  const undelivered = async (event: string) =>
    (await customer.call<{ undelivered_webhooks: number }>('GET', `/v2/events/${event}`)).body
      .undelivered_webhooks

  test('counts in the events that it gets before their first attempt, and in no others', async () => {
    const [before] = await events(1)
    const types = ['fiat_account.rejected']
    const [all, others] = [await webhookOf(), await webhookOf({ event_types: types })]
    const [event] = await events(1)
    expect([await undelivered(before!), await undelivered(event!)]).toEqual([0, 1])
    await leave(all, event!, 'DELIVERED')
    expect(await undelivered(event!)).toBe(0)
    await leave(others, event!, 'FAILED')
    expect(await undelivered(event!)).toBe(1)
  })

  test('does not count in its events any more once it is deleted', async () => {
    const webhook = await webhookOf()
    const [event] = await events(1)
    await leave(webhook, event!, 'FAILED')
    await leave(await webhookOf(), event!, 'PENDING')
    expect(await undelivered(event!)).toBe(2)
    expect((await customer.call('DELETE', `/v2/webhooks/${webhook.id}`)).status).toBe(200)
    expect(await undelivered(event!)).toBe(1)
  })

  test.each([
    ['with a new URL', 'ACTIVE', { url: 'http://127.0.0.1:10/' }],
    ['that becomes ACTIVE again', 'DISABLED', { status: 'ACTIVE' }],
  ])('%s does not wait for the Retry-After of before', async (_, status, change) => {
    const webhook = await webhookOf()
    await service.owner.query(
      `update webhooks set status = $2, next_at = (select clock_timestamp() + interval '1 hour') where id = $1`,
      [webhook.id, status],
    )
    const waits = async () => {
      const { rows } = await service.db.query<{ waits: boolean }>(
        `select next_at > clock_timestamp() + interval '1 second' as waits from webhooks where id = $1`,
        [webhook.id],
      )
      return rows[0]!.waits
    }
    expect((await customer.call('PUT', `/v2/webhooks/${webhook.id}`, { rate_limit: 7 })).status).toBe(200)
    expect(await waits()).toBe(true)
    expect((await customer.call('PUT', `/v2/webhooks/${webhook.id}`, change)).status).toBe(200)
    expect(await waits()).toBe(false)
  })
})
