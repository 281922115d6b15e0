import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { depositKeyIn, depositKeysOf, secretAt, vouchedAddress, type VouchedAddress } from './deposit-keys.ts'
import { isSignedBy, signerOfSeed } from './keys.ts'

const WORDS = `${'abandon '.repeat(11)}about`

test('secrets are those of SLIP-10 (test vector 1 of Ed25519)', () => {
  const seed = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')
  const at = (...path: number[]) => secretAt(seed, path).toString('hex')
  expect(at()).toBe('2b4be7f19ee27bbf30c667b642d5f4aa69fd169872f8fc3059c08ebae2eb19e7')
  expect(at(0)).toBe('68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3')
  expect(at(0, 1)).toBe('b1d0bad404bf35da785a64ca1ac54b2617211d2777696fbffaf208f746ae84f2')
})

test('an address is found again by the words and its id, and signs', () => {
  const keys = depositKeysOf(WORDS)
  const id = randomUUID()
  const { address, derivation } = keys.newAddress(id)
  expect(depositKeysOf(WORDS).newAddress(id)).toEqual({ address, derivation })
  const signer = keys.signerOf(address, derivation!)!
  const message = Buffer.from('message')
  expect(isSignedBy(signer.address, message, signer.sign(message))).toBe(true)
  expect(() => keys.signerOf(keys.newAddress(randomUUID()).address, derivation!)).toThrow('is not derived at')
  const others = depositKeysOf('legal winner thank year wave sausage worth useful legal winner thank yellow')
  expect(others.signerOf(address, derivation!)).toBeUndefined()
  expect(others.newAddress(id).address).not.toBe(address)
})

test('a process without the words takes an address, and none that the key has not signed for its id', async () => {
  const keys = depositKeysOf(WORDS)
  const id = randomUUID()
  const [answer] = (await keys.answersTo([{ id, path: [7, 3] }])) as [VouchedAddress]
  const { address, derivation } = answer
  expect(vouchedAddress(keys.publicKey, answer)).toEqual({ address, derivation })
  expect(derivation).toMatch(/^[0-9a-f]{8}\/7\/3$/)
  expect(keys.signerOf(address, derivation)!.address).toBe(address)
  const forged = 'is not signed by the deposit_key'
  const other = signerOfSeed(Buffer.alloc(32, 7)).address
  expect(() => vouchedAddress(keys.publicKey, { ...answer, address: other })).toThrow(forged)
  expect(() => vouchedAddress(keys.publicKey, { ...answer, id: randomUUID() })).toThrow(forged)
  const elsewhere = derivation.replace('/3', '/4')
  expect(() => vouchedAddress(keys.publicKey, { ...answer, derivation: elsewhere })).toThrow(forged)
  expect(() => vouchedAddress(other, answer)).toThrow(forged)
})

test('a deposit key is words or a public key, and an error does not show it', () => {
  expect(depositKeyIn(WORDS)).toEqual({ mnemonic: WORDS })
  const { publicKey } = depositKeysOf(WORDS)
  expect(depositKeyIn(publicKey)).toEqual({ publicKey })
  for (const wrong of [`${WORDS} about`, 'secretword', '0x1234'])
    expect(() => depositKeyIn(wrong)).toThrow(/^is no mnemonic \(BIP-39\)/)
})
