/*
 * Invariants of wires that an operator records and sends, in live mode:
 * 1. an arrived wire is credited once per bank reference, however often and by however many operators it is recorded;
 * 2. a wire is taken by one operator or cancelled, never both; only a taken wire is marked as sent or failed, once;
 * 3. a wire that may not be paid (freeze, identity, a MAC that does not match) is not taken;
 * 4. a refused command changes nothing, and `verify` finds no disagreement.
 */
import { Registry } from 'prom-client'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  credit,
  entriesOf,
  everyTable,
  MASTER_KEYS,
  newCustomer,
  execBursar,
  outputOf,
  runBursar,
  startTestService,
  ROW_MACS,
  TEST_ORIGIN,
  testSettings,
  ownTestService,
} from '../../test/support.ts'
import { addTestApprover, decideAs } from '../../test/approvers.ts'
import { setPolicy } from '../../test/policies.ts'
import { startReceiver } from '../../test/receivers.ts'
import { problem } from '../contract/problems.ts'
import type { Ledger } from '../money/movements/queue.ts'
import { freeze, unfreeze } from '../money/records/freezes.ts'
import type { FiatAccount } from '../money/records/fiat-account.ts'
import type { FiatDepositInstructions } from '../money/records/fiat-deposit-instructions.ts'
import type { Transfer } from '../money/ledger/transfer.ts'
import { setIdentityStatus } from '../resources/identities/set-identity-status.ts'
import { verify } from '../money/verify/verify.ts'
import { RowMacs } from '../audit/sealed-rows.ts'
import { databaseGauges } from '../upkeep/metrics/database-gauges.ts'
import type { WireOrder } from '../networks/bank/manual-wires.ts'
import type { PayoutNetwork, NetworkAdapter } from '../networks/network.ts'
import { runOrchestrations } from '../resources/orchestrations/run-orchestrations.ts'
import { openBank } from '../rails/wires/bank.ts'
import { cancelWithdrawal } from '../rails/payouts/cancel-withdrawal.ts'
import { markWireFailed, markWireSent, takeWire, type OpenWire } from '../rails/wires/outgoing-wires.ts'
import { recordWireDeposit, sendWireBack } from '../rails/wires/record-wires.ts'
import { settleWithdrawals } from '../rails/payouts/settle-withdrawals.ts'
import { askAgain, Screener } from '../rails/screening/screen-payments.ts'
import { requireScreening } from '../rails/screening/requirement.ts'
import { guardedNetworks } from '../rails/payouts/signing-guards.ts'
import { newSigningSecret } from '../money/records/webhook-secrets.ts'
import { ScreeningEndpoint } from '../rails/screening/endpoint.ts'
import { NotAllowed, Screening } from '../rails/screening/screening.ts'
import { BANK } from '../../test/bank.ts'
import { originOfUser } from '../contract/actor.ts'
import { operatorName } from './command-line.ts'
import { atEnd, ownFolder } from '../../test/at-end.ts'
import { refusedWith } from '../../test/matchers.ts'
import { availableOf } from '../../test/payouts.ts'

const PAYEE = {
  account_number: '000987654321',
  routing_details: {
    routing_number_type: 'ABA',
    routing_number: '011401533',
    bank_name: 'Second Example Bank',
  },
  intermediary: { bank_name: 'Third Example Bank' },
}

const folder = await ownFolder()
await writeFile(join(folder, 'bank.json'), JSON.stringify(BANK))
const service = await ownTestService({ BURSAR_MODE: 'live', BURSAR_BANK_FILE: join(folder, 'bank.json') })
const customer = await newCustomer(service)
afterAll(async () => {
  const macs = new RowMacs(MASTER_KEYS)
  expect((await verify(service.db, { macs })).disagreements).toEqual([])
})

const by = (operator: string) => ({ operator, origin: originOfUser(operator) })

const settings = () => ({ DATABASE_URL: service.url, BURSAR_MODE: 'live' })

/** Runs a command. Returns its output, as JSON unless `format` is `text`. */
const said = (args: string[], format: 'json' | 'text' = 'json'): Promise<string> =>
  outputOf(['wire', ...args, ...(format === 'json' ? ['--json'] : [])], settings())
const bursar = async <T>(...args: string[]) => JSON.parse(await said(args)) as T

/** Expects a refusal with this message, and no change in the database. */
async function expectRefused(args: string[], message: RegExp): Promise<void> {
  const before = await everyTable(service.db)
  await expect(said(args)).rejects.toThrow(message)
  expect(await everyTable(service.db)).toEqual(before)
}

interface Recorded {
  changed: boolean
  transfer: Transfer
}
const recordDeposit = (memo: string, amount: string, reference: string) =>
  bursar<Recorded>('record-deposit', '--memo', memo, '--amount', amount, '--bank-reference', reference)

async function newInstructions(changes: object = {}): Promise<FiatDepositInstructions> {
  const { profile_id } = customer
  const body = { profile_id, fiat_network: 'WIRE', ...changes }
  const answer = await customer.call<FiatDepositInstructions>('POST', INSTRUCTIONS, body)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}
const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'

async function newProfile(amount = '100', asset = 'USD'): Promise<string> {
  const { body } = await customer.call('POST', '/v2/profiles', { nickname: randomUUID() })
  const profile_id = String(body.id)
  if (amount !== '0') await credit(service.ledger, { ...customer, profile_id }, asset, amount)
  return profile_id
}

const available = (profile_id: string, asset = 'USD') => availableOf({ ...customer, profile_id }, asset)

async function newFiatAccount(wire: object = PAYEE): Promise<FiatAccount> {
  const answer = await customer.call<FiatAccount>('POST', '/v2/transfer/fiat-accounts', {
    fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Lovelace' } },
    fiat_network_instructions: { wire },
  })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

/** Creates a wire of 40 USD from a profile with 100 USD. */
async function newWire(changes: object = {}): Promise<Transfer> {
  const { id: fiat_account_id } = await newFiatAccount()
  const answer = await customer.call<Transfer>('POST', '/v2/transfer/fiat-withdrawals', {
    ...{ profile_id: await newProfile(), asset: 'USD', fiat_account_id, amount: '40', memo: 'Invoice 1041' },
    ...changes,
  })
  expect(answer).toMatchObject({ status: 200, body: { status: 'PENDING' } })
  return answer.body
}

const read = async ({ id }: { id: string }) =>
  (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

/** Runs the worker's settlement rounds, all due at once. */
async function work(): Promise<void> {
  for (let round = 1; round <= 5; round++) {
    await service.owner.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await settleWithdrawals(service.db, service.networks)
  }
}

const listed = async ({ id }: { id: string }) =>
  (await bursar<{ wires: OpenWire[] }>('list')).wires.find(({ transfer_id }) => transfer_id === id)

interface Taken {
  wires: WireOrder[]
  refused: { transfer_id: string; reason: string }[]
}
async function take(...ids: string[]): Promise<Taken> {
  const { code, stdout } = await runBursar(['wire', 'take', ...ids, '--json'], settings())
  const taken = JSON.parse(stdout) as Taken
  expect(code).toBe(taken.refused.length > 0 ? 1 : 0)
  return taken
}

async function taken(wire?: Transfer): Promise<Transfer> {
  const made = wire ?? (await newWire())
  expect(await take(made.id)).toMatchObject({ wires: [{ transfer_id: made.id }], refused: [] })
  return made
}

async function notTaken({ id }: { id: string }, reason: RegExp): Promise<void> {
  const { outgoing_transfers: _, ...before } = await everyTable(service.db)
  expect(await take(id)).toEqual({
    wires: [],
    refused: [{ transfer_id: id, reason: expect.stringMatching(reason) as string }],
  })
  const { outgoing_transfers: __, ...after } = await everyTable(service.db)
  expect(after).toEqual(before)
}

const newReference = () => randomUUID().toUpperCase()
const cancel = ({ id }: { id: string }) => customer.call('POST', `/v2/transfer/transfers/${id}/cancel`)

// ---------------------------------------------------------------------------------------------- instructions

describe('deposit instructions', () => {
  test("have the operator's account and a separate memo", async () => {
    const [one, other] = [await newInstructions(), await newInstructions({ routing_number_type: 'ABA' })]
    expect(one.memo_id).not.toBe(other.memo_id)
    const account = {
      fiat_network_instructions: {
        wire: {
          account_number: BANK.account_number,
          fiat_account_owner_address: BANK.account_owner_address,
          routing_details: {
            routing_number_type: 'ABA',
            routing_number: BANK.routing_numbers.ABA,
            bank_name: BANK.bank_name,
            bank_address: BANK.bank_address,
          },
        },
      },
      fiat_account_owner: { institution_details: { name: BANK.account_owner } },
    }
    expect(one).toMatchObject(account)
    const list = await customer.call<{ items: object[] }>('GET', `${INSTRUCTIONS}?ids=${one.id}`)
    expect(list.body.items).toEqual([one])
  })

  test('are refused for a kind of routing number that the account lacks', async () => {
    const before = await everyTable(service.db)
    const { profile_id } = customer
    const body = { profile_id, fiat_network: 'WIRE', routing_number_type: 'SWIFT' }
    expect(await customer.call('POST', INSTRUCTIONS, body)).toMatchObject({
      status: 400,
      body: { detail: 'routing_number_type SWIFT is not available for the bank account: it must be ABA' },
    })
    expect(await everyTable(service.db)).toEqual(before)
  })

  test('are refused without a bank account, and a sandbox refuses a bank account', async () => {
    const without = await startTestService({ BURSAR_MODE: 'live' })
    const { call, profile_id } = await newCustomer(without)
    for (const [method, url, body] of [
      ['POST', INSTRUCTIONS, { profile_id, fiat_network: 'WIRE' }],
      [
        'POST',
        '/v2/transfer/fiat-accounts',
        {
          fiat_account_owner: { institution_details: { name: 'A' } },
          fiat_network_instructions: { wire: PAYEE },
        },
      ],
    ] as const)
      expect(await call(method, url, body)).toMatchObject({
        status: 503,
        body: { detail: 'fiat_network WIRE is not connected to a bank' },
      })
    await without.close()
    const bankFile = join(folder, 'bank.json')
    await expect(openBank(testSettings({ BURSAR_BANK_FILE: bankFile }))).rejects.toThrow(
      "BURSAR_BANK_FILE: a bank account is for live mode: a sandbox's bank is simulated",
    )
    const missing = testSettings({ BURSAR_MODE: 'live', BURSAR_BANK_FILE: `${bankFile}.not` })
    await expect(openBank(missing)).rejects.toThrow(/^BURSAR_BANK_FILE: \S+ cannot be read \(ENOENT\)$/)
  })
})

// ---------------------------------------------------------------------------------------------- deposits

test('instructions are not shown without their bank account', async () => {
  const { id } = await newInstructions()
  const networks = service.networks as Map<PayoutNetwork, NetworkAdapter>
  const bank = networks.get('WIRE')!
  networks.delete('WIRE')
  atEnd(async () => void networks.set('WIRE', bank))
  expect((await customer.call('GET', `${INSTRUCTIONS}?ids=${id}`)).status).toBe(503)
  expect((await customer.call('GET', `${INSTRUCTIONS}?ids=${customer.profile_id}`)).status).toBe(200)
})

describe('an arrived wire', () => {
  test('is credited once, as in the sandbox, also with its reference typed differently', async () => {
    const profile_id = await newProfile('0')
    const { memo_id } = await newInstructions({ profile_id, metadata: { order: '1041' } })
    const reference = newReference()
    const first = await recordDeposit(memo_id, '250.50', reference)
    expect(first).toEqual({
      changed: true,
      transfer: {
        id: expect.any(String) as string,
        customer_id: customer.customer_id,
        profile_id,
        type: 'WIRE_DEPOSIT',
        direction: 'CREDIT',
        status: 'COMPLETED',
        asset: 'USD',
        balance_asset: 'USD',
        amount: '250.5',
        fee: '0',
        total: '250.5',
        memo: memo_id,
        bank_reference: reference,
        metadata: { order: '1041' },
        created_at: expect.any(String) as string,
        updated_at: expect.any(String) as string,
      },
    })
    expect(await entriesOf(service.db, first.transfer.id)).toEqual([
      'CREATED bank USD -250.5',
      'CREATED profile USD 250.5',
    ])
    const before = await everyTable(service.db)
    const spaced = `${memo_id.slice(0, 4).toLowerCase()} ${memo_id.slice(4, 8)}-${memo_id.slice(8)}`
    for (const again of [
      await recordDeposit(memo_id, '250.50', reference),
      await recordDeposit(spaced, '0250.5', ` ${reference.toLowerCase()} `),
    ])
      expect(again).toEqual({ ...first, changed: false })
    expect(await everyTable(service.db)).toEqual(before)
    expect(await available(profile_id)).toBe('250.5')
  })

  test('is credited once when several operators record it at the same time', async () => {
    const profile_id = await newProfile('0')
    const { memo_id: memo } = await newInstructions({ profile_id })
    const wire = { memo, amount: '10', bank_reference: newReference(), ...by('ada') }
    const all = await Promise.all(Array.from({ length: 8 }, () => recordWireDeposit(service, wire)))
    expect(all.filter(({ changed }) => changed)).toHaveLength(1)
    expect(new Set(all.map(({ transfer }) => transfer.id)).size).toBe(1)
    expect(await available(profile_id)).toBe('10')
  })

  test('with an unknown outcome is recorded again', async () => {
    const { memo_id: memo } = await newInstructions()
    const wire = { memo, amount: '10', bank_reference: newReference(), ...by('ada') }
    const away = { submit: () => Promise.reject(problem.unavailable('the database went away')) }
    const { db } = service
    await expect(recordWireDeposit({ db, ledger: away as unknown as Ledger }, wire)).rejects.toThrow(
      'whether the wire was recorded is not known; say it again, it is recorded once',
    )
    expect(await recordWireDeposit(service, wire)).toMatchObject({ changed: true })
    expect(await recordWireDeposit(service, wire)).toMatchObject({ changed: false })
  })

  test('is refused with another amount or memo than before', async () => {
    const [one, other] = [await newInstructions(), await newInstructions()]
    const reference = newReference()
    await recordDeposit(one.memo_id, '10', reference)
    const recorded = new RegExp(
      `^the bank reference ${reference} was recorded at 20.* as a deposit with memo ${one.memo_id} of 10 USD$`,
    )
    for (const [memo, amount] of [
      [one.memo_id, '10.01'],
      [other.memo_id, '10'],
    ])
      await expectRefused(
        ['record-deposit', '--memo', memo!, '--amount', amount!, '--bank-reference', reference],
        recorded,
      )
  })

  test.each([
    [
      'an unknown memo',
      ['--memo', 'NOBODYHASTHIS000', '--amount', '1'],
      /^memo: no deposit instructions have the memo NOBODYHASTHIS000$/,
    ],
    [
      'an amount of zero',
      ['--memo', 'A', '--amount', '0'],
      /^amount must be above 0, with at most 2 decimals$/,
    ],
    ['three decimals', ['--memo', 'A', '--amount', '1.001'], /must be an amount with at most two decimals/],
    ['no amount', ['--memo', 'A'], /required option '--amount/],
  ])('is refused with %s', async (_, args, message) => {
    await expectRefused(['record-deposit', ...args, '--bank-reference', newReference()], message)
  })

  test.each(['', 'A;B'])('is refused with the reference %j', async (reference) => {
    const { memo_id } = await newInstructions()
    const args = ['record-deposit', '--memo', memo_id, '--amount', '1', '--bank-reference', reference]
    await expectRefused(args, /must have 1 to 64 letters, digits and/)
  })

  test('is not credited by instructions that were written into the database', async () => {
    const { id } = await newInstructions()
    await service.db.query(
      `insert into fiat_deposit_instructions
         (customer_id, id, profile_id, memo_id, status, fiat_network, routing_number_type, created_at, sealed_at, mac)
       select customer_id, gen_random_uuid(), profile_id, 'PLANTED', status, fiat_network, routing_number_type, created_at, sealed_at, mac
       from fiat_deposit_instructions where id = $1`,
      [id],
    )
    await expect(recordDeposit('PLANTED', '70', newReference())).rejects.toThrow(
      'was changed or invented in the database',
    )
    await service.owner.query(`delete from fiat_deposit_instructions where memo_id = 'PLANTED'`)
  })

  test('triggers the rule for its memo', async () => {
    const [profile_id, to] = [await newProfile('0'), await newProfile('0')]
    const rule = await customer.call<{ rule: { source: { fiat: { memo_id: string } } } }>(
      'POST',
      '/v2/orchestration/rules',
      {
        ...{ ref_id: randomUUID(), profile_id, source_asset: 'USD', destination_asset: 'USDG' },
        ...{ source: { fiat: { network: 'WIRE' } }, destination: { profile: { profile_id: to } } },
      },
    )
    expect(rule).toMatchObject({ status: 200 })
    const { transfer } = await recordDeposit(rule.body.rule.source.fiat.memo_id, '70', newReference())
    expect(transfer.group_id).toBeDefined()
    await runOrchestrations(service.db, { ...service, macs: service.ledger.macs })
    expect([await available(profile_id), await available(to, 'USDG')]).toEqual(['0', '70'])
  })
})

// ---------------------------------------------------------------------------------------------- held wires

describe('a wire that screening holds', () => {
  const holds = {
    requireAllowed: () => Promise.reject(new NotAllowed('the screening endpoint answered REJECT')),
  } as unknown as Screening
  const eventsOf = async (id: string) =>
    (await customer.call<{ items: { type: string }[] }>('GET', `/v2/events?object_id=${id}`)).body.items.map(
      ({ type }) => type,
    )
  const newHeld = async () => {
    const profile_id = await newProfile('0')
    const { memo_id: memo } = await newInstructions({ profile_id })
    const wire = { memo, amount: '10', bank_reference: newReference(), ...by('ada') }
    const record = (changes: object = {}, screening: Screening | undefined = holds) =>
      recordWireDeposit({ ...service, screening }, { ...wire, ...changes })
    const held = (await record().catch((error: unknown) => error)) as Error
    expect(held.message).toMatch(/^the screening endpoint answered REJECT: the wire is PENDING as transfer /)
    const id = /transfer ([0-9a-f-]{36})/.exec(held.message)![1]!
    return { profile_id, wire, record, id }
  }
  const read = async (id: string) =>
    (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

  test('is PENDING, and COMPLETED under the same id by the repeat that is allowed, once', async () => {
    const { profile_id, wire, record, id } = await newHeld()
    const pending = await read(id)
    expect(pending).toMatchObject({ type: 'WIRE_DEPOSIT', status: 'PENDING', amount: '10', memo: wire.memo })
    expect(await entriesOf(service.db, id)).toEqual([])
    expect(await available(profile_id)).toBe('0')
    const before = await everyTable(service.db)
    await expect(record()).rejects.toThrow(`PENDING as transfer ${id}`)
    expect(await everyTable(service.db)).toEqual(before)
    const all = await Promise.all([1, 2, 3].map(() => recordWireDeposit(service, wire)))
    expect(all.filter(({ changed }) => changed)).toHaveLength(1)
    const { updated_at } = await read(id)
    expect(await read(id)).toEqual({ ...pending, status: 'COMPLETED', updated_at })
    expect(await available(profile_id)).toBe('10')
    expect(await eventsOf(id)).toEqual(['transfer.wire_deposit.pending', 'transfer.wire_deposit.completed'])
    await expectRefused(
      ['send-back', '--bank-reference', wire.bank_reference],
      new RegExp(
        `^no wire with the bank reference ${wire.bank_reference} is PENDING: the wire was recorded at `,
      ),
    )
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('that is sent back is FAILED, and its reference is never credited', async () => {
    const { profile_id, wire, id } = await newHeld()
    const sent = await bursar<Recorded>('send-back', '--bank-reference', wire.bank_reference)
    expect(sent).toMatchObject({ changed: true, transfer: { id, status: 'FAILED' } })
    const before = await everyTable(service.db)
    expect(await bursar<Recorded>('send-back', '--bank-reference', wire.bank_reference)).toEqual({
      ...sent,
      changed: false,
    })
    await expectRefused(
      ['record-deposit', '--memo', wire.memo, '--amount', '10', '--bank-reference', wire.bank_reference],
      /was recorded at 20.* as a wire that was sent back, with memo/,
    )
    expect(await everyTable(service.db)).toEqual(before)
    expect(await available(profile_id)).toBe('0')
    expect(await eventsOf(id)).toEqual(['transfer.wire_deposit.pending', 'transfer.wire_deposit.failed'])
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('is credited or sent back, never both', async () => {
    const { profile_id, wire, id } = await newHeld()
    const ended = await Promise.allSettled([
      recordWireDeposit(service, wire),
      sendWireBack(service, wire),
      recordWireDeposit(service, wire),
      sendWireBack(service, wire),
    ])
    const { status } = await read(id)
    expect(await available(profile_id)).toBe(status === 'COMPLETED' ? '10' : '0')
    const changed = ended.filter((one) => one.status === 'fulfilled' && one.value.changed)
    expect(changed).toHaveLength(1)
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('is refused with another amount or memo, and with an unknown reference', async () => {
    const { wire, record } = await newHeld()
    const other = await newInstructions()
    const before = await everyTable(service.db)
    for (const changes of [{ amount: '11' }, { memo: other.memo_id }])
      await expect(record(changes, undefined)).rejects.toThrow(
        `the bank reference ${wire.bank_reference} is PENDING as a deposit with memo ${wire.memo} of 10 USD`,
      )
    expect(await everyTable(service.db)).toEqual(before)
    await expectRefused(
      ['send-back', '--bank-reference', newReference()],
      /^no wire with the bank reference /,
    )
  })
})

// ---------------------------------------------------------------------------------------------- withdrawals

describe('an outgoing wire', () => {
  test('waits for an operator to take it, and is COMPLETED when it is marked as sent', async () => {
    const wire = await newWire()
    expect(await listed(wire)).toMatchObject({ state: 'WAITING', detail: null })
    await work()
    expect(await listed(wire)).toEqual({
      transfer_id: wire.id,
      customer_id: customer.customer_id,
      profile_id: wire.profile_id,
      amount: '40',
      asset: 'USD',
      state: 'READY',
      detail: null,
      payee: 'Ada Lovelace',
      account_number: '...4321',
      created_at: wire.created_at,
    })
    const { wires } = await take(wire.id)
    expect(wires).toEqual([
      {
        customer_id: customer.customer_id,
        transfer_id: wire.id,
        asset: 'USD',
        amount: '40',
        memo: 'Invoice 1041',
        fiat_account_id: wire.fiat_account_id,
        payee: {
          fiat_account_owner: { person_details: { first_name: 'Ada', last_name: 'Lovelace' } },
          fiat_network_instructions: { wire: PAYEE },
        },
        taken_by: expect.any(String) as string,
        taken_at: expect.any(String) as string,
      },
    ])
    await work()
    const { taken_by, taken_at } = wires[0]!
    expect(await listed(wire)).toMatchObject({ state: 'TAKEN', detail: `by ${taken_by} at ${taken_at}` })
    expect(await bursar('show', wire.id)).toEqual(wires[0])
    expect(await read(wire)).toMatchObject({ status: 'PENDING' })

    const reference = newReference()
    const sent = {
      customer_id: customer.customer_id,
      transfer_id: wire.id,
      status: 'COMPLETED',
      bank_reference: reference,
    }
    expect(await bursar('mark-sent', wire.id, '--bank-reference', reference)).toEqual({
      ...sent,
      changed: true,
    })
    expect(await read(wire)).toMatchObject({ status: 'COMPLETED' })
    expect(await entriesOf(service.db, wire.id)).toEqual([
      'CREATED profile USD -40',
      'CREATED in_flight:WIRE USD 40',
      'SETTLED in_flight:WIRE USD -40',
      'SETTLED bank USD 40',
    ])
    expect(await listed(wire)).toBeUndefined()

    const before = await everyTable(service.db)
    expect(await bursar('mark-sent', wire.id, '--bank-reference', reference.toLowerCase())).toEqual({
      ...sent,
      changed: false,
    })
    await work()
    expect(await everyTable(service.db)).toEqual(before)
    await expectRefused(
      ['mark-sent', wire.id, '--bank-reference', 'OTHER'],
      new RegExp(`was sent with the bank reference ${reference}$`),
    )
    await expectRefused(['mark-failed', wire.id, '--reason', 'x'], /^wire \S+ is COMPLETED already$/)
    await notTaken(wire, /^wire \S+ is COMPLETED already$/)
  })

  test('cannot be taken again or cancelled once an operator has taken it', async () => {
    const wire = await taken()
    await notTaken(wire, /^wire \S+ was taken by \S+ at 20\S+, who may have sent it: bursar wire show$/)
    await work()
    await notTaken(wire, /^wire \S+ was taken by /)
    expect(await cancel(wire)).toMatchObject(refusedWith(409, 'may be paid already'))
    expect(await read(wire)).toMatchObject({ status: 'PENDING' })
  })

  test('is refunded in full, once, when it is marked as failed', async () => {
    const wire = await taken()
    await work()
    expect(await available(wire.profile_id)).toBe('60')
    const failed = {
      customer_id: customer.customer_id,
      transfer_id: wire.id,
      status: 'FAILED',
      reason: 'account closed',
    }
    expect(await bursar('mark-failed', wire.id, '--reason', 'account closed')).toEqual({
      ...failed,
      changed: true,
    })
    expect(await read(wire)).toMatchObject({
      status: 'FAILED',
      status_details: {
        invalid_destination_address: {
          message: 'the wire was not paid: account closed',
          destination_address: PAYEE.account_number,
        },
      },
    })
    expect(await available(wire.profile_id)).toBe('100')
    const before = await entriesOf(service.db, wire.id)
    expect(await bursar('mark-failed', wire.id, '--reason', 'other')).toEqual({ ...failed, changed: false })
    await work()
    expect(await entriesOf(service.db, wire.id)).toEqual(before)
    expect(await read(wire)).toMatchObject({ status: 'FAILED' })
    await expectRefused(['mark-sent', wire.id, '--bank-reference', 'LATE'], /^wire \S+ is FAILED already$/)
  })

  test('returns the source asset and fails its orchestration when it is marked as failed', async () => {
    const profile_id = await newProfile('100', 'USDG')
    const { id: bank_account_id } = await newFiatAccount()
    const answer = await customer.call<{ id: string; destination_transfer: { transfer_id: string } }>(
      'POST',
      '/v2/orchestration/orchestrations',
      {
        ...{
          ref_id: randomUUID(),
          source: { profile: { profile_id } },
          source_asset: 'USDG',
          destination_asset: 'USD',
        },
        ...{ source_amount: '33.33', destination: { fiat: { fiat_account_id: bank_account_id } } },
      },
    )
    expect(answer).toMatchObject({ status: 200 })
    const { transfer_id: id } = answer.body.destination_transfer
    await take(id)
    expect(await available(profile_id, 'USDG')).toBe('66.67')
    await bursar('mark-failed', id, '--reason', 'no such account')
    expect(await available(profile_id, 'USDG')).toBe('100')
    const path = `/v2/orchestration/orchestrations/${answer.body.id}`
    expect((await customer.call('GET', path)).body).toMatchObject({
      status: 'FAILED',
      fail_reason: { detail: 'the destination transfer failed: the wire was not paid: no such account' },
    })
  })

  test('must be taken before it is shown or marked', async () => {
    const wire = await newWire()
    for (const worked of [false, true]) {
      if (worked) await work()
      for (const args of [
        ['mark-sent', wire.id, '--bank-reference', 'X'],
        ['mark-failed', wire.id, '--reason', 'x'],
        ['show', wire.id],
      ])
        await expectRefused(
          args,
          /^nobody has taken wire \S+: bursar wire take, or bursar withdrawal cancel$/,
        )
    }
    expect(await cancel(wire)).toMatchObject({ status: 200, body: { status: 'FAILED' } })
    await notTaken(wire, /^wire \S+ is FAILED already: the client cancelled it before it was signed$/)
  })

  test('has a unique bank reference', async () => {
    const [one, other] = [await taken(), await taken()]
    const reference = newReference()
    await bursar('mark-sent', one.id, '--bank-reference', reference)
    await expectRefused(
      ['mark-sent', other.id, '--bank-reference', reference],
      new RegExp(`^the bank reference ${reference} is that of wire ${one.id}$`),
    )
    // An incoming wire may have the reference of an outgoing wire.
    const { memo_id } = await newInstructions()
    expect(await recordDeposit(memo_id, '1', reference)).toMatchObject({ changed: true })
  })

  test('is taken by one of several operators or cancelled, never both', async () => {
    for (let attempt = 1; attempt <= 12; attempt++) {
      const wire = await newWire()
      if (attempt % 2 === 0) await work()
      const { customer_id } = customer
      const tries = ['ada', 'bob', 'eve'].map((operator) => takeWire(service.db, wire.id, by(operator)))
      const [cancelling, ...taking] = await Promise.allSettled([
        cancelWithdrawal(service.db, { customer_id, transfer_id: wire.id }, 'client', TEST_ORIGIN),
        ...tries,
        work(),
      ])
      const wins = taking.slice(0, -1).filter(({ status }) => status === 'fulfilled').length
      const isCancelled = cancelling.status === 'fulfilled'
      expect(wins).toBe(isCancelled ? 0 : 1)
      expect(await read(wire)).toMatchObject({ status: isCancelled ? 'FAILED' : 'PENDING' })
      expect(await available(wire.profile_id)).toBe(isCancelled ? '100' : '60')
    }
  })

  test("is not taken again, and not cancelled, when the service's role sets it back", async () => {
    const wire = await taken()
    const { rows } = await service.db.query<{
      raw_transaction: Buffer
      crypto_tx_hash: string
      state: string
    }>('select raw_transaction, crypto_tx_hash, state from outgoing_transfers where transfer_id = $1', [
      wire.id,
    ])
    const set = (state: string, bytes: Buffer | null, hash: string | null) =>
      service.db.query(
        'update outgoing_transfers set state = $2, raw_transaction = $3, crypto_tx_hash = $4 where transfer_id = $1',
        [wire.id, state, bytes, hash],
      )
    await set('HELD', null, null)
    await notTaken(wire, /^wire \S+ was taken before, and its order is gone: bursar verify$/)
    expect(await cancel(wire)).toMatchObject({ status: 409 })
    const [kept] = rows
    await set(kept!.state, kept!.raw_transaction, kept!.crypto_tx_hash)
    expect(await read(wire)).toMatchObject({ status: 'PENDING' })
  })

  test('whose order was changed in the database is neither shown nor marked, and waits in the list', async () => {
    const wire = await taken()
    const change = (text: string, value?: Buffer) =>
      service.db.query(text, value === undefined ? [wire.id] : [wire.id, value])
    const { rows } = await service.db.query<{ raw_transaction: Buffer }>(
      'select raw_transaction from outgoing_transfers where transfer_id = $1',
      [wire.id],
    )
    const order = rows[0]!.raw_transaction.toString()
    const set = (text: string) =>
      change('update outgoing_transfers set raw_transaction = $2 where transfer_id = $1', Buffer.from(text))
    const expectHeld = async (why: string) => {
      for (const args of [
        ['show'],
        ['mark-sent', '--bank-reference', newReference()],
        ['mark-failed', '--reason', 'x'],
      ])
        await expectRefused([args[0]!, wire.id, ...args.slice(1)], new RegExp(`must not be sent: ${why}`))
      expect(await listed(wire)).toMatchObject({
        state: 'WAITING',
        detail: expect.stringMatching(why) as string,
      })
    }
    for (const [was, is, why] of [
      ['000987654321', '666000666000', 'signed payee'],
      ['Invoice 1041', 'for account 666', 'signed memo'],
      [/"taken_by":"[^"]*"/, '"taken_by":"mallory"', 'nobody has taken such an order'],
      ['{', '{{', 'its bytes cannot be read'],
    ] as const) {
      await set(order.replace(was, is))
      await expectHeld(why)
    }
    await set(order)
    expect(await bursar('show', wire.id)).toMatchObject({ transfer_id: wire.id })
    await bursar('mark-sent', wire.id, '--bank-reference', newReference())
    await change("update transfers set status = 'PENDING' where id = $1")
    expect(await listed(wire)).toMatchObject({ state: 'WAITING', detail: 'it was paid or refunded before' })
    await expect(said(['mark-failed', wire.id, '--reason', 'x'])).rejects.toThrow(
      /must not be sent|was sent with/,
    )
    await change("update transfers set status = 'COMPLETED' where id = $1")
  })

  test('that the database invents is neither shown nor marked', async () => {
    const wire = await taken()
    const invented = randomUUID()
    for (const [table, key] of [
      ['transfers', 'id'],
      ['outgoing_transfers', 'transfer_id'],
    ] as const) {
      const { rows } = await service.db.query<{ row: object }>(
        `select to_jsonb(r) as row from ${table} r where ${key} = $1`,
        [wire.id],
      )
      await service.db.query(`insert into ${table} select * from jsonb_populate_record(null::${table}, $1)`, [
        { ...rows[0]!.row, [key]: invented, ref_id: null },
      ])
    }
    expect(await listed({ id: invented })).toMatchObject({
      state: 'WAITING',
      detail: expect.stringMatching('MAC') as string,
    })
    await expectRefused(['mark-sent', invented, '--bank-reference', 'INVENTED'], /must not be sent: its MAC/)
    await service.owner.query('delete from outgoing_transfers where transfer_id = $1', [invented])
    await service.owner.query('delete from transfers where id = $1', [invented])
  })

  test('ends once when operators mark it at the same time', async () => {
    for (let attempt = 1; attempt <= 4; attempt++) {
      const [wire, other] = [await taken(), await taken()]
      const reference = newReference()
      const [sent, failed] = await Promise.allSettled([
        markWireSent(service.db, wire.id, reference, by('ada')),
        markWireFailed(service.db, wire.id, 'not sent', by('bob')),
      ])
      expect([sent, failed].filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const isSent = sent.status === 'fulfilled'
      expect(await read(wire)).toMatchObject({ status: isSent ? 'COMPLETED' : 'FAILED' })
      expect(await available(wire.profile_id)).toBe(isSent ? '60' : '100')

      const third = await taken()
      const both = await Promise.allSettled(
        [other, third].map(({ id }) => markWireSent(service.db, id, `SAME-${reference}`, by('ada'))),
      )
      expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      const refused = both.find((one) => one.status === 'rejected')!
      expect(String(refused.reason)).toMatch(/the bank reference SAME-\S+ is that of /)
    }
  })

  test('is counted by its waiting reason', async () => {
    const registry = new Registry()
    databaseGauges(registry, service.db)
    await taken()
    await newWire()
    await work()
    const metrics = await registry.metrics()
    for (const reason of ['wire_to_take', 'wire_taken']) {
      const labels = `\\{network="WIRE",reason="${reason}"\\}`
      expect(metrics).toMatch(new RegExp(`^bursar_withdrawals_waiting${labels} [1-9]`, 'm'))
      expect(metrics).toMatch(new RegExp(`^bursar_withdrawals_waiting_oldest_seconds${labels} \\d`, 'm'))
    }
  })

  test('is not taken while it is frozen, or its identity is not approved', async () => {
    const { customer_id } = customer
    const wire = await newWire()
    const { profile_id } = wire
    for (const [target, message] of [
      [
        { kind: 'PROFILE', customer_id, profile_id },
        /^wire \S+ may not be sent: profile \S+ is frozen \(OPERATOR\): look into it$/,
      ],
      [{ kind: 'CUSTOMER', customer_id }, /may not be sent: customer \S+ is frozen/],
      [{ kind: 'NETWORK', network: 'WIRE' }, /may not be sent: network WIRE is frozen/],
      [{ kind: 'ALL' }, /may not be sent: everything is frozen/],
    ] as const) {
      await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'look into it')
      await notTaken(wire, message)
      await work()
      expect(await listed(wire)).toMatchObject({
        state: 'WAITING',
        detail: expect.stringMatching(/ is frozen /) as string,
      })
      await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
    }
    const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
    const identity = await customer.call('POST', '/v2/identity/identities', {
      ref_id: randomUUID(),
      person_details,
    })
    const identity_id = String(identity.body.id)
    const setStatus = (status: 'APPROVED' | 'DENIED') =>
      setIdentityStatus(service.db, identity_id, { status }, TEST_ORIGIN)
    await setStatus('APPROVED')
    const named = await newWire({ identity_id })
    await setStatus('DENIED')
    await notTaken(named, /may not be sent: identity \S+ is DENIED/)
    await setStatus('APPROVED')
    await taken(named)
    await work()
    await taken(wire)
  })

  test('is not taken when its bank account was changed in the database since it was accepted', async () => {
    const wire = await newWire()
    const set = (account_number: string) =>
      service.owner.query(
        `update fiat_accounts set fiat_network_instructions = jsonb_set(fiat_network_instructions, '{wire,account_number}', to_jsonb($2::text)) where id = $1`,
        [wire.fiat_account_id, account_number],
      )
    await set('666')
    await notTaken(wire, /may not be sent: not what was accepted: its MAC does not match/)
    await set(PAYEE.account_number)
    await taken(wire)
    // `verify` also compares the payment details of a taken wire with its record.
    await set('666')
    const { disagreements } = await verify(service.db)
    expect(disagreements).toEqual([
      expect.objectContaining({ rule: 'every signed transaction pays its withdrawal' }),
    ])
    await set(PAYEE.account_number)
  })

  test('shows text of a client without its control characters', async () => {
    // No request can write such text, and the database's role can.
    const { id: fiat_account_id } = await newFiatAccount(PAYEE)
    await service.owner.query(
      `update fiat_accounts set fiat_network_instructions = jsonb_set(fiat_network_instructions, '{wire,bank}', $2) where id = $1`,
      [fiat_account_id, { branch: 'Main\rStreet', note: '12\u001b[2K\n34\u202e56' }],
    )
    const wire = await newWire({ fiat_account_id })
    const text = await said(['take', wire.id], 'text')
    expect(text).toContain('12\\u001b[2K\\u000a34\\u202e56')
    expect(text).toContain('Main\\u000dStreet')
    expect(text).toMatch(/^amount: +40 USD$/m)
    expect(text).not.toMatch(/[\u001b\u202e\r]/)
    const list = await said(['list'], 'text')
    expect(list).not.toMatch(/[\u001b\u202e\r]/)
  })

  test('is not taken before its approvers have signed it, and is refunded after a no', async () => {
    const payer = await newCustomer(service)
    const { customer_id, profile_id } = payer
    const rules = [{ id: 'wires', action: 'APPROVE' as const, approvals: 1 }]
    await setPolicy(service.db, customer_id, { rules })
    const ada = await addTestApprover(service.owner, customer_id)
    await credit(service.ledger, payer, 'USD', '100')
    const { body: account } = await payer.call<FiatAccount>('POST', '/v2/transfer/fiat-accounts', {
      fiat_account_owner: { institution_details: { name: 'Acme' } },
      fiat_network_instructions: { wire: PAYEE },
    })
    const pay = async () => {
      const wire = { profile_id, asset: 'USD', fiat_account_id: account.id, amount: '40' }
      const answer = await payer.call<Transfer>('POST', '/v2/transfer/fiat-withdrawals', wire)
      const { approval_id } = answer.body.status_details!.pending_customer_approval!
      return { id: answer.body.id, approval_id: approval_id! }
    }
    const decide = (id: string, decision: 'APPROVE' | 'REJECT') =>
      decideAs(service.db, customer_id, id, ada, decision)
    const [yes, no] = [await pay(), await pay()]
    await work()
    for (const { id } of [yes, no]) {
      expect(await listed({ id })).toMatchObject({
        state: 'WAITING',
        detail: '0 of 1 approvers have approved it',
      })
      await notTaken({ id }, /may not be sent: 0 of 1 approvers have approved it/)
    }
    await decide(yes.approval_id, 'APPROVE')
    await decide(no.approval_id, 'REJECT')
    expect(await take(yes.id)).toMatchObject({ wires: [{ transfer_id: yes.id, amount: '40' }], refused: [] })
    await notTaken({ id: no.id }, /FAILED/)
    const { body } = await payer.call('GET', `/v2/profiles/${profile_id}/balances/USD`)
    expect(body.available).toBe('60')
  })

  test('is taken with several others, and each refused wire is named', async () => {
    const [one, other, cancelled] = [await newWire(), await newWire(), await newWire()]
    await cancel(cancelled)
    const { wires, refused } = await take(one.id, cancelled.id, other.id, one.id.toUpperCase())
    expect(wires.map(({ transfer_id }) => transfer_id)).toEqual([one.id, other.id])
    expect(refused).toEqual([
      { transfer_id: cancelled.id, reason: expect.stringContaining('is FAILED already') as string },
    ])
  })

  test('needs a bank account with an account number and a routing number', async () => {
    for (const [wire, rule] of [
      [{}, 'account_number is required to send a wire'],
      [{ account_number: ' ' }, 'account_number must not be blank, and must be one line'],
      [{ account_number: '1' }, 'routing_details.routing_number is required to send a wire'],
    ] as const) {
      const before = await everyTable(service.db)
      const answer = await customer.call('POST', '/v2/transfer/fiat-accounts', {
        fiat_account_owner: { institution_details: { name: 'Acme' } },
        fiat_network_instructions: { wire },
      })
      expect(answer).toMatchObject({
        status: 400,
        body: { detail: `fiat_network_instructions.wire.${rule}` },
      })
      expect(await everyTable(service.db)).toEqual(before)
    }
  })

  test.each(['take', 'show', 'mark-sent', 'mark-failed', 'record-return'])(
    '%s refuses an unknown wire',
    async (command) => {
      const options =
        {
          ...{ 'mark-sent': ['--bank-reference', 'X'], 'mark-failed': ['--reason', 'x'] },
          'record-return': ['--amount', '1', '--bank-reference', 'X'],
        }[command] ?? []
      const id = randomUUID()
      if (command === 'take') await notTaken({ id }, /^there is no withdrawal /)
      else await expectRefused([command, id, ...options], /^there is no withdrawal /)
      await expectRefused([command, 'ada', ...options], /must be a UUID/)
    },
  )
})

// ---------------------------------------------------------------------------------------------- returns

describe('a returned wire', () => {
  async function sent(): Promise<Transfer> {
    const wire = await taken()
    await bursar('mark-sent', wire.id, '--bank-reference', newReference())
    return wire
  }
  const back = ({ id }: { id: string }, amount: string, reference: string) => [
    'record-return',
    id,
    '--amount',
    amount,
    '--bank-reference',
    reference,
  ]

  test("is credited once, less the bank's fee, and stays COMPLETED", async () => {
    const wire = await sent()
    // A rule for all deposits to the profile must not send the returned money out again.
    await customer.call('POST', '/v2/orchestration/rules', {
      ...{
        ref_id: randomUUID(),
        profile_id: wire.profile_id,
        source_asset: 'USD',
        destination_asset: 'USDG',
      },
      ...{ source: { profile: { profile_id: wire.profile_id } } },
      destination: { profile: { profile_id: await newProfile('0') } },
    })
    const reference = newReference()
    const first = await bursar<Recorded>(...back(wire, '38.5', reference))
    expect(first).toMatchObject({
      changed: true,
      transfer: {
        type: 'WIRE_DEPOSIT',
        status: 'COMPLETED',
        amount: '38.5',
        memo: `return of ${wire.id}`,
        profile_id: wire.profile_id,
      },
    })
    expect(first.transfer.group_id).toBeUndefined()
    expect(await read(wire)).toMatchObject({ status: 'COMPLETED' })
    expect(await available(wire.profile_id)).toBe('98.5')
    const before = await everyTable(service.db)
    expect(await bursar(...back(wire, '38.50', reference))).toEqual({ ...first, changed: false })
    expect(await everyTable(service.db)).toEqual(before)
    await expectRefused(back(wire, '1', reference), /was recorded at .* as a return of \S+ of 38\.5 USD$/)
    await expectRefused(back(wire, '1', newReference()), /came back already, with the bank reference/)
    const { memo_id } = await newInstructions()
    await expectRefused(
      ['record-deposit', '--memo', memo_id, '--amount', '38.5', '--bank-reference', reference],
      /was recorded at .* as a return of/,
    )
  })

  test('is refused when the wire was not sent, or for more than its amount', async () => {
    await expectRefused(back(await newWire(), '40', newReference()), /is no wire that was marked as sent$/)
    await expectRefused(
      back(await sent(), '40.01', newReference()),
      /^amount is above what was sent: 40 USD$/,
    )
  })
})

describe('with a screening endpoint', () => {
  const ALLOW = '{"decision":"ALLOW"}'
  const TIMEOUT_MS = 3_000
  const says = (body: string) => (response: ServerResponse) => void response.writeHead(200).end(body)
  let answer: (response: ServerResponse) => void
  let endpoint: string
  let on: Record<string, string>
  beforeAll(async () => {
    const [key, cert, secret] = [join(folder, 'key'), join(folder, 'cert'), join(folder, 'secret')]
    // Live mode asks over TLS only.
    execFileSync('openssl', [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', '/CN=screening', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    ])
    await writeFile(secret, newSigningSecret())
    const tls = { key: await readFile(key), cert: await readFile(cert) }
    const server = createServer(
      tls,
      (request, response) => void request.resume().on('end', () => answer(response)),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
    on = {
      NODE_EXTRA_CA_CERTS: cert,
      BURSAR_SCREENING_URL: endpoint,
      BURSAR_SCREENING_SECRET_FILE: secret,
      BURSAR_SCREENING_TIMEOUT_MS: String(TIMEOUT_MS),
    }
    return async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })

  /** Runs a command in a process of its own, which trusts the endpoint's certificate. */
  const run = (args: string[], environment: Record<string, string> = on) =>
    execBursar(['wire', ...args, '--json'], {
      ...{ DATABASE_URL: service.url, BURSAR_MODE: 'live', BURSAR_LOG_LEVEL: 'silent' },
      ...environment,
    })
  const depositOf = (memo: string, reference: string) => [
    ...['record-deposit', '--memo', memo, '--amount', '12', '--bank-reference', reference],
  ]

  /** The checks of Verify Transfer that do not hold. */
  const checksOf = async (id: string) => {
    const { body } = await customer.call<{ checks: { holds: boolean }[] }>(
      'GET',
      `/v2/transfer/transfers/${id}/verification`,
    )
    return body.checks.filter(({ holds }) => !holds)
  }

  // What the client of the endpoint makes of other answers: src/rails/screening/endpoint.slow.test.ts.
  test.each<[string, (response: ServerResponse) => void, RegExp, Record<string, string>?]>([
    ['silent', () => undefined, /no answer within/],
    ['rejecting', says('{"decision":"REJECT"}'), /answered REJECT/],
    ['not the real one', says(ALLOW), /SELF_SIGNED_CERT/, { NODE_EXTRA_CA_CERTS: '' }],
  ])('a %s endpoint: no wire is credited, until it allows it', async (_, bad, detail, changes = {}) => {
    const sent = await taken()
    await bursar('mark-sent', sent.id, '--bank-reference', newReference())
    const profile_id = await newProfile('0')
    const { memo_id } = await newInstructions({ profile_id })
    const arrived = depositOf(memo_id, newReference())
    const back = ['record-return', sent.id, '--amount', '7', '--bank-reference', newReference()]
    answer = bad
    const refused = async (command: string[]) => {
      const { code, stdout, stderr } = await run(command, { ...on, ...changes })
      expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(detail)
      return stderr
    }
    const before = await everyTable(service.db)
    expect(await refused(back)).toContain('nothing was recorded')
    expect(await everyTable(service.db)).toEqual(before)
    const id = /PENDING as transfer ([0-9a-f-]{36})/.exec(await refused(arrived))![1]!
    expect(await read({ id })).toMatchObject({ status: 'PENDING', amount: '12' })
    expect(await checksOf(id)).toEqual([])
    expect(await available(profile_id)).toBe('0')
    answer = says(ALLOW)
    for (const command of [arrived, back])
      expect(JSON.parse((await run(command)).stdout)).toMatchObject({ changed: true })
    expect(await read({ id })).toMatchObject({ status: 'COMPLETED' })
    expect(await checksOf(id)).toEqual([])
    expect(await available(profile_id)).toBe('12')
  })

  test('a wire is taken after the endpoint has allowed it to the worker, and not before', async () => {
    const secrets = [newSigningSecret()]
    const receiver = await startReceiver((_, response) => answer(response))
    const screening = new Screening(new ScreeningEndpoint(receiver.url, secrets, TIMEOUT_MS), MASTER_KEYS)
    const screener = new Screener({ db: service.db, screening, log: pino({ level: 'silent' }) })
    atEnd(() => screener.stop())
    const networks = guardedNetworks(service.networks, { macs: service.ledger.macs!, screening })
    const round = async () => {
      await service.owner.query(
        'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
      )
      await settleWithdrawals(service.db, networks)
      await screener.round()
      await screener.answered()
    }
    const notTakenYet = async ({ id }: Transfer, reason: RegExp) => {
      const { code, stdout } = await run(['take', id])
      expect(code).toBe(1)
      expect(JSON.parse(stdout)).toEqual({
        wires: [],
        refused: [{ transfer_id: id, reason: expect.stringMatching(reason) as string }],
      })
      expect(await read({ id })).toMatchObject({ status: 'PENDING' })
    }
    const wire = await newWire()
    await service.owner.query(
      'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
    )
    await settleWithdrawals(service.db, networks)
    await notTakenYet(wire, /the screening endpoint has not answered yet/)
    answer = () => undefined
    await round()
    await notTakenYet(wire, /no answer within/)
    answer = says('ALLOW')
    await askAgain(service.db, [wire.id], TEST_ORIGIN)
    await round()
    await notTakenYet(wire, /neither ALLOW nor REJECT/)
    // A command without the settings of the service pays nothing either.
    await requireScreening(service.db, TEST_ORIGIN)
    const without = await run(['take', wire.id], {})
    expect(without).toMatchObject({ code: 1, stdout: '' })
    expect(without.stderr).toMatch(/BURSAR_SCREENING_URL: payments are screened here since 20/)
    const { memo_id } = await newInstructions()
    expect((await run(depositOf(memo_id, newReference()), {})).stderr).toMatch(/BURSAR_SCREENING_URL/)
    answer = says(ALLOW)
    await askAgain(service.db, [wire.id], TEST_ORIGIN)
    await round()
    const { code, stdout } = await run(['take', wire.id])
    expect({ code, wires: JSON.parse(stdout) as object }).toMatchObject({
      code: 0,
      wires: { wires: [{ transfer_id: wire.id }], refused: [] },
    })
    await service.owner.query('delete from screenings')
    await service.owner.query('delete from screening_requirement')
  })
})

test('verify finds a wire that disagrees with its transfer, and a sent wire without a reference', async () => {
  const wire = await taken()
  await bursar('mark-sent', wire.id, '--bank-reference', newReference())
  for (const [change, undo, rule] of [
    [
      'update bank_wires set amount = amount + 1 where transfer_id = $1',
      'update bank_wires set amount = amount - 1 where transfer_id = $1',
      'every recorded bank wire matches its transfer',
    ],
    [
      `update bank_wires set transfer_id = ('f' || substr($1::text, 2))::uuid where transfer_id = $1::uuid`,
      `update bank_wires set transfer_id = $1::uuid where transfer_id = ('f' || substr($1::text, 2))::uuid`,
      'every completed wire of an operator has a bank reference',
    ],
  ] as const) {
    await service.owner.query(change, [wire.id])
    const { disagreements } = await verify(service.db)
    await service.owner.query(undo, [wire.id])
    expect(disagreements).toEqual([expect.objectContaining({ rule })])
  }
})

test('the audit log names the user of the operating system for each step of a wire', async () => {
  const { rows } = await service.db.query<{ action: string; actor_id: string }>(
    `select distinct action, actor_id from audit_log where actor_type = 'COMMAND_LINE' order by action`,
  )
  const actions = [
    ...['transfer.create', 'transfer.fail', 'transfer.mark_failed', 'transfer.mark_sent'],
    'transfer.take',
  ]
  for (const action of actions) expect(rows).toContainEqual({ action, actor_id: operatorName() })
})
