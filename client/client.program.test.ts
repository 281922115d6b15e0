import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  BursarProblem,
  BursarTimeout,
  BursarUnreachable,
  createClient,
  type Client,
  type ClientOptions,
  type ListPath,
  type ProblemMeta,
  type ProblemSlug,
  type Transfer,
} from '@bursar/client'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { transaction } from '../src/db/database.ts'
import type { problem, ProblemSlug as ServiceSlug } from '../src/contract/problems.ts'
import { lockMarket, writePrices } from '../src/money/records/write-prices.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { startLossyProxy } from '../test/lossy-proxy.ts'
import { fund, newCustomer, withdrawalOf, type TestCustomer, ownTestService } from '../test/support.ts'
import { atEnd } from '../test/at-end.ts'

// The typed client, imported by the package's name, against the real service over HTTP.

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const DEPOSITS = '/v2/sandbox/fiat-deposits'
const TRANSFERS = '/v2/transfer/transfers'
/** Short pauses between attempts, since no server needs relief here. */
const QUICK = { pauseMs: 5, pauseMsMax: 20 }

let customer: TestCustomer
let client: Client

const service = await ownTestService()
await service.app.listen({ host: '127.0.0.1', port: 0 })
const address = `http://127.0.0.1:${(service.app.server.address() as AddressInfo).port}`
const proxy = await startLossyProxy(address)
afterAll(async () => {
  await proxy.close()
  service.app.server.closeAllConnections()
})
beforeEach(async () => {
  proxy.lose('REQUEST', '', 0)
  customer = await newCustomer(service)
  await fund(customer, '1000')
  client = clientOf()
})

/** A client through the proxy. */
const clientOf = (changes: Partial<ClientOptions> = {}) =>
  createClient({
    baseUrl: proxy.address,
    clientId: customer.client_id,
    clientSecret: customer.client_secret,
    retries: QUICK,
    ...changes,
  })

/** The real `fetch`, with its requests counted; `answer` may answer in its place. */
function counting(
  answer: (url: string, count: number, init: RequestInit) => Response | undefined = () => undefined,
) {
  const asked: string[] = []
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const path = new URL(input).pathname
    asked.push(path)
    const count = asked.filter((one) => one === path).length
    return answer(path, count, init) ?? globalThis.fetch(input, init)
  }
  return { fetch, asked, times: (path: string) => asked.filter((one) => one === path).length }
}

const withdrawals = async () =>
  (await client.get(TRANSFERS, { params: { query: { type: ['CRYPTO_WITHDRAWAL'] } } })).items

const available = async () =>
  (
    await client.get('/v2/profiles/{id}/balances/{asset}', {
      params: { path: { id: customer.profile_id, asset: 'USD' } },
    })
  ).available

const problemOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(BursarProblem)
  return error as BursarProblem
}

const body = (changes: Record<string, unknown> = {}) =>
  withdrawalOf(customer, changes) as ReturnType<typeof withdrawalOf> & { crypto_network: 'ETHEREUM' }

describe('a request whose answer is lost', () => {
  test.each(['REQUEST', 'ANSWER', 'REST_OF_ANSWER'] as const)(
    'a withdrawal is made once and answered (%s is lost twice)',
    async (loss) => {
      proxy.lose(loss, `POST ${WITHDRAWALS}`, 2)
      const transfer = await client.post(WITHDRAWALS, { body: body() })
      expect(proxy.lost()).toBe(2)
      expect(transfer).toMatchObject({ status: 'PENDING', amount: '10', profile_id: customer.profile_id })
      expect(transfer.ref_id).toMatch(/^[0-9a-f-]{36}$/)
      expect(await withdrawals()).toEqual([transfer])
      expect(await available()).toBe('989')
    },
  )

  test('bulk withdrawals are made once, and the answer is the same as without the loss', async () => {
    await client.post(WITHDRAWALS, { body: body({ ref_id: 'older', amount: '7' }) })
    const withdrawals = [
      { ...body(), ref_id: 'first' },
      { ...body({ amount: '5000' }), ref_id: 'too much' },
      { ...body(), ref_id: 'first' },
      { ...body(), ref_id: 'older' },
      { ...body(), ref_id: 'last' },
    ]
    proxy.lose('ANSWER', `POST ${WITHDRAWALS}/bulk`, 2)
    const { items } = await client.post(`${WITHDRAWALS}/bulk`, { body: { withdrawals } })
    expect(proxy.lost()).toBe(2)
    expect(items.map(({ transfer, problem }) => transfer?.ref_id ?? problem!.status)).toEqual([
      'first',
      403,
      409,
      409,
      'last',
    ])
    expect(await available()).toBe(`${1000 - 8 - 11 - 11}`)
  })

  test("a withdrawal with the caller's ref_id, a padded amount and an upper-case id is made once", async () => {
    proxy.lose('ANSWER', `POST ${WITHDRAWALS}`)
    const mine = { ref_id: 'mine', amount: '010.50', profile_id: customer.profile_id.toUpperCase() }
    const transfer = await client.post(WITHDRAWALS, { body: body(mine) })
    expect(proxy.lost()).toBe(1)
    expect(transfer).toMatchObject({ ref_id: 'mine', amount: '10.5' })
    expect(await withdrawals()).toEqual([transfer])
  })

  test.each([
    ['an internal transfer', '/v2/transfer/internal', () => internal()],
    ['a deposit address', '/v2/transfer/deposit-addresses', () => placed({ crypto_network: 'STELLAR' })],
    [
      'deposit instructions',
      '/v2/transfer/fiat-deposit-instructions',
      () => placed({ fiat_network: 'WIRE' }),
    ],
    ['a bank account', '/v2/transfer/fiat-accounts', () => bankAccount()],
    ['a wire', '/v2/transfer/fiat-withdrawals', () => wire()],
    ['an identity', '/v2/identity/identities', () => ({ ...institution(), ref_id: 'one' })],
    ['an account, whose ref_id is in a member', '/v2/identity/accounts', () => account()],
    ['a rule, which is answered in a member', '/v2/orchestration/rules', () => rule()],
    ['an orchestration', '/v2/orchestration/orchestrations', () => orchestration()],
  ])('%s has the same members as without the loss', async (_name, path, make) => {
    const sent = await make()
    const post = client.post as (path: string, init: object) => Promise<Record<string, unknown>>
    proxy.lose('ANSWER', `POST ${path}`)
    const answer = await post(path, { body: sent })
    expect(proxy.lost()).toBe(1)
    // An answer that was not lost has the same members.
    const other = await newCustomer(service)
    await fund(other, '1000')
    customer = other
    client = clientOf()
    const whole = await (client.post as typeof post)(path, { body: await make() })
    expect(Object.keys(answer).sort()).toEqual(Object.keys(whole).sort())
  })

  const placed = (more: object) => ({ profile_id: customer.profile_id, ...more })
  const institution = () => ({ institution_details: { name: 'Acme' } })
  const bankAccount = () => ({
    fiat_account_owner: institution(),
    fiat_network_instructions: { wire: { account_number: '1' } },
  })
  const destination = () => ({
    crypto: { address: withdrawalOf(customer).destination_address, network: 'ETHEREUM' },
  })
  async function internal() {
    const { id } = await client.post('/v2/profiles', { body: { nickname: 'Other' } })
    return { asset: 'USD', amount: '5', from_profile_id: customer.profile_id, to_profile_id: id }
  }
  async function wire() {
    const { id } = await client.post('/v2/transfer/fiat-accounts', { body: bankAccount() })
    return placed({ asset: 'USD', amount: '5', fiat_account_id: id })
  }
  async function account() {
    const { id } = await client.post('/v2/identity/identities', { body: { ...institution(), ref_id: 'one' } })
    return { account: { identity_id: id } }
  }
  const rule = () =>
    placed({
      ref_id: 'rule',
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: { network: 'WIRE' } },
      destination: destination(),
    })
  const orchestration = () => ({
    source_asset: 'USD',
    destination_asset: 'USDP',
    source_amount: '5',
    source: { profile: { profile_id: customer.profile_id } },
    destination: destination(),
  })

  test('a ref_id in use is refused at the first attempt', async () => {
    const first = await client.post(WITHDRAWALS, { body: body({ ref_id: 'taken' }) })
    const refused = await problemOf(client.post(WITHDRAWALS, { body: body({ ref_id: 'taken' }) }))
    expect(refused).toMatchObject({ status: 409, slug: 'already-exists', refId: 'taken' })
    expect(refused.meta.existing).toEqual(first)
  })

  test('a withdrawal is repeated after a 429, which executed nothing', async () => {
    await client.post(WITHDRAWALS, { body: body({ ref_id: 'taken' }) })
    const { fetch, times } = counting((path, count) =>
      path === WITHDRAWALS && count === 1 ? new Response('{}', { status: 429 }) : undefined,
    )
    const refused = await problemOf(
      clientOf({ fetch }).post(WITHDRAWALS, { body: body({ ref_id: 'taken' }) }),
    )
    expect(refused.slug).toBe('already-exists')
    expect(times(WITHDRAWALS)).toBe(2)
  })

  test('the record of another request is never returned as success', async () => {
    await client.post(WITHDRAWALS, { body: body({ ref_id: 'taken', amount: '7' }) })
    proxy.lose('REQUEST', `POST ${WITHDRAWALS}`)
    const refused = await problemOf(client.post(WITHDRAWALS, { body: body({ ref_id: 'taken' }) }))
    expect(proxy.lost()).toBe(1)
    expect(refused).toMatchObject({ slug: 'already-exists', meta: { existing: { amount: '7' } } })
  })

  test('a deposit, which has no ref_id, is not repeated', async () => {
    const { memo_id } = await client.post('/v2/transfer/fiat-deposit-instructions', {
      body: { profile_id: customer.profile_id, fiat_network: 'WIRE' },
    })
    const deposit = { amount: '5', asset: 'USD' as const, memo_id, fiat_network_instructions: { wire: {} } }
    proxy.lose('ANSWER', `POST ${DEPOSITS}`)
    await expect(client.post(DEPOSITS, { body: deposit })).rejects.toBeInstanceOf(BursarUnreachable)
    expect(await available()).toBe('1005')
  })

  test('reads and deletions are repeated', async () => {
    const { rule: made } = await client.post('/v2/orchestration/rules', { body: rule() as never })
    const path = { id: made.id }
    proxy.lose('ANSWER', 'DELETE', 2)
    await client.delete('/v2/orchestration/rules/{id}', { params: { path } })
    expect(proxy.lost()).toBe(2)
    proxy.lose('ANSWER', 'GET', 3)
    expect(await available()).toBe('1000')
    expect(proxy.lost()).toBe(3)
  })

  test('after the last attempt the error has the ref_id', async () => {
    proxy.lose('ANSWER', `POST ${WITHDRAWALS}`, 100)
    const lost = await client.post(WITHDRAWALS, { body: body() }).catch((error: unknown) => error)
    expect(lost).toBeInstanceOf(BursarUnreachable)
    expect(proxy.lost()).toBe(5)
    const { refId, message } = lost as BursarUnreachable
    expect(message).toMatch(/^no answer in 5 attempts: /)
    const query = { ref_ids: [refId!] }
    expect((await client.get(TRANSFERS, { params: { query } })).items).toHaveLength(1)
    expect(await withdrawals()).toHaveLength(1)
  })
})

describe('a busy service', () => {
  const busy = (status: number, headers: Record<string, string> = {}) =>
    Response.json({ type: 'about:blank', title: 'Unavailable', status, detail: 'later' }, { status, headers })

  test('gets the request again after Retry-After', async () => {
    const { fetch, times } = counting((path, count) =>
      path === TRANSFERS && count === 1 ? busy(429, { 'retry-after': '1' }) : undefined,
    )
    const start = performance.now()
    await clientOf({ fetch }).get(TRANSFERS)
    expect(performance.now() - start).toBeGreaterThan(990)
    expect(times(TRANSFERS)).toBe(2)
  })

  test('is not waited for beyond the total time limit', async () => {
    const { fetch, times } = counting((path) =>
      path === TRANSFERS ? busy(429, { 'retry-after': '9' }) : undefined,
    )
    const start = performance.now()
    const refused = await problemOf(clientOf({ fetch, retries: { totalMs: 2_000 } }).get(TRANSFERS))
    expect(performance.now() - start).toBeLessThan(1_500)
    expect(refused).toMatchObject({ status: 429, retryAfterMs: 9_000 })
    expect(times(TRANSFERS)).toBe(1)
  })

  test.each([
    [429, DEPOSITS, 5],
    [503, DEPOSITS, 1],
    [503, WITHDRAWALS, 5],
    [502, WITHDRAWALS, 5],
    [500, WITHDRAWALS, 1],
    [400, WITHDRAWALS, 1],
  ] as const)('%i to POST %s: sent %i times', async (status, path, expected) => {
    const { fetch, times } = counting((asked) => (asked === path ? busy(status) : undefined))
    const refused = await problemOf(clientOf({ fetch }).post(path, { body: body() as never }))
    expect(refused.status).toBe(status)
    expect(times(path)).toBe(expected)
  })

  test('a withdrawal hidden by a 503 is found', async () => {
    // The service makes it, but the proxy answers 503.
    const real = globalThis.fetch
    let hidden = 0
    const fetch: typeof real = async (input, init) => {
      const reply = await real(input, init)
      return new URL(input).pathname === WITHDRAWALS && hidden++ === 0 ? busy(503) : reply
    }
    const transfer = await clientOf({ fetch }).post(WITHDRAWALS, { body: body() })
    expect(hidden).toBe(2)
    expect(await withdrawals()).toEqual([transfer])
  })

  test('an attempt that hangs is abandoned and repeated', async () => {
    const { fetch, times } = counting()
    const hanging: typeof fetch = async (input, init) => {
      if (new URL(input).pathname !== TRANSFERS || times(TRANSFERS) > 0) return fetch(input, init)
      await fetch(input, init)
      return new Promise((_, reject) =>
        init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason as Error)),
      )
    }
    const retries = { ...QUICK, attemptMs: 300 }
    expect((await clientOf({ fetch: hanging, retries }).get(TRANSFERS)).items).toHaveLength(1)
    expect(times(TRANSFERS)).toBe(2)
  })

  test('an aborted signal ends waits and requests, with its reason', async () => {
    const reason = new Error('enough')
    const { fetch } = counting((path) =>
      path === TRANSFERS ? busy(429, { 'retry-after': '30' }) : undefined,
    )
    for (const own of [{ fetch }, { fetch: () => new Promise<never>(() => undefined) }]) {
      const aborting = new AbortController()
      setTimeout(() => aborting.abort(reason), 100)
      const start = performance.now()
      await expect(clientOf(own).get(TRANSFERS, { signal: aborting.signal })).rejects.toBe(reason)
      expect(performance.now() - start).toBeLessThan(2_000)
    }
    const { fetch: never, asked } = counting()
    const signal = AbortSignal.abort(reason)
    await expect(clientOf({ fetch: never }).get(TRANSFERS, { signal })).rejects.toBe(reason)
    expect(asked).toEqual([])
  })
})

describe('tokens', () => {
  const TOKEN = '/oauth2/token'

  test('a token is fetched once for many simultaneous calls and kept', async () => {
    const { fetch, times } = counting()
    const own = clientOf({ fetch })
    await Promise.all(Array.from({ length: 20 }, () => own.get(TRANSFERS)))
    await own.get(TRANSFERS)
    expect([times(TOKEN), times(TRANSFERS)]).toEqual([1, 21])
  })

  test('a request that one caller abandons continues for the others', async () => {
    const { fetch, times } = counting()
    const own = clientOf({ fetch })
    const aborting = new AbortController()
    const given = own.get(TRANSFERS, { signal: aborting.signal })
    const kept = own.get(TRANSFERS)
    aborting.abort()
    await expect(given).rejects.toMatchObject({ name: 'AbortError' })
    expect((await kept).items).toHaveLength(1)
    expect(times(TOKEN)).toBe(1)
  })

  test('a token is replaced before it expires', async () => {
    const short = await ownTestService({ BURSAR_TOKEN_TTL_SECONDS: '5' })
    const { client_id, client_secret } = await newCustomer(short)
    await short.app.listen({ host: '127.0.0.1', port: 0 })
    const baseUrl = `http://127.0.0.1:${(short.app.server.address() as AddressInfo).port}`
    const statuses: number[] = []
    const { fetch, times } = counting()
    const own = createClient({
      baseUrl,
      clientId: client_id,
      clientSecret: client_secret,
      fetch: async (...request) => {
        const reply = await fetch(...request)
        statuses.push(reply.status)
        return reply
      },
    })
    for (let round = 0; round < 8; round++) {
      await own.get(TRANSFERS)
      await new Promise((resolve) => setTimeout(resolve, 800))
    }
    // A token is used for 4 s of its lifetime of 5 s.
    expect(times(TOKEN)).toBe(2)
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  test('a refused token is replaced once', async () => {
    let spoiled = 1
    const { fetch, times } = counting()
    const spoil: typeof fetch = (input, init) => {
      if (new URL(input).pathname !== WITHDRAWALS || spoiled-- <= 0) return fetch(input, init)
      return fetch(input, {
        ...init,
        headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
      })
    }
    const own = clientOf({ fetch: spoil })
    await own.post(WITHDRAWALS, { body: body() })
    expect([times(TOKEN), times(WITHDRAWALS)]).toEqual([2, 2])
    expect(await withdrawals()).toHaveLength(1)

    spoiled = 100
    expect(await problemOf(own.post(WITHDRAWALS, { body: body() }))).toMatchObject({
      status: 401,
      slug: 'unauthorized',
    })
    expect([times(TOKEN), times(WITHDRAWALS)]).toEqual([3, 4])
    expect(await withdrawals()).toHaveLength(1)
  })

  test('have the requested scopes', async () => {
    const own = clientOf({ scopes: ['transfer:read_transfer', 'funding:read_profile'] })
    await own.get(TRANSFERS)
    expect(await problemOf(own.post(WITHDRAWALS, { body: body() }))).toMatchObject({
      status: 403,
      slug: 'forbidden',
    })
  })

  test('a wrong secret throws the error of the token endpoint', async () => {
    const { fetch, times } = counting()
    const refused = await problemOf(clientOf({ fetch, clientSecret: 'x' }).get(TRANSFERS))
    expect(refused).toMatchObject({ status: 401, slug: 'invalid_client' })
    expect([times(TOKEN), times(TRANSFERS)]).toEqual([1, 0])
  })

  test('the request for a token is repeated when its answer is lost', async () => {
    proxy.lose('ANSWER', `POST ${TOKEN}`, 2)
    expect((await client.get(TRANSFERS)).items).toHaveLength(1)
    expect(proxy.lost()).toBe(2)
  })
})

test('a problem has its slug, status, detail and meta', async () => {
  const refused = await problemOf(client.post(WITHDRAWALS, { body: body({ amount: '5000' }) }))
  expect(refused).toMatchObject({
    name: 'BursarProblem',
    status: 403,
    slug: 'insufficient-funds',
    title: 'Insufficient Funds',
    meta: { asset: 'USD', available: '1000', needed: '5001' },
    requestId: expect.stringMatching(/./) as string,
    refId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
  })
  expect(refused.message).toBe(`Insufficient Funds: ${refused.detail}`)
  expect(refused.errors).toEqual([])
  const invalid = await problemOf(client.post(WITHDRAWALS, { body: body({ amount: 'x', memo: ' ' }) }))
  expect(invalid.errors.map(({ pointer }) => pointer).sort()).toEqual(['#/amount', '#/memo'])
  expect(invalid.errors[0]!.detail).toBe(invalid.detail)
  const id = crypto.randomUUID()
  expect(await problemOf(client.get('/v2/profiles/{id}', { params: { path: { id } } }))).toMatchObject({
    status: 404,
    slug: 'not-found',
  })
})

test('the slug of a problem types its meta', async () => {
  const refused = await problemOf(client.post(WITHDRAWALS, { body: body({ amount: '5000' }) }))
  expect(refused.is('expired')).toBe(false)
  if (!refused.is('insufficient-funds')) throw refused
  const { available, needed }: { available: string; needed: string } = refused.meta
  expect({ available, needed }).toEqual({ available: '1000', needed: '5001' })
})

describe('waiting for a transfer', () => {
  const withdraw = () => client.post(WITHDRAWALS, { body: body() })

  test('returns it when it has ended', async () => {
    const transfer = await withdraw()
    const waiting = client.waitFor(transfer, { everyMs: 20 })
    await expect
      .poll(async () => {
        await service.db.query(
          'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
        )
        await settleWithdrawals(service.db, service.networks)
        return (await client.get('/v2/transfer/transfers/{id}', { params: { path: transfer } })).status
      })
      .toBe('COMPLETED')
    const ended: Transfer = await waiting
    expect(ended).toMatchObject({ id: transfer.id, status: 'COMPLETED' })
  })

  test('stops at the time limit or when aborted, and the transfer continues', async () => {
    const transfer = await withdraw()
    const late = client.waitFor(transfer, { everyMs: 10, timeoutMs: 50 })
    await expect(late).rejects.toBeInstanceOf(BursarTimeout)
    await expect(late).rejects.toMatchObject({ refId: transfer.ref_id })
    const { signal, abort } = aborting()
    const waiting = client.waitFor(transfer, { signal })
    abort()
    await expect(waiting).rejects.toThrow('enough')
    await expect(client.waitFor({ id: crypto.randomUUID() })).rejects.toMatchObject({ slug: 'not-found' })
  })

  function aborting() {
    const controller = new AbortController()
    return { signal: controller.signal, abort: () => controller.abort(new Error('enough')) }
  }
})

describe('an answer that is not from Bursar counts as no answer', () => {
  test('of a page with 200', async () => {
    const { fetch } = counting((path) => (path === TRANSFERS ? new Response('<html>') : undefined))
    await expect(clientOf({ fetch }).get(TRANSFERS)).rejects.toBeInstanceOf(BursarUnreachable)
  })

  test.each([
    [500, 1],
    [502, 5],
    [503, 5],
    [504, 5],
  ])('of a proxy that answers %i in HTML, after %i attempts', async (status, attempts) => {
    for (const path of [WITHDRAWALS, '/oauth2/token']) {
      let asked = 0
      const server = createServer((request, response) => {
        if (request.url === path) {
          asked++
          response.writeHead(status, { 'content-type': 'text/html' }).end(`<h1>${status}</h1>`)
        } else void forward(request, response)
      }).listen(0, '127.0.0.1')
      atEnd(async () => void server.close())
      await once(server, 'listening')
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const failed = clientOf({ baseUrl }).post(WITHDRAWALS, { body: body({ ref_id: `${status}` }) })
      await expect(failed).rejects.toBeInstanceOf(BursarUnreachable)
      await expect(failed).rejects.toMatchObject({
        message: expect.stringContaining(`HTTP ${status}`) as string,
        refId: path === WITHDRAWALS ? `${status}` : undefined,
      })
      expect(asked).toBe(attempts)
    }
  })

  /** Sends a request on to the service, as a proxy does. */
  async function forward(request: IncomingMessage, response: ServerResponse) {
    const { authorization, 'content-type': type } = request.headers
    const answer = await fetch(address + request.url!, {
      method: request.method!,
      headers: { authorization: authorization!, 'content-type': type! },
      body: await text(request),
    })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  }
})

describe('pages', () => {
  async function all<T>(records: AsyncIterable<T>): Promise<T[]> {
    const list: T[] = []
    for await (const record of records) list.push(record)
    return list
  }

  test('of a list with cursors, with its filters', async () => {
    for (let n = 0; n < 5; n++) await client.post(WITHDRAWALS, { body: body({ amount: `${n + 1}` }) })
    const query = { type: ['CRYPTO_WITHDRAWAL' as const], limit: 2, order: 'ASC' as const }
    const { fetch, times } = counting()
    const own = clientOf({ fetch })
    const transfers = await all(own.each(TRANSFERS, { params: { query } }))
    expect(transfers.map(({ amount }) => amount)).toEqual(['1', '2', '3', '4', '5'])
    expect(times(TRANSFERS)).toBe(3)
    const pages = await all(own.pages(TRANSFERS, { params: { query } }))
    expect(pages.map(({ items }) => items.length)).toEqual([2, 2, 1])
  })

  test('of historical prices, which use offsets', async () => {
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, 'LTCBRL', 'REAL')
      const minutes = Array.from({ length: 250 }, (_, n) => n)
      await writePrices(tx, id!, {
        coversMinutes: 1,
        minute: minutes.map((n) => 29_000_000 + n),
        second: minutes.map(() => 0),
        prices: [minutes.map((n) => `${n + 1}`)],
      })
    })
    const path = { market: 'LTCBRL' as const }
    for (const [limit, offset, pages] of [
      [100, 0, 3],
      [125, 0, 2],
      [100, 240, 1],
    ] as const) {
      const { fetch, asked } = counting()
      const query = {
        increment: 'ONE_MINUTE' as const,
        'pagination.limit': limit,
        'pagination.offset': offset,
      }
      const prices = await all(
        clientOf({ fetch }).each('/v2/markets/{market}/historical-prices', { params: { path, query } }),
      )
      expect(prices.map(({ average_price }) => Number(average_price))).toEqual(
        Array.from({ length: 250 - offset }, (_, n) => offset + n + 1),
      )
      expect(asked.filter((one) => one.includes('LTCBRL'))).toHaveLength(pages)
    }
  })

  test('of every list', async () => {
    const { webhook } = await client.post('/v2/webhooks', {
      body: { name: 'Hook', url: 'https://hooks.example.com/', event_types: ['*'] },
    })
    const { id: delivery_id } = await client.post('/v2/webhooks/{id}/test', {
      params: { path: { id: webhook.id } },
      body: { type: 'statement.paid' },
    })
    // The compiler requires every list here. At run time each of them is read to its end.
    const lists: Record<ListPath, object> = {
      '/v2/conversion/stablecoins': {},
      '/v2/orchestration/orchestrations': {},
      '/v2/orchestration/rules': {},
      '/v2/assets': {},
      '/v2/networks': {},
      '/v2/statements/payments': {},
      '/v2/rewards/statements': {},
      '/v2/rewards/rates': {},
      '/v2/statements': { query: { customer_id: customer.customer_id } },
      '/v2/markets': {},
      '/v2/all-markets/prices': {},
      '/v2/markets/{market}/historical-prices': { path: { market: 'BTCUSD' } },
      '/v2/markets/{market}/historical-candles': { path: { market: 'BTCUSD' } },
      '/v2/api-creds/credentials': { query: { limit: 1 } },
      '/v2/events': { query: { limit: 2 } },
      '/v2/transfer/crypto-destination-addresses': {},
      '/v2/policy/versions': {},
      '/v2/search': { query: { q: customer.profile_id } },
      '/v2/transfer/limits/utilizations': {},
      '/v2/profiles': { query: { limit: 1 } },
      '/v2/profiles/{id}/balances': { path: { id: customer.profile_id } },
      '/v2/profiles/{id}/entries': { path: { id: customer.profile_id }, query: { limit: 1 } },
      '/v2/profiles/{id}/statement': { path: { id: customer.profile_id } },
      '/v2/profiles/{id}/liability-proof': { path: { id: customer.profile_id } },
      '/v2/reports/accounts': {},
      '/v2/reports/activity': {},
      '/v2/reports/closed-days': {},
      '/v2/reports/general-ledger': {},
      '/v2/reports/liabilities': {},
      '/v2/reports/trial-balance': {},
      '/v2/identity/identities': {},
      '/v2/identity/accounts': {},
      '/v2/transfer/transfers': {},
      '/v2/transfer/volumes': {},
      '/v2/balances/history': {},
      '/v2/transfer/deposit-addresses': {},
      '/v2/transfer/fiat-deposit-instructions': { query: { limit: 1 } },
      '/v2/transfer/fiat-accounts': {},
      '/v2/approvals': {},
      '/v2/audit-log': {},
      '/v2/webhooks': {},
      '/v2/webhooks/{id}/deliveries': { path: { id: webhook.id } },
      '/v2/webhooks/{id}/deliveries/{delivery_id}/attempts': { path: { id: webhook.id, delivery_id } },
    }
    const counts: Record<string, number> = {}
    for (const [path, params] of Object.entries(lists))
      counts[path] = (await all(client.each(path as '/v2/profiles', { params }))).length
    expect(counts).toMatchObject({
      '/v2/profiles': 1,
      '/v2/profiles/{id}/balances': 1,
      '/v2/transfer/transfers': 1,
      '/v2/transfer/fiat-deposit-instructions': 1,
      '/v2/webhooks': 1,
      '/v2/webhooks/{id}/deliveries': 1,
    })
  })
})

describe('the client and the API', () => {
  test('the problems of the client equal those of the service', () => {
    type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
    const same: Same<ProblemSlug, ServiceSlug> = true
    expect(same).toBe(true)
  })

  test('the meta of each problem equals that of the service', () => {
    type Facts<M> = M extends (...given: infer G) => unknown ? Extract<G[number], object> : never
    type Told = {
      'exceed-precision': Facts<typeof problem.exceedPrecision>
      'below-min-withdraw-limit': Facts<typeof problem.belowMinimum> & { limit: string }
      'exceed-max-withdraw-limit': Facts<typeof problem.aboveMaximum> & { limit: string }
      'unsupported-address': Parameters<typeof problem.unsupportedAddress>[1] & {
        address: string
        reason: string
      }
      'unsupported-network': Facts<typeof problem.unsupportedNetwork>
      'insufficient-funds': Facts<typeof problem.insufficientFunds>
      expired: Facts<typeof problem.expired>
      'not-cancellable': Facts<typeof problem.notCancellable>
      'approval-required': Facts<typeof problem.approvalRequired>
      'approval-ended': Facts<typeof problem.approvalEnded>
    }
    const told = (meta: Told): Pick<ProblemMeta, keyof Told> => meta
    const known = (meta: Pick<ProblemMeta, keyof Told>): Told => meta
    expect([told, known]).toHaveLength(2)
  })

  test('the client adds a ref_id exactly to the operations that take one', async () => {
    const known = readFileSync(new URL('./src/ref-ids.ts', import.meta.url), 'utf8')
    const posts = OPERATIONS.filter(({ method }) => method === 'POST')
    expect(posts.length).toBeGreaterThan(10)
    for (const { url, body } of posts) {
      const kind = new RegExp(
        `'${url.replace(/:(\w+)/g, '\\{$1\\}').replaceAll('/', '\\/')}': '(\\w+)'`,
      ).exec(known)
      const properties = (body?.properties ?? {}) as Record<string, { properties?: object }>
      // A sandbox deposit takes one, too. The client adds none, because magic amounts refuse it.
      const takes =
        !url.startsWith('/v2/sandbox') &&
        ('ref_id' in properties || 'ref_id' in (properties.account?.properties ?? {}))
      expect([url, kind?.[1] === 'REF_ID']).toEqual([url, takes])
    }
  })

  test('the client runs without Node: it imports only openapi-fetch and its own files', () => {
    const folder = new URL('./dist/', import.meta.url)
    const files = readdirSync(folder).filter((name) => name.endsWith('.js'))
    expect(files).toContain('index.js')
    for (const name of files) {
      const imported = [
        ...readFileSync(new URL(name, folder), 'utf8').matchAll(/(?:from|import\() ?'([^']+)'/g),
      ]
      for (const [, specifier] of imported) expect(specifier).toMatch(/^(\.\/[\w-]+\.js|openapi-fetch)$/)
    }
  })
})

test.each([
  ['localhost:8080', 'must begin with https://'],
  ['', 'must begin with https://'],
  ['ftp://127.0.0.1', 'must begin with https://'],
  ['http://127.0.0.1:8080/v2', 'without /v2'],
  ['http://127.0.0.1:8080/v2/', 'without /v2'],
  ['http://127.0.0.1:8080/?x=1', 'without /v2'],
])('the base URL %j is refused at once', (baseUrl, why) => {
  expect(() => createClient({ baseUrl, clientId: 'x', clientSecret: 'x' })).toThrow(why)
})

test('an Idempotency-Key is the ref_id, also of a request whose answer is lost', async () => {
  const header = { 'Idempotency-Key': `key-${crypto.randomUUID()}` }
  proxy.lose('ANSWER', `POST ${WITHDRAWALS}`, 1)
  const transfer = await client.post(WITHDRAWALS, { body: body(), params: { header } })
  expect(transfer.ref_id).toBe(header['Idempotency-Key'])
  expect((await problemOf(client.post(WITHDRAWALS, { body: body(), headers: header }))).slug).toBe(
    'already-exists',
  )
})
