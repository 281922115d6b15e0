import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sumOfUsd, usdAt, usdOfPart } from '../src/usd.ts'
import { runs } from '../../test/seed.ts'

test('an amount is worth its price, rounded to the nearest cent', () => {
  expect(usdAt('63450.12', '0.5')).toBe('31725.06')
  expect(usdAt('1', '25')).toBe('25.00')
  expect(usdAt('3000', '0.000000000000000001')).toBe('0.00')
  expect(usdAt('0.999', '1')).toBe('1.00')
  expect(usdAt('1', '253.54499')).toBe('253.54')
  expect(usdAt('1', '10603.54999')).toBe('10603.55')
  expect(usdAt('3000', '123456.123456789012345678')).toBe('370368370.37')
})

test('values add up to the cent', () => {
  expect(sumOfUsd([])).toBe('0.00')
  expect(sumOfUsd(['11'])).toBe('11.00')
  expect(sumOfUsd(['0.1', '0.20', '9007199254740993.40'])).toBe('9007199254740993.70')
})

test('a fee is worth its share of the value of the total', () => {
  expect(usdOfPart('1', '26', '26')).toBe('1.00')
  expect(usdOfPart('0.0005', '0.5005', '1501.5')).toBe('1.50')
  expect(usdOfPart('0', '0', '0')).toBe('0.00')
})

test('the parts of an amount are never worth more than it, and less by at most a cent each', () => {
  const units = fc.bigInt({ min: 0n, max: 10n ** 30n })
  const text = (of: bigint) => `${of / 10n ** 18n}.${(of % 10n ** 18n).toString().padStart(18, '0')}`
  const cents = (usd: string) => BigInt(usd.replace('.', ''))
  fc.assert(
    fc.property(units, units, fc.bigInt({ min: 0n, max: 10n ** 20n }), (one, other, value) => {
      fc.pre(one + other > 0n)
      const [whole, all] = [
        text(one + other),
        `${value / 100n}.${(value % 100n).toString().padStart(2, '0')}`,
      ]
      const sum = cents(usdOfPart(text(one), whole, all)) + cents(usdOfPart(text(other), whole, all))
      expect(sum === value || sum === value - 1n).toBe(true)
    }),
    runs(500),
  )
})
