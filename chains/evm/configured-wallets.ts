import type { Hex } from 'viem'
import { getAddress } from 'viem/utils'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { EvmSection } from '../../src/networks/network-sections.ts'
import { NoSigningKey } from '../../src/networks/node-failure.ts'
import { accountOf, type Secret } from '../../src/networks/secrets.ts'
import type { EvmSigner } from './transaction.ts'

/** The wallets that a section of the networks file names, with the keys that this process has. */

/** The network whose section is opened, and its secrets. */
interface Opening {
  network: CryptoNetwork
  signs: boolean
  given: { secret(field: string, where: Secret): Promise<string> }
}

/** The hot wallet. A process that does not sign and has the address does not read the key. */
async function hotWalletOf(
  { network, given, signs }: Opening,
  { hot_wallet_key, hot_wallet_address, signer }: EvmSection,
): Promise<{ signer: EvmSigner; isPrivate: boolean }> {
  if (signer !== undefined) {
    if (hot_wallet_key !== undefined || hot_wallet_address === undefined)
      throw new Error(
        `${network}.hot_wallet_address is given instead of hot_wallet_key where a signer has the key`,
      )
    return { signer: remote(getAddress(hot_wallet_address)), isPrivate: false }
  }
  if (hot_wallet_address !== undefined && !signs)
    return { signer: withoutKey(getAddress(hot_wallet_address)), isPrivate: false }
  if (hot_wallet_key === undefined) {
    const why =
      hot_wallet_address === undefined ? '' : ': without it only a process with BURSAR_WORKER=false can be'
    throw new Error(`${network}.hot_wallet_key is required${why}`)
  }
  const account = accountOf(`${network}.hot_wallet_key`, await given.secret('hot_wallet_key', hot_wallet_key))
  if (hot_wallet_address !== undefined && getAddress(hot_wallet_address) !== account.address)
    throw new Error(`${network}.hot_wallet_address is not the address of hot_wallet_key: ${account.address}`)
  return { signer: account, isPrivate: true }
}

/**
 * The hot wallet, those beside it and the former ones. Throws an Error with the field of a wallet that is named twice, has
 * another's key, or has no key and would pay.
 */
export async function walletsOf(
  opening: Opening,
  section: EvmSection,
): Promise<{
  hotWallet: EvmSigner
  further: EvmSigner[]
  former: EvmSigner[]
  gasWallet?: EvmSigner
  privateKeys: string[]
}> {
  const { network, given, signs } = opening
  const { signer: hotWallet, isPrivate } = await hotWalletOf(opening, section)
  const privateKeys = isPrivate ? ['hot_wallet_key'] : []
  const known = [hotWallet]
  const walletsIn = async (list: 'further_hot_wallets' | 'former_hot_wallets') => {
    const wallets: EvmSigner[] = []
    for (const [index, { address: named, key, ...more }] of (section[list] ?? []).entries()) {
      const field = `${list}[${index}]`
      const address = getAddress(named)
      if (known.some((one) => one.address === address))
        throw new Error(`${network}.${field}.address is named twice, or is the hot wallet's`)
      const isPaying = list === 'further_hot_wallets'
      if (isPaying && section.signer !== undefined) {
        if (key !== undefined)
          throw new Error(`${network}.${field}.key is the signer's: give the address alone`)
        wallets.push(remote(address))
        known.push(remote(address))
        continue
      }
      if (key === undefined && signs && isPaying)
        throw new Error(`${network}.${field}.key is required: the wallet pays withdrawals`)
      const account =
        key === undefined || !signs
          ? withoutKey(address)
          : accountOf(`${network}.${field}.key`, await given.secret(`${field}.key`, key))
      if (account.address !== address)
        throw new Error(`${network}.${field}.key is the key of another address: ${account.address}`)
      if (!('isWatched' in account)) privateKeys.push(`${field}.key`)
      const isClosed = 'closed' in more && more.closed === true && { isClosed: true as const }
      wallets.push({ ...account, ...isClosed })
      known.push(account)
    }
    return wallets
  }
  const further = await walletsIn('further_hot_wallets')
  const former = await walletsIn('former_hot_wallets')
  const gas = await gasWalletOf(opening, section, privateKeys)
  if (known.some(({ address }) => address === gas.gasWallet?.address))
    throw new Error(`${network}.gas_wallet_key is the key of a wallet that pays: its nonces would collide`)
  return { hotWallet, further, former, ...gas, privateKeys }
}

/** The wallet that pays gas for sweeping where a signer has the keys of the hot wallets. */
async function gasWalletOf(
  { network, given, signs }: Opening,
  { signer, gas_wallet_key, deposit_key }: EvmSection,
  privateKeys: string[],
): Promise<{ gasWallet?: EvmSigner }> {
  if (gas_wallet_key === undefined) {
    if (signer !== undefined && deposit_key !== undefined && signs)
      throw new Error(`${network}.gas_wallet_key is required: with a signer, it pays the gas for sweeping`)
    return {}
  }
  if (signer === undefined)
    throw new Error(`${network}.gas_wallet_key is for a network with a signer: the hot wallet pays the gas`)
  privateKeys.push('gas_wallet_key')
  return {
    gasWallet: accountOf(`${network}.gas_wallet_key`, await given.secret('gas_wallet_key', gas_wallet_key)),
  }
}

/** A wallet whose key the signer process has. */
const remote = (address: Hex): EvmSigner => ({
  address,
  isRemote: true,
  signTransaction: () => Promise.reject(new Error('the signer process signs for this wallet')),
})

/** A wallet that can be watched and quoted for, and not signed for: withdrawals wait. */
const withoutKey = (address: Hex): EvmSigner => ({
  address,
  isWatched: true,
  signTransaction: () =>
    Promise.reject(new NoSigningKey('this process has no key of the hot wallet: it signs nothing')),
})
