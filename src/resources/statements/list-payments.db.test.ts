/*
 * Invariants of payments and rewards statements:
 * 1. a generated statement that owes an amount has one pending payment, and names its ref_id until it is paid;
 * 2. a paid statement has the same payment, COMPLETED, with the transfer that paid it; a reward of 0 has no payment;
 * 3. rewards statements are the statements, with the same ids, in the order of their periods.
 */
import { describe, expect, test } from 'vitest'
import { move } from '../../../test/history.ts'
import { newCustomer, TEST_ORIGIN, ownTestService } from '../../../test/support.ts'
import { momentAt } from '../../db/ids.ts'
import { generateStatements } from './generate-statements.ts'
import { payStatements } from './pay-statements.ts'
import { periodOf } from './period.ts'
import { setRewardRate } from './reward-rates.ts'
import type { Statement } from './statement.ts'

interface Payment {
  id: string
  ref_id: string
  payment_status: string
  payment_tx_id?: string
  processed_at?: string
}
interface Payments {
  payments: Payment[]
  items: Payment[]
  next_page_cursor?: string
}

const MONTHS = ['2024-01', '2024-02', '2024-03']

const service = await ownTestService()
const { db } = service
await setRewardRate(db, '2024-01-01', '0.05', TEST_ORIGIN)
await setRewardRate(db, '2024-02-15', '0.9', TEST_ORIGIN)
await setRewardRate(db, '2024-02-15', '0.04', TEST_ORIGIN)
const [customer, other] = await Promise.all([newCustomer(service), newCustomer(service)])
for (const { customer_id, profile_id } of [customer, other])
  await move(db, customer_id, momentAt('2024-01-01T00:00:00.000000Z'), {
    to: profile_id,
    minor: 1_000_000_000n,
  })
for (const month of MONTHS) await generateStatements(db, periodOf(month)!)

const REWARDS = '/v2/rewards/statements'
const payments = async (query = '', by = customer) => {
  const { status, body } = await by.call<Payments>('GET', `/v2/statements/payments${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  expect(body.items).toEqual(body.payments)
  return body
}
const statements = async () => {
  const { body } = await customer.call<{ statements: Statement[] }>(
    'GET',
    `/v2/statements?customer_id=${customer.customer_id}`,
  )
  return body.statements
}

describe('List Payments', () => {
  test('a statement names its payment until it is paid, and the payment stays the same', async () => {
    const due = await statements()
    const refIds = due.map((one) => one.statement_balances![0]!.next_payment_ref_id!)
    expect(refIds[0]).toBe(
      `${customer.customer_id}-${due[0]!.ref_id}-USDG-${due[0]!.metadata!.total_amount}-seq#1`,
    )
    const pending = await payments()
    expect(pending.payments).toEqual(
      due.map((one, index) => ({
        id: one.id,
        customer_id: customer.customer_id,
        profile_id: customer.profile_id,
        ref_id: refIds[index],
        product: 'USDG_REWARDS',
        payment_destination: customer.profile_id,
        payment_asset: 'USDG',
        payment_amount: one.metadata!.total_amount,
        payment_status: 'PAYMENT_STATUS_PENDING',
        created_at: one.created_at,
      })),
    )

    await payStatements(service.db, { period: periodOf(MONTHS[0]!) })
    const paid = (await statements()).at(-1)!
    expect(paid.statement_balances![0]).not.toHaveProperty('next_payment_ref_id')
    const [completed, ...none] = (await payments('?payment_status=PAYMENT_STATUS_COMPLETED')).payments
    expect(none).toEqual([])
    expect(completed).toEqual({
      ...pending.payments.at(-1),
      payment_status: 'PAYMENT_STATUS_COMPLETED',
      payment_tx_id: expect.any(String) as string,
      processed_at: paid.paid_at,
    })
    const { body } = await customer.call('GET', `/v2/transfer/transfers/${completed!.payment_tx_id!}`)
    expect(body).toMatchObject({ type: 'PAXOS_TRANSFER_CREDIT', group_id: paid.id })
  })

  test('filters by ref_id, id and status, and pages in both orders', async () => {
    const all = (await payments()).payments
    expect(all).toHaveLength(3)
    const query = `?ref_ids=${encodeURIComponent(all[1]!.ref_id)}&ref_ids=none`
    expect((await payments(query)).payments).toEqual([all[1]])
    expect((await payments(`?payment_ids=${all[2]!.id},me`)).payments).toEqual([all[2]])
    expect((await payments('?payment_status=PAYMENT_STATUS_PENDING')).payments).toEqual(all.slice(0, 2))
    expect((await payments('?payment_status=PAYMENT_STATUS_FAILED')).payments).toEqual([])
    expect((await payments(`?product=USDG_REWARDS&customer_id=${customer.customer_id}`)).payments).toEqual(
      all,
    )
    const first = await payments('?limit=2&order=ASC')
    const rest = await payments(`?limit=2&order=ASC&page_cursor=${first.next_page_cursor!}`)
    expect([...first.payments, ...rest.payments]).toEqual(all.toReversed())
    expect(rest.next_page_cursor).toBeUndefined()
  })

  test("shows no other customer's payments, and refuses another customer's list", async () => {
    const ours = (await payments()).payments.map(({ id }) => id)
    const theirs = (await payments('', other)).payments
    expect(theirs).toHaveLength(3)
    expect(ours).not.toContain(theirs[0]!.id)
    expect((await payments(`?payment_ids=${theirs[0]!.id}`)).payments).toEqual([])
    const refused = await customer.call('GET', `/v2/statements/payments?customer_id=${other.customer_id}`)
    expect(refused.status).toBe(403)
  })

  test('a reward of 0 has a statement and no payment', async () => {
    const poor = await newCustomer(service)
    await move(service.db, poor.customer_id, momentAt('2024-03-31T23:59:59.000000Z'), {
      to: poor.profile_id,
      minor: 1n,
    })
    await generateStatements(service.db, periodOf('2024-03')!, poor.customer_id)
    const { body } = await poor.call<{ statements: Statement[] }>(
      'GET',
      `/v2/statements?customer_id=${poor.customer_id}`,
    )
    expect(body.statements[0]!.statement_balances).toEqual([
      { asset: 'USDG', amount_paid: '0', total_amount_owed: '0' },
    ])
    expect((await payments('', poor)).payments).toEqual([])
  })
})

/** The statements, as the rewards have them. */
const rewards = async () =>
  (await statements()).map((one) => ({
    id: one.id,
    ref_id: one.ref_id,
    asset_type: 'USDG',
    period_start: one.period_start,
    period_end: one.period_end,
    status: 'STATEMENT_STATUS_COMPLETED',
    type: 'STATEMENT_TYPE_MONTHLY_REWARDS',
    total_accrued: one.metadata!.total_amount,
    amount_paid: one.statement_balances![0]!.amount_paid,
    files: [],
    created_at: one.created_at,
  }))

describe('List Rewards Statements', () => {
  test('has the statements, filtered by asset', async () => {
    const expected = await rewards()
    expect((await customer.call('GET', REWARDS)).body).toEqual({ items: expected })
    expect((await customer.call('GET', `${REWARDS}?asset_type=USDG`)).body).toEqual({ items: expected })
    expect((await customer.call('GET', `${REWARDS}?asset_type=PYUSD`)).body).toEqual({ items: [] })
  })
})

describe('Get Rewards Statement', () => {
  test('answers the statement, also while it is generated; to another customer, a 404', async () => {
    const [one] = await rewards()
    expect((await customer.call('GET', `${REWARDS}/${one!.id}`)).body).toEqual({ statement: one })
    expect((await other.call('GET', `${REWARDS}/${one!.id}`)).status).toBe(404)
    await service.db.query(
      `update statements set status = 'STATEMENT_STATUS_INITIATED', generated_at = null, total_amount_owed = null,
                             amount_paid = null, reward_method = null
       where id = $1`,
      [one!.id],
    )
    const generating = await customer.call<{ statement: object }>('GET', `${REWARDS}/${one!.id}`)
    expect(generating.body.statement).toMatchObject({ status: 'STATEMENT_STATUS_GENERATING', files: [] })
    expect(generating.body.statement).not.toHaveProperty('total_accrued')
  })
})

describe('List Rewards Rates', () => {
  test('has the rates in force', async () => {
    const rates = await customer.call<{ rates: object[] }>('GET', '/v2/rewards/rates')
    expect(rates.body.rates).toMatchObject([
      { id: 'USDG-2024-02-15', rate: '0.04', effective_at: '2024-02-15T00:00:00.000000Z' },
      { id: 'USDG-2024-01-01', rate: '0.05', effective_at: '2024-01-01T00:00:00.000000Z' },
    ])
    const none = await customer.call('GET', '/v2/rewards/rates?asset_type=PYUSD')
    expect(none.body).toEqual({ rates: [], items: [] })
    expect((await customer.call('GET', '/v2/rewards/rates?asset_type=DOGE')).status).toBe(400)
  })
})
