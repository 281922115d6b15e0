/*
 * Invariants for every amount and every number of decimals:
 * 1. formatting and parsing are inverse to each other, with or without padding zeros;
 * 2. parsing agrees with exact rational arithmetic, and refuses exactly the texts that are no whole number of minor
 * units;
 * 3. parsing accepts the same texts as the contract's pattern;
 * 4. the canonical form has one spelling per amount.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import { AMOUNT_PATTERN, formatAmount, parseAmount, parseStoredAmount } from './amount.ts'
import { countCpu } from '../../../test/cpu-time.ts'

const digits = (maxLength: number) =>
  fc
    .array(fc.constantFrom('0', '0', '1', '2', '5', '9'), { maxLength })
    .map((characters) => characters.join(''))
const amountText = fc
  .tuple(digits(25), fc.constantFrom('', '.'), digits(22))
  .map((parts) => parts.join(''))
  .filter((text) => new RegExp(AMOUNT_PATTERN).test(text))
const decimals = fc.integer({ min: 0, max: 18 })
const minorUnits = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n })

/** Parses to numerator / 10^places digit by digit, with none of the code under test. */
function rational(text: string): { numerator: bigint; places: number } {
  let numerator = 0n
  let places = 0
  let pointSeen = false
  for (const character of text) {
    if (character === '.') {
      pointSeen = true
      continue
    }
    numerator = numerator * 10n + BigInt('0123456789'.indexOf(character))
    if (pointSeen) places++
  }
  return { numerator, places }
}

function bruteForceMinor(text: string, scale: number): bigint | undefined {
  const { numerator, places } = rational(text)
  const scaled = numerator * 10n ** BigInt(scale)
  const divisor = 10n ** BigInt(places)
  return scaled % divisor === 0n ? scaled / divisor : undefined
}

describe('properties', () => {
  test('parsing agrees with exact rational arithmetic', () => {
    fc.assert(
      fc.property(amountText, decimals, (text, scale) => {
        expect(parseAmount(text, scale)).toBe(bruteForceMinor(text, scale))
      }),
      runs(2_000),
    )
  })

  test('a formatted amount parses back, however many zeros pad it', () => {
    fc.assert(
      fc.property(minorUnits, decimals, fc.integer({ min: 0, max: 20 }), (minor, scale, padding) => {
        const text = formatAmount(minor, scale)
        const padded = (text.includes('.') ? text : `${text}.`) + '0'.repeat(padding + 1)
        expect(parseStoredAmount(text, scale)).toBe(minor)
        expect(parseStoredAmount(padded, scale)).toBe(minor)
        if (minor >= 0n) expect(parseAmount(text, scale)).toBe(minor)
      }),
      runs(2_000),
    )
  })

  test('the canonical form has no padding, no bare point and no negative zero', () => {
    fc.assert(
      fc.property(minorUnits, decimals, (minor, scale) => {
        expect(formatAmount(minor, scale)).toMatch(/^(?:0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9])$/)
      }),
      runs(2_000),
    )
  })

  test("parsing at the text's own precision accepts exactly the matches of the contract's pattern", () => {
    const almostAmount = fc
      .array(fc.constantFrom('0', '1', '9', '.', '-', '+', 'e', 'x', ' ', '\n', '٣'), { maxLength: 8 })
      .map((characters) => characters.join(''))
    fc.assert(
      fc.property(almostAmount, (text) => {
        expect(parseAmount(text, text.length) !== undefined).toBe(new RegExp(AMOUNT_PATTERN).test(text))
      }),
      runs(5_000),
    )
  })
})

describe('parseAmount', () => {
  test.each([
    ['0', 2, 0n],
    ['.5', 2, 50n],
    ['007', 2, 700n],
    ['1.50', 2, 150n],
    ['1.500', 2, 150n],
    ['.0', 0, 0n],
    ['3.000', 0, 3n],
    ['0.000000000000000001', 18, 1n],
    ['123456789012345678901234567890.12', 2, 12345678901234567890123456789012n],
    ['9007199254740993', 0, 9007199254740993n],
  ])('%s with %i decimals is %s minor units', (text, scale, minor) => {
    expect(parseAmount(text, scale)).toBe(minor)
  })

  test.each([
    ['1.505', 2],
    ['.1', 0],
    ['0.0000000000000000001', 18],
  ])('%s does not fit %i decimals', (text, scale) => {
    expect(parseAmount(text, scale)).toBeUndefined()
  })

  test.each(['', '.', '1.', '1e5', '-1', '+1', ' 1', '1 ', '1\n', '0x10', '1,5', '1.2.3', 'NaN', 'Infinity'])(
    '%j is no amount',
    (text) => {
      expect(parseAmount(text, 6)).toBeUndefined()
    },
  )

  test('a long string that is no amount is refused at once', () => {
    const cpuMs = countCpu()
    expect(parseAmount(`${'1'.repeat(100_000)}x`, 2)).toBeUndefined()
    expect(cpuMs()).toBeLessThan(100)
  })
})

describe('formatAmount', () => {
  test.each([
    [0n, 2, '0'],
    [0n, 0, '0'],
    [5n, 0, '5'],
    [5n, 2, '0.05'],
    [150n, 2, '1.5'],
    [100n, 2, '1'],
    [-1n, 2, '-0.01'],
    [-100n, 2, '-1'],
    [1n, 18, '0.000000000000000001'],
  ])('%s minor units with %i decimals is %s', (minor, scale, text) => {
    expect(formatAmount(minor, scale)).toBe(text)
  })
})

describe('parseStoredAmount', () => {
  test.each([
    ['0.00', 2, 0n],
    ['-0.00', 2, 0n],
    ['-1.5000', 2, -150n],
    ['12.340000000000000000', 2, 1234n],
  ])('%s with %i decimals is %s minor units', (text, scale, minor) => {
    expect(parseStoredAmount(text, scale)).toBe(minor)
  })

  test.each(['1.001', 'NaN', 'Infinity', '', '--1', '-', '1e3'])('%j throws', (text) => {
    expect(() => parseStoredAmount(text, 2)).toThrow(RangeError)
  })
})
