/*
 * What has ended stays ended. Each kind of record is ended through the API. Then a thief with the service's database role puts back
 * all that the role may write (src/db/tables.ts), so that no table or column is missed, and the record is used through the API:
 * nothing happens, and `bursar verify` tells. test/thief.slow.test.ts changes one thing at a time.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  createOperator,
  makeLink,
  recordOperatorChange,
  type Operator,
} from '../src/access/operators/operators.ts'
import { insertPasskey } from '../src/access/operators/passkeys.ts'
import { disableApiClient } from '../src/access/tokens/api-clients.ts'
import { transaction } from '../src/db/database.ts'
import { PRIVILEGES } from '../src/db/tables.ts'
import { SEALED_END } from '../src/audit/freeze-ends.ts'
import { freeze, selectFreezes } from '../src/money/records/freezes.ts'
import { runOrchestrations } from '../src/resources/orchestrations/run-orchestrations.ts'
import { sealOf } from '../src/audit/sealed-rows.ts'
import { verify } from '../src/money/verify/verify.ts'
import { addTestApprover, decideAs } from './approvers.ts'
import { setPolicy } from './policies.ts'
import {
  caller,
  credit,
  fetchToken,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
} from './support.ts'

const SOON = { timeout: 20_000, interval: 50 }
const service = await ownTestService({}, { baseUrl: 'http://localhost:8080' })
const customer = await newCustomer(service)
await credit(service.ledger, customer, 'USD', '100')

// ---------------------------------------------------------------------------------------------- what the role may put back

/** Written with each record of the audit log: one that is put back stops every change, and `audit verify` tells. */
const NOT_PUT_BACK = ['audit_heads']
const WRITABLE = Object.entries(PRIVILEGES).filter(
  ([table, may]) => (may.update !== undefined || may.delete) && !NOT_PUT_BACK.includes(table),
)

type Rows = Map<string, Map<string, Record<string, unknown>>>
const keys = new Map<string, string[]>()

/** All rows of the tables that the role may change, by their primary keys. */
async function snapshot(): Promise<Rows> {
  const all: Rows = new Map()
  for (const [table] of WRITABLE) {
    if (!keys.has(table)) {
      const { rows } = await service.owner.query<{ name: string }>(
        `select attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
         where i.indrelid = $1::regclass and i.indisprimary`,
        [table],
      )
      keys.set(
        table,
        rows.map(({ name }) => name),
      )
    }
    const { rows } = await service.db.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(r) as row from ${table} r`,
    )
    all.set(
      table,
      new Map(rows.map(({ row }) => [JSON.stringify(keys.get(table)!.map((key) => row[key])), row])),
    )
  }
  return all
}

/** Puts back, as the service's role, every column that it may update, and the rows that it may insert or delete. */
async function putBack(before: Rows): Promise<void> {
  const now = await snapshot()
  for (const [table, may] of WRITABLE) {
    const isRow = keys.get(table)!.map((key) => `r."${key}" = b."${key}"`)
    const from = `jsonb_populate_record(null::${table}, $1) b`
    const was = before.get(table)!
    for (const [key, row] of was) {
      const is = now.get(table)!.get(key)
      if (is === undefined && may.insert)
        await service.db.query(`insert into ${table} select b.* from ${from}`, [row])
      const changed = (may.update ?? []).filter(
        (name) => is && JSON.stringify(is[name]) !== JSON.stringify(row[name]),
      )
      if (changed.length > 0)
        await service.db.query(
          `update ${table} r set ${changed.map((name) => `"${name}" = b."${name}"`).join(', ')} from ${from} where ${isRow.join(' and ')}`,
          [row],
        )
    }
    for (const [key, row] of now.get(table)!)
      if (may.delete && !was.has(key))
        await service.db.query(`delete from ${table} r using ${from} where ${isRow.join(' and ')}`, [row])
  }
}

// ---------------------------------------------------------------------------------------------- operators

const post = async (path: string, payload: object) => {
  const reply = await service.app.inject({ method: 'POST', url: `/v2/operators${path}`, payload })
  return { status: reply.statusCode, body: reply.json<Record<string, string> & { operator?: object }>() }
}

const newOperator = () =>
  transaction(service.db, async (tx) => {
    const { customer_id: customerId } = customer
    const made = await createOperator(tx, ROW_MACS, { name: 'Ada', role: 'ADMIN', customerId })
    await recordOperatorChange(tx, made, 'operator.create', { origin: TEST_ORIGIN })
    return made
  })

const linkOf = async ({ id }: Operator) =>
  (await transaction(service.db, (tx) => makeLink(tx, ROW_MACS, id))).secret

async function working(operator: Operator) {
  const { body } = await post('/sign-in/link', { link: await linkOf(operator) })
  const { session_secret } = body
  const take = () => post('/access-tokens', { session_secret })
  const { access_token } = (await take()).body
  return { operator, session_secret, take, call: caller(service.app, access_token!) }
}

/** An authenticator with one passkey of the operator: answers of Web Authentication, without a browser. */
async function newPasskey(operator: Operator) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x, y } = publicKey.export({ format: 'jwk' }) as { x: string; y: string }
  const point = (text: string) => Buffer.concat([Buffer.from('5820', 'hex'), Buffer.from(text, 'base64url')])
  const cose = [Buffer.from('a501020326200121', 'hex'), point(x), Buffer.from('22', 'hex'), point(y)]
  const id = randomBytes(16).toString('base64url')
  const passkey = await transaction(service.db, (tx) =>
    insertPasskey(tx, ROW_MACS, {
      ...{ operator_id: operator.id, name: 'key', credential_id: id, public_key: Buffer.concat(cose) },
      ...{ transports: [], signatures: 0 },
    }),
  )
  const answer = async () => {
    const { challenge } = (await post('/sign-in/passkey/options', {})).body
    const clientData = Buffer.from(
      JSON.stringify({
        type: 'webauthn.get',
        challenge,
        origin: 'http://localhost:8080',
        crossOrigin: false,
      }),
    )
    const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest()
    const authData = Buffer.concat([sha256('localhost'), Buffer.from('0500000000', 'hex')])
    const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), privateKey)
    const response = {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: authData.toString('base64url'),
      signature: signature.toString('base64url'),
    }
    return { response: { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} } }
  }
  return { passkey: passkey!, answer }
}

// ---------------------------------------------------------------------------------------------- the kinds of records

interface Used {
  /** Ends the record through the API. */
  end: () => Promise<unknown>
  /** Uses it; returns the status of the answer. */
  use: () => Promise<number>
}

const profiles = (call: TestCustomer['call']) => async () => (await call('GET', '/v2/profiles')).status

const hook = { name: 'hook', url: 'https://hooks.example.com/', event_types: ['*'], auth: { type: 'NONE' } }

/** A change that the customer's policy lets one approver approve. */
async function approvedChange() {
  const its = await newCustomer(service)
  const ada = await addTestApprover(service.owner, its.customer_id)
  await setPolicy(service.db, its.customer_id, {
    rules: [],
    changes: { subjects: ['WEBHOOKS'], approvals: 1 },
  })
  const asked = await its.call<{ meta: { approval_id: string } }>('POST', '/v2/webhooks', hook)
  const { approval_id } = asked.body.meta
  const make = async (id = approval_id) =>
    (await its.call('POST', `/v2/webhooks?approval_id=${id}`, hook)).status
  return { its, ada, approval_id, make }
}

const KINDS: Record<string, { refused: number; tells: RegExp; begin: () => Promise<Used> }> = {
  'a removed passkey': {
    refused: 401,
    tells: /passkey or link/,
    async begin() {
      const operator = await newOperator()
      const { passkey, answer } = await newPasskey(operator)
      const use = async () => (await post('/sign-in/passkey', await answer())).status
      expect(await use()).toBe(200)
      const { call } = await working(operator)
      return { end: () => call('DELETE', `/v2/operators/passkeys/${passkey.id}`), use }
    },
  },
  'an answered challenge': {
    refused: 401,
    // The answer alone is used: no row shows it.
    tells: /^$/,
    async begin() {
      const { answer } = await newPasskey(await newOperator())
      const given = await answer()
      const use = async () => (await post('/sign-in/passkey', given)).status
      return { end: async () => expect(await use()).toBe(200), use }
    },
  },
  'a used link': {
    refused: 401,
    tells: /passkey or link/,
    async begin() {
      const link = await linkOf(await newOperator())
      const use = async () => (await post('/sign-in/link', { link })).status
      return { end: async () => expect(await use()).toBe(200), use }
    },
  },
  'the token of an ended session': {
    refused: 401,
    tells: /every session of an operator/,
    async begin() {
      const { call, session_secret } = await working(await newOperator())
      return { end: () => post('/sign-out', { session_secret }), use: profiles(call) }
    },
  },
  'a session that a removed passkey opened': {
    refused: 401,
    tells: /every session of an operator/,
    async begin() {
      const operator = await newOperator()
      const { passkey, answer } = await newPasskey(operator)
      const { session_secret } = (await post('/sign-in/passkey', await answer())).body
      const { access_token } = (await post('/access-tokens', { session_secret })).body
      const { call } = await working(operator)
      const end = () => call('DELETE', `/v2/operators/passkeys/${passkey.id}`)
      return { end, use: profiles(caller(service.app, access_token!)) }
    },
  },
  'the token of a disabled operator': {
    refused: 401,
    tells: /every operator is in the audit log/,
    async begin() {
      const [{ operator, call }, admin] = [
        await working(await newOperator()),
        await working(await newOperator()),
      ]
      const end = () => admin.call('PUT', `/v2/operators/${operator.id}`, { status: 'DISABLED' })
      return { end, use: profiles(call) }
    },
  },
  'a session of a disabled operator': {
    refused: 401,
    tells: /every operator is in the audit log/,
    async begin() {
      const [{ operator, take }, admin] = [
        await working(await newOperator()),
        await working(await newOperator()),
      ]
      const end = () => admin.call('PUT', `/v2/operators/${operator.id}`, { status: 'DISABLED' })
      return { end, use: async () => (await take()).status }
    },
  },
  'the token of a disabled client': {
    refused: 401,
    tells: /every API client is in the audit log/,
    async begin() {
      const { call, client_id } = await newCustomer(service)
      return { end: () => disableApiClient(service.db, client_id, TEST_ORIGIN), use: profiles(call) }
    },
  },
  'a used approval of a change': {
    refused: 409,
    tells: /nothing is in use that has ended/,
    async begin() {
      const { its, ada, approval_id, make } = await approvedChange()
      await decideAs(service.db, its.customer_id, approval_id, ada)
      return { end: async () => expect(await make()).toBe(200), use: make }
    },
  },
  'a deleted fiat account': {
    refused: 0,
    tells: /nothing is in use that has ended/,
    async begin() {
      const { body } = await customer.call('POST', '/v2/transfer/fiat-accounts', {
        fiat_account_owner: { institution_details: { name: 'Acme' } },
        fiat_network_instructions: { wire: { account_number: '000987654321' } },
      })
      return {
        end: () => customer.call('DELETE', `/v2/transfer/fiat-accounts/${String(body.id)}`),
        use: async () => 0,
      }
    },
  },
  'a deactivated profile': {
    refused: 0,
    tells: /nothing is in use that has ended/,
    async begin() {
      const { body } = await customer.call('POST', '/v2/profiles', { nickname: crypto.randomUUID() })
      return {
        end: () => customer.call('PUT', `/v2/profiles/${String(body.id)}/deactivate`),
        use: async () => 0,
      }
    },
  },
}

/** Waits until this process has read its list of disabled callers again. */
async function listIsRead(): Promise<void> {
  const { call, client_id } = await newCustomer(service)
  // From then on the token is cached, and only the list refuses it.
  expect(await profiles(call)()).toBe(200)
  await disableApiClient(service.db, client_id, TEST_ORIGIN)
  await expect.poll(profiles(call), SOON).toBe(401)
}

const told = async () =>
  (await verify(service.db, { rowMacs: ROW_MACS })).disagreements.map(({ rule }) => rule)

test.each(Object.entries(KINDS))('%s is not put back', async (_, { begin, refused, tells }) => {
  const { end, use } = await begin()
  const before = await snapshot()
  await end()
  const ended = await snapshot()
  await expect.poll(use, SOON).toBe(refused)
  await putBack(before)
  if (tells.source !== '^$') expect((await told()).join('\n')).toMatch(tells)
  await listIsRead()
  expect(await use()).toBe(refused)
  await putBack(ended)
  expect(await told()).toEqual([])
})

test('a freeze whose end the database wrote holds everywhere, and is listed', async () => {
  const [gone, frozen, accomplice] = [
    await newCustomer(service),
    await newCustomer(service),
    await newCustomer(service),
  ]
  const freezeFor = ({ customer_id }: TestCustomer, reason: 'DISABLED' | 'OPERATOR') =>
    freeze(service.db, TEST_ORIGIN, { kind: 'CUSTOMER', customer_id }, reason, 'a leak')
  const lift = () =>
    service.db.query(
      "update customer_freezes set lifted_at = (select clock_timestamp()), sealed_at = (select clock_timestamp()), mac = 'x'",
    )
  const operator = await createOperator(service.db, ROW_MACS, {
    ...{ name: 'Ada', role: 'ADMIN', customerId: gone.customer_id },
  })
  const { take } = await working(operator)
  await freezeFor(gone, 'DISABLED')
  await lift()
  await listIsRead()
  expect(await profiles(gone.call)()).toBe(401)
  await expect(fetchToken(service.app, gone)).rejects.toThrow('invalid_client')
  expect((await take()).status).toBe(403)

  await credit(service.ledger, frozen, 'USD', '10')
  const { body: other } = await frozen.call('POST', '/v2/profiles', { nickname: 'other' })
  const rule = await frozen.call('POST', '/v2/orchestration/rules', {
    ...{ ref_id: 'rule', profile_id: frozen.profile_id, source_asset: 'USD', destination_asset: 'USDP' },
    ...{
      source: { profile: { profile_id: frozen.profile_id } },
      destination: { profile: { profile_id: other.id } },
    },
  })
  expect(rule.status).toBe(200)
  await freezeFor(frozen, 'OPERATOR')
  await credit(service.ledger, frozen, 'USD', '5')
  await lift()
  const from = { from_profile_id: frozen.profile_id, asset: 'USD', amount: '1' }
  for (const [path, body] of [
    ['/v2/transfer/crypto-withdrawals', withdrawalOf(frozen)],
    ['/v2/transfer/internal', { ...from, to_profile_id: other.id }],
    ['/v2/transfer/paxos', { ...from, to_profile_id: accomplice.profile_id }],
  ] as const)
    expect([path, (await frozen.call('POST', path, body)).status]).toEqual([path, 403])
  await runOrchestrations(service.db, { ...service, macs: service.ledger.macs })
  const { body: run } = await frozen.call<{ items: { status: string }[] }>(
    'GET',
    '/v2/orchestration/orchestrations',
  )
  expect(run.items.map(({ status }) => status)).not.toContain('FAILED')
  const held = await selectFreezes(service.db)
  expect(held.map(({ subject }) => subject).sort()).toEqual([gone.customer_id, frozen.customer_id].sort())
  expect(await told()).toContain('every row of customer_freezes matches its MAC')
})

test('an approval that asks for fewer approvers than the policy changes nothing', async () => {
  const { its, ada, approval_id } = await approvedChange()
  await setPolicy(service.db, its.customer_id, {
    rules: [],
    changes: { subjects: ['WEBHOOKS'], approvals: 2 },
  })
  await service.db.query(
    "update approvals set status = 'EXPIRED', ended_at = (select clock_timestamp()) where id = $1",
    [approval_id],
  )
  const { rows } = await service.db.query<{ row: object }>(
    'select to_jsonb(a) as row from approvals a where id = $1',
    [approval_id],
  )
  const forged = {
    ...rows[0]!.row,
    id: crypto.randomUUID(),
    status: 'PENDING',
    ended_at: null,
    policy_version: 2,
    required: 1,
  }
  await service.db.query('insert into approvals select * from jsonb_populate_record(null::approvals, $1)', [
    forged,
  ])
  await decideAs(service.db, its.customer_id, forged.id, ada)
  const answer = await its.call('POST', `/v2/webhooks?approval_id=${forged.id}`, hook)
  expect(answer).toMatchObject({
    status: 403,
    body: { detail: expect.stringMatching(/than the policy/) as string },
  })
})

test('the ledger reads the end of a freeze as its MAC covers it', () => {
  expect(sealOf('customer_freezes')).toBe(`${SEALED_END} as sealed, r.mac`)
})
