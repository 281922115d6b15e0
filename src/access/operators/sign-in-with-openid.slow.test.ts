/*
 * OpenID (docs/reference/operators.md), with a real provider, and with a lying one: only the subject that the command line
 * bound to an operator signs in, only in the browser that began, and only once.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOpenIdProvider } from '../../../test/openid-provider.ts'
import { freePort } from '../../../test/free-port.ts'
import {
  ROW_MACS,
  TEST_ORIGIN,
  BASE_URL,
  newCustomer,
  startTestService,
  testSettings,
  type TestService,
  ownTestService,
} from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { createOperator, disableOperator } from './operators.ts'
import { openIdProvider } from './sign-in-with-openid.ts'

const REDIRECT = `${BASE_URL}/sign-in/openid`

interface Started {
  authorization_url: string
  attempt: string
}

const poster =
  (service: TestService) =>
  async <T = Record<string, unknown>>(path: string, body: object) => {
    const reply = await service.app.inject({ method: 'POST', url: `/v2/operators${path}`, payload: body })
    return { status: reply.statusCode, body: reply.json<T>() }
  }

const operatorAt = async (service: TestService, issuer: string, subject: string) => {
  const { customer_id: customerId } = await newCustomer(service)
  return createOperator(service.db, ROW_MACS, {
    name: 'Ada',
    role: 'VIEWER',
    customerId,
    openId: { issuer, subject },
  })
}

const sessionsIn = async ({ db }: TestService) => (await db.query('select 1 from operator_sessions')).rowCount

describe('a real provider', () => {
  let provider: Awaited<ReturnType<typeof startOpenIdProvider>>
  let issuer: string
  let service: TestService
  let post: ReturnType<typeof poster>

  beforeAll(async () => {
    provider = await startOpenIdProvider(REDIRECT)
    issuer = provider.issuer
    service = await startTestService({ BURSAR_OPENID_ISSUER: issuer, BURSAR_OPENID_CLIENT_ID: 'bursar' })
    post = poster(service)
  })
  afterAll(async () => {
    await service.close()
    provider.close()
  })

  const start = async () => (await post<Started>('/sign-in/openid/start', {})).body

  /** Signs in at the provider as a browser does, and returns the query with which it sends the browser back. */
  async function answerOf(authorizationUrl: string, subject: string): Promise<string> {
    const cookies = new Map<string, string>()
    const go = async (url: string, form?: Record<string, string>): Promise<string> => {
      if (url.startsWith(REDIRECT)) return new URL(url).search.slice(1)
      const reply = await fetch(new URL(url, issuer), {
        redirect: 'manual',
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      })
      for (const line of reply.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
        cookies.set(name!, value!)
      }
      const location = reply.headers.get('location')
      if (location !== null) return go(location)
      const page = await reply.text()
      const action = /action="([^"]+)"/.exec(page)?.[1]
      const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1]
      if (action === undefined || prompt === undefined) throw new Error(page)
      return go(action, { prompt, ...(prompt === 'login' && { login: subject, password: 'any' }) })
    }
    return go(authorizationUrl)
  }

  test('signs the bound operator in, once', async () => {
    const operator = await operatorAt(service, issuer, 'ada')
    const { authorization_url, attempt } = await start()
    const asked = Object.fromEntries(new URL(authorization_url).searchParams)
    expect(asked).toMatchObject({ code_challenge_method: 'S256', scope: 'openid', redirect_uri: REDIRECT })
    expect(authorization_url).not.toContain(attempt)
    const query = await answerOf(authorization_url, 'ada')
    const { status, body } = await post('/sign-in/openid', { attempt, query })
    expect(status).toBe(200)
    expect(body).toMatchObject({ operator: { id: operator.id }, session: { method: 'OPENID' } })
    expect((await post('/sign-in/openid', { attempt, query })).status).toBe(401)

    await transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN))
    const again = await start()
    const disabled = { attempt: again.attempt, query: await answerOf(again.authorization_url, 'ada') }
    expect((await post('/sign-in/openid', disabled)).status).toBe(401)
  })

  test('signs nobody in whom the command line did not bind, or bound at another provider', async () => {
    await operatorAt(service, 'https://another.example', 'eve')
    const before = await sessionsIn(service)
    for (const subject of ['eve', 'mallory']) {
      const { authorization_url, attempt } = await start()
      const query = await answerOf(authorization_url, subject)
      expect((await post('/sign-in/openid', { attempt, query })).status).toBe(401)
    }
    expect(await sessionsIn(service)).toBe(before)
  })

  test("an answer is worth nothing in another browser, without its state, or with another's state", async () => {
    await operatorAt(service, issuer, 'grace')
    const [mine, theirs] = [await start(), await start()]
    const query = await answerOf(mine.authorization_url, 'grace')
    const without = new URLSearchParams(query)
    without.delete('state')
    const swapped = new URLSearchParams(query)
    swapped.set('state', new URL(theirs.authorization_url).searchParams.get('state')!)
    const { attempt } = mine
    for (const answer of [
      { attempt: theirs.attempt, query },
      { attempt, query: without.toString() },
      { attempt, query: swapped.toString() },
      { attempt: theirs.attempt, query: swapped.toString() },
      { attempt: `${attempt.slice(0, -1)}${attempt.endsWith('A') ? 'B' : 'A'}`, query },
      { attempt, query: 'error=access_denied' },
    ])
      expect((await post('/sign-in/openid', answer)).status).toBe(401)
  })
})

describe('a lying provider', () => {
  let server: Server
  let issuer: string
  let service: TestService
  let post: ReturnType<typeof poster>
  let key: CryptoKey
  let kid: string
  let idToken: () => Promise<string>

  const bodyOf = async (request: IncomingMessage) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    return new URLSearchParams(text)
  }
  let verifier: string | null

  beforeAll(async () => {
    const pair = await generateKeyPair('RS256', { extractable: true })
    key = pair.privateKey
    kid = 'of the provider'
    const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' }] }
    server = createServer((request, reply) => {
      const answer = (body: object) =>
        reply.setHeader('content-type', 'application/json').end(JSON.stringify(body))
      if (request.url === '/jwks') return void answer(jwks)
      if (request.url !== '/token')
        return void answer({
          issuer,
          authorization_endpoint: `${issuer}/auth`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ['code'],
          id_token_signing_alg_values_supported: ['RS256'],
        })
      void bodyOf(request).then(async (form) => {
        verifier = form.get('code_verifier')
        answer({ access_token: 'x', token_type: 'bearer', id_token: await idToken() })
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    service = await startTestService({ BURSAR_OPENID_ISSUER: issuer, BURSAR_OPENID_CLIENT_ID: 'bursar' })
    post = poster(service)
    await operatorAt(service, issuer, 'ada')
  })
  afterAll(async () => {
    await service.close()
    server.closeAllConnections()
    server.close()
  })

  async function signIn(changes: JWTPayload, header: object = {}, signer = key) {
    const { authorization_url, attempt } = (await post<Started>('/sign-in/openid/start', {})).body
    const { nonce, state, code_challenge } = Object.fromEntries(new URL(authorization_url).searchParams)
    const now = Math.floor(Date.now() / 1000)
    idToken = () =>
      new SignJWT({ iss: issuer, aud: 'bursar', sub: 'ada', nonce, iat: now, exp: now + 60, ...changes })
        .setProtectedHeader({ alg: 'RS256', kid, ...header })
        .sign(signer)
    const answer = await post('/sign-in/openid', { attempt, query: `code=x&state=${state}` })
    return { ...answer, code_challenge }
  }

  test('an honest answer is accepted, and PKCE ties it to the attempt', async () => {
    const { status, code_challenge } = await signIn({})
    expect(status).toBe(200)
    expect(createHash('sha256').update(verifier!).digest('base64url')).toBe(code_challenge)
  })

  test.each<[string, JWTPayload]>([
    ['another nonce', { nonce: 'of another sign-in' }],
    ['no nonce', { nonce: undefined }],
    ['another subject', { sub: 'mallory' }],
    ['another issuer', { iss: 'https://another.example' }],
    ['another client', { aud: 'another' }],
    ['an end in the past', { exp: 1 }],
  ])('an ID token with %s is refused', async (_, changes) => {
    expect((await signIn(changes)).status).toBe(401)
  })

  test('an ID token with the signature of another key is refused', async () => {
    const another = (await generateKeyPair('RS256')).privateKey
    expect((await signIn({}, {}, another)).status).toBe(401)
  })
})

describe('settings', () => {
  const PROVIDER = { BURSAR_OPENID_ISSUER: 'https://login.example', BURSAR_OPENID_CLIENT_ID: 'bursar' }

  test.each<[string, Record<string, string>, string]>([
    ['a client without a provider', { BURSAR_OPENID_CLIENT_ID: 'bursar' }, 'BURSAR_OPENID_ISSUER: needed'],
    [
      'a provider without a client',
      { BURSAR_OPENID_ISSUER: 'https://login.example' },
      'BURSAR_OPENID_CLIENT_ID: needed',
    ],
    [
      'a secret file that does not exist',
      { ...PROVIDER, BURSAR_OPENID_CLIENT_SECRET_FILE: '/nowhere/secret' },
      'BURSAR_OPENID_CLIENT_SECRET_FILE: ENOENT',
    ],
    [
      'a provider without TLS in live mode',
      { ...PROVIDER, BURSAR_OPENID_ISSUER: 'http://login.example', BURSAR_MODE: 'live' },
      'BURSAR_OPENID_ISSUER: live mode needs',
    ],
  ])('%s is refused', (_, environment, message) => {
    expect(() => openIdProvider(testSettings(environment), BASE_URL)).toThrow(message)
  })

  test('a provider that does not answer is a 503; without one there is no such path', async () => {
    const down = `http://127.0.0.1:${await freePort()}`
    const service = await ownTestService({ ...PROVIDER, BURSAR_OPENID_ISSUER: down })
    for (let time = 0; time < 2; time++)
      expect((await poster(service)('/sign-in/openid/start', {})).status).toBe(503)
    const none = await ownTestService()
    expect((await poster(none)('/sign-in/openid/start', {})).status).toBe(404)
  })
})
