import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sum } from './amounts.ts'
import {
  Batch,
  CHANGE_MIN,
  consolidationOf,
  spendableAtOnce,
  worthSpending,
  type Coin,
} from './choose-coins.ts'

/**
 * Which money a transaction spends. Invariants, for any coins, payments and rates: 1. the coins are the payments, the change and the
 * fee, and nothing else; 2. the fee is that of the size, and at most an output of change more; 3. no change is smaller than
 * `CHANGE_MIN`; 4. nodes relay it: at most 100,000 virtual bytes, and no more coins than a signer is shown; 5. a payment that is not added changes nothing; 6. a consolidation
 * leaves the ten largest coins, and spends none that costs more than it holds.
 */

const BYTES_OF_CHANGE = 22
const RELAYED_MAX = 100_000

const coins: fc.Arbitrary<Coin[]> = fc
  .array(fc.record({ amount: fc.bigInt(1n, 5_000_000_000n), vbytes: fc.constantFrom(58, 68, 91, 148) }), {
    maxLength: 40,
  })
  .map((some) => some.map((coin, index) => ({ ...coin, outpoint: `${index}`, isMined: true })))
/** Small coins in such a number that their size alone limits a transaction. */
const manyCoins = fc
  .tuple(fc.integer({ min: 600, max: 800 }), fc.bigInt(20_000n, 1_000_000n))
  .map(([count, amount]) =>
    Array.from({ length: count }, (_, index) => ({
      ...{ amount: amount + BigInt(index), vbytes: 148, outpoint: `${index}`, isMined: true },
    })),
  )
const payments = fc.array(
  fc.record({
    amount: fc.bigInt(1n, 2_000_000_000n),
    script: fc.constantFrom(22, 25, 34).map((length) => new Uint8Array(length)),
  }),
  { maxLength: 20 },
)
const rate = fc.bigInt(0n, 500_000n)
const most = fc.constantFrom(undefined, 3, 150)
const amountOf = (some: readonly { amount: bigint }[]) => sum(some.map(({ amount }) => amount))
const bytesOf = (spent: readonly Coin[], scripts: readonly number[]) =>
  15 +
  spent.reduce((bytes, { vbytes }) => bytes + vbytes, 0) +
  scripts.reduce((bytes, length) => bytes + 9 + length, 0)

describe('a transaction', () => {
  test('spends its payments, its change and the fee of its size, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.oneof(coins, manyCoins),
        payments,
        rate,
        fc.bigInt(0n, 100_000n),
        fc.boolean(),
        most,
        (all, wanted, rate, ancestorFee, consolidates, coinsMax) => {
          const batch = new Batch(all, {
            rate,
            changeScriptBytes: BYTES_OF_CHANGE,
            ancestorFee,
            consolidates,
            coinsMax,
          })
          for (const payment of wanted) {
            const before = batch.plan()
            if (!batch.add(payment)) expect(batch.plan()).toEqual(before)
          }
          const { coins: spent, payments: paid, change } = batch.plan()
          if (paid.length === 0) return
          expect(batch.due).toBe(amountOf(paid))
          expect(new Set(spent.map(({ outpoint }) => outpoint)).size).toBe(spent.length)
          const fee = amountOf(spent) - amountOf(paid) - sum(change)
          const size = bytesOf(spent, [
            ...paid.map(({ script }) => script.length),
            ...change.map(() => BYTES_OF_CHANGE),
          ])
          const needed = (rate * BigInt(size)) / 1000n + ancestorFee
          expect(fee).toBeGreaterThanOrEqual(needed)
          const forChange = (rate * BigInt(9 + BYTES_OF_CHANGE) + 999n) / 1000n
          // Each output rounds up to a whole unit.
          expect(fee).toBeLessThanOrEqual(needed + (change.length > 0 ? 0n : CHANGE_MIN + forChange) + 12n)
          for (const amount of change) expect(amount).toBeGreaterThanOrEqual(CHANGE_MIN)
          expect(size).toBeLessThanOrEqual(RELAYED_MAX)
          expect(spent.length).toBeLessThanOrEqual(coinsMax ?? Infinity)
          expect(amountOf(spent)).toBeLessThanOrEqual(amountOf(all))
        },
      ),
    )
  })

  test('can spend at once what the size allows, and no coin more', () => {
    fc.assert(
      fc.property(fc.oneof(coins, manyCoins), most, (all, coinsMax) => {
        const { amount, count } = spendableAtOnce(all, coinsMax)
        expect(count).toBeLessThanOrEqual(coinsMax ?? Infinity)
        const largest = all.toSorted((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0))
        expect(amount).toBe(amountOf(largest.slice(0, count)))
        expect(bytesOf(largest.slice(0, count), [])).toBeLessThanOrEqual(RELAYED_MAX)
      }),
    )
  })
})

test('a consolidation leaves the ten largest coins, and spends none that costs more than it holds', () => {
  fc.assert(
    fc.property(fc.oneof(coins, manyCoins), rate, (all, rate) => {
      const { coins: merged, amount, fee } = consolidationOf(all, rate, BYTES_OF_CHANGE)
      expect(amount + fee).toBe(amountOf(merged))
      const worth = worthSpending(all, rate)
      const left = worth.filter((coin) => !merged.includes(coin)).map((coin) => coin.amount)
      const most = merged.reduce((largest, coin) => (coin.amount > largest ? coin.amount : largest), 0n)
      expect(merged.every((coin) => worth.includes(coin))).toBe(true)
      expect(left.filter((amount) => amount >= most).length).toBeGreaterThanOrEqual(
        Math.min(10, worth.length),
      )
      expect(bytesOf(merged, [BYTES_OF_CHANGE])).toBeLessThanOrEqual(RELAYED_MAX)
    }),
  )
})
