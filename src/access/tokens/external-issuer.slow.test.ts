import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose'
import { pino, type Logger } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { freePort } from '../../../test/free-port.ts'
import { startTokenProvider } from '../../../test/openid-provider.ts'
import { ownTestService, runBursar, signerOf, startTestService, testSettings } from '../../../test/support.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { ExternalIssuer, keysAddress } from './external-issuer.ts'
import { atEnd, ownFolder } from '../../../test/at-end.ts'

/** Starts a service that listens at its base URL. */
async function listen(environment: Record<string, string>, log?: Logger) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const started = await startTestService(environment, { baseUrl: url, ...(log && { log }) })
  await started.app.listen({ host: '127.0.0.1', port })
  return { service: started, baseUrl: url }
}

describe('an external issuer', () => {
  function json(reply: ServerResponse, body: unknown): void {
    reply.setHeader('content-type', 'application/json')
    reply.end(JSON.stringify(body))
  }

  /** Starts an external authorization server with metadata and keys; `sign` issues its tokens. */
  async function startIssuer(path = '') {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwk = { ...(await exportJWK(publicKey)), kid: 'theirs', alg: 'ES256', use: 'sig' }
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const url = `${origin}${path}`
    const asked: string[] = []
    const metadataPath = `/.well-known/oauth-authorization-server${path.replace(/\/$/, '')}`
    const answers: Record<string, RequestListener> = {
      [metadataPath]: (_request, reply) => json(reply, { issuer: url, jwks_uri: `${origin}/keys` }),
      '/keys': (_request, reply) => json(reply, { keys: [jwk] }),
    }
    server.on('request', (request: IncomingMessage, reply: ServerResponse) => {
      asked.push(request.url!)
      const answer = answers[request.url!]
      if (answer) return answer(request, reply)
      reply.statusCode = 404
      reply.end()
    })
    const stop = async () => {
      if (!server.listening) return
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    }
    atEnd(stop)

    function sign(audience: string, claims: JWTPayload = {}, header: object = {}, by = privateKey) {
      const now = Math.floor(Date.now() / 1000)
      return new SignJWT({
        iss: url,
        aud: audience,
        sub: 'their-client',
        customer_id: issuer.customer_id,
        scope: 'funding:read_profile funding:write_profile',
        iat: now,
        exp: now + 60,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'theirs', ...header })
        .sign(by)
    }
    // The issuer's customer is in the database of the service that trusts it; only the issuer knows its clients.
    const issuer = { url, origin, asked, answers, metadataPath, stop, sign, customer_id: '' }
    return issuer
  }
  type Issuer = Awaited<ReturnType<typeof startIssuer>>

  /** Starts a service that trusts the issuer, with the issuer's customer. */
  async function startTrusting(issuer: Issuer, log?: Logger) {
    const started = await listen({ BURSAR_OAUTH_ISSUER: issuer.url }, log)
    atEnd(() => started.service.close())
    const trusting = await createCustomer(started.service.db, 'Theirs')
    issuer.customer_id = trusting.customer_id
    const use = (token: string, init: RequestInit = {}) =>
      fetch(`${started.baseUrl}/v2/profiles`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      })
    return { ...started, trusting, use }
  }

  test.each(['', '/', '/tenant', '/tenant/'])('at path %j is trusted', async (path) => {
    const issuer = await startIssuer(path)
    const { baseUrl: audience, trusting, use } = await startTrusting(issuer)
    const reply = await use(await issuer.sign(audience))
    expect(reply.status).toBe(200)
    expect(await reply.json()).toMatchObject({ items: [{ id: trusting.profile_id }] })
    expect(issuer.asked).toEqual([issuer.metadataPath, '/keys'])
    // The issuer's tokens may also write, and the cached keys verify them.
    const made = await use(await issuer.sign(audience), { method: 'POST', body: '{"nickname":"Theirs"}' })
    expect(made.status).toBe(200)
    expect(issuer.asked).toHaveLength(2)
  })

  test('replaces the built-in issuer', async () => {
    const issuer = await startIssuer()
    const { baseUrl: here, service: there, use } = await startTrusting(issuer)
    for (const [method, path] of [
      ['POST', '/oauth2/token'],
      ['GET', '/oauth2/jwks'],
      ['GET', '/.well-known/oauth-authorization-server'],
    ] as const) {
      expect((await fetch(`${here}${path}`, { method })).status, path).toBe(404)
    }
    // These tokens are signed with the key of our database, in our name and in the issuer's name.
    const { id: kid, privateKey } = await signerOf(there.db)
    for (const iss of [here, issuer.url]) {
      const token = await issuer.sign(here, { iss }, { alg: 'RS256', kid }, privateKey)
      expect((await use(token)).status).toBe(401)
    }
  })

  test('tokens for another audience or from another issuer are refused', async () => {
    const issuer = await startIssuer()
    const { baseUrl: here, trusting, use } = await startTrusting(issuer)
    const stranger = (await generateKeyPair('ES256')).privateKey
    const now = Math.floor(Date.now() / 1000)
    const nobody = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
    const tokens: Record<string, Promise<string>> = {
      'wrong iss': issuer.sign(here, { iss: 'http://127.0.0.1:1' }),
      'wrong aud': issuer.sign('http://127.0.0.1:1'),
      'its own aud': issuer.sign(issuer.url),
      expired: issuer.sign(here, { exp: now - 1 }),
      'unknown kid': issuer.sign(here, {}, { kid: 'other' }, stranger),
      'forged with a known kid': issuer.sign(here, {}, {}, stranger),
      'no customer_id': issuer.sign(here, { customer_id: undefined }),
      'a customer_id that is no UUID': issuer.sign(here, { customer_id: 'acme' }),
      'an unknown customer': issuer.sign(here, { customer_id: nobody }),
      'an ID token': issuer.sign(here, {}, { typ: 'JWT' }),
    }
    for (const [name, token] of Object.entries(tokens)) {
      for (const init of [{}, { method: 'POST', body: '{"nickname":"Other"}' }]) {
        const reply = await use(await token, init)
        expect(reply.status, name).toBe(401)
        expect(reply.headers.get('www-authenticate'), name).toContain('error="invalid_token"')
      }
    }
    // The token may name several audiences, and the customer's id may be in capitals.
    const shouting = trusting.customer_id.toUpperCase()
    const token = await issuer.sign(here, { aud: ['http://127.0.0.1:1', here], customer_id: shouting })
    expect(await (await use(token)).json()).toMatchObject({ items: [{ id: trusting.profile_id }] })
    // The issuer decides the scopes.
    const scopeless = await use(await issuer.sign(here, { scope: undefined }))
    expect(scopeless.status).toBe(403)
  })

  async function expectUnavailable(reply: Response, fault?: string): Promise<void> {
    expect(reply.status, fault).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    expect(await reply.json()).toEqual({
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: 'the configured token issuer does not answer with its keys',
      meta: { request_id: expect.any(String) as string },
    })
  }

  test('that does not answer makes requests fail with 503', async () => {
    const issuer = await startIssuer()
    const { baseUrl: here, use } = await startTrusting(issuer)
    await issuer.stop()
    await expectUnavailable(await use(await issuer.sign(here)))
  })

  const FAULTS: Record<string, (issuer: Issuer) => void> = {
    'has no metadata': ({ answers, metadataPath }) => delete answers[metadataPath],
    'answers with a page': ({ answers, metadataPath }) =>
      (answers[metadataPath] = (_, reply) => reply.end('<html>')),
    'answers without keys': ({ answers, metadataPath, url }) =>
      (answers[metadataPath] = (_, reply) => json(reply, { issuer: url })),
    'names another issuer in its metadata (RFC 8414, 3.3)': ({ answers, metadataPath, origin }) =>
      (answers[metadataPath] = (_, reply) =>
        json(reply, { issuer: 'http://127.0.0.1:1', jwks_uri: `${origin}/keys` })),
    'no longer serves its keys': ({ answers }) => delete answers['/keys'],
    'answers a key set without keys': ({ answers }) => (answers['/keys'] = (_, reply) => json(reply, {})),
  }
  test('with a fault makes the service unavailable until the issuer works again', async () => {
    const faulty = Object.entries(FAULTS).map(async ([fault, breakIt]) => {
      const issuer = await startIssuer()
      const { baseUrl: here, use } = await startTrusting(issuer)
      const working = { ...issuer.answers }
      breakIt(issuer)
      const token = await issuer.sign(here)
      await expectUnavailable(await use(token), fault)
      Object.assign(issuer.answers, working)
      // The metadata is requested again after two seconds.
      await expect
        .poll(async () => (await use(token)).status, { timeout: 10_000, interval: 200, message: fault })
        .toBe(200)
    })
    await Promise.all(faulty)
  })

  test('that is down gets one request in two seconds, however many anonymous requests arrive', async () => {
    const issuer = await startIssuer()
    const { use } = await startTrusting(issuer)
    const waiting: ServerResponse[] = []
    issuer.answers[issuer.metadataPath] = (_request, reply) => void waiting.push(reply)
    const forged = 'eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IngifQ.e30.AAAA'
    const began = performance.now()
    const answers = Array.from({ length: 40 }, () => use(forged))
    await expect.poll(() => waiting.length, { timeout: 10_000 }).toBe(1)
    waiting[0]!.statusCode = 500
    waiting[0]!.end()
    for (const answer of answers) await expectUnavailable(await answer)
    issuer.answers[issuer.metadataPath] = (_request, reply) => void reply.writeHead(500).end()
    for (let n = 0; n < 20; n++) await expectUnavailable(await use(forged))
    // Each time, its metadata is looked for at two addresses.
    expect(issuer.asked.length).toBeLessThanOrEqual(2 * (1 + (performance.now() - began) / 2_000))
  })

  test('may be down once its keys are known', async () => {
    const issuer = await startIssuer()
    const { baseUrl: here, use } = await startTrusting(issuer)
    expect((await use(await issuer.sign(here))).status).toBe(200)
    await issuer.stop()
    expect((await use(await issuer.sign(here, { jti: 'another' }))).status).toBe(200)
    // A token with a key that nobody knows asks for the keys again, half a minute later. It shuts out itself alone.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
    atEnd(async () => void vi.useRealTimers())
    for (let round = 0; round < 3; round++) {
      await expectUnavailable(await use(await issuer.sign(here, { jti: `f${round}` }, { kid: 'made up' })))
      expect((await use(await issuer.sign(here, { jti: `h${round}` }))).status).toBe(200)
    }
  })

  test.each(['', '/realms/acme', '/tenant/'])(
    'with OpenID discovery alone, at path %j, is trusted',
    async (path) => {
      const issuer = await startIssuer(path)
      const { answers, metadataPath, origin, url } = issuer
      const discovery = `${path.replace(/\/$/, '')}/.well-known/openid-configuration`
      answers[discovery] = answers[metadataPath]!
      delete answers[metadataPath]
      expect(await keysAddress(url)).toBe(`${origin}/keys`)
      expect(issuer.asked).toEqual([metadataPath, discovery])
      delete answers[discovery]
      await expect(keysAddress(url)).rejects.toThrow(
        `${origin}${metadataPath}: 404; ${origin}${discovery}: 404`,
      )
    },
  )

  const HERE = 'https://bursar.example'
  const CUSTOMER = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
  const SCOPES = ['funding:read_profile', 'transfer:read_transfer']
  const settingsOf = (environment: Record<string, string>) =>
    testSettings({ BURSAR_OAUTH_ISSUER: 'https://issuer.example', ...environment })

  /** Tokens as providers make them for client credentials: header, claims, and the settings that they need. */
  const PROVIDERS: Record<string, [object, JWTPayload, Record<string, string>]> = {
    'RFC 9068': [{}, { client_id: 'shop', scope: SCOPES.join(' ') }, {}],
    Keycloak: [
      { typ: 'JWT' },
      { typ: 'Bearer', azp: 'shop', scope: `email ${SCOPES.join(' ')}`, realm_access: { roles: ['admin'] } },
      { BURSAR_OAUTH_TOKEN_TYPE: 'any' },
    ],
    Auth0: [
      { typ: 'JWT' },
      {
        ...{ azp: 'shop', sub: 'shop@clients', gty: 'client-credentials', scope: SCOPES.join(' ') },
        ...{ customer_id: undefined, 'https://acme.example/customer_id': CUSTOMER },
      },
      { BURSAR_OAUTH_TOKEN_TYPE: 'any', BURSAR_OAUTH_CUSTOMER_CLAIM: 'https://acme.example/customer_id' },
    ],
    Okta: [{ typ: undefined }, { cid: 'shop', scp: SCOPES }, { BURSAR_OAUTH_TOKEN_TYPE: 'any' }],
    Entra: [
      { typ: 'JWT' },
      { appid: 'shop', roles: SCOPES, aud: 'api://bursar', sub: 'e3a1', idtyp: 'app' },
      {
        BURSAR_OAUTH_TOKEN_TYPE: 'any',
        BURSAR_OAUTH_AUDIENCE: 'api://bursar',
        BURSAR_OAUTH_SCOPE_CLAIM: 'roles',
      },
    ],
    Cognito: [
      { typ: undefined },
      {
        ...{ aud: undefined, client_id: 'shop', sub: 'shop', token_use: 'access' },
        scope: `other/transfer:write_crypto_withdrawal ${SCOPES.map((name) => `bursar/${name}`).join(' ')}`,
      },
      { BURSAR_OAUTH_TOKEN_TYPE: 'any', BURSAR_OAUTH_AUDIENCE: '-', BURSAR_OAUTH_SCOPE_PREFIX: 'bursar/' },
    ],
    Hydra: [{ typ: 'JWT' }, { client_id: 'shop', scp: SCOPES }, { BURSAR_OAUTH_TOKEN_TYPE: 'any' }],
  }

  test.each(Object.keys(PROVIDERS))('tokens as %s makes them are read', async (name) => {
    const [header, claims, environment] = PROVIDERS[name]!
    const issuer = await startIssuer()
    issuer.customer_id = CUSTOMER
    const token = await issuer.sign(HERE, { scope: undefined, ...claims }, header)
    const verified = await new ExternalIssuer(issuer.url, HERE, settingsOf(environment)).verify(token)
    expect(verified).toMatchObject({ customerId: CUSTOMER, clientId: 'shop', keyId: 'theirs' })
    expect(verified.scopes.filter((scope) => scope !== 'email')).toEqual(SCOPES)
    // Without its settings, each token but the standard's is refused.
    const plain = new ExternalIssuer(issuer.url, HERE, settingsOf({})).verify(token)
    if (name === 'RFC 9068') expect(await plain).toEqual(verified)
    else
      await expect(plain).rejects.toMatchObject({ status: 401, detail: 'the access token is not valid here' })
  })

  test.each<[string, JWTPayload, object, string]>([
    ['an ID token of Keycloak', { typ: 'ID' }, { typ: 'JWT' }, '"typ" is of an ID token'],
    ['an ID token of Cognito', { token_use: 'id' }, {}, '"token_use" is of an ID token'],
    ['an ID token with a nonce', { nonce: 'x' }, { typ: 'JWT' }, '"nonce" is of an ID token'],
    ['a token for somebody else', { aud: 'https://other.example' }, {}, 'unexpected "aud" claim value'],
    [
      'a token not valid yet',
      { nbf: Math.floor(Date.now() / 1000) + 3_600 },
      {},
      '"nbf" claim timestamp check failed',
    ],
    ['a token without a customer', { customer_id: 'acme' }, {}, '"customer_id" is not the id of a customer'],
  ])('%s is refused, and the cause says why', async (_, claims, header, why) => {
    const issuer = await startIssuer()
    issuer.customer_id = CUSTOMER
    const anyType = settingsOf({ BURSAR_OAUTH_TOKEN_TYPE: 'any' })
    await expect(
      new ExternalIssuer(issuer.url, HERE, anyType).verify(await issuer.sign(HERE, claims, header)),
    ).rejects.toMatchObject({ status: 401, cause: { message: why } })
  })

  test("clocks may differ by a minute for a token's beginning", async () => {
    const issuer = await startIssuer()
    issuer.customer_id = CUSTOMER
    const nbf = Math.floor(Date.now() / 1000) + 50
    const verifying = new ExternalIssuer(issuer.url, HERE, settingsOf({})).verify(
      await issuer.sign(HERE, { nbf }),
    )
    expect(await verifying).toMatchObject({ customerId: CUSTOMER })
  })

  test('a client of oidc-provider calls with the token that it gets there', async () => {
    const port = await freePort()
    const here = `http://127.0.0.1:${port}`
    const customer = { customer_id: '', profile_id: '' }
    const scopes = 'funding:read_profile funding:write_profile'
    const provider = await startTokenProvider(here, scopes, () => customer.customer_id)
    atEnd(async () => provider.close())
    const there = await ownTestService({ BURSAR_OAUTH_ISSUER: provider.issuer }, { baseUrl: here })
    await there.app.listen({ host: '127.0.0.1', port })
    Object.assign(customer, await createCustomer(there.db, 'Theirs'))
    const granted = await fetch(`${provider.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('shop:of%20the%20test')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: scopes }),
    })
    const { access_token } = (await granted.json()) as { access_token: string }
    const reply = await fetch(`${here}/v2/profiles`, { headers: { authorization: `Bearer ${access_token}` } })
    expect(await reply.json()).toMatchObject({ items: [{ id: customer.profile_id }] })
  })

  test('why a token is refused is in the log and in doctor, and not in the answer', async () => {
    const lines: string[] = []
    const issuer = await startIssuer()
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
    const { baseUrl: here, use, service } = await startTrusting(issuer, log)
    const refused = await use(await issuer.sign('https://other.example'))
    expect(refused.status).toBe(401)
    expect(await refused.text()).not.toContain('aud')
    const why = 'unexpected "aud" claim value'
    await expect
      .poll(() => lines.map((line) => JSON.parse(line) as { refused_for?: string }))
      .toContainEqual(expect.objectContaining({ status: 401, refused_for: why }))
    const folder = await ownFolder()
    const file = join(folder, 'token')
    const doctor = async (token: string) => {
      await writeFile(file, `${token}\n`)
      const { stdout } = await runBursar(['doctor', '--token-file', file, '--json'], {
        ...{ DATABASE_URL: service.url, BURSAR_OAUTH_ISSUER: issuer.url, BURSAR_BASE_URL: here },
        BURSAR_DATA_DIR: folder,
      })
      const { checks } = JSON.parse(stdout) as { checks: { check: string; result: string; says: string }[] }
      return checks.find(({ check }) => check === 'token')
    }
    expect(await doctor(await issuer.sign('https://other.example'))).toMatchObject({
      result: 'FAIL',
      says: `the access token is not valid here: ${why}`,
    })
    expect(await doctor(await issuer.sign(here))).toMatchObject({
      result: 'OK',
      says: `of customer ${issuer.customer_id}, client their-client, scopes funding:read_profile funding:write_profile`,
    })
  })
})
