/*
 * Rules of what a hot wallet owes first, for any money and any withdrawals that wait:
 * 1. an older withdrawal never waits for a younger one, and a customer's never for the platform's;
 * 2. what is paid leaves the older ones that have waited too long their amounts, and of the own asset their fees;
 * 3. a send to cold storage leaves that to all unsigned ones of customers;
 * 4. more money never has a withdrawal wait that less would pay.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import type { Withdrawal } from '../../src/networks/network.ts'
import { owedFirst, payFrom, type Money, type Owed } from './owed-first.ts'

const [OWN, TOKEN] = ['OWN', 'TOKEN']
const FEES: Record<string, bigint> = { OWN: 2n, TOKEN: 3n }

const moneyOf = (own: number, token: number): Money => ({
  spendable: new Map([
    [OWN, BigInt(own)],
    [TOKEN, BigInt(token)],
  ]),
  ownAsset: OWN,
  unitsOf: (_asset, amount) => BigInt(amount),
  feeOf: (asset) => FEES[asset]!,
  text: (asset, units) => `${units} ${asset}`,
  wallet: 'the hot wallet',
})
const withdrawalOf = (age: number, asset: string, amount: number, customer_id = 'somebody'): Withdrawal => ({
  ...{ customer_id, profile_id: 'one', network: 'ETHEREUM', fee: '0', fiat_account_id: null, memo: null },
  ...{
    transfer_id: String(age).padStart(3, '0'),
    asset,
    amount: String(amount),
    destination_address: 'there',
  },
})

const asset = fc.constantFrom(OWN, TOKEN)
const amount = fc.integer({ min: 1, max: 50 })
const held = fc.integer({ min: -5, max: 120 })
const older = fc.uniqueArray(fc.record({ age: fc.integer({ min: 0, max: 9 }), asset, amount }), {
  maxLength: 2,
  selector: (one) => one.asset,
})
const unsigned = fc.uniqueArray(fc.record({ asset, amount, count: fc.integer({ min: 1, max: 3 }) }), {
  maxLength: 2,
  selector: (one) => one.asset,
})
const owed = fc.record({ older, unsigned }).map(({ older: some, unsigned: theirs }): Owed => ({
  older: some.map((one) => withdrawalOf(one.age, one.asset, one.amount)),
  unsigned: theirs.map((one) => ({ ...one, amount: String(one.amount) })),
}))
/** What the older ones, or all, need of an asset. */
const needOf = (some: readonly { asset: string; amount: string; count?: number }[], of: string) =>
  some.reduce(
    (sum, one) =>
      sum +
      (one.asset === of ? BigInt(one.amount) : 0n) +
      (of === OWN ? BigInt(one.count ?? 1) * FEES[one.asset]! : 0n),
    0n,
  )

describe('what a hot wallet owes first', () => {
  test('what is paid leaves the older ones their amounts and fees, and takes its own', () => {
    fc.assert(
      fc.property(
        held,
        held,
        owed,
        fc.integer({ min: 0, max: 9 }),
        asset,
        amount,
        (own, token, due, age, of, units) => {
          const money = moneyOf(own, token)
          const one = withdrawalOf(age, of, units)
          const before = due.older.filter(({ transfer_id }) => transfer_id < one.transfer_id)
          const reason = payFrom(money, due, one, FEES[of]!)
          const had = BigInt(of === OWN ? own : token)
          const kept = needOf(before, of)
          if (reason === undefined) {
            expect(had - BigInt(units)).toBeGreaterThanOrEqual(kept > 0n ? kept : 0n)
            expect(money.spendable.get(of)).toBe(had - BigInt(units) - (of === OWN ? FEES[of]! : 0n))
          } else
            expect(money).toEqual({
              ...moneyOf(own, token),
              unitsOf: money.unitsOf,
              feeOf: money.feeOf,
              text: money.text,
            })
          if (before.length === 0) expect(reason?.code).not.toBe('KEPT_FOR_OLDER')
          expect(reason?.code).not.toBe('KEPT_FOR_CUSTOMERS')
        },
      ),
    )
  })

  test('a send to cold storage leaves all unsigned ones their amounts and fees; other wallets count, too', () => {
    fc.assert(
      fc.property(held, owed, amount, fc.nat(60), (own, due, units, elsewhere) => {
        const send = withdrawalOf(10, OWN, units, PLATFORM_ID)
        const reason = owedFirst(moneyOf(own, 0), { ...due, older: [] }, send, BigInt(elsewhere))
        const needed = needOf(due.unsigned!, OWN)
        const isEnough = needed === 0n || BigInt(own + elsewhere - units) >= needed
        expect(reason?.code).toBe(isEnough ? undefined : 'KEPT_FOR_CUSTOMERS')
        expect(owedFirst(moneyOf(own, 0), { older: [], unsigned: undefined }, send)?.code).toBe(
          'KEPT_FOR_CUSTOMERS',
        )
      }),
    )
  })

  test('more money never has a withdrawal wait', () => {
    fc.assert(
      fc.property(
        held,
        held,
        owed,
        asset,
        amount,
        fc.nat(50),
        fc.boolean(),
        (own, token, due, of, units, more, isSend) => {
          const one = withdrawalOf(5, of, units, isSend ? PLATFORM_ID : 'somebody')
          if (payFrom(moneyOf(own, token), due, one, FEES[of]!) === undefined)
            expect(payFrom(moneyOf(own + more, token + more), due, one, FEES[of]!)).toBeUndefined()
        },
      ),
    )
  })

  test('the reason names what there is, what is kept and for whom', () => {
    const due = { older: [withdrawalOf(1, TOKEN, 7), withdrawalOf(2, OWN, 40)], unsigned: [] }
    expect(owedFirst(moneyOf(44, 0), due, withdrawalOf(3, OWN, 1))?.detail).toBe(
      'the hot wallet has 44 OWN left, and keeps 45 OWN for withdrawal 002, which has waited too long',
    )
    expect(owedFirst(moneyOf(44, 0), due, withdrawalOf(3, TOKEN, 1))?.detail).toMatch(
      /keeps 7 TOKEN for withdrawal 001/,
    )
    expect(payFrom(moneyOf(1, 9), { older: [], unsigned: [] }, withdrawalOf(3, TOKEN, 1), 3n)).toEqual({
      code: 'FEE_NOT_COVERED',
      detail: 'the hot wallet has 1 OWN left, the withdrawal needs 3 OWN for its fee',
    })
  })
})
