/*
 * With a screening endpoint, nothing is signed and nothing is credited before the endpoint has allowed it. An ALLOW counts
 * for the payment as it was asked, and only if Bursar made it. A held payment delays no other.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { startReceiver, type Answering } from '../../../test/receivers.ts'
import {
  fund,
  MASTER_KEYS,
  movedBy,
  newCustomer,
  refusing,
  TEST_ORIGIN,
  withdraw as order,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { standingOf } from '../../../test/payouts.ts'
import { hurry } from '../../../test/work-off.ts'
import type { Networks } from '../../networks/network.ts'
import type { DepositAddress } from '../../money/records/deposit-address.ts'
import { newSigningSecret } from '../../money/records/webhook-secrets.ts'
import { requireScreening, waiveScreening } from './requirement.ts'
import { ScreeningEndpoint } from './endpoint.ts'
import { Screening } from './screening.ts'
import { verify } from '../../money/verify/verify.ts'
import { creditDeposits } from '../../../test/credit-deposits.ts'
import { askAgain, listScreened, Screener } from './screen-payments.ts'
import { settleWithdrawals } from '../payouts/settle-withdrawals.ts'
import { guardedNetworks } from '../payouts/signing-guards.ts'
import { signOnlyScreened } from './sign-only-screened.ts'

const ALLOW = '{"decision":"ALLOW"}'
const REJECT = '{"decision":"REJECT"}'
/** Long enough for a busy machine; only a test of silence waits for a time limit. */
const TIMEOUT_MS = 10_000
const SILENCE_MS = 300

interface Asked {
  id: string
  kind: string
  customer_id: string
  details: Record<string, unknown>
}

let screening: Screening
let screener: Screener
let networks: Networks
let url: string
let answer: Answering
let asked: Asked[]
let forged: string[]

const says = (body: string) => (_: unknown, response: ServerResponse) =>
  void response.writeHead(200).end(body)

const service = await ownTestService()
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))
beforeEach(async () => {
  answer = says(ALLOW)
  asked = []
  forged = []
  const receiver = await startReceiver((received, response, request) => {
    asked.push(JSON.parse(received.body) as Asked)
    answer(received, response, request)
  })
  url = receiver.url
  askWithin(TIMEOUT_MS)
})
afterEach(stopAsking)

/** Screens by the endpoint, with this time limit of a question. */
function askWithin(timeoutMs: number): void {
  screening = new Screening(new ScreeningEndpoint(url, [newSigningSecret()], timeoutMs), MASTER_KEYS)
  screening.onForged = (_, objection) => void forged.push(objection)
  screener = new Screener({ db: service.db, screening, log: pino({ level: 'silent' }) })
  networks = guardedNetworks(service.networks, { macs: service.ledger.macs!, screening })
}

async function stopAsking(): Promise<void> {
  await screener.stop()
  await screening.endpoint.close()
}

/** Runs the rounds of a worker: everything that waits becomes due. */
async function work(): Promise<void> {
  for (let round = 1; round <= 3; round++) {
    await hurry(service.db)
    await creditDeposits({ ...service, networks, screening })
    await settleWithdrawals(service.db, networks)
    await screener.round()
    await screener.answered()
  }
}

/** The questions about a customer. Others may be asked about payments that an earlier test left waiting. */
const askedAbout = ({ customer_id }: TestCustomer) => asked.filter((one) => one.customer_id === customer_id)

async function funded(): Promise<TestCustomer> {
  const customer = await newCustomer(service)
  await fund(customer, '1000')
  return customer
}

const withdraw = async (customer: TestCustomer, changes: Record<string, unknown> = {}) =>
  (await order(customer, { ref_id: randomUUID(), ...changes })).id
const read = (id: string) => standingOf(service.db, id)
const held = (detail: string) => ({
  status: 'PENDING',
  waiting_code: 'SCREENING',
  waiting_detail: detail,
  on_chain: 0,
})
const paid = { status: 'COMPLETED', waiting_code: null, waiting_detail: null, on_chain: 1 }

async function addressOf(customer: TestCustomer): Promise<string> {
  const made = await customer.call<DepositAddress>('POST', '/v2/transfer/deposit-addresses', {
    profile_id: customer.profile_id,
    crypto_network: 'ETHEREUM',
  })
  return made.body.address
}

const waitingDeposits = async (customer: TestCustomer) =>
  (
    await service.db.query<{ reason: string | null; detail: string | null; state: string }>(
      'select state, reason, detail from incoming_transfers where customer_id = $1',
      [customer.customer_id],
    )
  ).rows

test('a withdrawal is signed once the endpoint has allowed it, and the endpoint is asked once', async () => {
  const customer = await funded()
  const id = await withdraw(customer, { memo: 'invoice 7' })
  await settleWithdrawals(service.db, networks)
  expect(await read(id)).toEqual(held('the screening endpoint has not answered yet'))
  await screener.round()
  await screener.answered()
  // The ALLOW has made it due.
  await settleWithdrawals(service.db, networks)
  expect(await read(id)).toMatchObject({ waiting_code: null })
  await work()
  expect(await read(id)).toEqual(paid)
  const { customer_id, profile_id } = customer
  expect(askedAbout(customer)).toEqual([
    {
      id: expect.any(String) as string,
      kind: 'WITHDRAWAL',
      customer_id,
      details: {
        transfer_id: id,
        type: 'CRYPTO_WITHDRAWAL',
        profile_id,
        network: 'ETHEREUM',
        asset: 'USDP',
        amount: '10',
        destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
        memo: 'invoice 7',
      },
    },
  ])
})

test.each<[string, Answering, RegExp]>([
  ['silent', () => undefined, /no answer within 0.3 s/],
  ['wrong', says('ALLOW'), /neither ALLOW nor REJECT/],
  ['broken', (_, response) => void response.writeHead(500).end(ALLOW), /answered 500/],
])('a %s endpoint holds a withdrawal and a deposit, until it allows them', async (name, bad, detail) => {
  const [customer, receiver] = [await funded(), await newCustomer(service)]
  const address = await addressOf(receiver)
  const first = await withdraw(customer, { destination_address: address })
  await work()
  await work()
  expect(await read(first)).toEqual(paid)
  expect(await waitingDeposits(receiver)).toMatchObject([{ state: 'CREDITED' }])
  answer = bad
  await stopAsking()
  askWithin(name === 'silent' ? SILENCE_MS : TIMEOUT_MS)
  const second = await withdraw(customer, { destination_address: address })
  await work()
  expect(await read(second)).toEqual(held((await read(second)).waiting_detail!))
  expect((await read(second)).waiting_detail).toMatch(detail)
  // Held by the question's pause, and not by the payment's.
  await service.db.query(`update screenings set due_at = (select clock_timestamp()) where state = 'WAITING'`)
  await work()
  expect(await read(second)).toMatchObject({ status: 'PENDING', on_chain: 0 })
  answer = says(ALLOW)
  await stopAsking()
  askWithin(TIMEOUT_MS)
  await askAgain(service.db, [second], TEST_ORIGIN)
  await work()
  await work()
  expect(await read(second)).toEqual(paid)
})

test('a process without the settings pays and credits nothing where payments must be screened', async () => {
  const [customer, receiver] = [await funded(), await newCustomer(service)]
  const unscreened = guardedNetworks(service.networks, { macs: service.ledger.macs!, screening: undefined })
  const workUnscreened = async () => {
    for (let round = 1; round <= 3; round++) {
      await hurry(service.db)
      await creditDeposits({ ...service, networks: unscreened })
      await settleWithdrawals(service.db, unscreened)
    }
  }
  // Nothing must be screened yet.
  const arriving = await withdraw(customer, { destination_address: await addressOf(receiver) })
  await hurry(service.db)
  await settleWithdrawals(service.db, unscreened)
  await requireScreening(service.db, TEST_ORIGIN)
  await requireScreening(service.db, TEST_ORIGIN)
  const late = await withdraw(customer)
  await workUnscreened()
  const lacking = expect.stringMatching(
    /^BURSAR_SCREENING_URL: payments are screened here since 20/,
  ) as string
  // What was signed before is still followed to its end.
  expect(await read(arriving)).toEqual(paid)
  expect(await read(late)).toEqual({ ...held(''), waiting_detail: lacking })
  expect(await waitingDeposits(receiver)).toEqual([
    { state: 'WAITING', reason: 'SCREENING', detail: lacking },
  ])
  // The service's role cannot make the database forget it.
  await expect(service.db.query('delete from screening_requirement')).rejects.toThrow('permission denied')
  await expect(service.db.query('update screening_requirement set since = now()')).rejects.toThrow(
    'permission denied',
  )
  const since = await waiveScreening(service.owner, TEST_ORIGIN)
  expect(since).toMatch(/^20.*Z$/)
  expect(await waiveScreening(service.owner, TEST_ORIGIN)).toBeUndefined()
  await workUnscreened()
  expect(await read(late)).toEqual(paid)
  expect(await waitingDeposits(receiver)).toMatchObject([{ state: 'CREDITED' }])
  const { rows } = await service.db.query<object>(
    `select action, subject_id, changes from audit_log
     where action in ('screening.require', 'screening.waive') order by id`,
  )
  expect(rows).toEqual([
    { action: 'screening.require', subject_id: 'deployment', changes: null },
    {
      action: 'screening.waive',
      subject_id: 'deployment',
      changes: { before: { required_since: since }, after: { required_since: null } },
    },
  ])
})

test('a deposit is credited once the endpoint has allowed it', async () => {
  const [customer, receiver] = [await funded(), await newCustomer(service)]
  const address = await addressOf(receiver)
  answer = (received, response) => {
    const { kind } = JSON.parse(received.body) as Asked
    response.writeHead(200).end(kind === 'DEPOSIT' ? '{}' : ALLOW)
  }
  const sent = await withdraw(customer, { destination_address: address })
  await work()
  await work()
  expect(await read(sent)).toEqual(paid)
  expect(await waitingDeposits(receiver)).toEqual([
    {
      state: 'WAITING',
      reason: 'SCREENING',
      detail: 'the screening endpoint answered neither ALLOW nor REJECT',
    },
  ])
  const [listed] = (await listScreened(service.db)).filter(
    ({ customer_id }) => customer_id === receiver.customer_id,
  )
  expect(listed).toMatchObject({ kind: 'DEPOSIT', state: 'WAITING' })
  answer = says(ALLOW)
  await askAgain(service.db, [listed!.subject], TEST_ORIGIN)
  await work()
  expect(await waitingDeposits(receiver)).toMatchObject([{ state: 'CREDITED', reason: null }])
  const [question] = asked.filter(({ kind }) => kind === 'DEPOSIT')
  expect(question).toMatchObject({
    customer_id: receiver.customer_id,
    details: {
      type: 'CRYPTO_DEPOSIT',
      profile_id: receiver.profile_id,
      network: 'ETHEREUM',
      asset: 'USDP',
      amount: '10',
      destination_address: address,
      crypto_tx_hash: expect.any(String) as string,
      crypto_tx_index: expect.any(String) as string,
    },
  })
})

test('a rejected withdrawal is not asked again, and can be cancelled', async () => {
  const customer = await funded()
  answer = says(REJECT)
  const id = await withdraw(customer)
  await work()
  answer = says(ALLOW)
  await work()
  expect(await read(id)).toEqual(
    held('the screening endpoint answered REJECT: cancel it, or ask again with bursar screening ask'),
  )
  expect(askedAbout(customer)).toHaveLength(1)
  const mine = async () =>
    (await listScreened(service.db)).filter(({ subject }) => subject === id).map(({ state }) => state)
  expect(await mine()).toEqual(['REJECTED'])
  const { rows } = await service.db.query(
    `select action, actor_type, actor_id from audit_log where customer_id = $1 and subject_id = $2`,
    [customer.customer_id, id],
  )
  expect(rows).toEqual([{ action: 'screening.reject', actor_type: 'WORKER', actor_id: 'screenings' }])
  const cancelled = await customer.call('POST', `/v2/transfer/transfers/${id}/cancel`)
  expect(cancelled, JSON.stringify(cancelled.body)).toMatchObject({ status: 200 })
  expect(await mine()).toEqual([])
})

test('an ALLOW that is written with SQL pays nothing', async () => {
  const customer = await funded()
  answer = says(REJECT)
  const [one, other] = [await withdraw(customer), await withdraw(customer)]
  answer = says(ALLOW)
  const allowed = await withdraw(customer)
  answer = says(REJECT)
  const insert = (id: string, mac: string | null) =>
    service.db.query(
      `insert into screenings (customer_id, kind, subject, id, created_at, state, attempts, decided_at, mac)
       values ($1, 'WITHDRAWAL', $2, gen_random_uuid(), clock_timestamp(), 'ALLOWED', 1, clock_timestamp(), $3)`,
      [customer.customer_id, id, mac],
    )
  await insert(one, `${MASTER_KEYS.current.id}.${'A'.repeat(43)}`)
  answer = (received, response) => {
    const { details } = JSON.parse(received.body) as Asked
    response.writeHead(200).end(details.transfer_id === allowed ? ALLOW : REJECT)
  }
  await work()
  await work()
  expect(await read(allowed)).toEqual(paid)
  // The MAC of another payment's ALLOW.
  await service.db.query(
    `update screenings s set state = 'ALLOWED', due_at = null, mac = a.mac, decided_at = a.decided_at
     from screenings a
     where s.customer_id = $1 and s.subject = $2 and a.customer_id = $1 and a.subject = $3`,
    [customer.customer_id, other, allowed],
  )
  await work()
  for (const id of [one, other]) expect(await read(id)).toMatchObject({ status: 'PENDING', on_chain: 0 })
  expect(forged).toHaveLength(2)
  expect(forged[0]).toMatch(/its MAC does not match: the payment was changed after it was allowed/)
})

test('the endpoint is not asked about a withdrawal that was not accepted', async () => {
  const customer = await funded()
  const [accepted, changed] = [await withdraw(customer), await withdraw(customer)]
  await service.owner.query(`update transfers set memo = 'changed' where id = $1`, [changed])
  await work()
  await work()
  expect(askedAbout(customer).map(({ details }) => details.transfer_id)).toEqual([accepted])
  expect(await read(accepted)).toEqual(paid)
  expect(await read(changed)).toMatchObject({ status: 'PENDING', on_chain: 0 })
})

test('an ALLOW counts for the payment as it was asked, and for a day', async () => {
  // Alone: the guard before it would hold the changed withdrawal.
  networks = new Map(
    [...service.networks].map(([network, adapter]) => [network, signOnlyScreened(adapter, screening)]),
  )
  const customer = await funded()
  const [changed, old] = [await withdraw(customer), await withdraw(customer)]
  await settleWithdrawals(service.db, networks)
  await screener.round()
  await screener.answered()
  expect(askedAbout(customer)).toHaveLength(2)
  answer = says('{}')
  await service.owner.query(
    `update screenings set decided_at = ${movedBy('decided_at', '-25 hours')} where subject = $1`,
    [old],
  )
  await service.owner.query(`update transfers set memo = 'another' where id = $1`, [changed])
  await work()
  for (const id of [changed, old]) expect(await read(id)).toMatchObject({ status: 'PENDING', on_chain: 0 })
  await service.owner.query(`update transfers set memo = null where id = $1`, [changed])
  answer = says(ALLOW)
  await askAgain(service.db, [changed, old], TEST_ORIGIN)
  await work()
  await work()
  for (const id of [changed, old]) expect(await read(id)).toEqual(paid)
})

test('a held withdrawal delays no later one of its profile, and no other customer', async () => {
  const [customer, other] = [await funded(), await funded()]
  const first = await withdraw(customer)
  answer = (received, response) => {
    const { details } = JSON.parse(received.body) as Asked
    if (details.transfer_id !== first) response.writeHead(200).end(ALLOW)
  }
  const many = await Promise.all(Array.from({ length: 40 }, () => withdraw(customer, { amount: '1' })))
  const others = await withdraw(other)
  await settleWithdrawals(service.db, networks)
  await screener.round()
  await expect
    .poll(() => asked.some(({ details }) => details.transfer_id === others), { timeout: 5_000 })
    .toBe(true)
  await screener.answered()
  await work()
  await work()
  expect(await read(others)).toEqual(paid)
  for (const id of many) expect(await read(id)).toEqual(paid)
  expect(await read(first)).toMatchObject({ status: 'PENDING', waiting_code: 'SCREENING' })
})

test("questions that the database refuses to lease keep no other customer's from their answers", async () => {
  answer = says(ALLOW)
  const [odd, other] = [await funded(), await funded()]
  const [refused, good] = [await withdraw(odd), await withdraw(other)]
  await settleWithdrawals(service.db, networks)
  await refusing(service, 'screenings', `subject <> '${refused}'`, async () => {
    await expect(screener.round()).rejects.toMatchObject({
      errors: [{ record: `customer ${odd.customer_id}` }],
    })
    await screener.answered()
    const ids = asked.map(({ details }) => details.transfer_id)
    expect(ids).toContain(good)
    expect(ids).not.toContain(refused)
  })
  await work()
  await work()
  for (const id of [good, refused]) expect(await read(id)).toEqual(paid)
})

test('two processes ask a question once, and a process that dies loses none', async () => {
  const customer = await funded()
  const ids = await Promise.all(Array.from({ length: 10 }, () => withdraw(customer)))
  await settleWithdrawals(service.db, networks)
  const second = new Screener({ db: service.db, screening, log: pino({ level: 'silent' }) })
  answer = () => undefined
  await Promise.all([screener.round(), second.round()])
  // Others may be asked again, about payments that an earlier test left waiting.
  const askedOf = () =>
    asked.map(({ details }) => String(details.transfer_id)).filter((id) => ids.includes(id))
  await expect.poll(() => askedOf().toSorted()).toEqual(ids.toSorted())
  await Promise.all([screener.answered(), second.answered()])
  // A lease that nobody ends, as of a process that died.
  await service.db.query(
    `update screenings set due_at = (select clock_timestamp()) - interval '1 second' where state = 'WAITING'`,
  )
  answer = says(ALLOW)
  await work()
  await work()
  for (const id of ids) expect(await read(id)).toEqual(paid)
})
