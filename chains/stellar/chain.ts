import { Keypair, Networks } from '@stellar/stellar-base'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { ASSETS } from '../../src/contract/assets/catalogue.ts'
import type { Withdrawal } from '../../src/networks/network.ts'
import type { Mode } from '../../src/networks/chain-of-mode.ts'
import { NoSigningKey } from '../../src/networks/node-failure.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { laneKeys, type StellarTransaction } from './envelope.ts'
import { horizon, type Balance, type Horizon, type StellarAccount } from './horizon.ts'
import type { AskedSigner } from '../kit/remote-signer.ts'
import type { WithdrawalReader } from '../../src/networks/withdrawal-reader.ts'

/** STELLAR as the adapter's parts see it. Amounts are in stroops, a ten-millionth. */
export interface StellarChain {
  horizon: Horizon
  /** Of another operator: without its word no payment is refunded. */
  second: Horizon | undefined
  passphrase: string
  /** In live mode one Horizon's word ends nothing. */
  mode: Mode
  /** The hot wallet's account. */
  address: string
  /** Absent in a process that does not sign, or asks a signer process to. */
  keys: { signer: Keypair; lanes: Keypair[] } | undefined
  signer: AskedSigner | undefined
  /**
   * The accounts that number transactions: those of the key that signs, and the hot wallet, where that is its own key. Of another
   * signer's, others may have used the numbers.
   */
  lanes: readonly string[]
  /** By symbol: `native`, or `CODE:ISSUER`. */
  assets: ReadonlyMap<string, string>
  /** The most that one operation costs. */
  feeCeiling: bigint
  /** Everything up to this ledger was reviewed by an operator. */
  firstLedger: number
  withdrawals: WithdrawalReader
}

export interface StellarConfig {
  horizonUrl: string
  verifyHorizonUrl?: string | undefined
  passphrase: string
  /** The seed (S...) that signs, absent in a process that does not; and the address (G...), where it is another key's. */
  hotWallet: { seed: string; address?: string } | { seed?: never; address: string }
  /** How many channel accounts give sequence numbers, beside the hot wallet. */
  lanes?: number | undefined
  /** Asked to sign for `hotWallet.address`, with numbers of these accounts. */
  signer?: { asked: AskedSigner; lanes: readonly string[] } | undefined
  /** In XLM for each operation. */
  feeCeiling: string
  /** Of test networks: the issuers by asset. */
  issuers?: Record<string, string> | undefined
  firstLedger?: number | undefined
  pollMs?: number
  withdrawals: WithdrawalReader
}

export const GAS_ASSET = 'XLM'
export const DECIMALS = 7
/** The least that an operation costs. */
export const LEAST_FEE = 100n
const LANES = 8

/** Throws an Error for a seed or an issuer that is none. */
export function openChain(config: StellarConfig): StellarChain {
  const { hotWallet: from, issuers = {} } = config
  const signer = from.seed === undefined ? undefined : Keypair.fromSecret(from.seed)
  const keys = signer && { signer, lanes: laneKeys(signer, config.lanes ?? LANES) }
  const address = from.address ?? signer!.publicKey()
  const channels = keys?.lanes.map((key) => key.publicKey()) ?? []
  const assets = new Map([[GAS_ASSET, 'native']])
  for (const { symbol, networks } of ASSETS) {
    const [code, issuer] = networks.STELLAR?.contractAddress?.split('-') ?? []
    if (code !== undefined) assets.set(symbol, `${code}:${issuers[symbol] ?? issuer}`)
  }
  return {
    horizon: horizon(config.horizonUrl, config.passphrase),
    second:
      config.verifyHorizonUrl === undefined ? undefined : horizon(config.verifyHorizonUrl, config.passphrase),
    passphrase: config.passphrase,
    mode: config.passphrase === String(Networks.PUBLIC) ? 'live' : 'sandbox',
    ...{ address, keys },
    signer: config.signer?.asked,
    lanes: config.signer?.lanes ?? (signer?.publicKey() === address ? [...channels, address] : channels),
    assets,
    feeCeiling: parseAmount(config.feeCeiling, DECIMALS)!,
    firstLedger: config.firstLedger ?? 0,
    withdrawals: config.withdrawals,
  }
}

/** The keys; undefined where a signer process has them. Throws NoSigningKey where this process neither has nor asks. */
export function keysOf({ keys, signer }: StellarChain) {
  if (keys === undefined && signer === undefined)
    throw new NoSigningKey('this process has no key of the hot wallet: it signs nothing')
  return keys
}

/** Throws a NodeFailure where Horizon does not answer, or the key is no signer of the account that deposits are sent to. */
export async function requireReady(chain: StellarChain): Promise<void> {
  await chain.horizon.root()
  if (chain.keys === undefined || chain.keys.signer.publicKey() === chain.address) return
  const wallet = await findAccount(chain, chain.address)
  const why =
    wallet === undefined ? `the account ${chain.address} does not exist` : whyNoSigner(chain, wallet)
  if (why !== undefined) throw new NoSigningKey(why)
}

/** Why the key does not sign for the hot wallet's account; undefined where its signature suffices. */
export function whyNoSigner({ address, keys }: StellarChain, account: StellarAccount): string | undefined {
  const key = keys?.signer.publicKey()
  const weight = account.signers.find((one) => one.key === key)?.weight ?? 0
  const needed = Math.max(1, account.thresholds.low_threshold, account.thresholds.med_threshold)
  if (key === undefined || weight >= needed) return undefined
  return `the key of hot_wallet_key, ${key}, has a weight of ${weight} on ${address}, and payments need ${needed}`
}

/** The hot wallet's account, and the other accounts that number its transactions. */
export const ownAccounts = ({ address, lanes }: StellarChain): string[] => [...new Set([address, ...lanes])]

export const stroops = (amount: string): bigint => parseAmount(amount, DECIMALS)!
export const decimalOf = (units: bigint): string => formatAmount(units, DECIMALS)

/** The place among a transaction's payments of the one that pays a withdrawal: no two pay the same to one address. Or -1. */
export const placeOf = (
  { assets }: StellarChain,
  { memo, payments }: StellarTransaction,
  wanted: Pick<Withdrawal, 'asset' | 'amount' | 'destination_address' | 'memo'>,
): number =>
  payments.findIndex(
    ({ destination, asset, amount }) =>
      (memo ?? null) === wanted.memo &&
      destination === wanted.destination_address &&
      asset === assets.get(wanted.asset) &&
      stroops(amount) === stroops(wanted.amount),
  )

export const findAccount = (chain: StellarChain, account: string) =>
  chain.horizon.find<StellarAccount>(`/accounts/${account}`)

/** An account's balance of an asset; undefined without a trustline. */
export const balanceOf = ({ balances }: StellarAccount, asset: string): Balance | undefined =>
  balances.find((held) =>
    asset === 'native' ? held.asset_type === 'native' : `${held.asset_code}:${held.asset_issuer}` === asset,
  )

/** Half an XLM for each entry of an account, two of which are the account itself. */
const RESERVE = 5_000_000n
/** The least that an account must hold to exist. */
export const ACCOUNT_MINIMUM = 2n * RESERVE

export function spendableOf(account: StellarAccount, asset: string): bigint {
  const balance = balanceOf(account, asset)
  if (balance === undefined) return 0n
  const { subentry_count, num_sponsoring = 0, num_sponsored = 0 } = account
  const entries = BigInt(2 + subentry_count + num_sponsoring - num_sponsored)
  const kept = asset === 'native' ? entries * RESERVE : 0n
  return stroops(balance.balance) - stroops(balance.selling_liabilities ?? '0') - kept
}

/** The second Horizon, as the rules of second nodes take it. */
export const secondOf = ({ second }: StellarChain) =>
  second && { nodes: [{ field: 'verify_rpc_url', node: second }], quorum: 1 }

/** The chain as the second Horizon has it; undefined in a sandbox without one. Throws an Error in live mode without one. */
export function asSecondHas(chain: StellarChain, what: string): StellarChain | undefined {
  const { second, mode } = chain
  if (second === undefined && mode === 'live') throw new Error(`${what}: ${NOTHING_ELSE}`)
  return second && { ...chain, horizon: second }
}
