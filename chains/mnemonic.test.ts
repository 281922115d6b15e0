import { expect, test } from 'vitest'
import { depositKeysOf } from './evm/deposit-keys.ts'
import { depositKeyIn } from './solana/deposit-keys.ts'

const ELEVEN = 'test test test test test test test test test test test'
const FORM = 'its words must be in lower case, with one space between them'
const CHECKSUM = 'its checksum is wrong: a word is another, or they are in another order'

test.each([
  [`${ELEVEN} junkk`, 'its word 12 is not in the English list of BIP-39'],
  [`secret ${ELEVEN.slice(5)} test`, CHECKSUM],
  [`${ELEVEN} test`, CHECKSUM],
  [`junk ${ELEVEN}`, CHECKSUM],
  [`Test ${ELEVEN.slice(5)} junk`, FORM],
  [`${ELEVEN}  junk`, FORM],
  [`${ELEVEN}\njunk`, FORM],
  [ELEVEN, 'it has 11 words, and must have 12, 15, 18, 21 or 24'],
])('no family takes a mnemonic with a fault, and none of its words is shown: %s', (mnemonic, why) => {
  const message = new RegExp(`^is no mnemonic \\(BIP-39\\): ${why}$`)
  expect(() => depositKeysOf({ mnemonic })).toThrow(message)
  expect(() => depositKeyIn(mnemonic)).toThrow(message)
})

test('the words of BIP-39 are taken', () => {
  const mnemonic = `${ELEVEN} junk`
  expect(depositKeysOf({ mnemonic }).canSign).toBe(true)
  expect(depositKeyIn(mnemonic)).toEqual({ mnemonic })
})
