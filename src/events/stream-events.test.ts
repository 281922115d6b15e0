/* A stream sends each event once and in order, goes on after the last one, and ends with what its caller may do. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  fetchToken,
  fund,
  newCustomer,
  startTestService,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from '../../test/support.ts'
import { createApiClient } from '../oauth/api-clients.ts'

let service: TestService
let customer: TestCustomer
let other: TestCustomer
let address: string

beforeAll(async () => {
  service = await startTestService()
  customer = await newCustomer(service)
  other = await newCustomer(service)
  await fund(customer, '10000')
  await fund(other, '10000')
  address = await service.app.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(async () => {
  // The connections that these tests leave open. A service that stops closes them itself (src/serve.ts).
  service.app.server.closeAllConnections()
  await service.close()
})

interface Sent {
  id: string
  event: string
  data: { id: string; type: string; object: { id: string } }
}

/** Opens a stream. `sent` grows as events come. */
async function openStream(token: string, lastEventId?: string) {
  const control = new AbortController()
  const answer = await fetch(`${address}/v2/events/stream`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
    signal: control.signal,
  })
  const sent: Sent[] = []
  let ended = false
  const reading = (async () => {
    let text = ''
    for await (const chunk of answer.body!) {
      text += Buffer.from(chunk as Uint8Array).toString()
      const blocks = text.split('\n\n')
      text = blocks.pop()!
      for (const block of blocks.filter((one) => !one.startsWith(':'))) {
        const [id, event, data] = block.split('\n').map((line) => line.slice(line.indexOf(': ') + 2))
        sent.push({ id: id!, event: event!, data: JSON.parse(data!) as Sent['data'] })
      }
    }
    ended = true
  })().catch(() => undefined)
  return {
    answer,
    sent,
    hasEnded: () => ended,
    async close() {
      control.abort()
      await reading
    },
  }
}

const SOON = { timeout: 10_000, interval: 50 }

async function withdraw(by: TestCustomer): Promise<string> {
  const { body } = await by.call<{ id: string }>('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(by))
  return body.id
}

test('each event once and in order, of this customer only, and after a break the rest', async () => {
  const first = await openStream(customer.token)
  expect(first.answer.status).toBe(200)
  expect(first.answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  // The stream begins at the first look.
  await pause(1_200)
  const ids = []
  for (let count = 0; count < 3; count++) {
    ids.push(await withdraw(customer))
    await withdraw(other)
  }
  await expect.poll(() => first.sent.length, SOON).toBe(3)
  expect(first.sent.map(({ data }) => data.object.id)).toEqual(ids)
  expect(first.sent.every(({ id, event, data }) => id === data.id && event === data.type)).toBe(true)
  await first.close()
  const missed = await withdraw(customer)
  const second = await openStream(customer.token, first.sent.at(-1)!.id)
  await expect.poll(() => second.sent.length, SOON).toBe(1)
  expect(second.sent[0]!.data.object.id).toBe(missed)
  await second.close()
})

test('everything after an old event comes, however many pages that is', async () => {
  for (let count = 0; count < 3; count++)
    await Promise.all(Array.from({ length: 50 }, () => withdraw(customer)))
  const nil = '00000000-0000-0000-0000-000000000000'
  const stream = await openStream(customer.token, nil)
  const { rows } = await service.db.query<{ id: string }>(
    'select id from events where customer_id = $1 order by id',
    [customer.customer_id],
  )
  await expect.poll(() => stream.sent.length, SOON).toBe(rows.length)
  expect(stream.sent.map(({ id }) => id)).toEqual(rows.map(({ id }) => id))
  await stream.close()
})

describe('is refused', () => {
  const status = async (headers: Record<string, string>) =>
    (await fetch(`${address}/v2/events/stream`, { headers })).status

  test('without a token or its scope', async () => {
    expect(await status({})).toBe(401)
    const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, [
      'transfer:read_transfer',
    ])
    const token = await fetchToken(service.app, client)
    expect(await status({ authorization: `Bearer ${token}` })).toBe(403)
  })

  test('after an id that is none', async () => {
    expect(await status({ authorization: `Bearer ${customer.token}`, 'last-event-id': 'latest' })).toBe(400)
  })

  test('beyond the limit of a customer, and not another customer with it', async () => {
    const streams = []
    for (let count = 0; count < 20; count++) streams.push(await openStream(other.token))
    expect(await status({ authorization: `Bearer ${other.token}` })).toBe(429)
    const free = await openStream(customer.token)
    expect(free.answer.status).toBe(200)
    for (const stream of [...streams, free]) await stream.close()
    await expect
      .poll(async () => {
        const stream = await openStream(other.token)
        await stream.close()
        return stream.answer.status
      }, SOON)
      .toBe(200)
  })
})

test('it ends when its client is disabled', async () => {
  const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, ['events:read_event'])
  const stream = await openStream(await fetchToken(service.app, client))
  expect(stream.answer.status).toBe(200)
  await service.db.query('update api_clients set disabled_at = (select clock_timestamp()) where id = $1', [
    client.client_id,
  ])
  await expect.poll(() => stream.hasEnded(), SOON).toBe(true)
})
