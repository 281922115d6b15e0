/*
 * Invariants of every generated statement, with any number of simultaneous payers and crashes:
 * 1. it is paid once: one credit of exactly its amount from the rewards account to the customer's default profile,
 * recorded as one COMPLETED transfer that names it; no transfer if the amount is 0;
 * 2. it is PAID exactly if there is a credit;
 * 3. its other fields stay as generated, and the ledger is clean.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, afterEach, expect, test } from 'vitest'
import { FAILURES, Failures, dieAtEachStep, type Failure } from '../../../test/failures.ts'
import { move } from '../../../test/history.ts'
import { runs } from '../../../test/seed.ts'
import {
  credit,
  entriesOf,
  everyTable,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { openDatabase } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { generateStatements } from './generate-statements.ts'
import { payStatements, type Paid } from './pay-statements.ts'
import { periodOf } from './period.ts'
import { NotReversible, reversePayment } from './reverse-payment.ts'
import { setRewardRate } from './reward-rates.ts'
import type { Statement } from './statement.ts'
import { availableOf } from '../../../test/payouts.ts'

const service = await ownTestService()
/** The connection pool of another process. */
const otherPool = openDatabase(service.url, { max: 5, onError: () => undefined })
await setRewardRate(service.db, '2024-01-01', '0.0376', TEST_ORIGIN)
afterAll(() => otherPool.end())
afterEach(async () => expect((await verify(service.db)).disagreements).toEqual([]))

const MONTHS = ['2024-01', '2024-02', '2024-03']
const month = (name: string) => periodOf(name)!

/** Creates a customer that is owed a reward for each of these months, for money on a non-default profile. */
async function newCreditor(months = MONTHS, minor = 1_234_567_890n): Promise<TestCustomer> {
  const customer = await newCustomer(service)
  const { body } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Savings' })
  const at = momentAt('2024-01-01T00:00:00.000000Z')
  await move(service.db, customer.customer_id, at, { to: body.id, minor })
  for (const name of months) await generateStatements(service.db, month(name), customer.customer_id)
  return customer
}

/** Reads the customer's statements, oldest first. */
async function statementsOf({ call, customer_id }: TestCustomer): Promise<Statement[]> {
  const url = `/v2/statements?order=ASC&customer_id=${customer_id}`
  return (await call<{ statements: Statement[] }>('GET', url)).body.statements
}

/** Reads the credits to the default profile. */
async function rewardsOf({ call, profile_id }: TestCustomer): Promise<Transfer[]> {
  const url = `/v2/transfer/transfers?order=ASC&profile_ids=${profile_id}&type=PAXOS_TRANSFER_CREDIT`
  return (await call<{ items: Transfer[] }>('GET', url)).body.items
}

const available = (customer: TestCustomer) => availableOf(customer, 'USDG')

/** Compares a customer's paid statements with the generated ones and with the ledger. */
async function requirePaid(customer: TestCustomer, generated: Statement[]): Promise<void> {
  const { customer_id, profile_id } = customer
  const rewards = await rewardsOf(customer)
  const statements = await statementsOf(customer)
  let sum = 0n
  expect(statements).toHaveLength(generated.length)
  for (const [index, { id, ref_id, metadata, ...before }] of generated.entries()) {
    const amount = metadata!.total_amount
    const [reward, ...others] = rewards.filter(({ group_id }) => group_id === id)
    expect(others).toEqual([])
    const paid_at = amount === '0' ? statements[index]!.paid_at : reward!.created_at
    expect(statements[index]).toEqual({
      ...before,
      id,
      ref_id,
      metadata,
      status: 'STATEMENT_STATUS_PAID',
      statement_balances: [{ asset: 'USDG', amount_paid: amount, total_amount_owed: amount }],
      paid_at,
    })
    expect(paid_at! > before.generated_at!).toBe(true)
    if (amount === '0') {
      expect(reward).toBeUndefined()
      continue
    }
    sum += parseAmount(amount, 6)!
    expect(reward).toEqual({
      id: reward!.id,
      customer_id,
      profile_id,
      type: 'PAXOS_TRANSFER_CREDIT',
      direction: 'CREDIT',
      status: 'COMPLETED',
      asset: 'USDG',
      balance_asset: 'USDG',
      amount,
      fee: '0',
      total: amount,
      group_id: id,
      memo: ref_id,
      created_at: paid_at,
      updated_at: paid_at,
    })
    expect(await entriesOf(service.db, reward!.id)).toEqual([
      `CREATED rewards USDG -${amount}`,
      `CREATED profile USDG ${amount}`,
    ])
  }
  expect(rewards).toHaveLength(generated.filter(({ metadata }) => metadata!.total_amount !== '0').length)
  expect(await available(customer)).toBe(formatAmount(sum, 6))
}

// ---------------------------------------------------------------------------------------------- one payment

test('is one credit to the default profile, and one transfer that names the statement', async () => {
  const customer = await newCreditor(['2024-02'])
  const { customer_id: customerId } = customer
  const [generated] = await statementsOf(customer)
  // 1234.56789 x 0.0376 x 29 / 365 = 3.6881447...
  expect(generated!.metadata).toEqual({ total_amount: '3.688144' })

  const paid = await payStatements(service.db, { customerId })
  const [reward] = await rewardsOf(customer)
  expect(paid).toEqual([
    {
      customer_id: customerId,
      statement_id: generated!.id,
      ref_id: `USDG_REWARDS-${customerId}-2024-02`,
      amount_paid: '3.688144',
      transfer_id: reward!.id,
    },
  ])
  await requirePaid(customer, [generated!])

  const before = await everyTable(service.db)
  expect(await payStatements(service.db, { customerId })).toEqual([])
  expect(await generateStatements(service.db, month('2024-02'), customerId)).toEqual([])
  expect(await everyTable(service.db)).toEqual(before)
})

test('of 0 makes no transfer and no entry', async () => {
  const customer = await newCreditor(['2024-02'], 1n)
  const { customer_id: customerId } = customer
  const generated = await statementsOf(customer)
  expect(generated).toMatchObject([{ metadata: { total_amount: '0' } }])
  const before = await everyTable(service.db)
  const [paid] = await payStatements(service.db, { customerId })
  expect(paid).toMatchObject({ statement_id: generated[0]!.id, amount_paid: '0' })
  expect(paid).not.toHaveProperty('transfer_id')
  await requirePaid(customer, generated)
  const after = await everyTable(service.db)
  const { statements, events } = after
  const written = ['statements', 'events', 'audit_heads', 'audit_links', 'audit_log']
  const kept = Object.entries(before).filter(([table]) => !written.includes(table))
  expect(after).toMatchObject(Object.fromEntries(kept))
  expect(statements).not.toEqual(before.statements)
  expect(events).toHaveLength(before.events!.length + 1)
})

test('of a statement that is not generated yet waits', async () => {
  const { customer_id } = await newCustomer(service)
  await service.db.query(
    `insert into statements (customer_id, id, ref_id, type, product, status, asset, period_start, period_end, created_at)
     values ($1, $1, 'x', 'x', 'x', 'STATEMENT_STATUS_INITIATED', 'USDG', $2, $3, $3)`,
    [customer_id, month('2024-02').start, month('2024-02').end],
  )
  const before = await everyTable(service.db)
  expect(await payStatements(service.db)).toEqual([])
  expect(await everyTable(service.db)).toEqual(before)
})

test('can be limited to a period or a customer', async () => {
  const customers = [await newCreditor(), await newCreditor(), await newCreditor()]
  const generated = await Promise.all(customers.map(statementsOf))
  const [first, second] = customers.map(({ customer_id }) => customer_id)
  const refIds = (list: Paid[]) => list.map(({ ref_id }) => ref_id).sort()
  const named = (ids: (string | undefined)[], names: string[]) =>
    ids.flatMap((id) => names.map((name) => `USDG_REWARDS-${id}-${name}`)).sort()

  const nobodys = { customerId: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f' }
  expect(await payStatements(service.db, nobodys)).toEqual([])
  expect(await payStatements(service.db, { period: month('2024-04') })).toEqual([])
  const one = await payStatements(service.db, { period: month('2024-02'), customerId: first })
  expect(refIds(one)).toEqual(named([first], ['2024-02']))
  const period = await payStatements(service.db, { period: month('2024-01') })
  expect(refIds(period)).toEqual(
    named(
      customers.map(({ customer_id }) => customer_id),
      ['2024-01'],
    ),
  )
  const customer = await payStatements(service.db, { customerId: second })
  expect(refIds(customer)).toEqual(named([second], ['2024-02', '2024-03']))
  expect(await payStatements(service.db)).toHaveLength(3)
  for (const [index, customer] of customers.entries()) await requirePaid(customer, generated[index]!)
})

test('that fails for one customer delays no other', async () => {
  const customers = [await newCreditor(['2024-01']), await newCreditor(['2024-01'])]
  const generated = await Promise.all(customers.map(statementsOf))
  const setType = (type: string) =>
    service.owner.query('update profiles set type = $2 where id = $1', [customers[0]!.profile_id, type])
  await setType('NORMAL')
  await expect(payStatements(service.db)).rejects.toThrow(/^1 statements were not paid$/)
  expect(await statementsOf(customers[0]!)).toEqual(generated[0])
  await requirePaid(customers[1]!, generated[1]!)
  await setType('DEFAULT')
  await payStatements(service.db)
  await requirePaid(customers[0]!, generated[0]!)
})

// ---------------------------------------------------------------------------------------------- several workers

test('several workers at once pay each statement once', async () => {
  for (let round = 1; round <= 8; round++) {
    const customers = [await newCreditor(), await newCreditor()]
    const generated = await Promise.all(customers.map(statementsOf))
    const lists = await Promise.all(
      [service.db, otherPool, service.db, otherPool].map((pool) => payStatements(pool)),
    )
    const paid = lists.flat().map(({ statement_id }) => statement_id)
    expect(paid.sort()).toEqual(
      generated
        .flat()
        .map(({ id }) => id)
        .sort(),
    )
    for (const [index, customer] of customers.entries()) await requirePaid(customer, generated[index]!)
  }
})

test('other movements of the balance disturb no payment, nor do those that create the balance', async () => {
  for (let round = 1; round <= 8; round++) {
    const customer = await newCreditor()
    const { customer_id: customerId, profile_id } = customer
    const generated = await statementsOf(customer)
    const credits = Array.from({ length: 5 }, () => credit(service.ledger, customer, 'USDG', '1'))
    expect(await payStatements(otherPool, { customerId })).toHaveLength(MONTHS.length)
    await Promise.all(credits)
    // Reverses the payments.
    await move(service.db, customerId, undefined, { from: profile_id, minor: 5_000_000n })
    await requirePaid(customer, generated)
  }
})

// ---------------------------------------------------------------------------------------------- failures

test.each(FAILURES)('a worker that dies %s any one step has paid once or not', async (failure) => {
  await dieAtEachStep(failure, 10, async (failures) => {
    const customer = await newCreditor(['2024-01', '2024-02'])
    const generated = await statementsOf(customer)
    await payStatements(failures.database(service.db)).catch(() => undefined)
    const then = await statementsOf(customer)
    const paid = then.filter(({ status }) => status === 'STATEMENT_STATUS_PAID')
    expect((await rewardsOf(customer)).map(({ group_id }) => group_id)).toEqual(paid.map(({ id }) => id))
    await payStatements(service.db)
    await requirePaid(customer, generated)
  })
})

test('several workers that die at any step pay once', async () => {
  const failing = fc.array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom<Failure>('BEFORE', 'AFTER') },
    ),
    { minLength: 30, maxLength: 60, size: 'max' },
  )
  await fc.assert(
    fc.asyncProperty(failing, fc.integer({ min: 1, max: 4 }), async (failing, workers) => {
      const customers = [await newCreditor(), await newCreditor(['2024-02'], 5n)]
      const generated = await Promise.all(customers.map(statementsOf))
      const failures = new Failures((step) => failing[step])
      await Promise.all(
        Array.from({ length: workers }, (_, n) =>
          payStatements(failures.database(n % 2 ? otherPool : service.db)).catch(() => undefined),
        ),
      )
      await payStatements(otherPool)
      for (const [index, customer] of customers.entries()) await requirePaid(customer, generated[index]!)
    }),
    runs(20),
  )
})

// ---------------------------------------------------------------------------------------------- taken back

/** Reads the debits of the default profile. */
async function debitsOf({ call, profile_id }: TestCustomer): Promise<Transfer[]> {
  const url = `/v2/transfer/transfers?order=ASC&profile_ids=${profile_id}&type=PAXOS_TRANSFER_DEBIT`
  return (await call<{ items: Transfer[] }>('GET', url)).body.items
}

const reverse = (id: string, db = service.db) => reversePayment(db, id, TEST_ORIGIN)

test('a paid reward is taken back once, by one debit that names the statement, which stays as it was', async () => {
  const customer = await newCreditor(['2024-02'])
  const { customer_id, profile_id } = customer
  await payStatements(service.db, { customerId: customer_id })
  const [paid] = await statementsOf(customer)
  const amount = paid!.metadata!.total_amount
  const { transfer_id } = await reverse(paid!.id)
  const [debit, ...others] = await debitsOf(customer)
  expect(others).toEqual([])
  expect(debit).toMatchObject({
    ...{ id: transfer_id, customer_id, profile_id, direction: 'DEBIT', status: 'COMPLETED' },
    ...{ asset: 'USDG', amount, fee: '0', total: amount, group_id: paid!.id, memo: paid!.ref_id },
  })
  expect(await entriesOf(service.db, transfer_id)).toEqual([
    `CREATED profile USDG -${amount}`,
    `CREATED rewards USDG ${amount}`,
  ])
  expect(await available(customer)).toBe('0')
  expect(await statementsOf(customer)).toEqual([paid])
  const events = await customer.call<{ items: { type: string }[] }>(
    'GET',
    `/v2/events?object_id=${transfer_id}`,
  )
  expect(events.body.items.map(({ type }) => type)).toEqual(['transfer.paxos_transfer_debit.completed'])

  const { rows } = await service.db.query<{ action: string; actor_id: string }>(
    `select action, actor_id from audit_log where customer_id = $1 and subject_id = $2 order by id desc limit 1`,
    [customer_id, paid!.id],
  )
  expect(rows).toEqual([{ action: 'statement.reverse', actor_id: TEST_ORIGIN.actor.id }])

  await expect(reverse(paid!.id)).rejects.toThrow(`transfer ${transfer_id} has taken the reward`)
  expect(await payStatements(service.db, { customerId: customer_id })).toEqual([])
  expect(await debitsOf(customer)).toHaveLength(1)
})

test('nothing is taken back that was not paid, or that the profile no longer has', async () => {
  const customer = await newCreditor(['2024-02'])
  const { customer_id: customerId, profile_id } = customer
  const [generated] = await statementsOf(customer)
  await expect(reverse(crypto.randomUUID())).rejects.toThrow(NotReversible)
  await expect(reverse(generated!.id)).rejects.toThrow('STATEMENT_STATUS_GENERATED: only a paid one')
  await payStatements(service.db, { customerId })
  await move(service.db, customerId, undefined, { from: profile_id, minor: 1n })
  const before = await everyTable(service.db)
  await expect(reverse(generated!.id)).rejects.toMatchObject({ slug: 'insufficient-funds' })
  expect(await everyTable(service.db)).toEqual(before)

  const poor = await newCreditor(['2024-02'], 1n)
  await payStatements(service.db, { customerId: poor.customer_id })
  const [empty] = await statementsOf(poor)
  expect(empty!.metadata).toEqual({ total_amount: '0' })
  await expect(reverse(empty!.id)).rejects.toThrow('nothing was paid')
})

test('commands that run at once, or die at any step, take a reward back once', async () => {
  const customer = await newCreditor(['2024-01'])
  await payStatements(service.db, { customerId: customer.customer_id })
  const [{ id } = { id: '' }] = await statementsOf(customer)
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, (_, n) => reverse(id, n % 2 ? otherPool : service.db)),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(await debitsOf(customer)).toHaveLength(1)

  for (const failure of FAILURES)
    await dieAtEachStep(failure, 4, async (failures) => {
      const another = await newCreditor(['2024-01'])
      await payStatements(service.db, { customerId: another.customer_id })
      const [paid] = await statementsOf(another)
      await reverse(paid!.id, failures.database(service.db)).catch(() => undefined)
      await reverse(paid!.id).catch(() => undefined)
      expect(await debitsOf(another)).toHaveLength(1)
      expect(await available(another)).toBe('0')
    })
})

const GENERATED = "status = 'STATEMENT_STATUS_GENERATED', paid_at = null, amount_paid = 0, transfer_id = null"

test.each([
  ['raises the amount', `total_amount_owed = total_amount_owed + 1000000`],
  ['changes the month', `period_start = '2024-02-01'`],
])("the service's role %s of a statement, which is then not paid", async (_, change) => {
  const customer = await newCreditor(['2024-01'])
  const [statement] = await statementsOf(customer)
  const { rows } = await service.db.query<{ total_amount_owed: string; period_start: string }>(
    'select total_amount_owed, period_start from statements where id = $1',
    [statement!.id],
  )
  await service.owner.query(`update statements set ${change} where id = $1`, [statement!.id])
  await expect(payStatements(service.db, { customerId: customer.customer_id })).rejects.toMatchObject({
    errors: [{ cause: { message: expect.stringMatching('is not what the ledger gives') as string } }],
  })
  expect(await rewardsOf(customer)).toEqual([])
  await service.owner.query('update statements set total_amount_owed = $2, period_start = $3 where id = $1', [
    statement!.id,
    rows[0]!.total_amount_owed,
    rows[0]!.period_start,
  ])
  await payStatements(service.db, { customerId: customer.customer_id })
})

test("the service's role invents a statement, or sets a paid one back: neither is paid", async () => {
  const customer = await newCreditor(['2024-01'])
  const { customer_id } = customer
  await payStatements(service.db, { customerId: customer_id })
  const [statement] = await statementsOf(customer)
  const [reward] = await rewardsOf(customer)
  const { rows } = await service.db.query<{ id: string }>(
    `insert into statements (customer_id, id, ref_id, type, product, status, asset, total_amount_owed, amount_paid, period_start,
                             period_end, generated_at, created_at, reward_method)
     select customer_id, gen_random_uuid(), 'forged', type, product, 'STATEMENT_STATUS_GENERATED', asset, total_amount_owed, 0,
            period_start, period_end, generated_at, created_at, reward_method
     from statements where id = $1 returning id`,
    [statement!.id],
  )
  // Also where its transfer names it no longer.
  await service.db.query(`update statements set ${GENERATED} where id = $1`, [statement!.id])
  await service.db.query('update transfers set group_id = null where id = $1', [reward!.id])
  const failed = await payStatements(service.db, { customerId: customer_id }).catch((error: unknown) => error)
  expect(
    (failed as AggregateError).errors
      .map(({ cause }: Error) => (cause as Error).message.split(':')[0])
      .sort(),
  ).toEqual(
    [
      `statement ${rows[0]!.id} is not what the ledger gives`,
      `statement ${statement!.id} was paid before (bursar verify)`,
    ].sort(),
  )
  expect(await rewardsOf(customer)).toHaveLength(1)
  await service.owner.query('delete from statements where id = $1', [rows[0]!.id])
  await service.owner.query('update transfers set group_id = $2 where id = $1', [reward!.id, statement!.id])
  await service.owner.query(
    `update statements set status = 'STATEMENT_STATUS_PAID', paid_at = $2, amount_paid = total_amount_owed, transfer_id = $3
     where id = $1`,
    [statement!.id, statement!.paid_at, reward!.id],
  )
})

test.each([
  ['a balance that was not there', 1, "'2023-12-31'"],
  ['a balance of the period, which ends with it', 2, "'2024-01-31 23:59:59.999999'"],
])("a statement that entries of the service's role raise is not paid: %s", async (_, count, ends) => {
  const customer = await newCreditor([])
  const { customer_id } = customer
  const forged = randomUUID()
  await service.db.query(
    `insert into entries
       (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after, version, created_at)
     select customer_id, $2, 'CREATED', n, 'profile', profile_id, asset, case when n = 1 then 1 else -1 end * 1000000,
            available + case when n = 1 then 1000000 else 0 end, version, case when n = 1 then '2023-12-31' else ${ends} end::timestamptz
     from balances, generate_series(1, $3::integer) n
     where customer_id = $1 and asset = 'USDG'`,
    [customer_id, forged, count],
  )
  await generateStatements(service.db, month('2024-01'), customer_id)
  await expect(payStatements(service.db, { customerId: customer_id })).rejects.toMatchObject({
    errors: [{ cause: { message: expect.stringMatching('an entry was added') as string } }],
  })
  expect(await rewardsOf(customer)).toEqual([])
  const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
  expect(disagreements.map(({ rule }) => rule)).toContain('every balance is as Bursar wrote it')
  await service.owner.query('grant delete on entries to current_user')
  await service.owner.query('delete from entries where transfer_id = $1', [forged])
  await service.owner.query('revoke delete on entries from current_user')
  // Its amount is still not what the ledger gives.
  await expect(payStatements(service.db, { customerId: customer_id })).rejects.toThrow()
  await service.owner.query('update statements set total_amount_owed = $2 where customer_id = $1', [
    customer_id,
    '3.942499',
  ])
  await payStatements(service.db, { customerId: customer_id })
})

test("a rate that the service's role invents stops generation and payment", async () => {
  const customer = await newCreditor(['2024-01'])
  await service.db.query(
    `insert into reward_rates (effective_from, set_at, rate) values ('2024-02-01', clock_timestamp(), 1)`,
  )
  const { customer_id } = customer
  const forged = {
    errors: [
      {
        cause: {
          message: expect.stringMatching('reward_rates 2024-02-01 was changed or invented') as string,
        },
      },
    ],
  }
  await expect(payStatements(service.db, { customerId: customer_id })).rejects.toMatchObject(forged)
  await expect(generateStatements(service.db, month('2024-02'), customer_id)).rejects.toMatchObject(forged)
  const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
  expect(disagreements.map(({ rule }) => rule)).toEqual(['every row of reward_rates matches its MAC'])
  await service.owner.query('delete from reward_rates where rate = 1')
  await payStatements(service.db, { customerId: customer_id })
})
