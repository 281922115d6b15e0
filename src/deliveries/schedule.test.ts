import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AHEAD_SECONDS,
  isOverloaded,
  nextSlots,
  readRetryAfter,
  RETRY_AFTER_SECONDS_MAX,
  RETRY_DELAYS_SECONDS,
  secondsToNextAttempt,
} from './schedule.ts'

const HOUR = 3_600
const DAY = 24 * HOUR

describe('attempts', () => {
  test('come at once, after 5 s and so on, the last one after 24 h', () => {
    expect(RETRY_DELAYS_SECONDS.slice(0, -1)).toEqual([
      5,
      30,
      120,
      300,
      900,
      1800,
      HOUR,
      2 * HOUR,
      4 * HOUR,
      8 * HOUR,
    ])
    expect(RETRY_DELAYS_SECONDS.reduce((sum, delay) => sum + delay)).toBe(DAY)
    expect(secondsToNextAttempt(12, { random: 0.5 })).toBeUndefined()
    expect(secondsToNextAttempt(1, { random: 0.5 })).toBe(5)
  })

  test('differ by up to 20 %, and never come before Retry-After', () => {
    const attempt = fc.integer({ min: 1, max: 11 })
    const random = fc.double({ min: 0, max: 1, noNaN: true })
    const retryAfterSeconds = fc.option(fc.integer({ min: 1, max: RETRY_AFTER_SECONDS_MAX }), {
      nil: undefined,
    })
    fc.assert(
      fc.property(attempt, random, retryAfterSeconds, (attempts, at, retryAfter) => {
        const seconds = secondsToNextAttempt(attempts, { random: at, retryAfterSeconds: retryAfter })!
        const delay = RETRY_DELAYS_SECONDS[attempts - 1]!
        expect(seconds).toBeGreaterThanOrEqual(Math.max(0.8 * delay, retryAfter ?? 0) - 1e-6)
        expect(seconds).toBeLessThanOrEqual(Math.max(1.2 * delay, retryAfter ?? 0) + 1e-6)
      }),
    )
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')

  test.each([
    ['0', undefined],
    ['1', 1],
    [' 30 ', 30],
    ['3601', 3600],
    ['99999999999999999999', 3600],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
    ['Thu, 01 Jan 2026 00:01:30 GMT', 90],
    ['Thu, 01 Jan 2026 09:00:00 GMT', 3600],
    ['Wed, 31 Dec 2025 23:59:59 GMT', undefined],
    ['Thu, 41 Foo 2026 00:01:30 GMT', undefined],
    ['2026-01-01T00:01:30Z', undefined],
  ])('%j means %j', (header, seconds) => {
    expect(readRetryAfter(header, now)).toBe(seconds)
  })

  test('halves the rate for these statuses only', () => {
    expect([200, 400, 429, 500, 501, 502, 503, 504, 505].filter(isOverloaded)).toEqual([429, 502, 503, 504])
    expect(isOverloaded(undefined)).toBe(false)
  })
})

describe('slots', () => {
  const RATE = fc.record({
    perSecond: fc.integer({ min: 1, max: 100 }),
    nextIn: fc.double({ min: -100, max: 10, noNaN: true }),
    slowFor: fc.constantFrom(0, -5, 30),
  })

  test('are evenly spaced, not before the last one allows, and not far ahead', () => {
    fc.assert(
      fc.property(RATE, fc.integer({ min: 0, max: 64 }), (rate, most) => {
        const slots = nextSlots(rate, most)
        const interval = (rate.slowFor > 0 ? 2 : 1) / rate.perSecond
        expect(slots.length).toBeLessThanOrEqual(most)
        for (const [index, slot] of slots.entries()) {
          expect(slot).toBeGreaterThanOrEqual(Math.max(0, rate.nextIn))
          expect(slot).toBeLessThan(AHEAD_SECONDS)
          if (index > 0) expect(slot - slots[index - 1]!).toBeCloseTo(interval, 6)
        }
        if (most > 0 && rate.nextIn < AHEAD_SECONDS) expect(slots.length).toBeGreaterThan(0)
      }),
    )
  })

  test('of claims at any times never exceed the rate of any second', () => {
    const gaps = fc.array(fc.double({ min: 0, max: 0.5, noNaN: true }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), gaps, (perSecond, pauses) => {
        let [now, next] = [0, -50]
        const starts: number[] = []
        for (const pause of pauses) {
          now += pause
          const slots = nextSlots({ perSecond, nextIn: next - now, slowFor: 0 }, 64)
          starts.push(...slots.map((slot) => now + slot))
          if (slots.length > 0) next = now + slots.at(-1)! + 1 / perSecond
        }
        for (const [index, start] of starts.entries()) {
          const within = starts.slice(index).filter((other) => other < start + 1 - 1e-6)
          expect(within.length).toBeLessThanOrEqual(perSecond)
        }
      }),
    )
  })
})
