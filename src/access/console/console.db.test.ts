/*
 * The console's requests: the cookie of a session in the place of an access token, and only from the console's own page. What
 * the page shows is in console/test/console.program.test.ts.
 */
import type { InjectOptions } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  BASE_URL,
  newCustomer,
  startTestService,
  TEST_ORIGIN,
  ownTestService,
} from '../../../test/support.ts'
import type { Role } from '../../contract/roles.ts'
import { transaction } from '../../db/database.ts'
import { createOperator, disableOperator, makeLink, setRole, type Operator } from '../operators/operators.ts'

const service = await ownTestService({ BURSAR_TOKEN_FAILURES_PER_MINUTE: '0' })
const customer = await newCustomer(service)
const other = await newCustomer(service)

const PAGE = { 'x-bursar-console': 'page' }
const ORIGIN = { origin: BASE_URL }

async function ask<T = Record<string, unknown>>(
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  options: InjectOptions = {},
) {
  const reply = await service.app.inject({
    method,
    url,
    ...options,
    headers: { ...PAGE, ...(method !== 'GET' && ORIGIN), ...options.headers },
  })
  return { status: reply.statusCode, headers: reply.headers, body: reply.json<T & { detail: string }>() }
}

const newOperator = (role: Role, customerId?: string): Promise<Operator> =>
  createOperator(service.db, ROW_MACS, { name: 'Ada', role, customerId })
const linkOf = async ({ id }: Operator) =>
  (await transaction(service.db, (tx) => makeLink(tx, ROW_MACS, id))).secret

/** Signs in and returns the cookie. */
async function cookieOf(operator: Operator): Promise<string> {
  const { status, headers, body } = await ask('POST', '/console/api/v2/operators/sign-in/link', {
    payload: { link: await linkOf(operator) },
  })
  expect(status).toBe(200)
  expect(JSON.stringify(body)).not.toContain('bursar_session_')
  const set = String(headers['set-cookie'])
  expect(set).toMatch(
    /^bursar_console_8080=bursar_session_[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict$/,
  )
  return set.split(';')[0]!
}

const having = (cookie: string, more: InjectOptions = {}): InjectOptions => ({
  ...more,
  headers: { cookie, ...more.headers },
})

describe('a session', () => {
  test('reads what the customer of its operator has, and nothing of another', async () => {
    const cookie = await cookieOf(await newOperator('VIEWER', customer.customer_id))
    const own = await ask<{ items: { id: string }[] }>('GET', '/console/api/v2/profiles', having(cookie))
    expect(own.status).toBe(200)
    expect(own.body.items.map(({ id }) => id)).toEqual([customer.profile_id])
    const foreign = await ask('GET', `/console/api/v2/profiles/${other.profile_id}`, having(cookie))
    expect(foreign.status).toBe(404)
    const asked = having(cookie, { headers: { 'bursar-customer': other.customer_id } })
    expect((await ask('GET', '/console/api/v2/profiles', asked)).status).toBe(403)
  })

  test('of the platform works for the customer that it names', async () => {
    const cookie = await cookieOf(await newOperator('VIEWER'))
    expect((await ask('GET', '/console/api/v2/profiles', having(cookie))).status).toBe(400)
    for (const { customer_id, profile_id } of [customer, other]) {
      const asked = having(cookie, { headers: { 'bursar-customer': customer_id } })
      const { body } = await ask<{ items: { id: string }[] }>('GET', '/console/api/v2/profiles', asked)
      expect(body.items.map(({ id }) => id)).toEqual([profile_id])
    }
    const { body } = await ask<{ session: { customers: { id: string }[]; customer_id?: string } }>(
      'GET',
      '/console/session',
      having(cookie),
    )
    expect(body.session.customers.map(({ id }) => id)).toEqual(
      expect.arrayContaining([customer.customer_id, other.customer_id]),
    )
    expect(body.session.customer_id).toBeUndefined()
  })

  test('changes records only with a role that may, and the audit log names the operator', async () => {
    const body = { nickname: 'From the console' }
    const viewer = await cookieOf(await newOperator('VIEWER', customer.customer_id))
    const refused = await ask('POST', '/console/api/v2/profiles', having(viewer, { payload: body }))
    expect(refused.status).toBe(403)
    const operator = await newOperator('OPERATOR', customer.customer_id)
    const cookie = await cookieOf(operator)
    const made = await ask<{ id: string }>(
      'POST',
      '/console/api/v2/profiles',
      having(cookie, { payload: body }),
    )
    expect(made.status).toBe(200)
    const log = await customer.call<{ items: { actor: object }[] }>(
      'GET',
      `/v2/audit-log?subject_ids=${made.body.id}&actions=profile.create`,
    )
    expect(log.body.items.map(({ actor }) => actor)).toEqual([
      { type: 'OPERATOR', id: operator.id, name: operator.name },
    ])
  })

  test('ends with the sign-out, which removes the cookie, too', async () => {
    const cookie = await cookieOf(await newOperator('VIEWER', customer.customer_id))
    const out = await ask('POST', '/console/api/v2/operators/sign-out', having(cookie, { payload: {} }))
    expect(out.status).toBe(200)
    expect(String(out.headers['set-cookie'])).toMatch(/^bursar_console_8080=; .*Max-Age=0$/)
    expect((await ask('GET', '/console/api/v2/profiles', having(cookie))).status).toBe(401)
    expect((await ask('GET', '/console/session', having(cookie))).body).not.toHaveProperty('session')
  })

  test('has the rights of a changed role after a look at the session, and none of a disabled operator', async () => {
    const operator = await newOperator('VIEWER', customer.customer_id)
    const cookie = await cookieOf(operator)
    const scopes = async () =>
      (await ask<{ session?: { scopes: string[] } }>('GET', '/console/session', having(cookie))).body.session
        ?.scopes
    expect(await scopes()).not.toContain('funding:write_profile')
    await transaction(service.db, (tx) => setRole(tx, ROW_MACS, operator, 'OPERATOR', TEST_ORIGIN))
    expect(await scopes()).toContain('funding:write_profile')
    await transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN))
    expect(await scopes()).toBeUndefined()
    await expect
      .poll(async () => (await ask('GET', '/console/api/v2/profiles', having(cookie))).status, {
        timeout: 5_000,
      })
      .toBe(401)
  })
})

describe('is refused', () => {
  let cookie: string
  beforeAll(async () => {
    cookie = await cookieOf(await newOperator('ADMIN', customer.customer_id))
  })
  const write = (headers: Record<string, string | undefined>) =>
    service.app
      .inject({
        method: 'POST',
        url: '/console/api/v2/profiles',
        headers: Object.fromEntries(
          Object.entries({ ...PAGE, ...ORIGIN, cookie, ...headers }).filter(
            ([, value]) => value !== undefined,
          ),
        ),
        payload: { nickname: `Forged ${Math.random()}` },
      })
      .then(({ statusCode }) => statusCode)

  test.each([
    ['without the header of the page', { 'x-bursar-console': undefined }, 403],
    ['without an Origin', { origin: undefined }, 403],
    ['from another origin', { origin: 'https://attacker.example' }, 403],
    ['from an opaque origin', { origin: 'null' }, 403],
    ['from a page of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['without a cookie', { cookie: undefined }, 401],
    [
      'with a cookie that is no session',
      { cookie: `bursar_console_8080=bursar_session_${'a'.repeat(43)}` },
      401,
    ],
    ['with the access token alone', { cookie: undefined, authorization: 'Bearer a.b.c' }, 401],
  ])('a change %s', async (_what, headers, status) => {
    expect(await write(headers)).toBe(status)
  })

  test('a read without the header, which a link or an image of another page would be', async () => {
    const reply = await service.app.inject({ url: '/console/api/v2/profiles', headers: { cookie } })
    expect(reply.statusCode).toBe(403)
  })

  test('a sign-in from another origin', async () => {
    const link = await linkOf(await newOperator('VIEWER', customer.customer_id))
    const options = { payload: { link }, headers: { origin: 'https://attacker.example' } }
    expect((await ask('POST', '/console/api/v2/operators/sign-in/link', options)).status).toBe(403)
  })

  test('an access token for the page', async () => {
    for (const spelt of ['access-tokens', '%61ccess-tokens', 'access%2Dtokens']) {
      const path = `/console/api/v2/operators/${spelt}`
      expect((await ask('POST', path, having(cookie, { payload: {} }))).status).toBe(403)
    }
  })

  test('the cookie at the API itself', async () => {
    const { status } = await ask('GET', '/v2/profiles', having(cookie))
    expect(status).toBe(401)
  })

  test('a sign-in without a link where there is no demo', async () => {
    const { status } = await ask('POST', '/console/session/demo', { headers: { host: '127.0.0.1:8080' } })
    expect(status).toBe(403)
  })
})

test('in live mode, without the API reference, the root leads to the console', async () => {
  const live = await startTestService({ BURSAR_MODE: 'live' })
  try {
    const root = await live.app.inject('/')
    expect([root.statusCode, root.headers.location]).toEqual([302, './console/'])
  } finally {
    await live.close()
  }
})

test('BURSAR_CONSOLE=false: no page and no session', async () => {
  const without = await startTestService({ BURSAR_CONSOLE: 'false' })
  try {
    for (const url of ['/console', '/console/', '/console/session', '/sign-in', '/console/api/v2/profiles'])
      expect((await without.app.inject({ url, headers: PAGE })).statusCode, url).toBe(404)
  } finally {
    await without.close()
  }
})
