import { randomInt } from 'node:crypto'
import { bytesToHex } from 'viem/utils'
import { HDKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import type { EvmSigner } from './evm-transactions.ts'
import type { NewAddress } from './networks.ts'

/** What deposit addresses are derived from: the words of a mnemonic (BIP-39), or a private extended key (BIP-32). */
export type DepositKey = { mnemonic: string } | { extendedKey: string }

/** Below the mnemonic's seed, Ethereum's account (BIP-44). An extended key is taken as it is. */
const ACCOUNT_PATH = "m/44'/60'/0'"
/** As many paths below a key as there are of each component: those that are not hardened. */
const COMPONENTS = 2 ** 31

/** Makes deposit addresses and finds the keys to them again. */
export interface DepositKeys {
  /**
   * At a random path of two components, so that no count of addresses, and nothing of one customer, shows in
   * another's. `derivation` is the key's fingerprint and the path below it: `3442193e/1207959552/77312`.
   */
  newAddress(): NewAddress
  /** Who signs for an address; undefined when it was derived from another key. Throws when it is not the address's. */
  signerOf(address: string, derivation: string): EvmSigner | undefined
}

/** Keys are derived when they are needed, and kept nowhere. */
export function depositKeysOf(source: DepositKey): DepositKeys {
  const root = rootOf(source)
  const fingerprint = root.fingerprint.toString(16).padStart(8, '0')
  const accountAt = (path: number[]) => {
    const { privateKey } = path.reduce((key, index) => key.deriveChild(index), root)
    return privateKeyToAccount(bytesToHex(privateKey!))
  }
  return {
    newAddress() {
      const path = [randomInt(COMPONENTS), randomInt(COMPONENTS)]
      return { address: accountAt(path).address, derivation: [fingerprint, ...path].join('/') }
    },
    signerOf(address, derivation) {
      const [of, ...path] = derivation.split('/')
      if (of !== fingerprint) return undefined
      const account = accountAt(path.map(Number))
      if (account.address !== address) throw new Error(`${address} is not derived at ${derivation}`)
      return account
    },
  }
}

/** What is wrong with a key is said without it. */
function rootOf(source: DepositKey): HDKey {
  let root: HDKey
  try {
    root =
      'mnemonic' in source
        ? mnemonicToAccount(source.mnemonic, { path: ACCOUNT_PATH }).getHdKey()
        : HDKey.fromExtendedKey(source.extendedKey)
  } catch {
    throw new Error('the deposit key is no mnemonic or extended key')
  }
  if (root.privateKey === null) throw new Error('the deposit key is a public one: nothing could be swept')
  return root
}
