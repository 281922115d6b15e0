import { describe, expect, test } from 'vitest'
import { move, moveAt } from '../../../test/history.ts'
import { newOperatorCaller } from '../../../test/operators.ts'
import { credit, newCustomer, type TestCustomer, sharedTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { momentAt, readClock } from '../../db/ids.ts'

const service = await sharedTestService()

interface History {
  asset: string
  points: { at: string; available: string }[]
}
const historyOf = async (customer: TestCustomer, query: string) =>
  (await customer.call<{ items: History[] }>('GET', `/v2/balances/history?${query}`)).body.items

describe('List Balance History', () => {
  test("the sum of all profiles at the begin of each day, and now, is what the entries left; another customer's do not count", async () => {
    const customer = await newCustomer(service)
    const { body: second } = await customer.call<{ id: string }>('POST', '/v2/profiles', {
      nickname: 'second',
    })
    expect(await historyOf(customer, 'days=1')).toEqual([])
    await credit(service.ledger, await newCustomer(service), 'USD', '5')
    const deposit = (to: string, at: string, minor: bigint) =>
      move(service.db, customer.customer_id, momentAt(at), { to, asset: 'USD', minor })
    const today = `${new Date().toISOString().slice(0, 10)}T00:00:00.000000Z`
    const midnight = (ago: number) =>
      `${new Date(Date.parse(today) - ago * 86_400_000).toISOString().slice(0, 19)}.000000Z`
    // At the begin of a day, in its first microsecond, and in the last one of the day before.
    await deposit(customer.profile_id, midnight(3), 100_01n)
    await deposit(customer.profile_id, midnight(2).replace('.000000Z', '.000001Z'), 2n)
    await deposit(second.id, midnight(1), 7_00n)
    await move(service.db, customer.customer_id, undefined, { from: second.id, asset: 'USD', minor: 1_00n })
    await credit(service.ledger, customer, 'BTC', '0.1')
    const [btc, usd, ...rest] = await historyOf(customer, 'days=5')
    expect(rest).toEqual([])
    const amounts = (history: History | undefined) => history!.points.map(({ available }) => available)
    expect(amounts(btc)).toEqual(['0', '0', '0', '0', '0', '0.1'])
    expect(amounts(usd)).toEqual(['0', '100.01', '100.01', '107.03', '107.03', '106.03'])
    expect(usd!.points.map(({ at }) => at).slice(0, 5)).toEqual([4, 3, 2, 1, 0].map(midnight))
    const [onlyBtc, ...others] = await historyOf(customer, 'assets=BTC')
    expect(others).toEqual([])
    expect(onlyBtc).toMatchObject({ asset: 'BTC' })
    expect(onlyBtc!.points).toHaveLength(31)
  })

  test('more balances than an answer sums are refused', async () => {
    const customer = await newCustomer(service)
    await service.owner.query(
      `with made as (
         insert into profiles (customer_id, id, type, nickname, created_at)
         select $1, gen_random_uuid(), 'NORMAL', 'many ' || n, clock_timestamp() from generate_series(1, 10001) n
         returning id)
       insert into balances (customer_id, profile_id, asset, available, version, updated_at)
       select $1, id, 'USD', 1, 1, clock_timestamp() from made`,
      [customer.customer_id],
    )
    const { status, body } = await customer.call('GET', '/v2/balances/history')
    expect(status).toBe(400)
    expect(body).toMatchObject({
      detail:
        'assets must name fewer: more than 10000 balances are too many for one answer; List Profile Balances has those of a profile at a moment',
    })
    expect(await historyOf(customer, 'assets=BTC')).toEqual([])
  })
})

describe('an answer about a moment is the same later, although a movement of an earlier time is committed after it', () => {
  interface At {
    items: { asset: string; available: string }[]
    complete_until?: string
  }
  const balancesAt = async ({ call, profile_id }: TestCustomer, at: string) =>
    (await call<At>('GET', `/v2/profiles/${profile_id}/balances?at=${at}`)).body
  /** Does something between a movement of 7 USD and its commit. Returns what it did, and the movement's moment. */
  const whileUncommitted = <T>({ customer_id, profile_id }: TestCustomer, work: (at: string) => Promise<T>) =>
    transaction(service.db, async (tx) => {
      const moment = await moveAt(tx, customer_id, undefined, { to: profile_id, asset: 'USD', minor: 7_00n })
      return { did: await work(moment.text), moment }
    })
  const held = [{ asset: 'USD', available: '100', trading: '0' }]
  const later = [{ ...held[0]!, available: '107' }]

  test.each(['its own moment', 'now', 'a year ahead'])('List Profile Balances, at %s', async (when) => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const { did, moment } = await whileUncommitted(customer, async (own) => {
      const now = (await transaction(service.db, readClock)).text
      const at = { 'its own moment': own, now }[when] ?? `${new Date().getFullYear() + 1}-01-01T00:00:00Z`
      return { at, answer: await balancesAt(customer, at) }
    })
    const until = did.answer.complete_until!
    expect(momentAt(until).micros).toBeLessThanOrEqual(moment.micros)
    expect(did.answer.items).toEqual(held)
    const again = await balancesAt(customer, did.at)
    expect(again.items).toEqual(later)
    expect('complete_until' in again).toBe(when === 'a year ahead')
    // A moment before the movement is answered at once, while it is under way.
    const known = await whileUncommitted(customer, () => balancesAt(customer, moment.text))
    expect(known.did).toEqual({ items: later })
  })

  test('List Balance History', async () => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '100')
    const { did, moment } = await whileUncommitted(customer, () => historyOf(customer, 'days=1'))
    const { at, available } = did[0]!.points.at(-1)!
    expect(momentAt(at).micros).toBeLessThan(moment.micros)
    expect(available).toBe('100')
    expect((await balancesAt(customer, at)).items).toEqual(held)
    expect((await historyOf(customer, 'days=1'))[0]!.points.at(-1)!.available).toBe('107')
  })

  test('List Activity', async () => {
    const customer = await newCustomer(service)
    const { customer_id: customerId } = customer
    const call = await newOperatorCaller(service, 'VIEWER', { customerId })
    const { did, moment } = await whileUncommitted(customer, () =>
      call<{ items: { at: string; in: string }[] }>('GET', '/v2/operators/activity'),
    )
    const last = did.body.items.at(-1)!
    expect(momentAt(last.at).micros).toBeLessThan(moment.micros)
    expect(last.in).toBe('0')
  })
})
