/* What operators decide over the API (docs/reference/operators.md), who may not, and that the audit log names them. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BANK, PAYEE_ACCOUNT } from '../../../test/bank.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import { setPolicy } from '../../../test/policies.ts'
import {
  credit,
  everyTable,
  newCustomer,
  type TestCustomer,
  ownTestService,
  newProfile,
} from '../../../test/support.ts'
import { DEPLOYMENT_SCOPES } from '../../contract/scopes.ts'
import { momentAt, momentOfMicros } from '../../db/ids.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { OPERATOR_OPERATIONS } from '../../program/app.ts'
import { ownFolder } from '../../../test/at-end.ts'
import { refusedWith } from '../../../test/matchers.ts'

type Call = TestCustomer['call']

const BURSAR_BANK_FILE = join(await ownFolder(), 'bank.json')
await writeFile(BURSAR_BANK_FILE, JSON.stringify(BANK))
const service = await ownTestService({ BURSAR_MODE: 'live', BURSAR_BANK_FILE })
const customer = await newCustomer(service)
const other = await newCustomer(service)
const ofDeployment = { actFor: customer.customer_id }
const own = { customerId: customer.customer_id }
/** The deployment's people, and those of the customer. */
const people: Record<'admin' | 'operator' | 'viewer' | 'ownAdmin' | 'ownOperator', Call> = {
  admin: await newOperatorCaller(service, 'ADMIN', ofDeployment),
  operator: await newOperatorCaller(service, 'OPERATOR', ofDeployment),
  viewer: await newOperatorCaller(service, 'VIEWER', ofDeployment),
  ownAdmin: await newOperatorCaller(service, 'ADMIN', own),
  ownOperator: await newOperatorCaller(service, 'OPERATOR', own),
}

const actionsOf = async (subject: string) =>
  (
    await customer.call<{ items: { action: string; actor: { type: string } }[] }>(
      'GET',
      `/v2/audit-log?subject_ids=${subject}`,
    )
  ).body.items
    .filter(({ actor }) => actor.type === 'OPERATOR')
    .map(({ action }) => action)

/** Asks for a wire of 40 USD from a profile that is given the money. */
async function withdraw(profile_id: string) {
  await credit(service.ledger, { ...customer, profile_id }, 'USD', '40')
  const { body: account } = await customer.call('POST', '/v2/transfer/fiat-accounts', PAYEE_ACCOUNT)
  const body = { profile_id, asset: 'USD', fiat_account_id: account.id, amount: '40' }
  return customer.call('POST', '/v2/transfer/fiat-withdrawals', body)
}

describe('rights', () => {
  const PLACES: Record<string, string> = {
    ':id': '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    ':client_id': '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    ':limit': 'requests_per_second',
  }
  const statusOf = async (call: Call, { method, url }: (typeof OPERATOR_OPERATIONS)[number]) =>
    (
      await call(
        method,
        url.replaceAll(/:\w+/g, (name) => PLACES[name]!),
        method === 'GET' ? undefined : {},
      )
    ).status

  test('no API client has them, a VIEWER only reads, and what is of the deployment is not of a customer', async () => {
    for (const one of OPERATOR_OPERATIONS) {
      const name = `${one.method} ${one.url}`
      expect(await statusOf(customer.call, one), name).toBe(403)
      if (one.method !== 'GET') expect(await statusOf(people.viewer, one), name).toBe(403)
      const isOfDeployment = (DEPLOYMENT_SCOPES as readonly string[]).includes(one.scope!)
      const byOwn = await statusOf(people.ownAdmin, one)
      if (isOfDeployment) expect(byOwn, name).toBe(403)
      else expect(byOwn, name).not.toBe(403)
      expect(await statusOf(people.admin, one), name).not.toBe(401)
    }
  })

  test('they are not in the API document', async () => {
    const { paths } = (await service.app.inject('/openapi.json')).json<{ paths: object }>()
    expect(Object.keys(paths).filter((path) => path.startsWith('/v2/operators'))).toEqual([])
  })
})

const FREEZES = '/v2/operators/freezes'

describe('Create Freeze', () => {
  test('an OPERATOR of the customer freezes a profile, which takes no withdrawal', async () => {
    const profile_id = await newProfile(customer)
    const body = { profile_id, reason: 'three cards from one device' }
    expect(await people.ownOperator('POST', FREEZES, body)).toMatchObject({
      status: 200,
      body: { signing_ended: true },
    })
    expect(await withdraw(profile_id)).toMatchObject({ status: 403, body: { meta: { status: 'FROZEN' } } })
    expect(await actionsOf(profile_id)).toEqual(['profile.freeze'])
  })

  test("another customer's profile is not found, and is not frozen", async () => {
    const body = { profile_id: other.profile_id, reason: 'a mistake' }
    expect((await people.admin('POST', FREEZES, body)).status).toBe(404)
    const { rowCount } = await service.db.query('select 1 from customer_freezes where subject = $1', [
      other.profile_id,
    ])
    expect(rowCount).toBe(0)
  })
})

describe('List Freezes', () => {
  test('has the freezes of the customer with their reasons, and of no other customer', async () => {
    const profile_id = await newProfile(customer)
    await people.operator('POST', FREEZES, { profile_id, reason: 'a leak' })
    const frozen = expect.objectContaining({ profile_id, reason: 'OPERATOR', detail: 'a leak' }) as object
    expect((await people.viewer<{ items: object[] }>('GET', FREEZES)).body.items).toContainEqual(frozen)
    const forOther = await newOperatorCaller(service, 'VIEWER', { actFor: other.customer_id })
    expect((await forOther('GET', FREEZES)).body).toEqual({ items: [] })
  })
})

describe('End Freeze', () => {
  test('only an ADMIN of the deployment ends what an OPERATOR froze, and once', async () => {
    const profile_id = await newProfile(customer)
    await people.operator('POST', FREEZES, { profile_id, reason: 'a leak' })
    const end = { profile_id, cause: 'OPERATOR' }
    for (const call of [people.ownAdmin, people.operator])
      expect((await call('POST', `${FREEZES}/end`, end)).status).toBe(403)
    expect((await people.admin('POST', `${FREEZES}/end`, end)).status).toBe(200)
    expect(await people.admin('POST', `${FREEZES}/end`, end)).toMatchObject({
      status: 403,
      body: { detail: 'not frozen for OPERATOR' },
    })
    expect(await actionsOf(profile_id)).toEqual(['profile.unfreeze', 'profile.freeze'])
    expect((await withdraw(profile_id)).status).toBe(200)
  })

  test('a disabled customer is not enabled by it', async () => {
    expect((await people.admin('POST', `${FREEZES}/end`, { cause: 'DISABLED' })).status).toBe(400)
  })
})

const WIRES = '/v2/operators/wires'
const reference = () => `REF-${Math.random().toString(36).slice(2).toUpperCase()}`

/** A wire that may be taken. */
async function newWire(profileId = customer.profile_id): Promise<string> {
  const { status, body } = await withdraw(profileId)
  expect(status).toBe(200)
  await settleWithdrawals(service.db, service.networks)
  return String(body.id)
}
async function takenWire(): Promise<string> {
  const id = await newWire()
  expect((await people.operator('POST', `${WIRES}/${id}/take`)).status).toBe(200)
  return id
}
const openWire = async (id: string) =>
  (await people.viewer<{ items: { transfer_id: string; state: string }[] }>('GET', WIRES)).body.items.find(
    ({ transfer_id }) => transfer_id === id,
  )
const stateOf = async (id: string) => (await openWire(id))?.state
const read = async (id: string) => (await customer.call('GET', `/v2/transfer/transfers/${id}`)).body

const found = async (reference: string, call: Call = customer.call) =>
  (await call<{ items: { id: string }[] }>('GET', `/v2/search?q=${encodeURIComponent(reference)}`)).body.items
const transferOf = async (reference: string) => (await found(reference))[0]!.id
/** The bank's reference leads to the transfer, however it is typed, and only for its customer; a list has it, too. */
async function expectFound(id: string, bank_reference: string) {
  for (const typed of [bank_reference, ` ${bank_reference.toLowerCase()} `])
    expect(await found(typed)).toMatchObject([{ id, found_by: 'BANK_REFERENCE' }])
  for (const part of [bank_reference.slice(0, 6), bank_reference.slice(4).toLowerCase()])
    expect(await found(part)).toContainEqual(expect.objectContaining({ id, found_by: 'BANK_REFERENCE' }))
  expect(await found(bank_reference, other.call)).toEqual([])
  expect(await found(bank_reference.slice(4), other.call)).toEqual([])
  const { body } = await customer.call('GET', `/v2/transfer/transfers?ids=${id}`)
  expect(body.items).toMatchObject([{ id, bank_reference }])
}

const newMemo = async () =>
  (
    await customer.call('POST', '/v2/transfer/fiat-deposit-instructions', {
      profile_id: customer.profile_id,
      fiat_network: 'WIRE',
    })
  ).body.memo_id

test("the deployment's people see each other's names and who may do what; the customer's people and programs do not", async () => {
  const id = await takenWire()
  const path = `/v2/audit-log?subject_ids=${id}&actions=transfer.take`
  const whoTook = async (call: Call) =>
    (await call<{ items: { actor: { name?: string } }[] }>('GET', path)).body.items[0]!.actor.name
  expect(await whoTook(people.viewer)).toBe('Test OPERATOR')
  for (const call of [people.ownAdmin, customer.call]) expect(await whoTook(call)).toBeUndefined()
  type Listed = { items: { customer_id?: string; role: string }[] }
  const listed = async (call: Call) => (await call<Listed>('GET', '/v2/operators')).body.items
  const own = await listed(people.ownAdmin)
  expect(own.map(({ customer_id }) => customer_id)).toEqual(own.map(() => customer.customer_id))
  const all = await listed(people.viewer)
  expect(all).toEqual(expect.arrayContaining(own))
  expect(all.filter(({ customer_id }) => customer_id === undefined).map(({ role }) => role)).toEqual(
    expect.arrayContaining(['ADMIN', 'OPERATOR', 'VIEWER']),
  )
})

describe('List Open Wires', () => {
  test('has a wire until it has ended, with its state', async () => {
    const id = await newWire()
    expect(await stateOf(id)).toBe('READY')
    await people.operator('POST', `${WIRES}/${id}/take`)
    expect(await stateOf(id)).toBe('TAKEN')
    await people.operator('POST', `${WIRES}/${id}/sent`, { bank_reference: reference() })
    expect(await stateOf(id)).toBeUndefined()
  })
})

test('a wire of a frozen profile waits for the end of the freeze wherever it is shown, and not for an operator', async () => {
  const profile_id = await newProfile(customer)
  const id = await newWire(profile_id)
  const shown = async () => {
    const { body } = await people.viewer<{ waiting?: object }>('GET', `/v2/transfer/transfers/${id}/history`)
    return { waiting: body.waiting, wire: await openWire(id) }
  }
  expect(await shown()).toMatchObject({ waiting: { code: 'WIRE_TO_TAKE' }, wire: { state: 'READY' } })
  await people.operator('POST', '/v2/operators/freezes', { profile_id, reason: 'a court asks' })
  const detail = `profile ${profile_id} is frozen (OPERATOR): a court asks`
  const says = (text: string) => ({
    waiting: { code: 'FROZEN', detail: text, since: expect.stringMatching(/^20/) as string },
    wire: { state: 'WAITING', detail: expect.stringContaining(`${text}, since 20`) as string },
  })
  expect(await shown()).toMatchObject(says(detail))
  const ended = "update customer_freezes set lifted_at = '2026-01-01', mac = 'x' where subject = $1"
  await service.db.query(ended, [profile_id])
  const forged = `${detail}; it was ended at 2026-01-01T00:00:00.000000Z without the master key`
  expect(await shown()).toMatchObject(says(forged))
  await people.admin('POST', '/v2/operators/freezes/end', { profile_id, cause: 'OPERATOR' })
  expect(await shown()).toMatchObject({ waiting: { code: 'WIRE_TO_TAKE' }, wire: { state: 'READY' } })
})

describe('Find Wire Payee', () => {
  test('tells whom a wire that arrived would credit, by names; a wrong memo is refused', async () => {
    const memo = String(await newMemo())
    const payee = { customer: expect.any(String) as string, profile: 'Default' }
    const find = (of: string) => people.viewer('GET', `${WIRES}/payee?memo=${of}`)
    for (const of of [memo, memo.toLowerCase()])
      expect(await find(of)).toMatchObject({ status: 200, body: payee })
    expect((await find('NOBODY')).status).toBe(403)
    expect((await find('')).status).toBe(400)
  })
})

describe('Take Wire', () => {
  test('gives it to one person', async () => {
    const id = await newWire()
    expect(await people.operator('POST', `${WIRES}/${id}/take`)).toMatchObject({
      status: 200,
      body: { amount: '40', taken_by: 'Test OPERATOR' },
    })
    expect(await people.admin('POST', `${WIRES}/${id}/take`)).toMatchObject(
      refusedWith(403, 'was taken by Test OPERATOR'),
    )
    expect(await actionsOf(id)).toEqual(['transfer.take'])
  })
})

describe('Get Taken Wire', () => {
  test('shows what is entered at the bank, once it is taken', async () => {
    const id = await newWire()
    expect((await people.operator('GET', `${WIRES}/${id}`)).status).toBe(403)
    const taken = await people.operator('POST', `${WIRES}/${id}/take`)
    expect(taken.body.payee).toMatchObject({
      fiat_network_instructions: { wire: { account_number: '000987654321' } },
    })
    expect((await people.operator('GET', `${WIRES}/${id}`)).body).toEqual(taken.body)
  })
})

describe('Mark Wire Sent', () => {
  test('completes a taken wire, and no other', async () => {
    const body = { bank_reference: reference() }
    expect((await people.operator('POST', `${WIRES}/${await newWire()}/sent`, body)).status).toBe(403)
    const id = await takenWire()
    for (const changed of [true, false])
      expect(await people.operator('POST', `${WIRES}/${id}/sent`, body)).toMatchObject({
        status: 200,
        body: { status: 'COMPLETED', changed },
      })
    expect(await read(id)).toMatchObject({ status: 'COMPLETED', ...body })
    expect(await actionsOf(id)).toEqual(['transfer.mark_sent', 'transfer.take'])
    await expectFound(id, body.bank_reference)
  })
})

describe('Mark Wire Failed', () => {
  test('gives the money back; it cannot be sent afterwards', async () => {
    const id = await takenWire()
    const failed = await people.operator('POST', `${WIRES}/${id}/failed`, { reason: 'closed account' })
    expect(failed).toMatchObject({ status: 200, body: { status: 'FAILED' } })
    const sent = await people.operator('POST', `${WIRES}/${id}/sent`, { bank_reference: reference() })
    expect(sent.status).toBe(403)
    expect(await read(id)).toMatchObject({ status: 'FAILED' })
  })
})

describe('Record Wire Return', () => {
  test('credits what came back, once', async () => {
    const id = await takenWire()
    const back = { amount: '15', bank_reference: reference() }
    expect((await people.operator('POST', `${WIRES}/${id}/return`, back)).status).toBe(403)
    await people.operator('POST', `${WIRES}/${id}/sent`, { bank_reference: reference() })
    for (const changed of [true, false])
      expect(await people.operator('POST', `${WIRES}/${id}/return`, back)).toMatchObject({
        status: 200,
        body: { changed, transfer: { amount: '15', type: 'WIRE_DEPOSIT' } },
      })
  })
})

describe('Record Wire Deposit', () => {
  test('credits it once; a bad memo, amount and reference change nothing', async () => {
    const wire = { memo: await newMemo(), amount: '250.50', bank_reference: reference() }
    for (const changed of [true, false])
      expect(await people.operator('POST', `${WIRES}/deposits`, wire)).toMatchObject({
        status: 200,
        body: {
          changed,
          transfer: {
            profile_id: customer.profile_id,
            amount: '250.5',
            bank_reference: wire.bank_reference,
          },
        },
      })
    const { body: history } = await people.viewer<{ transfer: { id: string } }>(
      'GET',
      `/v2/transfer/transfers/${await transferOf(wire.bank_reference)}/history`,
    )
    expect(history).toMatchObject({ transfer: { bank_reference: wire.bank_reference } })
    await expectFound(history.transfer.id, wire.bank_reference)
    const before = await everyTable(service.db)
    for (const [bad, status] of [
      [{ memo: 'NOBODY' }, 403],
      [{ amount: '1.001' }, 403],
      [{ amount: '-1' }, 400],
      [{ bank_reference: '\u00e9' }, 400],
    ] as const)
      expect((await people.operator('POST', `${WIRES}/deposits`, { ...wire, ...bad })).status).toBe(status)
    expect(await everyTable(service.db)).toEqual(before)
  })
})

describe('Send Wire Back', () => {
  test('refuses a wire that is not held; src/cli/wires.program.test.ts sends one back that is', async () => {
    const body = { bank_reference: reference() }
    expect(await people.operator('POST', `${WIRES}/send-back`, body)).toMatchObject({
      status: 403,
      body: {
        detail: expect.stringMatching(/^no wire with the bank reference REF-\w+ is PENDING$/) as string,
      },
    })
  })
})

describe('the bank in the trial balance', () => {
  type Balances = Record<'items' | 'sums', { account: string; asset: string }[]> & { to: string }
  const balances = async (query: Record<string, string>) =>
    (await people.viewer<Balances>('GET', `/v2/reports/trial-balance?${String(new URLSearchParams(query))}`))
      .body
  const arrives = async (amount: string) =>
    people.operator('POST', `${WIRES}/deposits`, {
      memo: await newMemo(),
      amount,
      bank_reference: reference(),
    })
  const canonical = (text: string) => momentOfMicros(momentAt(text).micros).text
  const now = async () => {
    const { rows } = await service.db.query<{ now: string }>('select clock_timestamp() as now')
    return canonical(rows[0]!.now)
  }
  const bankOf = ({ items }: Balances) =>
    items.find(({ account, asset }) => account === 'bank' && asset === 'USD')

  test('has what each account had, what came and went in a time, and what it has; all of them sum to zero', async () => {
    const from = await now()
    const { closing } = bankOf(await balances({ at: from })) as { closing?: string } & object
    await arrives('7.25')
    const between = await now()
    await arrives('3')
    const read = await balances({ from, at: between })
    expect(canonical(read.to)).toBe(between)
    expect(bankOf(read)).toMatchObject({ opening: closing, debit: '7.25', credit: '0' })
    const zero = { asset: 'USD', opening: '0', debit: '7.25', credit: '7.25', closing: '0' }
    expect(read.sums).toContainEqual(zero)
    expect(bankOf(await balances({ from: between }))).toMatchObject({ debit: '3' })
    expect(bankOf(await balances({ from, customer_id: other.customer_id }))).toBeUndefined()
    const { rows } = await service.db.query<{ account: string; asset: string; closing: string }>(
      'select account, asset, trim_scale(sum(amount)) as closing from entries group by 1, 2',
    )
    const { body: own } = await people.ownOperator<Balances>('GET', '/v2/reports/trial-balance')
    expect(bankOf(own)).toEqual(bankOf(await balances({ customer_id: customer.customer_id })))
    const { items } = await balances({ from: '2020-01-01T00:00:00Z' })
    expect(items).toHaveLength(rows.length)
    expect(items).toEqual(expect.arrayContaining(rows.map((row) => expect.objectContaining(row) as unknown)))
  })

  test('ends where the oldest transaction under way began: what is answered never changes', async () => {
    const from = await now()
    const tx = await service.db.connect()
    try {
      await tx.query('begin')
      const { rows } = await tx.query<{ began: string }>('select now() as began')
      await arrives('5')
      const read = await balances({ from, at: '2250-01-01T00:00:00Z' })
      expect(canonical(read.to)).toBe(canonical(rows[0]!.began))
      expect(bankOf(read)).toMatchObject({ debit: '0' })
    } finally {
      await tx.query('rollback')
      tx.release()
    }
    expect(bankOf(await balances({ from }))).toMatchObject({ debit: '5' })
  })
})

describe('Create Customer', () => {
  test('creates it with its profile', async () => {
    const { body } = await people.admin('POST', '/v2/operators/customers', { name: 'New customer' })
    const { body: list } = await people.viewer<{ items: object[] }>('GET', '/v2/operators/customers')
    expect(list.items).toContainEqual(
      expect.objectContaining({ customer_id: body.customer_id, name: 'New customer', profiles: 1 }),
    )
  })
})

describe('List Customers', () => {
  test('has all customers of the deployment', async () => {
    const { body } = await people.viewer<{ items: { customer_id: string }[] }>(
      'GET',
      '/v2/operators/customers',
    )
    const ids = body.items.map(({ customer_id }) => customer_id)
    expect(ids).toEqual(expect.arrayContaining([customer.customer_id, other.customer_id]))
  })
})

const clientOf = async (id: unknown) =>
  (await customer.call<{ items: object[] }>('GET', `/v2/api-creds/credentials?client_ids=${String(id)}`)).body
    .items

describe('Rename API Client', () => {
  test("gives a client of the customer another name, and no other customer's", async () => {
    const scopes = ['funding:read_profile']
    const { body: made } = await people.ownAdmin('POST', '/v2/operators/clients', { name: 'Payouts', scopes })
    const path = `/v2/operators/clients/${String(made.client_id)}`
    expect((await people.ownAdmin('PUT', path, { name: 'Payroll' })).status).toBe(200)
    const forOther = await newOperatorCaller(service, 'ADMIN', { actFor: other.customer_id })
    expect((await forOther('PUT', path, { name: 'Taken over' })).status).toBe(404)
    expect(await clientOf(made.client_id)).toMatchObject([{ name: 'Payroll' }])
  })
})

describe('Create API Client', () => {
  test("an ADMIN of the customer creates a client with some of the ADMIN's scopes, and no others", async () => {
    const scopes = ['funding:read_profile', 'transfer:read_transfer']
    const { body: made } = await people.ownAdmin('POST', '/v2/operators/clients', { name: 'Payouts', scopes })
    expect(await clientOf(made.client_id)).toMatchObject([{ name: 'Payouts', client_scopes: scopes }])
    const more = { name: 'Sandbox', scopes: ['sandbox:write_sandbox'] }
    expect((await people.ownAdmin('POST', '/v2/operators/clients', more)).status).toBe(403)
  })

  test('where the policy requires approvers for credentials, the client waits for them', async () => {
    const own = await newCustomer(service)
    await setPolicy(service.db, own.customer_id, {
      rules: [],
      changes: { subjects: ['CREDENTIALS'], approvals: 1 },
    })
    const call = await newOperatorCaller(service, 'ADMIN', { customerId: own.customer_id })
    const body = { name: 'Payouts', scopes: ['funding:read_profile'] }
    expect(await call('POST', '/v2/operators/clients', body)).toMatchObject({
      status: 403,
      body: { meta: { status: 'PENDING', approvals: 0, required: 1 } },
    })
  })
})
