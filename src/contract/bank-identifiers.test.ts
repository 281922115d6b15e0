import { composeIBAN } from 'ibantools'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../test/seed.ts'
import { BANK_RULES, identifierFault, wireFault } from './bank-identifiers.ts'

test('every rule refuses its example, which the earlier rules of the identifier accept', () => {
  for (const rule of BANK_RULES) expect(identifierFault(rule.identifier, rule.example)).toBe(rule.mustBe)
})

const digits = (length: number) => fc.array(fc.nat(9), { minLength: length, maxLength: length })
const sum = (number: readonly number[]) =>
  number.reduce((total, digit, at) => total + digit * [3, 7, 1][at % 3]!, 0)

test('an ABA number of any bank passes; not one with another digit in one place', () => {
  const prefix = fc.constantFrom('01', '02', '12', '21', '32', '61', '72', '80')
  const number = fc.tuple(prefix, digits(6)).map(([first, rest]) => {
    const eight = [...Array.from(first, Number), ...rest]
    return [...eight, (10 - (sum(eight) % 10)) % 10]
  })
  fc.assert(
    fc.property(number, fc.nat(8), fc.integer({ min: 1, max: 9 }), (good, at, by) => {
      expect(identifierFault('ABA', good.join(''))).toBeUndefined()
      const wrong = good.with(at, (good[at]! + by) % 10)
      expect(identifierFault('ABA', wrong.join(''))).toMatch(/check digit/)
      expect(identifierFault('ABA', good.slice(1).join(''))).toMatch(/9 digits/)
    }),
    runs(1_000),
  )
  for (const first of ['00', '13', '20', '33', '60', '73', '79', '81', '99']) {
    const eight = [...Array.from(first, Number), 0, 0, 0, 0, 0, 0]
    const text = [...eight, (10 - (sum(eight) % 10)) % 10].join('')
    expect(identifierFault('ABA', text)).toBe('must begin with 01 to 12, 21 to 32, 61 to 72 or 80')
  }
})

describe('an IBAN', () => {
  const german = digits(18).map((bban) => composeIBAN({ countryCode: 'DE', bban: bban.join('') })!)
  const bank = fc.constantFrom('NWBK', 'BARC', 'XXXX')
  const british = fc
    .tuple(bank, digits(14))
    .map(([code, rest]) => composeIBAN({ countryCode: 'GB', bban: code + rest.join('') })!)

  test('passes with and without spaces; not with another digit, two exchanged ones, or one less', () => {
    fc.assert(
      fc.property(
        fc.oneof(german, british),
        fc.integer({ min: 8, max: 20 }),
        fc.integer({ min: 1, max: 9 }),
        (iban, at, by) => {
          for (const spelling of [iban, iban.toLowerCase(), iban.replace(/.{4}/g, '$& ').trim()])
            expect(identifierFault('account_number', spelling)).toBeUndefined()
          const wrong = [...iban].with(at, String((Number(iban[at]) + by) % 10)).join('')
          const less = iban.slice(0, at) + iban.slice(at + 1)
          for (const text of [wrong, less]) expect(identifierFault('account_number', text)).toBeDefined()
          const exchanged = iban.slice(0, at) + iban[at + 1]! + iban[at]! + iban.slice(at + 2)
          if (exchanged !== iban) expect(identifierFault('account_number', exchanged)).toBeDefined()
        },
      ),
      runs(1_000),
    )
  })

  test('is not looked for in the account numbers of other countries', () => {
    for (const text of ['1', '000987654321', '0001/12345-6', '1234.56.78903', 'US12345678901234567', 'AB12'])
      expect(identifierFault('account_number', text)).toBeUndefined()
  })
})

test.each([
  ['****1234', /hidden/],
  ['XXXX1234', /hidden/],
  ['xx1234', /hidden/],
  ['••1234', /hidden/],
  ['', /must have only/],
  [' - ', /must have only/],
  ['١٢٣', /must have only/],
  ['12\u200b34', /must have only/],
])('the account number %j is refused', (text, why) => {
  expect(identifierFault('account_number', text)).toMatch(why)
})

test('the type decides what a routing number must be; without one, digits are an ABA number', () => {
  const says = (routing_details: object) => wireFault({ account_number: '1', routing_details })
  for (const details of [
    {},
    { routing_number_type: 'SWIFT' },
    { routing_number: '021000021' },
    { routing_number_type: 'ABA', routing_number: '021000021' },
    { routing_number: 'DEUTDEFF500' },
    { routing_number_type: 'SWIFT', routing_number: 'DEUTDEFF' },
  ])
    expect(says(details)).toBeUndefined()
  const aba = 'routing_details.routing_number must be 9 digits with a valid check digit'
  const bic = 'routing_details.routing_number must be a BIC of 8 or 11 capital letters and digits (ISO 9362)'
  expect(says({ routing_number: '021000022' })).toBe(aba)
  expect(says({ routing_number: 'hello' })).toBe(bic)
  for (const routing_number of ['٠٢١٠٠٠٠٢١', 'XXXXX0021', 'DEUTDEFF', ''])
    expect(says({ routing_number_type: 'ABA', routing_number })).toContain(aba)
  for (const routing_number of ['deutdeff', 'DEUTDEFF5', '021000021', 'DEUTZZFF', ' DEUTDEFF'])
    expect(says({ routing_number_type: 'SWIFT', routing_number })).toBe(bic)
})
