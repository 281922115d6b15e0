import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ReadEvent } from '../money/records/event.ts'
import { startReceiver, type Answering } from '../../test/receivers.ts'
import { freePort } from '../../test/free-port.ts'
import { DeliveryTokens } from './access-tokens.ts'
import { attemptDelivery } from './attempt.ts'
import type { Endpoint } from './claim.ts'
import type { Resolve } from './resolve.ts'
import { Sender } from './send.ts'
import { targetRules } from './targets.ts'

const SANDBOX = targetRules({ mode: 'sandbox' })
const SECRET = 'whsec_YnVyc2FyLXdlYmhvb2stdGVzdC1zZWNyZXQtMzJieXQ='
const EVENT: ReadEvent = {
  event: {
    id: '0199a3f4-5b6c-7d8e-9f01-23456789abcd',
    type: 'fiat_account.approved',
    object_type: 'fiat_account_status_change',
    object: { id: '0199a3f4-5b6c-7d8e-9f01-23456789abce', status: 'APPROVED' },
    created_at: '2026-01-01T00:00:00.000000Z',
    undelivered_webhooks: 0,
  },
  object_id: '0199a3f4-5b6c-7d8e-9f01-23456789abce',
  is_test: false,
}

function openSender(rules = SANDBOX, resolve?: Resolve) {
  const sender = new Sender(rules, resolve)
  onTestFinished(() => sender.close())
  return { sender, tokens: new DeliveryTokens(sender), source: 'bursar' }
}

const endpointAt = (url: string, auth: Endpoint['auth'] = { type: 'NONE' }): Endpoint => ({
  customer_id: crypto.randomUUID(),
  id: crypto.randomUUID(),
  url,
  payload: 'THIN',
  auth,
  encrypted_secrets: '',
  rotates: false,
})

const never = new AbortController().signal

/** Makes one attempt in sandbox mode, or by other rules. */
const attempt = (endpoint: Endpoint, authSecret?: string, means = openSender()) =>
  attemptDelivery(
    means,
    endpoint,
    { signing: SECRET, ...(authSecret !== undefined && { auth: authSecret }) },
    EVENT,
    { stopping: never },
  )

/** A server on an address that counts its connections and closes each one. */
async function countConnections(host: string, port = 0) {
  let connections = 0
  const server = createTcpServer((socket) => {
    connections++
    socket.on('error', () => undefined).destroy()
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  onTestFinished(async () => void server.close())
  return { port: (server.address() as AddressInfo).port, count: () => connections }
}

/** A DNS that gives these answers in turn. */
function answers(...turns: string[][]): { resolve: Resolve; asked: () => number } {
  let asked = 0
  return {
    asked: () => asked,
    resolve: (_, done) => {
      const addresses = turns[Math.min(asked++, turns.length - 1)]!
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    },
  }
}

describe('in live mode', () => {
  const LIVE = targetRules({ mode: 'live' })

  test.each([
    'https://127.0.0.1:PORT/',
    'https://2130706433:PORT/',
    'https://0x7f.1:PORT/',
    'https://[::ffff:127.0.0.1]:PORT/',
    'https://localhost:PORT/',
    'http://example.com:PORT/',
  ])('nothing connects to %s', async (url) => {
    const server = await countConnections('127.0.0.1')
    const outcome = await attempt(
      endpointAt(url.replace('PORT', String(server.port))),
      undefined,
      openSender(LIVE),
    )
    expect(outcome).toMatchObject({
      succeeded: false,
      error: expect.stringMatching(/^the target is not allowed: /) as string,
    })
    expect(server.count()).toBe(0)
  })

  test.each([
    [['127.0.0.1']],
    [['::1']],
    [['::ffff:127.0.0.1']],
    [['10.0.0.1']],
    [['169.254.169.254']],
    [['64:ff9b::7f00:1']],
    [['8.8.8.8', '127.0.0.1']],
  ])('a name that resolves to %j is refused', async (addresses) => {
    const server = await countConnections('127.0.0.1')
    const { resolve, asked } = answers(addresses)
    const means = openSender(LIVE, resolve)
    const outcome = await attempt(endpointAt(`https://hooks.example.com:${server.port}/`), undefined, means)
    expect(outcome).toMatchObject({ error: 'the target is not allowed: the name has a private address' })
    expect(asked()).toBe(1)
    expect(server.count()).toBe(0)
  })

  test('a DNS that changes its answer reaches no other address than the one that was checked', async () => {
    const allowed = await countConnections('127.0.0.2')
    const forbidden = await countConnections('127.0.0.1', allowed.port)
    const rules = targetRules({ mode: 'live', webhookAllowedNetworks: '127.0.0.2' })
    const { resolve, asked } = answers(['127.0.0.2'], ['127.0.0.1'])
    const means = openSender(rules, resolve)
    const endpoint = endpointAt(`https://rebinding.example.com:${allowed.port}/`)
    expect(await attempt(endpoint, undefined, means)).toMatchObject({
      error: 'the connection was closed before the answer',
    })
    expect([asked(), allowed.count(), forbidden.count()]).toEqual([1, 1, 0])
    expect(await attempt(endpoint, undefined, means)).toMatchObject({
      error: 'the target is not allowed: the name has a private address',
    })
    expect([asked(), allowed.count(), forbidden.count()]).toEqual([2, 1, 0])
  })

  test('a private token endpoint is refused', async () => {
    const server = await countConnections('127.0.0.1')
    const auth = {
      type: 'OAUTH2_CLIENT_CREDENTIALS' as const,
      token_url: `https://127.0.0.1:${server.port}/token`,
      client_id: 'bursar',
    }
    const outcome = await attempt(endpointAt('https://example.com/', auth), 'secret', openSender(LIVE))
    expect(outcome).toMatchObject({
      error: expect.stringMatching(/^token endpoint: the target is not allowed: /) as string,
    })
    expect(server.count()).toBe(0)
  })
})

test('a proxy of the environment is not used', async () => {
  const proxy = await countConnections('127.0.0.1')
  const receiver = await startReceiver()
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'ALL_PROXY']
  const before = names.map((name) => [name, process.env[name]] as const)
  onTestFinished(async () => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
  })
  for (const name of names) process.env[name] = `http://127.0.0.1:${proxy.port}`
  expect(await attempt(endpointAt(receiver.url))).toMatchObject({ succeeded: true, status_code: 204 })
  expect(proxy.count()).toBe(0)
})

describe('answers', () => {
  const answered = async (answer: Answering, auth?: Endpoint['auth'], secret?: string) =>
    attempt(endpointAt((await startReceiver(answer)).url, auth), secret)

  test.each([
    [200, true],
    [204, true],
    [299, true],
    [301, false],
    [400, false],
    [404, false],
    [500, false],
  ])('with %i: succeeded is %j', async (status, succeeded) => {
    expect(await answered((_, response) => response.writeHead(status).end())).toMatchObject({
      succeeded,
      status_code: status,
    })
  })

  test('are kept up to 1 KiB, and read up to 4 KiB, of printable text', async () => {
    const outcome = await answered((_, response) => {
      response.writeHead(500)
      response.write(`\u0000\u001b[31mred\ntext \u202e${'é'.repeat(1_000)}`)
      // An answer without an end.
      const more = setInterval(() => response.write('x'.repeat(10_000)), 1)
      response.on('close', () => clearInterval(more))
    })
    expect(outcome!.response).toMatch(/^\[31mred\ntext é+$/)
    expect(Buffer.byteLength(outcome!.response!)).toBeLessThanOrEqual(1_024)
    expect(outcome!.duration_ms).toBeLessThan(5_000)
  })

  test('that are compressed are not inflated', async () => {
    const bomb = gzipSync('0'.repeat(1_000_000))
    const outcome = await answered((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    )
    expect(outcome).toMatchObject({ succeeded: true, response: `(${bomb.length} bytes, compressed)` })
  })

  test('that echo the API key do not put it into the log', async () => {
    const key = 'k"ey-of-the-warehouse\\'
    const auth = { type: 'API_KEY' as const, header: 'X-Api-Key' }
    let sent: string | undefined
    const outcome = await answered(
      ({ headers }, response) => {
        sent = headers['x-api-key']
        response
          .writeHead(400)
          .end(`${key} ${JSON.stringify(headers)}${'.'.repeat(4_090 - key.length)}${key}`)
      },
      auth,
      key,
    )
    expect(sent).toBe(key)
    expect(outcome!.response).toMatch(/^\*\*\* .*"x-api-key":"\*\*\*"/)
    expect(outcome!.response).not.toContain('warehouse')
  })

  test('that do not come are explained without an address', async () => {
    const refused = await attempt(endpointAt(`http://127.0.0.1:${await freePort()}/`))
    expect(refused).toMatchObject({ error: 'the connection was refused' })
    const reset = await countConnections('127.0.0.1')
    expect(await attempt(endpointAt(`http://127.0.0.1:${reset.port}/`))).toMatchObject({
      error: 'the connection was closed before the answer',
    })
    const unknown: Resolve = (_, done) => done(Object.assign(new Error(), { code: 'ENOTFOUND' }), [])
    expect(
      await attempt(endpointAt('http://unknown.example/'), undefined, openSender(SANDBOX, unknown)),
    ).toMatchObject({ error: 'the name cannot be resolved' })
  })
})

describe('OAuth 2 client credentials', () => {
  const CLIENT = { type: 'OAUTH2_CLIENT_CREDENTIALS' as const, client_id: 'bur:sar', scope: 'hooks:write' }

  test('one token serves many attempts; a 401 renews it at the next', async () => {
    let tokens = 0
    const issuer = await startReceiver((_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ access_token: `token-${++tokens}`, token_type: 'Bearer', expires_in: 3600 })),
    )
    let status = 200
    const receiver = await startReceiver(({ headers }, response) =>
      response.writeHead(status).end(`you sent ${headers.authorization}`),
    )
    const endpoint = endpointAt(receiver.url, { ...CLIENT, token_url: issuer.url })
    const means = openSender()
    const sent = () => receiver.received.map(({ headers }) => headers.authorization)
    await Promise.all([1, 2, 3].map(() => attempt(endpoint, 's ecret', means)))
    expect(sent()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-1'])
    expect(issuer.received).toHaveLength(1)
    expect(issuer.received[0]).toMatchObject({
      body: 'grant_type=client_credentials&scope=hooks%3Awrite',
      headers: { authorization: `Basic ${Buffer.from('bur%3Asar:s%20ecret').toString('base64')}` },
    })
    status = 401
    const refused = await attempt(endpoint, 's ecret', means)
    expect(refused).toMatchObject({ status_code: 401, response: 'you sent Bearer ***' })
    status = 200
    expect(await attempt(endpoint, 's ecret', means)).toMatchObject({ succeeded: true })
    expect(sent().slice(3)).toEqual(['Bearer token-1', 'Bearer token-2'])
  })

  test.each([
    ['refuses', 400, '{"error":"invalid_client"}', 'token endpoint: it answered 400'],
    ['redirects', 302, '', 'token endpoint: it answered 302'],
    ['answers no JSON', 200, '<html>', 'token endpoint: its answer is not JSON'],
    ['answers no token', 200, '{}', 'token endpoint: its answer has no access_token'],
    [
      'breaks the header',
      200,
      '{"access_token":"a\\r\\nb: c"}',
      'token endpoint: its answer has no access_token',
    ],
  ])(
    'a token endpoint that %s fails the attempt, and the next one asks again',
    async (_, status, body, error) => {
      const issuer = await startReceiver((__, response) => response.writeHead(status).end(body))
      const receiver = await startReceiver()
      const endpoint = endpointAt(receiver.url, { ...CLIENT, token_url: issuer.url })
      const means = openSender()
      for (let attempts = 1; attempts <= 2; attempts++) {
        expect(await attempt(endpoint, 'secret', means)).toMatchObject({ succeeded: false, error })
        expect(issuer.received).toHaveLength(attempts)
      }
      expect(receiver.received).toEqual([])
    },
  )
})
