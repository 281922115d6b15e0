import assert from 'node:assert/strict'
import { LRUCache } from 'lru-cache'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { NETWORKS } from '../../src/contract/assets/catalogue.ts'
import type { Database, Queryable } from '../../src/db/database.ts'
import { canonicalAddress, outputScriptOf } from '../../src/contract/addresses/addresses.ts'
import { DECIMALS, decimalOf } from './amounts.ts'
import { DIALECTS, type BitcoinNetwork, type Dialect } from './dialects.ts'
import { bitcoinRpc, RpcError, type BitcoinRpc, type BitcoinRpcConfig } from '../kit/json-rpc.ts'
import type { AskedSigner } from '../kit/remote-signer.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'
import type { WithdrawalReader } from '../../src/networks/withdrawal-reader.ts'

export interface BitcoinConfig
  extends
    BitcoinRpcConfig,
    Pick<BitcoinWallet, 'withdrawals'>,
    Partial<Pick<BitcoinWallet, 'firstHeight' | 'signing' | 'signer' | 'gatherMs'>> {
  /** Confirmations that make a transaction final: 1 is the newest block. */
  confirmations: number
  /** Highest fee rate, in coins per 1,000 virtual bytes. */
  feeCeiling: string
  pollMs?: number
  /** An unmined transaction of this age is replaced, if its fee is below the current one. */
  stuckAfterMs?: number
}

const GATHER_MS = 600_000
/** A signer process is shown the transaction of each coin, of up to 100 kB (200 in hex), in a request of 32 MB. */
const SIGNED_COINS_MAX = 150
/** Most transactions of which it is remembered up to which rate they have paid for their ancestors. */
const ANCESTOR_RATES_MAX = 1_000

/** The hot wallet on a node: everything that the parts of the adapter share. */
export interface BitcoinWallet {
  network: BitcoinNetwork
  /** The symbol of the network's asset. */
  coin: string
  dialect: Dialect
  rpc: BitcoinRpc
  db: Database
  /** Confirmations that make a transaction final. */
  depth: number
  /** Highest fee rate, in minor units per 1,000 virtual bytes. */
  ceiling: bigint
  /** An operator has reviewed what the wallet sent in blocks below this height. */
  firstHeight: number
  withdrawals: WithdrawalReader
  /** The node's wallet has no private keys: a person signs PSBTs outside of it. */
  signing: 'psbt' | undefined
  /** The same, and a signer process signs: for the wallet that has this address. */
  signer: { client: AskedSigner; address: string } | undefined
  /** Most coins that a transaction spends, where not only its size is limited. */
  coinsMax: number | undefined
  /** How long payments are gathered for the next PSBT, after one was made. */
  gatherMs: number
  /** By transaction hash: the fee rate up to which this transaction also paid for its unmined ancestors. */
  ancestorRates: LRUCache<string, bigint>
  /** The canonical spelling of an address, of a test network too; undefined for anything else. */
  canonical: (address: string) => string | undefined
}

/** The wallet that a configuration names. Calls no node. Throws where the ceiling or the confirmations are not above 0. */
export function bitcoinWallet(network: BitcoinNetwork, config: BitcoinConfig, db: Database): BitcoinWallet {
  const { confirmations: depth } = config
  const coin = NETWORKS[network].gasAsset
  const ceiling = parseAmount(config.feeCeiling, DECIMALS)
  assert(ceiling !== undefined && ceiling > 0n, `the fee ceiling of ${network} is no amount of ${coin}`)
  assert(Number.isInteger(depth) && depth >= 1, `the confirmations of ${network} must be an integer above 0`)
  return {
    network,
    coin,
    dialect: DIALECTS[network],
    rpc: bitcoinRpc(config),
    db,
    depth,
    ceiling,
    firstHeight: config.firstHeight ?? 0,
    withdrawals: config.withdrawals,
    signing: config.signing,
    signer: config.signer,
    coinsMax: config.signer && SIGNED_COINS_MAX,
    gatherMs: config.gatherMs ?? GATHER_MS,
    ancestorRates: new LRUCache({ max: ANCESTOR_RATES_MAX }),
    canonical: (address) => canonicalAddress(network, address, { testNetworks: true }),
  }
}

/** An amount with its unit, for messages. */
export const coinText = ({ coin }: BitcoinWallet, minor: bigint): string => `${decimalOf(minor)} ${coin}`

/** A transaction of the wallet, in the node's words. */
export interface WalletTransaction {
  txid: string
  /** The change of the wallet's balance, without the fee: negative for payments to others. */
  amount: string
  hex: string
  blockhash?: string
  confirmations: string
  /** Negative. */
  fee?: string
  walletconflicts: string[]
  generated?: boolean
  details: { category: string; address?: string; amount: string; vout: string }[]
}

// A payment out of Litecoin's extension block (MWEB) is 'hogex', and 'immature' or 'orphan' before, as a coinbase is.
/** Whether others have paid an output to the wallet, other than by a coinbase. */
export const isReceived = ({ category, generated }: Pick<ListedOutput, 'category' | 'generated'>): boolean =>
  category === 'receive' || (['hogex', 'immature', 'orphan'].includes(category) && generated !== true)

/** An output in a list of the wallet's transactions, in the node's words. */
export interface ListedOutput {
  category: string
  address?: string
  amount: string
  confirmations: string
  txid: string
  vout?: string
  abandoned?: boolean
  /** Of a coinbase. */
  generated?: boolean
  /** Present for an output in a block. */
  blockhash?: string
}

/** The wallet's transactions since a block. */
export interface WalletHistory {
  transactions: ListedOutput[]
  /** Outputs of blocks that the chain has dropped since. */
  removed?: ListedOutput[]
  /** The newest block with enough confirmations. */
  lastblock: string
}

// By Bitcoin Core's rpc/protocol.h.
/** The node does not know the address, transaction or block. */
export const NOT_KNOWN = -5

/** A node's answer; undefined when the node does not know the transaction or block. Throws any other refusal. */
export function known<T>(answer: T | RpcError): T | undefined {
  if (!(answer instanceof RpcError)) return answer
  if (answer.code === NOT_KNOWN) return undefined
  throw answer
}

/** The wallet's transactions among these hashes. */
export async function fetchTransactions(
  { rpc }: BitcoinWallet,
  hashes: string[],
): Promise<WalletTransaction[]> {
  const found = await rpc.batch<WalletTransaction>(hashes.map((hash) => ['gettransaction', hash]))
  return found.flatMap((answer) => known(answer) ?? [])
}

/** The heights of blocks that the node knows, by their hashes. Bitcoin Cash Node gives none with a transaction. */
export async function heightsOf(
  { rpc }: BitcoinWallet,
  blocks: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const headers = await rpc.batch<{ height: string }>(blocks.map((block) => ['getblockheader', block]))
  const found = headers.map((header, index) => [blocks[index]!, Number(known(header)?.height)] as const)
  return new Map(found.filter(([, height]) => !Number.isNaN(height)))
}

/**
 * The wallet's transactions after a block ('': all). For a block that the chain has dropped, the node goes back to the
 * fork; for a block that it does not know, it lists everything.
 */
export async function historySince({ rpc, depth }: BitcoinWallet, block: string): Promise<WalletHistory> {
  const list = (from: string) => rpc.call<WalletHistory>('listsinceblock', from, depth)
  return list(block).catch((error: unknown) => {
    if (error instanceof RpcError && error.code === NOT_KNOWN) return list('')
    throw error
  })
}

/** An address, in the node's words. */
export interface AddressInfo {
  ismine: boolean
  /** True in a wallet of older nodes that has no private keys. */
  iswatchonly?: boolean
}

/** Whether the node's wallet has no private keys. */
export const isWatching = ({ signing, signer }: BitcoinWallet): boolean => (signing ?? signer) !== undefined

export const isMine = (wallet: BitcoinWallet, { ismine, iswatchonly }: AddressInfo): boolean =>
  ismine || (isWatching(wallet) && iswatchonly === true)

/**
 * The wallet's own addresses that belong to no customer: those of change, and those that an operator was paid at. A withdrawal
 * to one of them would move nothing. Deposit addresses are the wallet's too, and may be paid.
 */
export async function hotWalletAddresses(db: Queryable, own: readonly string[]): Promise<Set<string>> {
  if (own.length === 0) return new Set()
  const deposits = await depositAddressesAmong(db, own)
  return new Set(own.filter((address) => !deposits.has(address)))
}

/** Why an address of the hot wallet is not paid. */
export const OWN_ADDRESS = 'it is an address of the wallet that withdrawals are paid from'

/** The signer's address in the node's spelling, which differs between test networks. */
export async function signerAddress({ rpc, signer, network }: BitcoinWallet): Promise<string> {
  const script = Buffer.from(outputScriptOf(network, signer!.address)!).toString('hex')
  return addressIn(await rpc.call<DecodedScript>('decodescript', script))!
}

/** A script, in the node's words. Newer nodes give one address. */
export interface DecodedScript {
  address?: string
  addresses?: string[]
}

export const addressIn = ({ address, addresses = [] }: DecodedScript): string | undefined =>
  address ?? addresses[0]

/** Whether an address is the wallet's, by the node's word. */
export const isOwnAddress = async (wallet: BitcoinWallet, address: string | undefined): Promise<boolean> =>
  isMine(wallet, await wallet.rpc.call<AddressInfo>('getaddressinfo', address))
