import { Buffer } from 'node:buffer'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { isAddress, type Address } from '@solana/addresses'
import { base58 } from '@scure/base'
import { mnemonicToAccount } from 'viem/accounts'
import { pathOf } from '../evm/deposit-keys.ts'
import type { NewAddress } from '../network.ts'
import { isSignedBy, signerOfSeed, type SolanaSigner } from './keys.ts'

/**
 * The keys of deposit addresses. Ed25519 has no extended public key: each step of a path is hardened (SLIP-10), so that only the
 * words give addresses. Processes without them ask those that have them (`asked-addresses.ts`), and know a genuine answer by a
 * public key.
 */

/** The words that addresses are derived from, or the public key that vouches for them. */
export type DepositKey = { mnemonic: string } | { publicKey: Address }

/** Derives deposit addresses and their keys. */
export interface SolanaDepositKeys {
  /** Vouches for addresses, to processes without the words. */
  publicKey: Address
  /**
   * The address of the record with this id (a UUID), at the path that the id spells below `m/44'/501'`, as on EVM networks:
   * the words and the id are enough to find it again. `derivation` is the key's fingerprint and that path.
   */
  newAddress(id: string): NewAddress
  /** The signature that vouches for the address of an id. */
  vouch(id: string): string
  /**
   * The signer for an address; undefined where it was derived from other words. Throws an Error when the path leads to another
   * address.
   */
  signerOf(address: string, derivation: string): SolanaSigner | undefined
}

/** Solana's coin type (SLIP-44). */
const PURPOSE = [44, 501]
/** The key below the coin type that vouches for addresses. No id spells a path of one component. */
const VOUCHING = [...PURPOSE, 2 ** 31 - 1]
const HARDENED = 2 ** 31

/** Reads a deposit key: words, or a public key. Throws an Error that does not show it. */
export function depositKeyIn(text: string): DepositKey {
  if (!/\s/.test(text)) {
    if (isAddress(text)) return { publicKey: text }
  } else if (isMnemonic(text)) return { mnemonic: text }
  throw new Error('is no mnemonic (BIP-39), and no public key that bursar networks deposit-key has printed')
}

function isMnemonic(text: string): boolean {
  try {
    mnemonicToAccount(text)
    return true
  } catch {
    return false
  }
}

/** Keys are derived when they are needed, and kept nowhere. */
export function depositKeysOf(mnemonic: string): SolanaDepositKeys {
  // BIP-39, without a passphrase.
  const seed = pbkdf2Sync(mnemonic.normalize('NFKD'), 'mnemonic', 2_048, 64, 'sha512')
  const keyAt = (path: readonly number[]) => signerOfSeed(secretAt(seed, path))
  const voucher = keyAt(VOUCHING)
  const ofId = (id: string) => keyAt([...PURPOSE, ...pathOf(id)]).address
  return {
    publicKey: voucher.address,
    newAddress: (id) => addressOf(voucher.address, id, ofId(id)),
    vouch: (id) => base58.encode(voucher.sign(statementOf(id, ofId(id)))),
    signerOf(address, derivation) {
      const [of, ...path] = derivation.split('/')
      if (of !== fingerprintOf(voucher.address)) return undefined
      const signer = keyAt([...PURPOSE, ...path.map(Number)])
      if (signer.address !== address) throw new Error(`${address} is not derived at ${derivation}`)
      return signer
    },
  }
}

const addressOf = (publicKey: Address, id: string, address: Address): NewAddress => ({
  address,
  derivation: [fingerprintOf(publicKey), ...pathOf(id)].join('/'),
})

const fingerprintOf = (publicKey: Address) => createHash('sha256').update(publicKey).digest('hex').slice(0, 8)

const statementOf = (id: string, address: string) => Buffer.from(`bursar deposit address ${id} ${address}`)

/** The address of an id, by the word of the key that vouches. Throws an Error where that key has not signed it. */
export function vouchedAddress(
  publicKey: Address,
  { id, address, signature }: { id: string; address: string; signature: string },
): NewAddress {
  if (!isAddress(address) || !isSignedBy(publicKey, statementOf(id, address), base58.decode(signature)))
    throw new Error(`the answer for deposit address ${id} is not signed by the deposit_key`)
  return addressOf(publicKey, id, address)
}

/** The secret at a path of hardened steps (SLIP-10, Ed25519). */
export function secretAt(seed: Uint8Array, path: readonly number[]): Buffer {
  let node = hmac(Buffer.from('ed25519 seed'), seed)
  for (const index of path) {
    const step = Buffer.alloc(4)
    step.writeUInt32BE(HARDENED + index)
    node = hmac(node.subarray(32), Buffer.concat([Buffer.of(0), node.subarray(0, 32), step]))
  }
  return node.subarray(0, 32)
}

const hmac = (key: Uint8Array, data: Uint8Array) => createHmac('sha512', key).update(data).digest()
