import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readBankAccount, routingOf, SANDBOX_ACCOUNT, type BankAccount } from './bank-account.ts'
import { ownFolder } from '../../../test/at-end.ts'

const folder = await ownFolder()

async function read(content: unknown): Promise<BankAccount> {
  const path = join(folder, 'bank.json')
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return readBankAccount(path)
}

const address = { country: 'US', address1: '1 Main Street', city: 'Springfield' }
const GOOD = {
  account_number: '000123456789',
  account_owner: 'Acme Payments Inc',
  account_owner_address: { ...address, address2: 'Floor 2', province: 'IL', zip_code: '62701' },
  bank_name: 'First Example Bank',
  bank_address: address,
  routing_numbers: { ABA: '021000021', SWIFT: 'FEXBUS33XXX' },
}
const routing = (numbers: object) => ({ ...GOOD, routing_numbers: numbers })

test.each<[string, object]>([
  ['all fields', GOOD],
  [
    'an IBAN and a BIC of 8',
    { ...routing({ SWIFT: 'FEXBDEFF' }), account_number: 'DE89 3704 0044 0532 0130 00' },
  ],
  ['ABA alone', routing({ ABA: '011401533' })],
  ["the sandbox's", SANDBOX_ACCOUNT],
])('is read: %s', async (_, account) => {
  expect(await read(account)).toEqual(account)
})

test.each<[string, unknown, RegExp]>([
  ['no JSON', '{', /bank\.json is not JSON$/],
  ['no object', [], /^it must be a JSON object$/],
  [
    'an empty object, with every required field',
    {},
    /^account_number is required; account_owner is required; account_owner_address is required; bank_name is required; bank_address is required; routing_numbers is required$/,
  ],
  ['an unknown field', { ...GOOD, iban: 'x' }, /^iban is not a known field$/],
  ['a blank name', { ...GOOD, bank_name: '  ' }, /^bank_name must not be blank$/],
  [
    'an account number with invalid characters',
    { ...GOOD, account_number: '12;34' },
    /^account_number must have 4 to 40 /,
  ],
  [
    'a country in words',
    { ...GOOD, bank_address: { ...address, country: 'USA' } },
    /^bank_address\.country must be two capital letters/,
  ],
  [
    'an address without a city',
    { ...GOOD, bank_address: { ...address, city: undefined } },
    /^bank_address\.city is required$/,
  ],
  ['no routing number', routing({}), /^routing_numbers must be an object with ABA, SWIFT or both$/],
  ['a routing number of 8 digits', routing({ ABA: '02100002' }), /^routing_numbers\.ABA must be 9 digits/],
  [
    'a routing number with a wrong check digit',
    routing({ ABA: '021000022' }),
    /^routing_numbers\.ABA must be 9 digits with a valid check digit$/,
  ],
  ['a BIC of 9', routing({ SWIFT: 'FEXBUS33X' }), /^routing_numbers\.SWIFT must be a BIC/],
  ['a BIC of no country', routing({ SWIFT: 'FEXBZZ33' }), /^routing_numbers\.SWIFT must be a BIC/],
  ['a routing number of no bank', routing({ ABA: '000000000' }), /^routing_numbers\.ABA must begin with 01/],
  [
    'an IBAN with a wrong digit',
    { ...routing({ SWIFT: 'FEXBDEFF' }), account_number: 'DE89 3704 0044 0532 0130 01' },
    /^account_number must be an IBAN of the length of its country/,
  ],
  [
    'a masked account number',
    { ...GOOD, account_number: 'XXXX1234' },
    /^account_number must be the whole number/,
  ],
  [
    'two faults',
    { ...GOOD, account_owner: '', account_number: '1' },
    /^account_number must have .*; account_owner must NOT have fewer than 1 characters; account_owner must not be blank$/,
  ],
])('is refused, and the message names the field: %s', async (_, content, message) => {
  await expect(read(content)).rejects.toThrow(message)
})

test('a missing file is named', async () => {
  await expect(readBankAccount('/nowhere/bank.json')).rejects.toThrow(
    /^\/nowhere\/bank\.json cannot be read \(ENOENT\)$/,
  )
})

test('ABA is preferred unless SWIFT is requested; a single routing number is always used', () => {
  const { ABA, SWIFT } = GOOD.routing_numbers
  const aba = { routing_number_type: 'ABA', routing_number: ABA }
  const swift = { routing_number_type: 'SWIFT', routing_number: SWIFT }
  expect(routingOf(GOOD)).toEqual(aba)
  expect(routingOf(GOOD, 'SWIFT')).toEqual(swift)
  for (const wanted of [undefined, 'ABA', 'SWIFT'] as const) {
    expect(routingOf(routing({ SWIFT }) as BankAccount, wanted)).toEqual(swift)
    expect(routingOf(routing({ ABA }) as BankAccount, wanted)).toEqual(aba)
  }
})
