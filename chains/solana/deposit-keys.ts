import { Buffer } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import { isAddress, type Address } from '@solana/addresses'
import { base58 } from '@scure/base'
import { pathOf } from '../kit/derivation-path.ts'
import { requireMnemonic, seedOf } from '../../src/networks/mnemonic.ts'
import type { NewAddress } from '../../src/networks/network.ts'
import { isSignedBy, signerOfSeed, type SolanaSigner } from './keys.ts'

/**
 * The keys of deposit addresses. Ed25519 has no extended public key: each step of a path is hardened (SLIP-10), so that only
 * the words give addresses. Processes without them ask those that have them (`asked-addresses.ts`), and know a genuine
 * answer by a public key.
 */

/** The words that addresses are derived from, or the public key that vouches for them. */
export type DepositKey = { mnemonic: string } | { publicKey: Address }

export interface SolanaDepositKeys {
  /** Vouches for addresses, to processes without the words. */
  publicKey: Address
  /**
   * The address of the record with this id (a UUID), at the path that the id spells below `m/44'/501'`, as on EVM networks:
   * the words and the id are enough to find it again. `derivation` is the key's fingerprint and that path.
   */
  newAddress(id: string): NewAddress
  /** The addresses at paths of two numbers below `m/44'/501'`, for processes that have asked for them under these ids. */
  answersTo(asked: readonly AskedAddress[]): Promise<VouchedAddress[]>
  /** Whether the words gave out this address: it is what the derivation leads to. */
  derives(given: { address: string; derivation: string }): boolean
  /**
   * The signer for an address; undefined where it was derived from other words. Throws an Error when the path leads to
   * another address.
   */
  signerOf(address: string, derivation: string): SolanaSigner | undefined
}

export interface AskedAddress {
  id: string
  path: readonly [series: number, place: number]
}

export interface VouchedAddress {
  /** Which question it answers. */
  id: string
  address: string
  derivation: string
  signature: string
}

/** Solana's coin type (SLIP-44). */
const PURPOSE = [44, 501]
/** The key below the coin type that vouches for addresses. Those have paths of five or two components. */
const VOUCHING = [...PURPOSE, 2 ** 31 - 1]
const HARDENED = 2 ** 31

/** Reads a deposit key: words, or a public key. Throws an Error that does not show it. */
export function depositKeyIn(text: string): DepositKey {
  if (isAddress(text)) return { publicKey: text }
  if (!/\s/.test(text))
    throw new Error('is no mnemonic (BIP-39), and no public key that bursar networks deposit-key has printed')
  requireMnemonic(text)
  return { mnemonic: text }
}

/** Keys are derived when they are needed, and kept nowhere. */
export function depositKeysOf(mnemonic: string): SolanaDepositKeys {
  const seed = seedOf(mnemonic)
  const keyAt = (path: readonly number[]) => signerOfSeed(secretAt(seed, path))
  const voucher = keyAt(VOUCHING)
  const addressAt = (path: readonly number[]) => ({
    address: keyAt([...PURPOSE, ...path]).address,
    derivation: [fingerprintOf(voucher.address), ...path].join('/'),
  })
  return {
    publicKey: voucher.address,
    newAddress: (id) => addressAt(pathOf(id)),
    answersTo: async (asked) =>
      asked.map(({ id, path }) => {
        const found = { id, ...addressAt(path) }
        return { ...found, signature: base58.encode(voucher.sign(statementOf(found))) }
      }),
    derives({ address, derivation }) {
      const [root, ...path] = derivation.split('/')
      return root === fingerprintOf(voucher.address) && addressAt(path.map(Number)).address === address
    },
    signerOf(address, derivation) {
      const [root, ...path] = derivation.split('/')
      if (root !== fingerprintOf(voucher.address)) return undefined
      const signer = keyAt([...PURPOSE, ...path.map(Number)])
      if (signer.address !== address) throw new Error(`${address} is not derived at ${derivation}`)
      return signer
    },
  }
}

const fingerprintOf = (publicKey: Address) => createHash('sha256').update(publicKey).digest('hex').slice(0, 8)

const statementOf = ({ id, address, derivation }: Omit<VouchedAddress, 'signature'>) =>
  Buffer.from(`bursar deposit address ${id} ${address} ${derivation}`)

/** An address that answers a question. Throws an Error where the key that vouches has not signed it as that. */
export function vouchedAddress(publicKey: Address, answer: VouchedAddress): NewAddress {
  const { id, address, derivation, signature } = answer
  if (!isAddress(address) || !isSignedBy(publicKey, statementOf(answer), base58.decode(signature)))
    throw new Error(`the answer for deposit address ${id} is not signed by the deposit_key`)
  return { address, derivation }
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
