/*
 * Operators (docs/reference/operators.md): a link works once, a token acts for one customer with the scopes of a role, and
 * what is ended stops within a second. Each attack is refused and opens nothing.
 */
import { SignJWT, decodeJwt, type JWTPayload } from 'jose'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  BASE_URL,
  caller,
  credit,
  everyTable,
  fetchToken,
  newCustomer,
  signerOf,
  withdrawalOf,
  TEST_ORIGIN,
  ownTestService,
} from '../../../test/support.ts'
import { OPERATIONS } from '../../program/app.ts'
import { ROLES, scopesOfRole, type Role } from '../../contract/roles.ts'
import { OPERATOR_SCOPES, SCOPES } from '../../contract/scopes.ts'
import { transaction } from '../../db/database.ts'
import { createApiClient } from '../tokens/api-clients.ts'
import {
  createOperator,
  disableOperator,
  enableOperator,
  makeLink,
  setRole,
  type Operator,
} from './operators.ts'
import { endSession } from './sessions.ts'
import { refusedWith } from '../../../test/matchers.ts'

const lines: string[] = []

const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
const service = await ownTestService({}, { log })
const customer = await newCustomer(service)
const other = await newCustomer(service)

/** The service has one second to apply a change; a busy machine needs a few more. */
const SOON = { timeout: 5_000, interval: 50 }

interface Opened {
  operator: { id: string; name: string; role: string; customer_id?: string }
  session: { id: string; status: string }
  session_secret: string
}

async function post<T = Record<string, unknown>>(path: string, body: object, on = service) {
  const reply = await on.app.inject({ method: 'POST', url: `/v2/operators${path}`, payload: body })
  return { status: reply.statusCode, body: reply.json<T>() }
}

const newOperator = (role: Role = 'ADMIN', customerId?: string): Promise<Operator> =>
  createOperator(service.db, ROW_MACS, { name: 'Ada', role, customerId })

const linkOf = async ({ id }: Operator) =>
  (await transaction(service.db, (tx) => makeLink(tx, ROW_MACS, id))).secret

async function signedIn(operator: Operator): Promise<Opened> {
  const { status, body } = await post<Opened>('/sign-in/link', { link: await linkOf(operator) })
  expect(status).toBe(200)
  return body
}

const takeToken = ({ session_secret }: Opened, customer_id?: string) =>
  post<{ access_token: string; scope: string; expires_in: number; detail: string }>('/access-tokens', {
    session_secret,
    ...(customer_id !== undefined && { customer_id }),
  })

/** An operator of the customer who has signed in and has a token. */
async function working(role: Role) {
  const operator = await newOperator(role, customer.customer_id)
  const opened = await signedIn(operator)
  const { access_token } = (await takeToken(opened)).body
  return { operator, opened, access_token, call: caller(service.app, access_token) }
}

const sessionsOf = async ({ id }: Operator) =>
  (await service.db.query('select 1 from operator_sessions where operator_id = $1', [id])).rowCount

describe('a one-time link', () => {
  test('opens a session, whole or as its secret, and never again', async () => {
    const operator = await newOperator('OPERATOR', customer.customer_id)
    const secret = await linkOf(operator)
    const { status, body } = await post<Opened>('/sign-in/link', { link: `${BASE_URL}/sign-in#${secret}` })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      operator: { id: operator.id, name: 'Ada', role: 'OPERATOR', customer_id: customer.customer_id },
      session: { operator_id: operator.id, method: 'LINK', status: 'OPEN' },
      session_secret: expect.stringMatching(/^bursar_session_[\w-]{43}$/) as unknown,
    })
    const again = await post('/sign-in/link', { link: secret })
    expect(again).toMatchObject(refusedWith(401, 'used'))
    expect(await sessionsOf(operator)).toBe(1)
  })

  test('opens one session for 20 parallel requests', async () => {
    const operator = await newOperator()
    const link = await linkOf(operator)
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('/sign-in/link', { link })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(19)
    expect(await sessionsOf(operator)).toBe(1)
  })

  test.each<[string, (operator: Operator, link: string) => Promise<unknown>]>([
    [
      'after ten minutes',
      ({ id }) =>
        service.owner.query(
          `update operator_links set expires_at = created_at + interval '1 microsecond' where operator_id = $1`,
          [id],
        ),
    ],
    ['after a later link was made', (operator) => linkOf(operator)],
    [
      'of a disabled operator',
      (operator) => transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN)),
    ],
    [
      'of an operator disabled and enabled again',
      (operator) =>
        transaction(service.db, async (tx) => {
          await disableOperator(tx, operator, TEST_ORIGIN)
          await enableOperator(tx, ROW_MACS, operator)
        }),
    ],
  ])('opens nothing %s', async (_, change) => {
    const operator = await newOperator()
    const link = await linkOf(operator)
    await change(operator, link)
    expect((await post('/sign-in/link', { link })).status).toBe(401)
    expect(await sessionsOf(operator)).toBe(0)
  })

  test('a guessed link, and a body that is not one, are refused', async () => {
    expect((await post('/sign-in/link', { link: `bursar_link_${'A'.repeat(43)}` })).status).toBe(401)
    expect((await post('/sign-in/link', {})).body).toMatchObject({
      status: 400,
      detail: expect.stringContaining('link') as unknown,
    })
    const fixed = { link: await linkOf(await newOperator()), session_secret: 'bursar_session_mine' }
    expect((await post('/sign-in/link', fixed)).status).toBe(400)
  })

  test('each sign-in has a session of its own, and the sessions of an operator are limited', async () => {
    const operator = await newOperator()
    const first = await signedIn(operator)
    const secrets = new Set([first.session_secret])
    for (let n = 0; n < 20; n++) secrets.add((await signedIn(operator)).session_secret)
    expect(secrets.size).toBe(21)
    expect((await takeToken(first, customer.customer_id)).status).toBe(401)
  })

  test('an address that fails too often is refused', async () => {
    const limited = await ownTestService({ BURSAR_TOKEN_FAILURES_PER_MINUTE: '3' })
    const guess = () => post('/sign-in/link', { link: 'bursar_link_guess' }, limited)
    for (let n = 0; n < 3; n++) expect((await guess()).status).toBe(401)
    expect((await guess()).status).toBe(429)
  })
})

describe('an access token', () => {
  test("has the scopes of the operator's role and acts for its customer", async () => {
    for (const role of ROLES) {
      const { operator, opened, access_token } = await working(role)
      const { body } = await takeToken(opened)
      expect(body.scope.split(' ')).toEqual(scopesOfRole(role, 'sandbox'))
      expect(body.expires_in).toBeLessThanOrEqual(600)
      expect(decodeJwt(access_token)).toMatchObject({
        sub: operator.id,
        operator_id: operator.id,
        session_id: opened.session.id,
        customer_id: customer.customer_id,
      })
    }
  })

  test('moves money as the operator, of its customer only', async () => {
    await credit(service.ledger, customer, 'USD', '100')
    const { operator, call } = await working('OPERATOR')
    lines.length = 0
    const paid = await call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
    expect(paid.status).toBe(200)
    expect(lines.join('')).toContain(`"client_id":"${operator.id}"`)
    const others = await call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(other))
    expect(others.status).toBe(404)
  })

  test('of an operator without a customer needs the name of one', async () => {
    const opened = await signedIn(await newOperator())
    expect(await takeToken(opened)).toMatchObject(refusedWith(400, 'customer_id'))
    expect((await takeToken(opened, crypto.randomUUID())).status).toBe(404)
    for (const { customer_id } of [customer, other]) {
      const { body } = await takeToken(opened, customer_id)
      expect(decodeJwt(body.access_token)).toMatchObject({ customer_id })
    }
  })

  test('for another customer is refused, also for one that does not exist', async () => {
    const opened = await signedIn(await newOperator('ADMIN', customer.customer_id))
    for (const asked of [other.customer_id, crypto.randomUUID()]) {
      const { status, body } = await takeToken(opened, asked)
      expect({ status, detail: body.detail }).toEqual({
        status: 403,
        detail: `this operator may act for customer ${customer.customer_id} only`,
      })
    }
  })

  test.each<[string, string]>([
    ['that is idle', `used_at = used_at - interval '61 minutes'`],
    ['that has expired', `expires_at = created_at + interval '1 microsecond'`],
    ['that was ended', 'ended_at = clock_timestamp()'],
  ])('is not given to a session %s', async (_, change) => {
    const opened = await signedIn(await newOperator('VIEWER', customer.customer_id))
    await service.owner.query(`update operator_sessions set ${change} where id = $1`, [opened.session.id])
    expect((await takeToken(opened)).status).toBe(401)
  })

  test('does not outlive its session', async () => {
    const opened = await signedIn(await newOperator('VIEWER', customer.customer_id))
    await service.owner.query(
      `update operator_sessions set expires_at = clock_timestamp() + interval '30 seconds' where id = $1`,
      [opened.session.id],
    )
    await ROW_MACS.seal(service.db, 'operator_sessions', opened.session.id)
    expect((await takeToken(opened)).body.expires_in).toBeLessThanOrEqual(30)
  })
})

describe('a VIEWER', () => {
  /** All tables but those of the audit log, which has the refusals. */
  const tables = async () =>
    Object.entries(await everyTable(service.db)).filter(([name]) => !name.startsWith('audit_'))

  test('changes nothing over any route, and reads every list', async () => {
    const { call, operator } = await working('VIEWER')
    await service.owner.query(
      `update operators set updated_at = updated_at - interval '2 days' where id = $1`,
      [operator.id],
    )
    const before = await tables()
    for (const { method, url, scope, body } of OPERATIONS) {
      const path = url.replaceAll(/:\w+/g, crypto.randomUUID())
      const { status } = await call(method, path, body === undefined ? undefined : {})
      if (method === 'GET') expect([200, 400, 404], `${method} ${url}`).toContain(status)
      else if (scope !== null) expect(status, `${method} ${url}`).toBe(403)
    }
    expect(await tables()).toEqual(before)
  })

  test('changes nothing over any route that is no operation, nor does anybody without a token', async () => {
    const { call, operator } = await working('VIEWER')
    await service.owner.query(
      `update operators set updated_at = updated_at - interval '2 days' where id = $1`,
      [operator.id],
    )
    const operations = new Set(OPERATIONS.map(({ method, url }) => `${method} ${url}`))
    const others = changingRoutes().filter((route) => !operations.has(route))
    expect(others).toEqual(
      expect.arrayContaining([
        ...['DELETE /v2/operators/sessions/:id', 'DELETE /v2/operators/passkeys/:id'],
        ...['POST /v2/operators/sign-in/link', 'POST /v2/operators/access-tokens', 'POST /oauth2/token'],
      ]),
    )
    const before = await tables()
    for (const route of others) {
      const [method, url] = route.split(' ') as ['POST', string]
      const path = url.replaceAll(/:\w+/g, crypto.randomUUID())
      const payload = route.startsWith('DELETE') ? undefined : {}
      const { status } = await call(method, path, payload)
      expect(status, `${route} of a VIEWER`).toBeGreaterThanOrEqual(400)
      expect(status, `${route} of a VIEWER`).toBeLessThan(500)
      const { statusCode } = await service.app.inject({ method, url: path, payload })
      expect(statusCode, `${route} of nobody`).toBeGreaterThanOrEqual(400)
      expect(statusCode, `${route} of nobody`).toBeLessThan(500)
    }
    expect(await tables()).toEqual(before)
  })

  /** Returns the routes of the app that are not only for reading, as `<method> <url>`: each line of the tree is a part of a path. */
  function changingRoutes(): string[] {
    const above: string[] = []
    return service.app
      .printRoutes({ commonPrefix: false })
      .split('\n')
      .flatMap((line) => {
        const [, indent = '', part = '', methods = ''] = /^([ │├└─]*)(\S+) \(([A-Z, -]+)\)$/.exec(line) ?? []
        if (part === '') return []
        const depth = indent.length / 4
        const url = `${above[depth - 1] ?? ''}${part}`
        above[depth] = url
        const changing = methods.split(', ').filter((method) => /^(POST|PUT|PATCH|DELETE)$/.test(method))
        return changing.map((method) => `${method} ${url}`)
      })
  }
})

describe('within a second', () => {
  const profiles = (call: ReturnType<typeof caller>) => async () => (await call('GET', '/v2/profiles')).status

  test('a session that is signed out or revoked has no token left', async () => {
    const first = await working('ADMIN')
    const second = await working('ADMIN')
    expect(await profiles(first.call)()).toBe(200)
    expect(await profiles(second.call)()).toBe(200)
    const { session_secret, session } = second.opened
    expect((await post('/sign-out', { session_secret })).status).toBe(200)
    await expect.poll(profiles(second.call), SOON).toBe(401)
    expect((await post('/sign-out', { session_secret })).status).toBe(401)
    const { operator, opened } = first
    expect(await transaction(service.db, (tx) => endSession(tx, operator, session.id, TEST_ORIGIN))).toBe(
      false,
    )
    expect(await profiles(first.call)()).toBe(200)
    expect(
      await transaction(service.db, (tx) => endSession(tx, operator, opened.session.id, TEST_ORIGIN)),
    ).toBe(true)
    await expect.poll(profiles(first.call), SOON).toBe(401)
    expect((await takeToken(opened)).status).toBe(401)
  })

  test('a new role ends the tokens of the earlier one, and the session takes tokens of the new one', async () => {
    const { operator, opened, call } = await working('ADMIN')
    expect((await call('POST', '/v2/profiles', { nickname: 'before' })).status).toBe(200)
    await transaction(service.db, (tx) => setRole(tx, ROW_MACS, operator, 'VIEWER', TEST_ORIGIN))
    await expect.poll(profiles(call), SOON).toBe(401)
    const next = caller(service.app, (await takeToken(opened)).body.access_token)
    expect(await profiles(next)()).toBe(200)
    expect((await next('POST', '/v2/profiles', { nickname: 'after' })).status).toBe(403)
  })

  test('a disabled operator has no token and no session left, also when it is enabled again', async () => {
    const { operator, opened, call } = await working('OPERATOR')
    expect(await profiles(call)()).toBe(200)
    await transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN))
    await expect.poll(profiles(call), SOON).toBe(401)
    await transaction(service.db, (tx) => enableOperator(tx, ROW_MACS, operator))
    expect((await takeToken(opened)).status).toBe(401)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await profiles(call)()).toBe(401)
  })
})

describe('its own sessions and passkeys', () => {
  const SESSIONS = '/v2/operators/sessions'
  const PASSKEYS = '/v2/operators/passkeys'

  async function withPasskey(role: Role) {
    const one = await working(role)
    const passkey_id = crypto.randomUUID()
    await service.owner.query(
      `insert into operator_passkeys (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
       values ($1, $2, clock_timestamp(), 'Laptop', gen_random_uuid()::text, '', 0, '{}')`,
      [passkey_id, one.operator.id],
    )
    return { ...one, passkey_id }
  }
  const idsAt = async (call: ReturnType<typeof caller>, path: string) =>
    (await call<{ items: { id: string }[] }>('GET', path)).body.items.map(({ id }) => id)

  test('an operator lists and removes them, and nobody else does', async () => {
    const { operator, opened, call, passkey_id } = await withPasskey('APPROVER')
    const stranger = await withPasskey('ADMIN')
    const second = await signedIn(operator)
    expect((await idsAt(call, SESSIONS)).sort()).toEqual([opened.session.id, second.session.id].sort())
    expect(await idsAt(call, PASSKEYS)).toEqual([passkey_id])
    for (const path of [`${SESSIONS}/${second.session.id}`, `${PASSKEYS}/${passkey_id}`]) {
      expect((await stranger.call('DELETE', path)).status, path).toBe(404)
      expect((await call('DELETE', path)).body, path).toEqual({})
    }
    expect((await takeToken(second)).status).toBe(401)
    expect(await idsAt(call, PASSKEYS)).toEqual([])
    expect(await idsAt(stranger.call, PASSKEYS)).toEqual([stranger.passkey_id])
    const { rows } = await service.db.query<{ action: string }>(
      `select action from audit_log where customer_id = $1 and actor_id = $2 and action <> 'operator.sign_in' order by id`,
      [customer.customer_id, operator.id],
    )
    expect(rows.map(({ action }) => action)).toEqual(['session.revoke', 'passkey.delete'])
  })

  test('a VIEWER removes none, an API client sees none, and nobody without a token', async () => {
    const { opened, call, passkey_id } = await withPasskey('VIEWER')
    expect(await idsAt(call, SESSIONS)).toEqual([opened.session.id])
    expect(await idsAt(call, PASSKEYS)).toEqual([passkey_id])
    for (const path of [`${SESSIONS}/${opened.session.id}`, `${PASSKEYS}/${passkey_id}`]) {
      expect((await call('DELETE', path)).status).toBe(403)
      expect((await customer.call('DELETE', path)).status).toBe(403)
      expect((await service.app.inject({ method: 'DELETE', url: path })).statusCode).toBe(401)
    }
    for (const path of [SESSIONS, PASSKEYS]) expect((await customer.call('GET', path)).status).toBe(403)
    expect(await idsAt(call, PASSKEYS)).toEqual([passkey_id])
    expect((await call('GET', `${SESSIONS}?x=1`)).status).toBe(400)
  })
})

describe('a forged token', () => {
  const signed = async (claims: JWTPayload, iss = BASE_URL) => {
    const { privateKey, id: kid } = await signerOf(service.db)
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ iss, aud: BASE_URL, iat: now, exp: now + 60, scope: SCOPES.join(' '), ...claims })
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
      .sign(privateKey)
  }
  /** The claims of a real token, so that each row differs from it in one claim. */
  const claimsOf = (token: string): JWTPayload => decodeJwt(token)

  test.each<[string, (mine: JWTPayload) => Promise<JWTPayload>]>([
    ['for another customer', async (mine) => ({ ...mine, customer_id: other.customer_id })],
    ['of an unknown session', async (mine) => ({ ...mine, session_id: crypto.randomUUID() })],
    ['without a session', async (mine) => ({ ...mine, session_id: undefined })],
    [
      "of another operator's session",
      async (mine) => ({ ...mine, session_id: (await working('ADMIN')).opened.session.id }),
    ],
    ['of an operator that is no id', async (mine) => ({ ...mine, operator_id: "' or true --" })],
    ['of an earlier generation', async (mine) => ({ ...mine, generation: -1 })],
    ['without a generation', async (mine) => ({ ...mine, generation: undefined })],
  ])('%s is refused', async (_, forge) => {
    const { access_token } = await working('ADMIN')
    const call = caller(service.app, await signed(await forge(claimsOf(access_token))))
    expect((await call('GET', '/v2/profiles')).status).toBe(401)
    const unchanged = caller(service.app, await signed(claimsOf(access_token)))
    expect((await unchanged('GET', '/v2/profiles')).status).toBe(200)
  })

  test('with more scopes than the role has is cut to the role', async () => {
    const { access_token } = await working('VIEWER')
    // Not those without operations: the token would be longer than any that is read.
    const scope = scopesOfRole('ADMIN', 'sandbox').join(' ')
    const call = caller(service.app, await signed({ ...claimsOf(access_token), scope }))
    expect((await call('POST', '/v2/profiles', { nickname: 'x' })).status).toBe(403)
  })
})

describe('an API client', () => {
  test('cannot be given the scope of an operator', async () => {
    const scopes = [...OPERATOR_SCOPES] as never
    await expect(createApiClient(service.db, ROW_MACS, customer.customer_id, scopes)).rejects.toThrow(
      'api_clients_scopes',
    )
  })

  test('cannot use the scope of an operator, though its token has it', async () => {
    const { privateKey, id: kid } = await signerOf(service.db)
    const { customer_id, client_id } = customer
    const token = await new SignJWT({
      customer_id,
      client_id,
      scope: `funding:read_profile ${OPERATOR_SCOPES.join(' ')}`,
    })
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
      .setIssuer(BASE_URL)
      .setAudience(BASE_URL)
      .setSubject(client_id)
      .setIssuedAt()
      .setExpirationTime('1m')
      .sign(privateKey)
    const call = caller(service.app, token)
    expect((await call('GET', '/v2/profiles')).status).toBe(200)
    const { body } = await call('POST', '/v2/profiles', { nickname: 'x' })
    expect(body.meta).toMatchObject({ found_scopes: ['funding:read_profile'] })
  })

  test('gets no token with the session of an operator', async () => {
    const { session_secret, operator } = await signedIn(await newOperator())
    const client = { client_id: operator.id, client_secret: session_secret }
    await expect(fetchToken(service.app, client)).rejects.toThrow('invalid_client')
  })
})

test('a sign-in, a failed one of a known operator, and a sign-out are in the audit log of its customer', async () => {
  const operator = await newOperator('ADMIN', customer.customer_id)
  const link = await linkOf(operator)
  const { body } = await post<Opened>('/sign-in/link', { link })
  await post('/sign-in/link', { link })
  await post('/sign-in/link', { link: 'bursar_link_unknown' })
  await post('/sign-out', { session_secret: body.session_secret })
  const { rows } = await service.db.query(
    `
    select action, outcome, subject_type, subject_id, ips is null as without_ip, actor_type
    from audit_log where customer_id = $1 and actor_id = $2 order by id`,
    [customer.customer_id, operator.id],
  )
  const of = { actor_type: 'OPERATOR', without_ip: false }
  const signIn = { ...of, action: 'operator.sign_in', subject_type: 'operator', subject_id: operator.id }
  expect(rows).toEqual([
    { ...signIn, outcome: 'DONE' },
    { ...signIn, outcome: 'REFUSED' },
    {
      ...of,
      action: 'session.revoke',
      outcome: 'DONE',
      subject_type: 'session',
      subject_id: body.session.id,
    },
  ])
})

test('no secret is in the log, nor in any table', async () => {
  lines.length = 0
  const operator = await newOperator('ADMIN', customer.customer_id)
  const link = await linkOf(operator)
  const { body } = await post<Opened>('/sign-in/link', { link })
  const { access_token } = (await takeToken(body)).body
  await caller(service.app, access_token)('GET', '/v2/profiles')
  await post('/sign-in/link', { link })
  const everything = lines.join('') + JSON.stringify(await everyTable(service.db))
  expect(everything).toContain(operator.id)
  for (const secret of [link, body.session_secret, access_token]) expect(everything).not.toContain(secret)
})
