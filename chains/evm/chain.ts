import assert from 'node:assert/strict'
import type { Hex } from 'viem'
import { encodeFunctionData, getAddress, hexToBigInt, parseAbi } from 'viem/utils'
import { ASSETS, type CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import type { Mode } from '../../src/networks/chain-of-mode.ts'
import type { AreGiven } from '../../src/networks/given-addresses.ts'
import { at, type Call, type EventLog, type EvmNode, type Finality } from './node.ts'
import type { NamedNode } from '../kit/nodes.ts'
import type { Witnesses } from '../kit/second-word.ts'
import type { SweepWorth } from '../../src/networks/sweep-worth.ts'
import type { AskedSigner } from '../kit/remote-signer.ts'
import { addressIn, TRANSFER_TOPIC, type EvmSigner, type EvmTransaction } from './transaction.ts'
import type { WithdrawalReader } from '../../src/networks/withdrawal-reader.ts'

/** An ERC-20 contract, and the number of decimals of its amounts. */
export interface Token {
  address: Hex
  decimals: number
}

/** When sweeping a deposit address is worth its network fee (`sweeps/worth.ts`). */
export interface SweepTerms extends SweepWorth {
  /** The most that is offered for a unit of gas, in wei. */
  feeCeiling: bigint
}

/** One EVM network, as all parts of its adapter share it. */
export interface EvmChain {
  network: CryptoNetwork
  /** In live mode one node's word ends nothing. */
  mode: Mode
  node: EvmNode
  /** The nodes that it may stand for, and itself: transactions are broadcast to all. */
  nodes: readonly NamedNode<EvmNode>[]
  chainId: number
  gasAsset: string
  /** By asset. */
  tokens: ReadonlyMap<string, Token>
  /** The hot wallet; in the view of a lane (`lanesOf`), its wallet. */
  hotWallet: EvmSigner
  /** The hot wallet and those that pay beside it: each has its own nonces, and is stuck or emptied alone. */
  lanes: readonly EvmSigner[]
  /** Wallets that signed before these. What they hold is in custody, and their transactions are followed to the end. */
  formerWallets: readonly EvmSigner[]
  /** Addresses of cold storage: what they pay the wallets is a refill. */
  coldAddresses: readonly Hex[]
  confirmations: Finality
  /** The most that is offered for a unit of gas, in wei. */
  feeCeiling: bigint
  /** A transaction that has been pending for this long gets higher fees, if its own are below the current ones. */
  stuckAfterMs: number
  withdrawals: WithdrawalReader
  /** When a deposit address is worth sweeping. */
  sweeps: SweepTerms
  /** An operator has reviewed the hot wallet's transactions with lower nonces: Bursar needs no record of them. */
  firstNonce: number
  /** Most transactions of the hot wallet that are signed and not mined. */
  maxInFlight: number
  /** Throws unless the node is on the configured chain. Called before anything is signed, read or broadcast. */
  ready(): Promise<void>
  /** Makes the next `ready` ask the node again: a node of another chain would have given its last answer, too. */
  markStale(): void
  /** The process that signs for those wallets whose key this process lacks. */
  signer?: AskedSigner
  /** Pays the gas for sweeping, where the hot wallets do not: it has a key of its own here, and pays no withdrawal. */
  gasWallet?: EvmSigner
  /** The second nodes, and the amount from which on they must agree, in minor units of the asset. */
  verify?: (Witnesses<EvmNode> & { above: (asset: string) => bigint }) | undefined
  /** Tells which deposit addresses are swept and count as custody; absent where all in the database do. */
  areGiven?: AreGiven
}

/** The catalogue's tokens of a network, at the configured addresses where those differ, as on test networks. */
export function tokensOf(network: CryptoNetwork, addresses: Record<string, string>): Map<string, Token> {
  const tokens = new Map<string, Token>()
  for (const { symbol, networks } of ASSETS) {
    const { contractAddress, decimals } = networks[network] ?? {}
    const address = addresses[symbol] ?? contractAddress
    if (contractAddress === undefined || address === undefined) continue
    tokens.set(symbol, { address: getAddress(address), decimals: decimals! })
  }
  for (const asset of Object.keys(addresses)) {
    if (!tokens.has(asset)) throw new Error(`${asset} is no token of ${network} in the catalogue`)
  }
  return tokens
}

type Wallets = Pick<EvmChain, 'lanes' | 'gasWallet' | 'formerWallets'>

/** The wallets that pay, that for gas and the former ones. */
export const walletsOf = ({ lanes, gasWallet, formerWallets }: Wallets) => [
  ...lanes,
  ...(gasWallet === undefined ? [] : [gasWallet]),
  ...formerWallets,
]

/** The wallet with this address, of those that pay, that for gas and the former ones. */
export const walletAt = (chain: Wallets, address: string) =>
  walletsOf(chain).find((wallet) => getAddress(wallet.address) === getAddress(address))

/** The chain as each wallet that pays sees it. */
export const lanesOf = (chain: EvmChain): EvmChain[] =>
  chain.lanes.map((hotWallet) => ({ ...chain, hotWallet }))

/** The chain as each wallet that pays gas for sweeping sees it. */
export const gasLanesOf = (chain: EvmChain): EvmChain[] =>
  chain.gasWallet === undefined ? lanesOf(chain) : [{ ...chain, hotWallet: chain.gasWallet }]

export const isNative = ({ tokens }: EvmChain, asset: string) => !tokens.has(asset)

// ---------------------------------------------------------------------------------------------- units

/** Decimals of wei, on every EVM network. */
const NATIVE_DECIMALS = 18

export const decimalsOn = (
  { tokens, gasAsset }: Pick<EvmChain, 'tokens' | 'gasAsset'>,
  asset: string,
): number => {
  if (asset === gasAsset) return NATIVE_DECIMALS
  const token = tokens.get(asset)
  assert(token !== undefined, `${asset} is not on the network`)
  return token.decimals
}

/** A decimal amount in units of the chain, exactly. Amounts with more decimals are never withdrawn. */
export function onChain(chain: EvmChain, asset: string, amount: string): bigint {
  const units = parseAmount(amount, decimalsOn(chain, asset))
  assert(units !== undefined, `${amount} ${asset} does not fit its decimals on ${chain.network}`)
  return units
}

/** Units of the chain as a decimal string. */
export const offChain = (chain: EvmChain, asset: string, units: bigint): string =>
  formatAmount(units, decimalsOn(chain, asset))

// ---------------------------------------------------------------------------------------------- transfers, balances

const ERC20 = parseAbi([
  'function transfer(address to, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
])

/** The asset whose contract has this address; undefined where it is none of the network's. */
export const assetAt = ({ tokens }: Pick<EvmChain, 'tokens'>, address: string): string | undefined =>
  [...tokens].find(([, token]) => token.address === getAddress(address))?.[0]

/** One movement of an asset, in units of the chain. */
export interface AssetMove {
  from: Hex
  to: Hex
  asset: string
  units: bigint
}

/** The transfer of one of the network's tokens that a log tells; undefined for any other log. */
export function tokenMoveIn(chain: EvmChain, { address, topics, data }: EventLog): AssetMove | undefined {
  const asset = assetAt(chain, address)
  const [event, sender, recipient] = topics
  if (asset === undefined || event !== TRANSFER_TOPIC || sender === undefined || recipient === undefined)
    return undefined
  return { from: addressIn(sender), to: addressIn(recipient), asset, units: hexToBigInt(data) }
}

/** The call that moves `amount` of an asset, in units of the chain, to an address. */
export function transferOf(
  { tokens }: EvmChain,
  asset: string,
  to: Hex,
  amount: bigint,
): Pick<EvmTransaction, 'to' | 'value' | 'data'> {
  const token = tokens.get(asset)
  if (token === undefined) return { to, value: amount }
  const data = encodeFunctionData({ abi: ERC20, functionName: 'transfer', args: [to, amount] })
  return { to: token.address, value: 0n, data }
}

export function balanceCall({ tokens }: EvmChain, asset: string, address: Hex, block: bigint): Call {
  const token = tokens.get(asset)
  if (token === undefined) return ['eth_getBalance', address, at(block)]
  const data = encodeFunctionData({ abi: ERC20, functionName: 'balanceOf', args: [address] })
  return ['eth_call', { to: token.address, data }, at(block)]
}

/** Balances of (address, asset), in order, all as of one block. A contract without an answer holds nothing. */
export async function balancesAt(
  chain: EvmChain,
  block: bigint,
  places: readonly { address: Hex; asset: string }[],
): Promise<bigint[]> {
  const answers = await chain.node.all<Hex>(
    places.map(({ address, asset }) => balanceCall(chain, asset, address, block)),
  )
  return answers.map((answer) => (answer === '0x' ? 0n : hexToBigInt(answer)))
}
