import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import { Window } from './policy-windows.ts'

const KEY = { rule_id: 'rule', asset: 'USD', subject: 'CUSTOMER' }
const START = 1_800_000_000_000_000

/** A window as another process reads it. */
const reread = (window: Window) =>
  new Window(KEY, { buckets: JSON.parse(JSON.stringify(window.stored)) as [number, string][] })

const payment = fc.record({
  /** Microseconds since the last one; negative after the clock was set back. */
  later: fc.oneof(
    fc.integer({ min: 0, max: 3_000_000 }),
    fc.integer({ min: 0, max: 200_000_000 }),
    fc.integer({ min: -5_000_000, max: 0 }),
  ),
  amount: fc.bigInt({ min: 0n, max: 100n }),
})

test('no period ever holds more than the limit, in at most 60 buckets, and little less is allowed', () => {
  fc.assert(
    fc.property(
      fc.array(payment, { maxLength: 300 }),
      fc.integer({ min: 1, max: 86_400 }),
      fc.bigInt({ min: 0n, max: 2_000n }),
      (payments, seconds, limit) => {
        const period = seconds * 1_000_000
        let window = new Window(KEY)
        let now = START
        const accepted: { at: number; amount: bigint }[] = []
        for (const { later, amount } of payments) {
          now += later
          const sum = window.sumAt(now, period)
          // Exact up to one bucket: each payment of the last 58 / 59 of the period counts, and none of before it.
          const since = (micros: number) =>
            accepted.filter(({ at }) => at > micros).reduce((total, one) => total + one.amount, 0n)
          // After the clock was set back, it is the time of the latest payment.
          const moment = Math.max(now, accepted.at(-1)?.at ?? 0)
          expect(sum).toBeGreaterThanOrEqual(since(moment - period))
          if (later >= 0 && accepted.every(({ at }) => at <= now))
            expect(sum).toBeLessThanOrEqual(since(now - period - Math.ceil(period / 59)))
          if (sum + amount > limit) continue
          window.add(now, period, amount)
          accepted.push({ at: moment, amount })
          expect(window.stored.length).toBeLessThanOrEqual(60)
          window = reread(window)
        }
        // Whatever the period: it never holds more than the limit.
        for (const { at } of accepted) {
          const within = accepted.filter((one) => one.at <= at && one.at > at - period)
          expect(within.reduce((total, { amount }) => total + amount, 0n)).toBeLessThanOrEqual(limit)
        }
      },
    ),
    runs(200),
  )
})

test('a clock that is set back frees nothing', () => {
  const period = 3_600_000_000
  const window = new Window(KEY)
  window.add(START, period, 5n)
  window.add(START - period, period, 2n)
  expect(window.sumAt(START - period, period)).toBe(7n)
  expect(window.sumAt(START + period - 1, period)).toBe(7n)
  expect(window.sumAt(START + period, period)).toBe(0n)
  expect(window.stored).toHaveLength(1)
})

test('a longer period counts what a shorter one has kept, and a shorter one forgets at once', () => {
  const minute = 60_000_000
  const window = new Window(KEY)
  window.add(START, minute, 5n)
  window.add(START + minute / 2, minute, 1n)
  expect(window.sumAt(START + minute, 10 * minute)).toBe(6n)
  expect(window.sumAt(START + minute, minute / 3)).toBe(0n)
})
