/* What a page of another origin may read and send (Fetch standard, CORS), and in which encoding clients read. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, get, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, describe, expect, test } from 'vitest'
import type { createClient as createClientOf } from '../client/src/index.ts'
import { PARTS } from '../src/http/lists.ts'
import { OPERATIONS } from '../src/program/app.ts'
import { HAS_CHROMIUM, launchBrowser } from './browser.ts'
import { fund, newCustomer, ownTestService } from './support.ts'

const ORIGIN = 'https://app.example'
/** A server of pages, and its origin. */
const pages = createServer((request, response) => {
  const isScript = request.url === '/client.js'
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html').end(isScript ? script : PAGE)
})
const PAGE = `<!doctype html><script type="module">
  import { createClient } from '/client.js'
  globalThis.createClient = createClient
</script>`
let script = ''
let own = ''
await new Promise<void>((listening) => pages.listen(0, '127.0.0.1', listening))
own = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
const service = await ownTestService({ BURSAR_CORS_ORIGINS: `${ORIGIN},${own}` })
const address = await service.app.listen({ port: 0, host: '127.0.0.1' })
const customer = await newCustomer(service)
afterAll(() => pages.close())

const ask = async (method: string, url: string, headers: Record<string, string>) =>
  service.app.inject({ method: method as 'GET', url, headers })
const preflight = (url: string, method: string, origin: string) =>
  ask('OPTIONS', url, {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization',
  })
const grantOf = async (answer: ReturnType<typeof ask>) =>
  (await answer).headers['access-control-allow-origin']

describe('a page of another origin', () => {
  test.each(OPERATIONS.map((one) => [`${one.method} ${one.url}`, one] as const))(
    'is answered by %s where its origin is allowed, or the operation is public; never with cookies',
    async (_, { method, url, scope }) => {
      for (const origin of [ORIGIN, 'https://evil.example', 'null', `${ORIGIN}.evil.example`]) {
        const granted = scope === null ? '*' : origin === ORIGIN ? ORIGIN : undefined
        const answer = await preflight(url, method, origin)
        expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([
          granted === undefined ? 405 : 204,
          granted,
        ])
        if (granted !== undefined) {
          expect(answer.headers['access-control-allow-methods']).toContain(method)
          expect(answer.headers['access-control-allow-headers']).toMatch(
            /Authorization, Content-Type, Idempotency-Key/,
          )
        }
        expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
      }
    },
  )

  test('reads refusals too, and no page of the console', async () => {
    expect(await grantOf(ask('GET', '/v2/profiles', { origin: ORIGIN }))).toBe(ORIGIN)
    expect(await grantOf(ask('POST', '/oauth2/token', { origin: ORIGIN }))).toBe(ORIGIN)
    expect(await grantOf(ask('POST', '/oauth2/token', { origin: 'https://evil.example' }))).toBeUndefined()
    expect(await grantOf(ask('GET', '/v2/markets', { origin: 'https://evil.example' }))).toBe('*')
    expect(await grantOf(ask('GET', '/console/', { origin: ORIGIN }))).toBeUndefined()
    expect(await grantOf(ask('GET', '/v2/markets', {}))).toBeUndefined()
  })

  test.runIf(HAS_CHROMIUM)(
    'uses the client in a browser; that of an origin that is not allowed cannot',
    async () => {
      const { outputFiles } = await build({
        entryPoints: [fileURLToPath(new URL('../client/src/index.ts', import.meta.url))],
        ...{ bundle: true, write: false, format: 'esm', platform: 'browser', logLevel: 'warning' },
      })
      script = outputFiles[0]!.text
      const folder = await mkdtemp(join(tmpdir(), 'bursar-origins-'))
      const context = await launchBrowser(folder)
      try {
        const page = await context.newPage()
        const read = async (origin: string) => {
          await page.goto(origin)
          return page.evaluate(
            async ({ nickname, ...options }) => {
              const { createClient } = globalThis as unknown as { createClient: typeof createClientOf }
              const client = createClient({ ...options, retries: { attempts: 1 } })
              const name = (error: Error) => error.name
              return [
                (await fetch(`${options.baseUrl}/v2/markets`)).status,
                await client.get('/v2/profiles').then(({ items }) => items.length, name),
                await client
                  .post('/v2/profiles', { body: { nickname } })
                  .then((made) => made.nickname === nickname, name),
              ]
            },
            {
              ...{ baseUrl: address, clientId: customer.client_id, clientSecret: customer.client_secret },
              nickname: `from ${origin}`,
            },
          )
        }
        expect(await read(own)).toEqual([200, 1, true])
        // The same server by another name is another origin: it reads what is public.
        expect(await read(own.replace('127.0.0.1', 'localhost'))).toEqual([
          200,
          'BursarUnreachable',
          'BursarUnreachable',
        ])
      } finally {
        await context.close()
        await rm(folder, { recursive: true })
      }
    },
  )
})

describe('an answer', () => {
  /** Asks over the network, without a client that decodes. */
  const read = (path: string, headers: Record<string, string>) =>
    new Promise<{ headers: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
      const authorization = `Bearer ${customer.token}`
      get(`${address}${path}`, { headers: { authorization, ...headers } }, (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(parts) }))
      }).on('error', reject)
    })
  const DECODE = { br: brotliDecompressSync, gzip: gunzipSync }

  test('from 1 KiB on is compressed as it is asked for, in one part or in many', async () => {
    await fund(customer, '100')
    for (let made = 0; made < 8; made++)
      await customer.call('POST', '/v2/profiles', {
        nickname: `compressed ${made}`,
        description: 'd'.repeat(200),
      })
    const before = PARTS.bytesMax
    for (const bytesMax of [before, 500])
      try {
        PARTS.bytesMax = bytesMax
        const plain = await read('/v2/profiles', {})
        expect(plain.headers['content-encoding']).toBeUndefined()
        for (const [asked, encoding] of [
          ['gzip', 'gzip'],
          ['gzip, deflate, br', 'br'],
          ['br;q=0, gzip;q=0.5', 'gzip'],
        ] as const) {
          const answer = await read('/v2/profiles', { 'accept-encoding': asked })
          expect(answer.headers).toMatchObject({ 'content-encoding': encoding, vary: 'accept-encoding' })
          expect(DECODE[encoding](answer.body)).toEqual(plain.body)
          expect(answer.body.length).toBeLessThan(plain.body.length / 2)
        }
        for (const asked of ['identity', 'deflate', 'gzip;q=0', 'zip'])
          expect((await read('/v2/profiles', { 'accept-encoding': asked })).body).toEqual(plain.body)
      } finally {
        PARTS.bytesMax = before
      }
  })

  test('is not compressed where its length could tell a secret: after a cookie, and of changes', async () => {
    const asked = { 'accept-encoding': 'gzip', cookie: 'any=1' }
    expect((await read('/v2/profiles', asked)).headers['content-encoding']).toBeUndefined()
    const { headers } = await service.app.inject({
      method: 'POST',
      url: '/v2/webhooks',
      headers: { authorization: `Bearer ${customer.token}`, 'accept-encoding': 'gzip, br' },
      payload: { name: 'n'.repeat(100), url: `https://example.com/${'x'.repeat(1_500)}`, event_types: ['*'] },
    })
    expect(headers['content-encoding']).toBeUndefined()
    expect(Number(headers['content-length'])).toBeGreaterThan(1024)
  })
})
