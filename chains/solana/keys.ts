import { Buffer } from 'node:buffer'
import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto'
import { getAddressDecoder, getAddressEncoder, type Address } from '@solana/addresses'
import { base58 } from '@scure/base'
import { NoSigningKey } from '../../src/networks/node-failure.ts'

/** A wallet that signs, or one that is only watched. */
export interface SolanaSigner {
  address: Address
  /** Nothing can be signed for it in this process. */
  isWatched?: true
  /** The signer process has the key: what it is to sign is stored first. */
  isRemote?: true
  /** The signature of a message. Throws NoSigningKey where the wallet is only watched. */
  sign(message: Uint8Array): Uint8Array
}

const SEED_BYTES = 32
// What stands before the 32 bytes of an Ed25519 key in DER (RFC 8410).
const PRIVATE_DER = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * The wallet of a private key: 32 bytes (a seed), or 64 (a seed and its public key), in base58 or as the JSON array that
 * solana-keygen writes. Throws an Error that does not show the key.
 */
export function signerOfKey(text: string): SolanaSigner {
  const bytes = keyBytesOf(text)
  const isKey = bytes !== undefined && [SEED_BYTES, 2 * SEED_BYTES].includes(bytes.length)
  if (!isKey)
    throw new Error(
      `is no private key: 32 or 64 bytes in base58, or solana-keygen's JSON array of 64 numbers`,
    )
  const signer = signerOfSeed(bytes.subarray(0, SEED_BYTES))
  const named = bytes.subarray(SEED_BYTES)
  if (named.length > 0 && !Buffer.from(getAddressEncoder().encode(signer.address)).equals(named))
    throw new Error('is no private key: its second half is the public key of another')
  return signer
}

function keyBytesOf(text: string): Buffer | undefined {
  try {
    if (!text.startsWith('[')) return Buffer.from(base58.decode(text))
    const numbers = JSON.parse(text) as unknown[]
    const isBytes = numbers.every((byte) => Number.isInteger(byte) && Number(byte) >= 0 && Number(byte) < 256)
    return isBytes ? Buffer.from(numbers as number[]) : undefined
  } catch {
    return undefined
  }
}

/** The wallet of a seed of 32 bytes. */
export function signerOfSeed(seed: Uint8Array): SolanaSigner {
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_DER, seed]), format: 'der', type: 'pkcs8' })
  return { address: addressOf(key), sign: (message) => sign(null, message, key) }
}

/** A wallet whose key the signer process has. */
export const remote = (address: Address): SolanaSigner => ({
  address,
  isRemote: true,
  sign() {
    throw new Error('the signer process signs for this wallet')
  },
})

/** A wallet that can be watched and quoted for, and not signed for: withdrawals wait. */
export const watched = (address: Address): SolanaSigner => ({
  address,
  isWatched: true,
  sign() {
    throw new NoSigningKey('this process has no key of the hot wallet: it signs nothing')
  },
})

function addressOf(key: KeyObject): Address {
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' })
  return getAddressDecoder().decode(der.subarray(PUBLIC_DER.length))
}

export function isSignedBy(address: Address, message: Uint8Array, signature: Uint8Array): boolean {
  const der = Buffer.concat([PUBLIC_DER, Buffer.from(getAddressEncoder().encode(address))])
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature)
}
