import { pino } from 'pino'
import { expect, test } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { describeError, logOptions } from '../src/log.ts'
import { CLUSTER } from './cluster.ts'
import { caller, DESTINATION, fund, newCustomer, startTestService, ownTestService } from './support.ts'

/*
 * The log: a line for each request, with ids and the route, and nothing of what was in it. Every operation is asked
 * with what must not be in the log, in every place that takes it; so are requests that are refused, and ones that fail.
 */

interface Line {
  level: number
  reqId?: string
  client_id?: string
  method?: string
  route?: string
  status?: number
  record_id?: string
  ms?: number
  msg: string
  err?: { message: string; stack: string; code?: string; constraint?: string }
}

let written = ''
const lines = () =>
  written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
const log = pino(logOptions('trace'), { write: (line: string) => void (written += line) })

const service = await ownTestService({}, { log })
const customer = await newCustomer(service)
await fund(customer, '1000')

const PRIVATE = {
  first_name: 'Wilhelmina-Private',
  last_name: 'Oberkofler-Private',
  street: '17 Hidden-Lane',
  email: 'wilhelmina.private@secret.example',
  phone: '+15550104477',
  account_number: '998877665544',
  memo: 'rent-of-the-hidden-flat',
  nickname: 'my-hidden-nickname',
  metadata: 'hidden-metadata-value',
  birth: '1961-07-23',
}
const ADDRESS = { street1: PRIVATE.street, city: 'Hidden-City', country: 'US' }
const OWNER = { person_details: { first_name: PRIVATE.first_name, last_name: PRIVATE.last_name } }
const WIRE = {
  account_number: PRIVATE.account_number,
  fiat_account_type: 'CHECKING',
  routing_details: { routing_number_type: 'ABA', routing_number: '021000021' },
}

/** A body for each operation that takes one; what it does not take is refused, which is a line too. */
function bodyOf(url: string): Record<string, unknown> {
  const { profile_id } = customer
  const metadata = { note: PRIVATE.metadata }
  switch (url) {
    case '/v2/transfer/crypto-withdrawals':
      return {
        profile_id,
        asset: 'USDP',
        balance_asset: 'USD',
        crypto_network: 'ETHEREUM',
        amount: '10',
        destination_address: DESTINATION,
        memo: PRIVATE.memo,
        beneficiary: OWNER,
        metadata,
      }
    case '/v2/identity/identities':
      return {
        ref_id: 'a-person',
        metadata,
        person_details: {
          ...OWNER.person_details,
          date_of_birth: PRIVATE.birth,
          address: ADDRESS,
          email: PRIVATE.email,
          phone_number: PRIVATE.phone,
        },
      }
    case '/v2/transfer/fiat-accounts':
      return { fiat_account_owner: OWNER, fiat_network_instructions: { wire: WIRE }, metadata }
    case '/v2/profiles':
      return { nickname: PRIVATE.nickname, description: PRIVATE.memo }
    default:
      return { profile_id, amount: '1', asset: 'USD', memo: PRIVATE.memo, metadata, ...OWNER }
  }
}

function expectNothingPrivate(): void {
  const mustNotBe = {
    ...PRIVATE,
    token: customer.token,
    secret: customer.client_secret,
    basic: Buffer.from(`${customer.client_id}:${customer.client_secret}`).toString('base64'),
    wrong: 'a-wrong-secret-of-somebody',
    destination: DESTINATION,
    profile: customer.profile_id,
    private_key: 'private_jwk',
  }
  for (const [what, value] of Object.entries(mustNotBe)) {
    expect(written.includes(value), what).toBe(false)
    expect(written.includes(encodeURIComponent(value)), what).toBe(false)
  }
}

test('every operation is a line with ids, route, status and time, and nothing of the request', async () => {
  const recorded: string[] = []
  for (const { method, url, scope } of OPERATIONS) {
    const path = url.replaceAll(/:\w+|\{\w+\}/g, customer.profile_id)
    const reply = await customer.call(
      method,
      `${path}?ref_ids=${encodeURIComponent(PRIVATE.email)}`,
      method === 'POST' || method === 'PUT' ? bodyOf(url) : undefined,
    )
    expect(reply.headers['x-request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)
    const line = lines().at(-1)!
    expect(line).toMatchObject({
      level: 30,
      msg: 'request',
      reqId: reply.headers['x-request-id'],
      // A public operation does not look who asks.
      ...(scope !== null && { client_id: customer.client_id }),
      method,
      route: url,
      status: reply.status,
      ms: expect.any(Number) as number,
    })
    // The same without the query, which most refuse.
    const again = method === 'POST' || method === 'PUT' ? bodyOf(url) : undefined
    const { status, body } = await customer.call<{ id?: string; rule?: { id: string } }>(method, path, again)
    // Which client made a record is found by the record.
    const made = method === 'POST' && status === 200 ? (body.id ?? body.rule?.id) : undefined
    expect(lines().at(-1)).toMatchObject({ route: url, status })
    expect(lines().at(-1)!.record_id, url).toBe(made)
    if (made !== undefined) recorded.push(url)
  }
  const answered = (route: string) => lines().some((line) => line.route === route && line.status === 200)
  for (const url of ['/v2/transfer/crypto-withdrawals', '/v2/identity/identities', '/v2/profiles'])
    expect(answered(url), url).toBe(true)
  for (const url of ['/v2/transfer/crypto-withdrawals', '/v2/transfer/fiat-accounts', '/v2/profiles'])
    expect(recorded).toContain(url)
  expectNothingPrivate()
})

test('a request for many withdrawals is a line with the ids of the created withdrawals', async () => {
  const one = bodyOf('/v2/transfer/crypto-withdrawals')
  const made = await customer.call<{ items: { transfer?: { id: string } }[] }>(
    'POST',
    '/v2/transfer/crypto-withdrawals/bulk',
    {
      withdrawals: [
        { ...one, ref_id: 'a' },
        { ...one, ref_id: 'a' },
        { ...one, ref_id: 'b' },
      ],
    },
  )
  const ids = made.body.items.flatMap(({ transfer }) => transfer?.id ?? [])
  expect(ids).toHaveLength(2)
  expect(lines().at(-1)).toMatchObject({ status: 200, record_ids: ids })
  expectNothingPrivate()
})

test('nor of tokens, wrong secrets, unknown paths and unreadable requests', async () => {
  const { app } = service
  const payload = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: customer.client_id,
    client_secret: 'a-wrong-secret-of-somebody',
  }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  expect((await app.inject({ method: 'POST', url: '/oauth2/token', payload, headers })).statusCode).toBe(401)
  await app.inject({ url: `/v2/${PRIVATE.account_number}?email=${PRIVATE.email}` })
  await app.inject({ url: '/v2/profiles', headers: { authorization: `Bearer ${customer.token}x` } })
  await customer.call('POST', '/v2/profiles', undefined, {
    payload: `{"nickname":"${PRIVATE.nickname}`,
    headers: { 'content-type': 'application/json' },
  })
  await caller(app, customer.token)('DELETE', `/v2/profiles?x=${PRIVATE.email}`)
  expect(
    lines()
      .slice(-5)
      .map(({ method, route, status }) => [method, route, status]),
  ).toEqual([
    ['POST', '/oauth2/token', 401],
    ['GET', undefined, 404],
    ['GET', '/v2/profiles', 401],
    ['POST', '/v2/profiles', 400],
    ['DELETE', '/v2/profiles', 405],
  ])
  expectNothingPrivate()
})

test('nor of failed statements: PostgreSQL repeats the row in its error, the log does not', async () => {
  const { owner } = service
  await owner.query('alter table identities add constraint broken check (ref_id is null) not valid')
  const failed = await customer.call('POST', '/v2/identity/identities', {
    ...bodyOf('/v2/identity/identities'),
    ref_id: 'another-person',
  })
  expect(failed.status).toBe(500)
  await owner.query('alter table identities drop constraint broken')
  const line = lines().find(({ err }) => err !== undefined)!
  expect(line).toMatchObject({ level: 50, client_id: customer.client_id, route: '/v2/identity/identities' })
  expect(line.reqId).toBe((failed.body.meta as { request_id: string }).request_id)
  // A cluster names the constraint of a shard, and only in the message.
  expect(line.err).toMatchObject({ code: '23514', ...(CLUSTER.length === 0 && { constraint: 'broken' }) })
  expect(line.err!.message).toContain('violates check constraint "broken')
  expectNothingPrivate()
})

test.skipIf(CLUSTER.length > 0)('a database without room, memory or a sound disk is a 503', async () => {
  const { owner } = service
  await owner.query(`
    create function fails() returns trigger language plpgsql as $$ begin raise exception 'no room' using errcode = new.ref_id; end $$;
    create trigger fails before insert on identities for each row execute function fails()`)
  for (const code of [
    '53000',
    '53100',
    '53200',
    '53300',
    '53400',
    '57P01',
    '57P04',
    '57P05',
    '58000',
    '58030',
    '58P01',
  ]) {
    const person = bodyOf('/v2/identity/identities')
    const failed = await customer.call('POST', '/v2/identity/identities', { ...person, ref_id: code })
    expect({ code, status: failed.status, after: failed.headers['retry-after'] }).toEqual({
      code,
      status: 503,
      after: '1',
    })
    expect(lines().at(-2)).toMatchObject({ level: 50, err: { code } })
  }
  await owner.query('drop function fails() cascade')
})

test('of health checks, the changes alone are logged', async () => {
  const { app } = service
  const from = lines().length
  for (const starting of [false, false, true, true, false]) {
    app.requests.starting = starting
    await app.inject('/health/ready')
    await app.inject('/health/live')
  }
  const told = lines()
    .slice(from)
    .filter(({ msg }) => msg === 'request')
  expect(told.map(({ route, status }) => `${route} ${status}`)).toEqual([
    '/health/ready 200',
    '/health/live 200',
    '/health/ready 503',
    '/health/ready 200',
  ])
})

test('an error about a value is logged without the value', async () => {
  const error = await service.db
    .query(`select $1::uuid`, [PRIVATE.account_number])
    .catch((one: unknown) => one)
  expect(String(error)).toContain(PRIVATE.account_number)
  const told = JSON.stringify(describeError(new AggregateError([error], 'some', { cause: error })))
  expect(told).toContain('invalid input syntax for type uuid')
  expect(told).not.toContain(PRIVATE.account_number)
})

test('BURSAR_LOG_REQUESTS=false logs failures only', async () => {
  const quiet = await startTestService({ BURSAR_LOG_REQUESTS: 'false' }, { log })
  const before = lines().length
  const { call } = await newCustomer(quiet)
  expect((await call('GET', '/v2/profiles')).status).toBe(200)
  expect(lines().slice(before)).toEqual([])
  await quiet.close()
})
