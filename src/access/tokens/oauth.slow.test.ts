import { createHash } from 'node:crypto'
import {
  createRemoteJWKSet,
  decodeJwt,
  generateKeyPair,
  jwtVerify,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
} from 'jose'
import * as openid from 'openid-client'
import { pino } from 'pino'
import { ClientCredentials } from 'simple-oauth2'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../test/free-port.ts'
import {
  ROW_MACS,
  everyTable,
  MASTER_KEYS,
  signerOf,
  startTestService,
  TEST_ORIGIN,
  ownDatabase,
} from '../../../test/support.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { SCOPES, type ClientScope } from '../../contract/scopes.ts'
import { createApiClient, disableApiClient } from './api-clients.ts'
import { buildApp } from '../../program/build-app.ts'
import { atEnd } from '../../../test/at-end.ts'

// OAuth over real HTTP, with two independent client libraries and with hostile requests.

const CLIENT_SCOPES: ClientScope[] = [
  'funding:read_profile',
  'funding:write_profile',
  'transfer:read_transfer',
]
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface Client {
  client_id: string
  client_secret: string
}

/** All lines that the service logged, at the most verbose level. */
const logged: string[] = []
const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) })
const { service, baseUrl } = await listen()
const customer = await createCustomer(service.db, 'Test')
const client = await createApiClient(service.db, ROW_MACS, customer.customer_id, CLIENT_SCOPES)
afterAll(() => service.close())

/** Starts a service that listens at its base URL. */
async function listen(environment: Record<string, string> = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const started = await startTestService(environment, { baseUrl: url, log })
  await started.app.listen({ host: '127.0.0.1', port })
  return { service: started, baseUrl: url }
}

const listProfiles = (token: string) =>
  fetch(`${baseUrl}/v2/profiles`, { headers: { authorization: `Bearer ${token}` } })

/** The token lets its bearer list the customer's profiles. */
async function expectToWork(token: string): Promise<void> {
  const reply = await listProfiles(token)
  expect(reply.status).toBe(200)
  expect(await reply.json()).toMatchObject({ items: [{ id: customer.profile_id }] })
}

describe('openid-client', () => {
  const discover = (authentication: openid.ClientAuth) =>
    openid.discovery(new URL(baseUrl), client.client_id, undefined, authentication, {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    })

  describe.each([
    ['client_secret_basic', openid.ClientSecretBasic],
    ['client_secret_post', openid.ClientSecretPost],
  ])('with %s', (_name, authentication) => {
    test('gets a token with all scopes of the client', async () => {
      const configuration = await discover(authentication(client.client_secret))
      const token = await openid.clientCredentialsGrant(configuration)
      expect(token).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: CLIENT_SCOPES.join(' ') })
      await expectToWork(token.access_token)
    })

    test('gets a token with the requested scopes', async () => {
      const configuration = await discover(authentication(client.client_secret))
      const token = await openid.clientCredentialsGrant(configuration, {
        scope: 'transfer:read_transfer funding:read_profile',
      })
      expect(token.scope).toBe('transfer:read_transfer funding:read_profile')
      await expectToWork(token.access_token)
    })

    test('gets the reason for a refusal', async () => {
      const wrong = openid.clientCredentialsGrant(await discover(authentication('wrong')))
      // With credentials in the header, the 401 is also an HTTP challenge, which this client reports as such.
      await expect(wrong).rejects.toMatchObject(
        authentication === openid.ClientSecretBasic
          ? { status: 401, cause: [{ scheme: 'basic', parameters: { realm: 'bursar' } }] }
          : { status: 401 },
      )
      const greedy = openid.clientCredentialsGrant(await discover(authentication(client.client_secret)), {
        scope: 'funding:all',
      })
      await expect(greedy).rejects.toMatchObject({
        status: 400,
        error: 'invalid_scope',
        error_description: expect.stringContaining('does not have funding:all;') as unknown,
      })
    })
  })

  test('finds all endpoints in the metadata', async () => {
    const metadata = (await discover(openid.ClientSecretBasic(client.client_secret))).serverMetadata()
    expect(metadata).toMatchObject({
      issuer: baseUrl,
      token_endpoint: `${baseUrl}/oauth2/token`,
      jwks_uri: `${baseUrl}/oauth2/jwks`,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      scopes_supported: SCOPES,
    })
  })
})

describe('simple-oauth2', () => {
  test.each(['header', 'body'] as const)('gets tokens with its credentials in the %s', async (place) => {
    const grant = new ClientCredentials({
      client: { id: client.client_id, secret: client.client_secret },
      auth: { tokenHost: baseUrl, tokenPath: '/oauth2/token' },
      options: { authorizationMethod: place },
    })
    const all = await grant.getToken({})
    expect(all.token.scope).toBe(CLIENT_SCOPES.join(' '))
    expect(all.expired()).toBe(false)
    await expectToWork(all.token.access_token as string)

    const some = await grant.getToken({ scope: ['funding:read_profile'] })
    expect(some.token.scope).toBe('funding:read_profile')
    await expectToWork(some.token.access_token as string)

    await expect(grant.getToken({ scope: 'funding:read_profile nothing' })).rejects.toMatchObject({
      output: { statusCode: 400 },
      data: { payload: { error: 'invalid_scope' } },
    })
  })
})

const basic = ({ client_id, client_secret }: Client) => ({
  authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
})

type Pairs = [string, string][]
const GRANT: Pairs = [['grant_type', 'client_credentials']]

interface TokenRequest {
  method?: string
  headers?: Record<string, string>
  body?: string | URLSearchParams | FormData
}

const askForToken = ({ method = 'POST', headers = {}, body }: TokenRequest) =>
  fetch(`${baseUrl}/oauth2/token`, { method, headers, ...(body !== undefined && { body }) })

/** A form as URL-encoded text, authenticated in the header. */
const form = (pairs: Pairs, headers: Record<string, string> = basic(client)): TokenRequest => ({
  headers,
  body: new URLSearchParams(pairs),
})

function multipart(pairs: Pairs, headers: Record<string, string> = basic(client)): TokenRequest {
  const body = new FormData()
  for (const [name, value] of pairs) body.append(name, value)
  return { headers, body }
}

const credentials = ({ client_id, client_secret }: Client): Pairs => [
  ['client_id', client_id],
  ['client_secret', client_secret],
]

interface Granted {
  access_token: string
  token_type: string
  expires_in: number
  scope: string
}

/** Fetches a token, in the shortest way. */
async function tokenOf(pairs: Pairs = [], by: Client = client): Promise<string> {
  const reply = await askForToken(form([...GRANT, ...pairs], basic(by)))
  expect(reply.status).toBe(200)
  return ((await reply.json()) as Granted).access_token
}

describe('the token endpoint grants', () => {
  test.each<[string, () => TokenRequest, string[]]>([
    ['credentials in the header', () => form(GRANT), CLIENT_SCOPES],
    ['credentials in the form', () => form([...GRANT, ...credentials(client)], {}), CLIENT_SCOPES],
    [
      'credentials that are form-encoded in the header (RFC 6749, 2.3.1)',
      () => form(GRANT, basic({ ...client, client_id: client.client_id.replaceAll('-', '%2D') })),
      CLIENT_SCOPES,
    ],
    ['multipart, credentials in the header', () => multipart(GRANT), CLIENT_SCOPES],
    [
      'multipart, credentials in the form',
      () => multipart([...GRANT, ...credentials(client), ['scope', 'funding:read_profile']], {}),
      ['funding:read_profile'],
    ],
    [
      'some of the scopes',
      () => form([...GRANT, ['scope', 'funding:read_profile']]),
      ['funding:read_profile'],
    ],
    [
      'a scope once, even when the request names it twice',
      () => form([...GRANT, ['scope', 'funding:read_profile funding:read_profile']]),
      ['funding:read_profile'],
    ],
    [
      'all scopes for an empty scope parameter (RFC 6749, 3.2)',
      () => form([...GRANT, ['scope', '']]),
      CLIENT_SCOPES,
    ],
    [
      'a request with unknown parameters',
      () => form([...GRANT, ['resource', 'x'], ['a', 'b']]),
      CLIENT_SCOPES,
    ],
    [
      'a request with a scheme in any case and a charset',
      () => ({
        headers: {
          authorization: basic(client).authorization.replace('Basic', 'bASIC'),
          'content-type': 'Application/X-WWW-Form-Urlencoded; charset=UTF-8',
        },
        body: 'grant_type=client_credentials',
      }),
      CLIENT_SCOPES,
    ],
  ])('%s', async (_name, request, scopes) => {
    const reply = await askForToken(request())
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.headers.get('pragma')).toBe('no-cache')
    const granted = (await reply.json()) as Granted
    expect(granted).toEqual({
      access_token: expect.any(String) as string,
      token_type: 'Bearer',
      expires_in: 3600,
      scope: scopes.join(' '),
    })
    expect(decodeJwt(granted.access_token).scope).toBe(scopes.join(' '))
    await (scopes.includes('funding:read_profile') && expectToWork(granted.access_token))
  })
})

describe('the token endpoint refuses', () => {
  let disabled: Client
  beforeAll(async () => {
    disabled = await createApiClient(service.db, ROW_MACS, customer.customer_id, CLIENT_SCOPES)
    await disableApiClient(service.db, disabled.client_id, TEST_ORIGIN)
  })

  const stranger = { client_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f', client_secret: 'x' }
  const both = (change: Partial<Client>): Client => ({ ...client, ...change })

  test.each<[string, () => TokenRequest, number, string]>([
    // The client.
    ['a wrong secret', () => form(GRANT, basic(both({ client_secret: 'wrong' }))), 401, 'invalid_client'],
    ['no secret', () => form(GRANT, basic(both({ client_secret: '' }))), 401, 'invalid_client'],
    [
      'a wrong secret in the form',
      () => form([...GRANT, ...credentials(both({ client_secret: 'wrong' }))], {}),
      401,
      'invalid_client',
    ],
    [
      'an id without a secret',
      () => form([...GRANT, ['client_id', client.client_id]], {}),
      401,
      'invalid_client',
    ],
    [
      'a secret without an id',
      () => form([...GRANT, ['client_secret', client.client_secret]], {}),
      401,
      'invalid_client',
    ],
    ['an unknown client', () => form(GRANT, basic(stranger)), 401, 'invalid_client'],
    [
      'an unknown client in the form',
      () => form([...GRANT, ...credentials(stranger)], {}),
      401,
      'invalid_client',
    ],
    [
      'an id that is no UUID',
      () => form(GRANT, basic(both({ client_id: "x' or 1=1" }))),
      401,
      'invalid_client',
    ],
    [
      'an id with a NUL',
      () => form([...GRANT, ...credentials(both({ client_id: `${client.client_id}\0` }))], {}),
      401,
      'invalid_client',
    ],
    ['a disabled client', () => form(GRANT, basic(disabled)), 401, 'invalid_client'],
    [
      'a disabled client in the form',
      () => form([...GRANT, ...credentials(disabled)], {}),
      401,
      'invalid_client',
    ],
    ['no credentials', () => form(GRANT, {}), 401, 'invalid_client'],
    ['another scheme', () => form(GRANT, { authorization: 'Bearer abc' }), 401, 'invalid_client'],
    [
      'credentials that are not base64',
      () => form(GRANT, { authorization: 'Basic %%%' }),
      401,
      'invalid_client',
    ],
    [
      'credentials without a colon',
      () => form(GRANT, { authorization: `Basic ${btoa('abc')}` }),
      401,
      'invalid_client',
    ],
    ['a broken percent escape', () => form(GRANT, basic(both({ client_id: '%zz' }))), 401, 'invalid_client'],
    [
      'credentials in two places (RFC 6749, 2.3)',
      () => form([...GRANT, ...credentials(client)]),
      400,
      'invalid_request',
    ],

    // The grant.
    ['no grant_type', () => form([['scope', 'funding:read_profile']]), 400, 'invalid_request'],
    ['an empty grant_type', () => form([['grant_type', '']]), 400, 'invalid_request'],
    ...['password', 'authorization_code', 'refresh_token', 'Client_Credentials', '__proto__', 'toString'].map(
      (grant): [string, () => TokenRequest, number, string] => [
        `grant_type ${grant}`,
        () => form([['grant_type', grant]]),
        400,
        'unsupported_grant_type',
      ],
    ),

    // The scope.
    ['an unknown scope', () => form([...GRANT, ['scope', 'funding:all']]), 400, 'invalid_scope'],
    ['a scope with invalid characters', () => form([...GRANT, ['scope', '"\\é\n']]), 400, 'invalid_scope'],
    [
      'a scope that the client was not given',
      () => form([...GRANT, ['scope', 'transfer:write_crypto_withdrawal']]),
      400,
      'invalid_scope',
    ],
    [
      'a list with one scope that the client was not given',
      () => form([...GRANT, ['scope', 'funding:read_profile transfer:write_crypto_withdrawal']]),
      400,
      'invalid_scope',
    ],
    [
      'scopes that are separated by commas',
      () => form([...GRANT, ['scope', 'funding:read_profile,funding:write_profile']]),
      400,
      'invalid_scope',
    ],

    // The form.
    ...[form, multipart].flatMap((encode) =>
      [
        [...GRANT, ...GRANT],
        [...GRANT, ['scope', 'funding:read_profile'], ['scope', 'funding:read_profile']] as Pairs,
        [...GRANT, ['resource', 'a'], ['resource', 'a']] as Pairs,
        [...GRANT, ['scope', ''], ['scope', 'funding:read_profile']] as Pairs,
      ].map((pairs): [string, () => TokenRequest, number, string] => [
        `${pairs.at(-1)![0]} given twice (${encode.name})`,
        () => encode(pairs),
        400,
        'invalid_request',
      ]),
    ),
    [
      'one client in the header and another in the form',
      () => form([...GRANT, ['client_id', '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f']], basic(client)),
      400,
      'invalid_request',
    ],
    ...(['client_id', 'client_secret'] as const).map((name): [string, () => TokenRequest, number, string] => [
      `${name} given twice`,
      () => form([...GRANT, ...credentials(client), [name, client[name]]], {}),
      400,
      'invalid_request',
    ]),
    [
      'JSON',
      () => ({
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
      }),
      400,
      'invalid_request',
    ],
    [
      'broken JSON',
      () => ({ headers: { ...basic(client), 'content-type': 'application/json' }, body: '{"grant_type":' }),
      400,
      'invalid_request',
    ],
    [
      'plain text',
      () => ({
        headers: { ...basic(client), 'content-type': 'text/plain' },
        body: 'grant_type=client_credentials',
      }),
      400,
      'invalid_request',
    ],
    ['no body', () => ({ headers: basic(client) }), 400, 'invalid_request'],
    [
      'multipart without parts',
      () => ({
        headers: { ...basic(client), 'content-type': 'multipart/form-data; boundary=x' },
        body: '--x--\r\n',
      }),
      400,
      'invalid_request',
    ],
    [
      'multipart without a boundary',
      () => ({ headers: { ...basic(client), 'content-type': 'multipart/form-data' }, body: 'x' }),
      400,
      'invalid_request',
    ],
    [
      'multipart that stops in the middle',
      () => ({
        headers: { ...basic(client), 'content-type': 'multipart/form-data; boundary=x' },
        body: '--x\r\ncontent-disposition: form-data; name="grant_type"\r\n\r\nclient_creden',
      }),
      400,
      'invalid_request',
    ],
    ['a file', () => withFile('client_credentials'), 400, 'invalid_request'],
    ['a form of 80 kB', () => form([...GRANT, ['scope', 'x'.repeat(80_000)]]), 413, 'invalid_request'],
    ['a field of 80 kB', () => multipart([...GRANT, ['scope', 'x'.repeat(80_000)]]), 413, 'invalid_request'],

    // The method.
    ...['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(
      (method): [string, () => TokenRequest, number, string] => [
        method,
        () => ({ method, headers: basic(client) }),
        405,
        'invalid_request',
      ],
    ),
  ])('%s', async (_name, request, status, error) => {
    const linesBefore = logged.length
    const reply = await askForToken(request())
    const text = await reply.text()
    expect({ status: reply.status, body: JSON.parse(text) as unknown }).toEqual({
      status,
      body: {
        error,
        error_description: expect.stringMatching(/^[\x20\x21\x23-\x5b\x5d-\x7e]{10,300}$/) as string,
      },
    })
    expect(reply.headers.get('content-type')).toMatch(/^application\/json\b/)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.headers.get('www-authenticate')).toBe(status === 401 ? 'Basic realm="bursar"' : null)
    expect(reply.headers.get('allow')).toBe(status === 405 ? 'POST' : null)
    const told = text + logged.slice(linesBefore).join('')
    for (const secret of [
      client.client_secret,
      disabled.client_secret,
      basic(client).authorization.slice(6),
    ]) {
      expect(told).not.toContain(secret)
    }
  })

  function withFile(content: string): TokenRequest {
    const body = new FormData()
    body.append('grant_type', new Blob([content]), 'grant.txt')
    return { headers: basic(client), body }
  }

  test('every request when the service itself fails, without revealing the secret', async () => {
    const broken = await listen()
    atEnd(() => broken.service.close().catch(() => undefined))
    await broken.service.owner.query('drop table api_clients cascade')
    const linesBefore = logged.length
    const reply = await fetch(`${broken.baseUrl}/oauth2/token`, {
      method: 'POST',
      headers: basic(client),
      body: new URLSearchParams(GRANT),
    })
    expect(reply.status).toBe(500)
    const text = await reply.text()
    const { meta } = JSON.parse(text) as { meta: { request_id: string } }
    const lines = logged.slice(linesBefore).join('')
    expect(lines).toContain(meta.request_id)
    expect(text + lines).not.toContain(client.client_secret)
    expect(text).not.toContain('api_clients')
  })
})

test('a disabled client gets no more tokens, and its tokens are refused before they expire', async () => {
  const leaving = await createApiClient(service.db, ROW_MACS, customer.customer_id, CLIENT_SCOPES)
  const token = await tokenOf([], leaving)
  await disableApiClient(service.db, leaving.client_id, TEST_ORIGIN)
  expect((await askForToken(form(GRANT, basic(leaving)))).status).toBe(401)
  await expect.poll(async () => (await listProfiles(token)).status, { timeout: 5_000 }).toBe(401)
})

test('a secret is stored only as a hash', async () => {
  await tokenOf()
  const tables = await everyTable(service.db)
  const everything = JSON.stringify(tables)
  const hex = (bytes: Buffer | string) => Buffer.from(bytes).toString('hex')
  expect(everything).toContain(hex(createHash('sha256').update(client.client_secret).digest()))
  expect(everything).not.toContain(client.client_secret)
  expect(everything).not.toContain(hex(client.client_secret))
  expect(everything).not.toContain(hex(Buffer.from(client.client_secret, 'base64url')))
  // A secret has 256 bits, and each client has another secret.
  expect(Buffer.from(client.client_secret, 'base64url')).toHaveLength(32)
  const another = await createApiClient(service.db, ROW_MACS, customer.customer_id, CLIENT_SCOPES)
  expect(another.client_secret).not.toBe(client.client_secret)
})

describe('access tokens', () => {
  test('are signed JWTs (RFC 9068) that the published keys verify', async () => {
    const before = Math.floor(Date.now() / 1000)
    const token = await tokenOf([['scope', 'funding:read_profile transfer:read_transfer']])
    const keys = createRemoteJWKSet(new URL(`${baseUrl}/oauth2/jwks`))
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer: baseUrl,
      audience: baseUrl,
      typ: 'at+jwt',
      algorithms: ['RS256'],
    })
    const { iat, exp, jti, ...claims } = payload
    expect(claims).toEqual({
      iss: baseUrl,
      aud: baseUrl,
      sub: client.client_id,
      client_id: client.client_id,
      customer_id: customer.customer_id,
      scope: 'funding:read_profile transfer:read_transfer',
    })
    expect(iat).toBeGreaterThanOrEqual(before)
    expect(iat).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000))
    expect(exp! - iat!).toBe(3600)
    expect(jti).toMatch(UUID)
    expect(decodeJwt(await tokenOf()).jti).not.toBe(jti)
    expect(protectedHeader.kid).toBeDefined()
  })

  test('the published keys are public keys only', async () => {
    const reply = await fetch(`${baseUrl}/oauth2/jwks`)
    const { keys } = (await reply.json()) as JSONWebKeySet
    expect(keys).toHaveLength(1)
    expect(Object.keys(keys[0]!).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use'])
    expect(keys[0]).toMatchObject({ kty: 'RSA', alg: 'RS256', use: 'sig' })
    // The key has at least 2048 bits (RFC 7518, 3.3).
    expect(Buffer.from(keys[0]!.n!, 'base64url').length).toBeGreaterThanOrEqual(256)
  })

  test('have the configured lifetime, to the second, also when they were used before', async () => {
    const brief = await listen({ BURSAR_TOKEN_TTL_SECONDS: '4' })
    atEnd(() => brief.service.close())
    const { customer_id } = await createCustomer(brief.service.db, 'Test')
    const made = await createApiClient(brief.service.db, ROW_MACS, customer_id, ['funding:read_profile'])
    const granted = await fetch(`${brief.baseUrl}/oauth2/token`, {
      method: 'POST',
      headers: basic(made),
      body: new URLSearchParams(GRANT),
    })
    const { access_token, expires_in } = (await granted.json()) as Granted
    expect(expires_in).toBe(4)
    const use = () =>
      fetch(`${brief.baseUrl}/v2/profiles`, { headers: { authorization: `Bearer ${access_token}` } })
    expect((await use()).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 5_050 - (Date.now() % 1000)))
    const late = await use()
    expect(late.status).toBe(401)
    expect(late.headers.get('www-authenticate')).toContain('error="invalid_token"')
  })

  test('of one process are accepted by every other process on the same database; the key is generated once', async () => {
    const { db } = await ownDatabase()
    const { ledger, networks, settings } = service
    const apps = await Promise.all(
      Array.from({ length: 4 }, () =>
        buildApp({ db, ledger, networks, settings, masterKeys: MASTER_KEYS, baseUrl, log }),
      ),
    )
    const { rows } = await db.query<{ count: string }>('select count(*) from signing_keys')
    expect(rows[0]!.count).toBe('1')

    const { customer_id } = await createCustomer(db, 'Test')
    const made = await createApiClient(db, ROW_MACS, customer_id, ['funding:read_profile'])
    for (const issuer of apps) {
      const reply = await issuer.inject({
        method: 'POST',
        url: '/oauth2/token',
        headers: { ...basic(made), 'content-type': 'application/x-www-form-urlencoded' },
        payload: 'grant_type=client_credentials',
      })
      const authorization = `Bearer ${reply.json<Granted>().access_token}`
      for (const other of apps) {
        const used = await other.inject({ method: 'GET', url: '/v2/profiles', headers: { authorization } })
        expect(used.statusCode).toBe(200)
      }
    }
    await Promise.all(apps.map((app) => app.close()))
  })
})

describe('a bearer', () => {
  const call = (authorization?: string) =>
    fetch(`${baseUrl}/v2/profiles`, { headers: authorization === undefined ? {} : { authorization } })

  async function expectRefusal(reply: Response, status: number, challenge: RegExp): Promise<void> {
    expect(reply.status).toBe(status)
    expect(reply.headers.get('content-type')).toMatch(/^application\/problem\+json\b/)
    expect(await reply.json()).toMatchObject({ type: 'about:blank', status })
    expect(reply.headers.get('www-authenticate')).toMatch(challenge)
  }

  test('without a token is challenged without an error (RFC 6750, 3.1)', async () => {
    await expectRefusal(await call(), 401, /^Bearer realm="bursar"$/)
  })

  test.each([
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer a,b',
    'Bearer "a"',
    'Token abc',
    'Basic YTpi',
    'abc',
  ])('with the header %j gets the error invalid_request', async (header) => {
    await expectRefusal(await call(header), 401, /^Bearer realm="bursar", error="invalid_request"/)
  })

  test('with one token in many spellings adds one cache entry, and cannot fill the memory', async () => {
    const token = await tokenOf([['scope', 'transfer:read_transfer']])
    // RFC 9110 allows any number of spaces.
    for (const header of [`bearer ${token}`, `Bearer    ${token}`, `BEARER ${' '.repeat(40)}${token}`])
      expect((await call(header)).status).toBe(403)
    await expectRefusal(
      await call(`Bearer ${' '.repeat(100_000)}${token}`),
      401,
      /^Bearer realm="bursar", error="invalid_request"$/,
    )
    await expectRefusal(await call(`Bearer ${'a'.repeat(4_097)}`), 401, /error="invalid_token"/)
  })

  test('with a token that lacks the scope gets the name of the required scope', async () => {
    const token = await tokenOf([['scope', 'transfer:read_transfer']])
    const reply = await listProfiles(token)
    const challenge = /^Bearer realm="bursar", error="insufficient_scope", scope="funding:read_profile"$/
    const { meta } = (await reply.clone().json()) as { meta: unknown }
    await expectRefusal(reply, 403, challenge)
    expect(meta).toEqual({
      required_scope: 'funding:read_profile',
      found_scopes: ['transfer:read_transfer'],
    })
  })

  describe('is refused', () => {
    let ours: { id: string; jwks: { keys: JWK[] } }
    let key: CryptoKey
    let strangers: CryptoKey
    beforeAll(async () => {
      const signer = await signerOf(service.db)
      ours = signer
      key = signer.privateKey
      strangers = (await generateKeyPair('RS256')).privateKey
    })

    /** Signs a token like ours with changed claims; undefined removes a claim. */
    function sign(claims: JWTPayload = {}, header: object = {}, by = key): Promise<string> {
      const now = Math.floor(Date.now() / 1000)
      return new SignJWT({
        iss: baseUrl,
        aud: baseUrl,
        sub: client.client_id,
        client_id: client.client_id,
        customer_id: customer.customer_id,
        scope: CLIENT_SCOPES.join(' '),
        iat: now,
        exp: now + 60,
        ...claims,
      })
        .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: ours.id, ...header })
        .sign(by)
    }
    const seconds = (fromNow: number) => Math.floor(Date.now() / 1000) + fromNow

    test('only for the stated reason: the tokens of this table are otherwise valid', async () => {
      await expectToWork(await sign())
    })

    test.each<[string, () => Promise<string> | string]>([
      ['expired', () => sign({ exp: seconds(-1) })],
      ['expired long ago', () => sign({ exp: seconds(-3600) })],
      ['without an expiry time', () => sign({ exp: undefined })],
      ['valid for longer than any issued token', () => sign({ exp: seconds(3601) })],
      ['valid for ten years', () => sign({ exp: seconds(10 * 365 * 86_400) })],
      ['without a time of issue', () => sign({ iat: undefined })],
      ['issued in the future', () => sign({ iat: seconds(60), exp: seconds(120) })],
      [
        'issued a day ago, with a longer validity than any issued token',
        () => sign({ iat: seconds(-86_400), exp: seconds(60) }),
      ],
      ['not valid yet', () => sign({ nbf: seconds(60) })],
      ['for another audience', () => sign({ aud: 'http://127.0.0.1:1' })],
      ['for no audience', () => sign({ aud: undefined })],
      ['by another issuer', () => sign({ iss: 'http://127.0.0.1:1' })],
      ['by no issuer', () => sign({ iss: undefined })],
      ['by an issuer with an additional slash', () => sign({ iss: `${baseUrl}/` })],
      ['without a subject', () => sign({ sub: undefined })],
      ['without a customer', () => sign({ customer_id: undefined })],
      [
        'with a customer that is not a UUID',
        () => sign({ customer_id: '------------------------------------' }),
      ],
      ['with a list of customers', () => sign({ customer_id: [customer.customer_id] })],
      ["signed with another party's key", () => sign({}, {}, strangers)],
      ['signed with an unknown key', () => sign({}, { kid: 'other' }, strangers)],
      ['of another type', () => sign({}, { typ: 'JWT' })],
      ['of no type', () => sign({}, { typ: undefined })],
      [
        'signed with our public key as a shared secret',
        () =>
          new SignJWT({ customer_id: customer.customer_id, scope: CLIENT_SCOPES.join(' ') })
            .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: ours.id })
            .setIssuer(baseUrl)
            .setAudience(baseUrl)
            .setSubject(client.client_id)
            .setExpirationTime('1 minute')
            .sign(Buffer.from(ours.jwks.keys[0]!.n!, 'base64url')),
      ],
      [
        'unsigned',
        () =>
          new UnsecuredJWT({ customer_id: customer.customer_id, scope: CLIENT_SCOPES.join(' ') })
            .setIssuer(baseUrl)
            .setAudience(baseUrl)
            .setSubject(client.client_id)
            .setExpirationTime('1 minute')
            .encode(),
      ],
      ['one with changed claims', async () => changedClaims(await sign())],
      ['one with a cut signature', async () => (await sign()).slice(0, -4)],
      ['not a JWT', () => 'abc'],
      ['only shaped like a JWT', () => 'eyJhbGciOiJSUzI1NiJ9.e30.AAAA'],
    ])('when the token is %s', async (_name, make) => {
      const reply = await call(`Bearer ${await make()}`)
      await expectRefusal(
        reply,
        401,
        /^Bearer realm="bursar", error="invalid_token", error_description="[^"\\]+"$/,
      )
    })

    function changedClaims(token: string): string {
      const [header, , signature] = token.split('.')
      const claims = { ...decodeJwt(token), customer_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f' }
      return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.')
    }
  })
})
