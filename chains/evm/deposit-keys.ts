import { ECDH } from 'node:crypto'
import { bytesToHex } from 'viem/utils'
import { HDKey, privateKeyToAccount, publicKeyToAddress } from 'viem/accounts'
import { pathOf } from '../kit/derivation-path.ts'
import { requireMnemonic, seedOf } from '../../src/networks/mnemonic.ts'
import type { DepositPlace } from '../kit/remote-signer.ts'
import type { EvmSigner } from './transaction.ts'
import type { NewAddress } from '../../src/networks/network.ts'

/**
 * The key that deposit addresses are derived from: the words of a mnemonic (BIP-39), or an extended key (BIP-32). A public
 * key gives the same addresses as its private key, and signs for none of them.
 */
export type DepositKey = { mnemonic: string } | { extendedKey: string }

/** Below the mnemonic's seed, Ethereum's account (BIP-44). An extended key is taken as it is. */
const ACCOUNT_PATH = "m/44'/60'/0'"
export interface DepositKeys {
  isPrivate: boolean
  /** Whether there is a signer for its addresses: otherwise nothing can be swept. */
  canSign: boolean
  /** The public extended key at the same place, for processes that only give out addresses. */
  publicKey: string
  /**
   * The address of the record with this id (a UUID), at the path that the id spells. The key and the id, which the client
   * has, are enough to derive it again, even after a restore from a backup that is older than the address. `derivation` is
   * the key's fingerprint and the path below it: `3442193e/0/211262755/1819407610/503362774/2089655823`.
   */
  newAddress(id: string): NewAddress
  /** Whether the key gave out this address: it is what the derivation leads to. */
  derives(given: DepositPlace): boolean
  /**
   * The signer for an address; undefined when it was derived from another key, or the key is public and no signer process
   * has it. Takes any path: older addresses have random paths of two components. Throws when the path leads to another address.
   */
  signerOf(address: string, derivation: string): EvmSigner | undefined
}

/** A deposit key as text: the words of a mnemonic, or an extended key. */
export const depositKeyIn = (text: string): DepositKey =>
  /\s/.test(text) ? { mnemonic: text } : { extendedKey: text }

/** Keys are derived when they are needed, and kept nowhere. With `remote`, a signer process has the private key. */
export function depositKeysOf(source: DepositKey, remote?: (place: DepositPlace) => EvmSigner): DepositKeys {
  const root = rootOf(source)
  const fingerprint = root.fingerprint.toString(16).padStart(8, '0')
  const isPrivate = root.privateKey !== null
  const canSign = isPrivate || remote !== undefined
  const keyAt = (path: number[]) => path.reduce((key, index) => key.deriveChild(index), root)
  return {
    isPrivate,
    canSign,
    publicKey: root.publicExtendedKey,
    newAddress(id) {
      const path = pathOf(id)
      return { address: addressOf(keyAt(path).publicKey!), derivation: [fingerprint, ...path].join('/') }
    },
    derives({ address, derivation }) {
      const [root, ...path] = derivation.split('/')
      return root === fingerprint && addressOf(keyAt(path.map(Number)).publicKey!) === address
    },
    signerOf(address, derivation) {
      const [root, ...path] = derivation.split('/')
      if (root !== fingerprint || !canSign) return undefined
      const key = keyAt(path.map(Number))
      const account = isPrivate
        ? privateKeyToAccount(bytesToHex(key.privateKey!))
        : { ...remote!({ address, derivation }), address: addressOf(key.publicKey!) }
      if (account.address !== address) throw new Error(`${address} is not derived at ${derivation}`)
      return account
    },
  }
}

/** The address of a public key, which BIP-32 has in its compressed form. */
const addressOf = (publicKey: Uint8Array) =>
  publicKeyToAddress(
    `0x${ECDH.convertKey(publicKey, 'secp256k1', undefined, 'hex', 'uncompressed') as string}`,
  )

/** Reads the key. The error for a wrong key does not contain it. */
function rootOf(source: DepositKey): HDKey {
  if ('mnemonic' in source) {
    requireMnemonic(source.mnemonic)
    return HDKey.fromMasterSeed(seedOf(source.mnemonic)).derive(ACCOUNT_PATH)
  }
  try {
    return HDKey.fromExtendedKey(source.extendedKey)
  } catch {
    throw new Error('is no mnemonic (BIP-39) or extended key (BIP-32)')
  }
}
