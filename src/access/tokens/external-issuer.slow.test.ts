import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../test/free-port.ts'
import { atEnd, signerOf, startTestService } from '../../../test/support.ts'
import { createCustomer } from '../customers/create-customer.ts'

/** Starts a service that listens at its base URL. */
async function listen(environment: Record<string, string>) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const started = await startTestService(environment, { baseUrl: url })
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
  async function startTrusting(issuer: Issuer) {
    const started = await listen({ BURSAR_OAUTH_ISSUER: issuer.url })
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
    expect(issuer.asked.length).toBeLessThanOrEqual(1 + (performance.now() - began) / 2_000)
  })

  test('may be down once its keys are known', async () => {
    const issuer = await startIssuer()
    const { baseUrl: here, use } = await startTrusting(issuer)
    expect((await use(await issuer.sign(here))).status).toBe(200)
    await issuer.stop()
    expect((await use(await issuer.sign(here, { jti: 'another' }))).status).toBe(200)
  })
})
