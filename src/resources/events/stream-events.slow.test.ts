/* A stream sends each event once and in order, goes on after the last one, and ends with what its caller may do. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import {
  ROW_MACS,
  fetchToken,
  fund,
  newCustomer,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { insertPastEvents } from '../../../test/past-events.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'
import { forCustomer } from '../../db/parts.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)
await fund(customer, '10000')
await fund(other, '10000')
const address = await service.app.listen({ port: 0, host: '127.0.0.1' })
afterAll(async () => {
  // The connections that these tests leave open. A service that stops closes them itself (src/program/serve.ts).
  service.app.server.closeAllConnections()
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
  const ids: string[] = []
  for (let count = 0; count < 3; count++) {
    ids.push(await withdraw(customer))
    await withdraw(other)
  }
  await expect.poll(() => first.sent.map(({ data }) => data.object.id), SOON).toEqual(ids)
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

test('a long past delays no other stream, and ends with the standing of its client', async () => {
  const mallory = await newCustomer(service)
  await insertPastEvents(service.db, mallory.customer_id, 4_000)
  const pool = forCustomer(service.db, mallory.customer_id)
  const query = pool.query.bind(pool) as (...asked: unknown[]) => Promise<unknown>
  // A page of hers takes as long as that of a busy database.
  const slow = vi.spyOn(pool, 'query').mockImplementation((async (
    asked: { values?: unknown[] },
    ...rest: unknown[]
  ) => {
    const isPage = asked.values?.[0] === mallory.customer_id && asked.values.length === 4
    if (isPage) await pause(200)
    return query(asked, ...rest)
  }) as never)
  const nil = '00000000-0000-0000-0000-000000000000'
  const streams: Awaited<ReturnType<typeof openStream>>[] = []
  for (let count = 0; count < 10; count++) streams.push(await openStream(mallory.token, nil))
  const victim = await openStream(other.token)
  await expect.poll(() => streams.every(({ sent }) => sent.length > 0), SOON).toBe(true)
  await withdraw(other)
  // All pages together would take 80 s.
  await expect.poll(() => victim.sent.length, SOON).toBe(1)
  await service.db.query('update api_clients set disabled_at = (select clock_timestamp()) where id = $1', [
    mallory.client_id,
  ])
  await expect.poll(() => streams.every(({ hasEnded }) => hasEnded()), SOON).toBe(true)
  expect(streams.every(({ sent }) => sent.length < 4_000)).toBe(true)
  slow.mockRestore()
  await victim.close()
})

test('nothing is read for a reader that does not keep up, and it misses nothing', async () => {
  const slow = await newCustomer(service)
  const ids = await insertPastEvents(service.db, slow.customer_id, 300)
  const connected = once(service.app.server, 'connection') as Promise<[Socket]>
  const client = connect(Number(new URL(address).port), '127.0.0.1')
  const [connection] = await connected
  let text = ''
  client.on('data', (chunk) => (text += String(chunk)))
  const pages = vi.spyOn(forCustomer(service.db, slow.customer_id), 'query')
  const pagesRead = () =>
    pages.mock.calls.filter(([asked]) => (asked as { values?: unknown[] }).values?.[0] === slow.customer_id)
      .length
  // What the process writes stays in its memory, as with a reader that is too slow.
  connection.cork()
  client.write(
    `GET /v2/events/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${slow.token}\r\nlast-event-id: ${ids[0]}\r\n\r\n`,
  )
  await expect.poll(pagesRead, SOON).toBe(1)
  await pause(1_500)
  expect(pagesRead()).toBe(1)
  connection.uncork()
  await expect.poll(() => text.includes(ids.at(-1)!), SOON).toBe(true)
  expect([...text.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id)).toEqual(ids.slice(1))
  pages.mockRestore()
  client.destroy()
})

test('every customer gets a place, however many streams others have', async () => {
  const streams: Awaited<ReturnType<typeof openStream>>[] = []
  for (let count = 0; count < 25; count++) {
    const { token } = await newCustomer(service)
    streams.push(...(await Promise.all(Array.from({ length: 20 }, () => openStream(token)))))
  }
  expect(streams.every(({ answer }) => answer.status === 200)).toBe(true)
  const late = await openStream(customer.token)
  expect(late.answer.status).toBe(200)
  await expect.poll(() => streams.filter(({ hasEnded }) => hasEnded()).length, SOON).toBe(1)
  for (const stream of [...streams, late]) await stream.close()
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

  test('after an event that older events follow than a stream tells', async () => {
    const quiet = await newCustomer(service)
    const [first] = await insertPastEvents(service.db, quiet.customer_id, 1, { minutesAgo: 3_000 })
    const open = (lastEventId: string) =>
      status({ authorization: `Bearer ${quiet.token}`, 'last-event-id': lastEventId })
    expect(await open('00000000-0000-7000-8000-000000000000')).toBe(400)
    const after = await openStream(quiet.token, first)
    expect(after.answer.status).toBe(200)
    await after.close()
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
