import type { Hex } from 'viem'
import { privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { getAddress } from 'viem/utils'
import type { Opening } from '../../src/networks/family.ts'
import { NoSigningKey } from '../../src/networks/node-failure.ts'
import { hotWalletOf } from '../kit/hot-wallet-key.ts'
import type { EvmSection } from './section.ts'
import type { DepositPlace, SignerClient } from '../kit/remote-signer.ts'
import { remoteMover } from './asked-bytes.ts'
import type { EvmSigner } from './transaction.ts'

/** The wallets that a section of the networks file names, with the keys that this process has. */

/** The hot wallet. Where a signer has its key, the address is given instead. */
async function hotWalletIn(opening: Opening, section: EvmSection): Promise<EvmSigner> {
  const isRemote = section.signer !== undefined
  return hotWalletOf<EvmSigner>(opening, section, {
    watch: (address) => (isRemote ? remote : withoutKey)(getAddress(address)),
    open: accountOf,
  })
}

/**
 * The hot wallet, those beside it and the former ones. Throws an Error with the field of a wallet that is named twice, has
 * another's key, or has no key and would pay.
 */
export async function walletsOf(
  opening: Opening,
  section: EvmSection,
  client: SignerClient | undefined,
): Promise<{
  hotWallet: EvmSigner
  further: EvmSigner[]
  former: EvmSigner[]
  gasWallet?: EvmSigner
  privateKeys: string[]
}> {
  const { network, given, signs } = opening
  const hotWallet = await hotWalletIn(opening, section)
  const privateKeys = hotWallet.isRemote || hotWallet.isWatched ? [] : ['hot_wallet_key']
  const known = [hotWallet]
  const walletsIn = async (list: 'further_hot_wallets' | 'former_hot_wallets') => {
    const wallets: EvmSigner[] = []
    for (const [index, { address: named, key, ...more }] of (section[list] ?? []).entries()) {
      const field = `${list}[${index}]`
      const address = getAddress(named)
      if (known.some((wallet) => wallet.address === address))
        throw new Error(`${network}.${field}.address is named twice, or is the hot wallet's`)
      const isPaying = list === 'further_hot_wallets'
      const isClosed = 'closed' in more && more.closed === true && { isClosed: true as const }
      if (client !== undefined || (isPaying && section.signer !== undefined)) {
        if (key !== undefined)
          throw new Error(`${network}.${field}.key is the signer's: give the address alone`)
        const wallet = isClosed ? withoutKey(address) : remote(address)
        wallets.push({ ...wallet, ...isClosed })
        known.push(wallet)
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
      wallets.push({ ...account, ...isClosed })
      known.push(account)
    }
    return wallets
  }
  const further = await walletsIn('further_hot_wallets')
  const former = await walletsIn('former_hot_wallets')
  const gas = await gasWalletOf(opening, section, privateKeys, client)
  if (known.some(({ address }) => address === gas.gasWallet?.address))
    throw new Error(`${network} has a gas wallet that pays withdrawals, too: its nonces would collide`)
  return { hotWallet, further, former, ...gas, privateKeys }
}

/** The wallet that pays gas for sweeping where a signer has the keys of the hot wallets. */
async function gasWalletOf(
  { network, given, signs }: Opening,
  { signer, gas_wallet_key, gas_wallet_address, deposit_key }: EvmSection,
  privateKeys: string[],
  client: SignerClient | undefined,
): Promise<{ gasWallet?: EvmSigner }> {
  if (client !== undefined) {
    if (gas_wallet_key !== undefined)
      throw new Error(`${network}.gas_wallet_key is the signer's: give gas_wallet_address`)
    if (gas_wallet_address !== undefined) return { gasWallet: remoteGas(network, client, gas_wallet_address) }
    if (deposit_key !== undefined && signs)
      throw new Error(
        `${network}.gas_wallet_address is required: with a signer, it pays the gas for sweeping`,
      )
    return {}
  }
  if (gas_wallet_address !== undefined)
    throw new Error(`${network}.gas_wallet_address is for a network with a signer that answers the worker`)
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

/** A gas wallet whose key the signer process has. */
function remoteGas(network: string, client: SignerClient, text: string): EvmSigner {
  const address = getAddress(text)
  const forDeposit = (place: DepositPlace) => remoteMover(network, client, address, place)
  return { ...remote(address), isRemote: undefined, forDeposit }
}

/** A wallet that can be watched and quoted for, and not signed for: withdrawals wait. */
const withoutKey = (address: Hex): EvmSigner => ({
  address,
  isWatched: true,
  signTransaction: () =>
    Promise.reject(new NoSigningKey('this process has no key of the hot wallet: it signs nothing')),
})

/** The account of a private key in hex. Throws an Error that names the field, and never shows the key. */
export function accountOf(field: string, key: string): PrivateKeyAccount {
  try {
    return privateKeyToAccount(`0x${key.replace(/^0x/, '')}`)
  } catch {
    throw new Error(`${field} is no private key of 32 bytes in hex`)
  }
}
