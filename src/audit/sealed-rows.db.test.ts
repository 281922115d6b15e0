/*
 * The attacker has the service's database role, and no master key. Rows that the attacker makes, changes or puts back
 * authenticate nobody, with the answer for a wrong secret. They are told: in the log, and by `bursar verify`.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import {
  MASTER_KEY,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  ownTestService,
} from '../../test/support.ts'
import { transaction } from '../db/database.ts'
import { masterKeysOf } from '../keys/master-keys.ts'
import {
  createApiClient,
  disableApiClient,
  enableApiClient,
  rotateSecret,
} from '../access/tokens/api-clients.ts'
import {
  listSigningKeys,
  openSigningKeys,
  retireSigningKey,
  rotateSigningKeys,
} from '../access/tokens/signing-keys.ts'
import {
  createOperator,
  disableOperator,
  enableOperator,
  lockOperator,
  makeLink,
  recordOperatorChange,
  setRole,
} from '../access/operators/operators.ts'
import { verify } from '../money/verify/verify.ts'
import { RowMacs } from './sealed-rows.ts'

const logged: string[] = []
const log = pino({ level: 'error' }, { write: (line: string) => void logged.push(line) })
const service = await ownTestService({ BURSAR_TOKEN_FAILURES_PER_MINUTE: '100000' }, { log })
const customer = await newCustomer(service)

const sha256 = (text: string) => createHash('sha256').update(text).digest()
const secretOf = (kind: string) => `bursar_${kind}_${randomBytes(32).toString('base64url')}`

async function token({ client_id, client_secret }: { client_id: string; client_secret: string }) {
  const reply = await service.app.inject({
    method: 'POST',
    url: '/oauth2/token',
    payload: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  return { status: reply.statusCode, body: reply.json<object>() }
}

async function post<T = { detail?: string }>(path: string, payload: object) {
  const reply = await service.app.inject({ method: 'POST', url: `/v2/operators${path}`, payload })
  return { status: reply.statusCode, body: reply.json<T>() }
}

const newClient = () =>
  createApiClient(service.db, ROW_MACS, customer.customer_id, ['transfer:read_transfer'])

/** An operator of the customer who has signed in. */
async function signedIn() {
  const { customer_id: customerId } = customer
  const operator = await transaction(service.db, async (tx) => {
    const made = await createOperator(tx, ROW_MACS, { name: 'Ada', role: 'VIEWER', customerId })
    await recordOperatorChange(tx, made, 'operator.create', { origin: TEST_ORIGIN })
    return made
  })
  const { secret: link } = await transaction(service.db, (tx) => makeLink(tx, ROW_MACS, operator.id))
  const { body } = await post<{ session: { id: string }; session_secret: string }>('/sign-in/link', { link })
  return { operator, session_secret: body.session_secret, session_id: body.session.id }
}

const brokenBy = async () =>
  (await verify(service.db, { rowMacs: ROW_MACS })).disagreements.map(
    ({ rule, detail }) => `${rule}: ${detail}`,
  )

/** Expects that the row is refused and told, and puts it right again by the work that is given. */
async function expectRefused(
  id: string,
  ask: () => Promise<{ status: number }>,
  restore: () => Promise<unknown>,
) {
  logged.length = 0
  expect((await ask()).status).toBe(401)
  expect(logged.filter((line) => line.includes(id) && line.includes('is refused'))).not.toEqual([])
  expect((await brokenBy()).filter((line) => line.includes(id))).not.toEqual([])
  await restore()
  expect((await brokenBy()).filter((line) => line.includes(id))).toEqual([])
}

describe('an API client', () => {
  const set = (id: string, text: string, values: unknown[] = []) =>
    service.db.query(`update api_clients set ${text} where id = $1`, [id, ...values])
  const rowOf = async (id: string) =>
    (await service.db.query<Record<string, unknown>>('select * from api_clients where id = $1', [id]))
      .rows[0]!

  /** Puts an older row back, with its MAC. */
  const putBack = (row: Record<string, unknown>) =>
    set(
      row.id as string,
      `secret_hash = $2, previous_secret_hash = $3, previous_secret_expires_at = $4, disabled_at = $5, updated_at = $6,
       sealed_at = $7, mac = $8`,
      [
        'secret_hash',
        'previous_secret_hash',
        'previous_secret_expires_at',
        'disabled_at',
        'updated_at',
        'sealed_at',
        'mac',
      ].map((name) => row[name]),
    )

  test('is refused that was invented, with the answer for a wrong secret', async () => {
    const [id, secret] = [randomUUID(), 'x'.repeat(43)]
    const real = await newClient()
    await service.db.query(
      `insert into api_clients (customer_id, id, secret_hash, scopes, created_at, updated_at, sealed_at, mac)
       select customer_id, $2, $3, scopes, created_at, updated_at, sealed_at, mac from api_clients where id = $1`,
      [real.client_id, id, sha256(secret)],
    )
    const forged = { client_id: id, client_secret: secret }
    expect(await token(forged)).toEqual(await token({ ...real, client_secret: 'wrong' }))
    await expectRefused(
      id,
      () => token(forged),
      () => service.owner.query('delete from api_clients where id = $1', [id]),
    )
    expect((await token(real)).status).toBe(200)
  })

  test.each([
    ['a planted secret', `secret_hash = $2`],
    [
      'a planted previous secret',
      `previous_secret_hash = $2, previous_secret_expires_at = now() + interval '1 day'`,
    ],
  ])('is refused with %s', async (_name, change) => {
    const { client_id } = await newClient()
    const before = await rowOf(client_id)
    await set(client_id, change, [sha256('planted')])
    await expectRefused(
      client_id,
      () => token({ client_id, client_secret: 'planted' }),
      () => putBack(before),
    )
  })

  test('is refused after it was disabled, also with its row from before', async () => {
    const client = await newClient()
    const before = await rowOf(client.client_id)
    await disableApiClient(service.db, client.client_id, TEST_ORIGIN)
    const disabled = await rowOf(client.client_id)
    for (const attack of [() => set(client.client_id, 'disabled_at = null'), () => putBack(before)]) {
      await attack()
      await expectRefused(
        client.client_id,
        () => token(client),
        () => putBack(disabled),
      )
    }
    await set(client.client_id, 'secret_hash = $2', [sha256('planted')])
    const enable = () =>
      transaction(service.db, (tx) => enableApiClient(tx, ROW_MACS, client.client_id, TEST_ORIGIN))
    await expect(enable()).rejects.toThrow(/was changed or invented in the database/)
    await putBack(disabled)
    expect(await enable()).toBe(true)
    expect((await token(client)).status).toBe(200)
  })

  test('is refused with the row from before its secret was rotated', async () => {
    const client = await newClient()
    const before = await rowOf(client.client_id)
    await transaction(service.db, (tx) => rotateSecret(tx, ROW_MACS, client.client_id, 0, TEST_ORIGIN))
    const rotated = await rowOf(client.client_id)
    await putBack(before)
    await expectRefused(
      client.client_id,
      () => token(client),
      () => service.owner.query(`delete from audit_log where subject_id = $1`, [client.client_id]),
    )
    await putBack(rotated)
  })
})

describe('an operator', () => {
  const set = (id: string, text: string) =>
    service.db.query(`update operators set ${text} where id = $1`, [id])
  const take = (session_secret: string) => post('/access-tokens', { session_secret })

  test('and a session are refused that were invented, and so is a link', async () => {
    const [id, session, link] = [randomUUID(), secretOf('session'), secretOf('link')]
    await service.db.query(
      `insert into operators (id, created_at, updated_at, name, role, customer_id, generation)
       values ($1, clock_timestamp(), clock_timestamp(), 'x', 'ADMIN', $2, 0)`,
      [id, customer.customer_id],
    )
    await service.db.query(
      `insert into operator_sessions (id, operator_id, created_at, used_at, expires_at, secret_hash, method)
       values ($1, $2, clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '12 hours', $3, 'LINK')`,
      [randomUUID(), id, sha256(session)],
    )
    await service.db.query(
      `insert into operator_links (hash, operator_id, created_at, expires_at)
       values ($1, $2, clock_timestamp(), clock_timestamp() + interval '10 minutes')`,
      [sha256(link), id],
    )
    await service.db.query(
      `insert into operator_passkeys (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
       values ($1, $2, clock_timestamp(), 'x', 'credential', '\\x00', 0, '{}')`,
      [randomUUID(), id],
    )
    expect((await post('/sign-in/link', { link })).status).toBe(401)
    const broken = (await brokenBy()).join('\n')
    for (const table of ['operators', 'operator_sessions', 'operator_links', 'operator_passkeys'])
      expect(broken).toContain(`every row of ${table} matches its MAC`)
    await expectRefused(
      id,
      () => take(session),
      async () => {
        for (const table of ['operator_sessions', 'operator_links', 'operator_passkeys'])
          await service.owner.query(`delete from ${table} where operator_id = $1`, [id])
        await service.owner.query('delete from operators where id = $1', [id])
      },
    )
  })

  test('is refused a session that was invented for it', async () => {
    const { operator, session_secret } = await signedIn()
    const [id, planted] = [randomUUID(), secretOf('session')]
    await service.db.query(
      `insert into operator_sessions (id, operator_id, created_at, used_at, expires_at, secret_hash, method, sealed_at, mac)
       select $2, operator_id, created_at, used_at, expires_at, $3, method, sealed_at, mac
       from operator_sessions where operator_id = $1`,
      [operator.id, id, sha256(planted)],
    )
    await expectRefused(
      id,
      () => take(planted),
      () => service.owner.query('delete from operator_sessions where id = $1', [id]),
    )
    expect((await take(session_secret)).status).toBe(200)
  })

  test('is refused with another role, and after it was disabled', async () => {
    const { operator, session_secret } = await signedIn()
    await set(operator.id, `role = 'ADMIN'`)
    await expectRefused(
      operator.id,
      () => take(session_secret),
      () => set(operator.id, `role = 'VIEWER'`),
    )
    expect((await take(session_secret)).status).toBe(200)
    await transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN))
    await set(operator.id, 'disabled_at = null')
    await service.db.query('update operator_sessions set ended_at = null where operator_id = $1', [
      operator.id,
    ])
    await expectRefused(
      operator.id,
      () => take(session_secret),
      () => set(operator.id, 'disabled_at = now()'),
    )
    await set(operator.id, `role = 'ADMIN'`)
    const enable = () =>
      transaction(service.db, async (tx) =>
        enableOperator(tx, ROW_MACS, (await lockOperator(tx, operator.id))!),
      )
    await expect(enable()).rejects.toThrow(/was changed or invented in the database/)
    await set(operator.id, `role = 'VIEWER'`)
    await enable()
    // The session ended with the operator, and is not opened again.
    expect((await take(session_secret)).status).toBe(401)
  })

  test('is not given another role once it was changed in the database', async () => {
    const { operator } = await signedIn()
    await expect(
      transaction(service.db, (tx) =>
        setRole(tx, ROW_MACS, { ...operator, mac: null }, 'ADMIN', TEST_ORIGIN),
      ),
    ).rejects.toThrow(/it has no MAC/)
  })
})

test('rows without a MAC get one, and the current key makes them again', async () => {
  const client = await newClient()
  await service.db.query('update api_clients set mac = null, sealed_at = null')
  expect((await token(client)).status).toBe(401)
  await transaction(service.db, (tx) => ROW_MACS.sealAll(tx, 'api_clients'))
  expect((await token(client)).status).toBe(200)
  const newer = new RowMacs(masterKeysOf([randomBytes(32).toString('hex'), MASTER_KEY], 'BURSAR_MASTER_KEY'))
  expect(await newer.renew(service.db)).toBeGreaterThan(0)
  expect(await newer.renew(service.db)).toBe(0)
  expect((await token(client)).status).toBe(401)
  expect(await newer.notGenuine(service.db, 'api_clients', customer.customer_id)).toEqual([])
})

test('a signing key that was retired and put back is trusted by nobody, and verify finds it', async () => {
  const first = (await listSigningKeys(service.db)).find(({ status }) => status === 'SIGNS')!
  const { rows } = await service.db.query<{ encrypted_jwk: string }>(
    'select encrypted_jwk from signing_keys where id = $1',
    [first.id],
  )
  await rotateSigningKeys(service.db, MASTER_KEYS, { now: true, origin: TEST_ORIGIN })
  await retireSigningKey(service.db, first.id, TEST_ORIGIN)
  await service.db.query('update signing_keys set encrypted_jwk = $2, retired_at = null where id = $1', [
    first.id,
    rows[0]!.encrypted_jwk,
  ])
  const keys = await openSigningKeys(service.db, MASTER_KEYS)
  keys.close()
  expect(keys.isTrusted(first.id)).toBe(false)
  expect(keys.isTrusted(keys.signer.id)).toBe(true)
  expect(await brokenBy()).toContain(`no signing key that was retired is in use: ${first.id}`)
  expect(await retireSigningKey(service.db, first.id, TEST_ORIGIN)).toBe(true)
  expect((await brokenBy()).filter((line) => line.startsWith('no signing key'))).toEqual([])
})
