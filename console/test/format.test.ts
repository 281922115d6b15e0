import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ago, changeOf, daysOf, percentOf, readable, sumOf, timeOfId } from '../src/format.ts'
import { idsAt, momentAt } from '../../src/db/ids.ts'
import { runs } from '../../test/seed.ts'

const at = (text: string) => Date.parse(text)

test('a period ends where the next one begins, also at the end of a month and of a year', () => {
  expect(daysOf('Today', at('2026-12-31T23:59:59.999Z'))).toEqual({
    from: '2026-12-31',
    before: '2027-01-01',
  })
  expect(daysOf('This month', at('2026-12-31T23:59:59Z'))).toEqual({
    from: '2026-12-01',
    before: '2027-01-01',
  })
  expect(daysOf('Last month', at('2027-01-31T00:00:00Z'))).toEqual({
    from: '2026-12-01',
    before: '2027-01-01',
  })
  expect(daysOf('Last month', at('2028-03-31T12:00:00Z'))).toEqual({
    from: '2028-02-01',
    before: '2028-03-01',
  })
})

test('how long ago a moment was', () => {
  const now = at('2026-11-25T12:00:00Z')
  expect(ago('2026-11-25T11:59:59.7Z', now)).toBe('now')
  expect(ago('2026-11-25T11:59:01Z', now)).toBe('59 seconds ago')
  expect(ago('2026-11-25T09:30:00Z', now)).toBe('2 hours ago')
  expect(ago('2026-11-24T11:00:00Z', now)).toBe('yesterday')
  expect(ago('2026-11-28T12:00:00Z', now)).toBe('in 3 days')
})

test('a share is percent, digit for digit', () => {
  const shares = ['0.041', '0.04', '0.0415', '0', '1', '0.5', '0.0410', '12.345', '0.000001']
  expect(shares.map(percentOf)).toEqual(
    ['4.1', '4', '4.15', '0', '100', '50', '4.10', '1234.5', '0.0001'].map((percent) => `${percent} %`),
  )
})

test('a change that is shown as nothing has no sign', () => {
  expect(
    ['1.01', '0.5', '1.00004', '0.99996', '1', '1.00006', '0.99994'].map((one) => changeOf(one, '1')),
  ).toEqual(['+1.00 %', '−50.00 %', '0.00 %', '0.00 %', '0.00 %', '+0.01 %', '−0.01 %'])
})

test('a zero is no price, so nothing has changed by a hundred percent', () => {
  expect([changeOf('0', '1'), changeOf('1', '0'), changeOf('0.00', '0')]).toEqual(['–', '–', '–'])
})

test('a text of the service has its ids shortened and its times written out', () => {
  expect(
    readable('profile 01a22325-e6c7-7010-8000-8b9e4167bd4f is frozen since 2026-11-28T17:13:58.254680Z'),
  ).toBe('profile 01a22325…67bd4f is frozen since 28 Nov 2026, 17:13:58 UTC')
  // What a client has written is no time.
  expect(readable('ref 2026-13-45T00:00Z')).toBe('ref 2026-13-45T00:00Z')
})

test('a sum has every digit', () => {
  expect(sumOf([])).toBe('0')
  expect(sumOf(['0.5', '.5', '99'])).toBe('100')
  const units = fc.bigInt({ min: 0n, max: 10n ** 40n })
  const textOf = (value: bigint, places: number) => {
    const digits = value.toString().padStart(places + 1, '0')
    return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`
  }
  fc.assert(
    fc.property(fc.array(units), fc.integer({ min: 0, max: 18 }), (values, places) => {
      const [whole = '', rest = ''] = sumOf(values.map((value) => textOf(value, places))).split('.')
      expect(rest.endsWith('0')).toBe(false)
      expect(BigInt(whole + rest.padEnd(places, '0'))).toBe(values.reduce((sum, one) => sum + one, 0n))
    }),
    runs(500),
  )
})

test('an id tells when its record was made', () => {
  const moment = '2026-11-25T07:18:57.123456Z'
  expect(timeOfId(idsAt(momentAt(moment))())).toBe('2026-11-25T07:18:57.123Z')
})
