import { address, type Address } from '@solana/addresses'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { ASSETS, decimalsOf, findAsset, NETWORKS } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { checkedOnce, requireGenesis } from '../../src/networks/genesis.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import type { Witnesses } from '../kit/second-word.ts'
import type { Mode } from '../../src/networks/chain-of-mode.ts'
import { requireChainOfMode } from '../kit/chain-of-mode.ts'
import { mintOf, readAccounts } from './accounts.ts'
import type { AreGiven } from '../../src/networks/given-addresses.ts'
import { sweepWorthOf, type SweepWorth, type SweepWorthConfig } from '../../src/networks/sweep-worth.ts'
import type { SolanaDepositKeys } from './deposit-keys.ts'
import { NONCE_BYTES, TOKEN_2022 } from './instructions.ts'
import type { AskedSigner } from '../kit/remote-signer.ts'
import type { SolanaSigner } from './keys.ts'
import type { SolanaRpc } from './node.ts'
import type { TokenOf } from './transaction.ts'
import type { WithdrawalReader } from '../../src/networks/withdrawal-reader.ts'

export const NETWORK = 'SOLANA'
export const GAS_ASSET = NETWORKS[NETWORK].gasAsset

/** The first block of the main network (main net beta). */
const MAIN_GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'

/** What the node said once about its chain. */
export interface Facts {
  /** By asset, the tokens whose mints the node has. */
  tokens: ReadonlyMap<string, TokenOf>
  /** The least lamports of an account without data. */
  rentOfWallet: bigint
  rentOfNonce: bigint
  /** The most that a new account for a token takes: plain, and of Token-2022 with room for extensions. */
  rentOfToken: (program: Address) => bigint
}

/** One network: the node, the wallet and the limits. */
export interface SolanaChain {
  /** In live mode one node's word ends nothing. */
  mode: Mode
  rpc: SolanaRpc
  /** Second, independent nodes, which must agree that a payment has failed. */
  second: Witnesses<SolanaRpc> | undefined
  /** Pays every withdrawal. */
  hotWallet: SolanaSigner
  /** Wallets that paid before: what their nonce accounts make is looked at, and what they hold is in custody. */
  formerWallets: readonly Address[]
  mints: ReadonlyMap<string, Address>
  /** The most that a payment costs, in lamports, without rent. */
  feeCeiling: bigint
  /** The least that a payment offers, in lamports. */
  feeFloor: bigint
  /** Nonce accounts: as many payments are under way at a time. */
  lanes: number
  withdrawals: WithdrawalReader
  /** Derives deposit addresses, and signs for them; absent in a process without the words. */
  depositKeys?: Pick<SolanaDepositKeys, 'signerOf' | 'answersTo'> | undefined
  /** The process that signs where it has the keys. */
  signer?: AskedSigner | undefined
  /** Tells which deposit addresses are swept and count as custody; absent where all in the database do. */
  areGiven?: AreGiven | undefined
  /** When a deposit address is worth sweeping. */
  sweepWorth: SweepWorth
  /** Throws a NodeFailure unless the node is on the chain of the mode, and the mints have the catalogue's decimals. */
  facts(): Promise<Facts>
  /** The next call asks the node again which chain it is on. */
  markStale(): void
}

/** The mints of the network by asset: the catalogue's, or those of a test network. */
export function mintsOf(named: Readonly<Record<string, string>>): Map<string, Address> {
  for (const asset of Object.keys(named))
    if (findAsset(asset)?.networks[NETWORK]?.contractAddress === undefined)
      throw new Error(`${asset} is no token of ${NETWORK}`)
  return new Map(
    ASSETS.flatMap(({ symbol, networks }) => {
      const mint = named[symbol] ?? networks[NETWORK]?.contractAddress
      return mint === undefined ? [] : [[symbol, address(mint)] as const]
    }),
  )
}

const PLAIN_ACCOUNT_BYTES = 165
/** A token account of Token-2022 with what its mint's extensions add. */
const EXTENDED_ACCOUNT_BYTES = 300

/** Checks a node's chain once, and again after `markStale`. Concurrent callers share the check. */
export function chainFacts(
  rpc: SolanaRpc,
  mints: ReadonlyMap<string, Address>,
  mode: Mode,
  db: Database,
): Pick<SolanaChain, 'facts' | 'markStale'> {
  const check = checkedOnce(async (): Promise<Facts> => {
    await requireChain(rpc, mode, db)
    const rents = await Promise.all(
      [0, NONCE_BYTES, PLAIN_ACCOUNT_BYTES, EXTENDED_ACCOUNT_BYTES].map(async (bytes) =>
        BigInt(await rpc.call<string>('getMinimumBalanceForRentExemption', bytes)),
      ),
    )
    const [rentOfWallet, rentOfNonce, plain, extended] = rents as [bigint, bigint, bigint, bigint]
    const tokens = await readTokens(rpc, mints)
    const rentOfToken = (program: Address) => (program === TOKEN_2022 ? extended : plain)
    return { tokens, rentOfWallet, rentOfNonce, rentOfToken }
  })
  return { facts: () => check.get(), markStale: () => check.markStale() }
}

async function requireChain(rpc: SolanaRpc, mode: Mode, db: Database): Promise<void> {
  const genesis = await rpc.call<string>('getGenesisHash')
  requireChainOfMode(NETWORK, mode, genesis === MAIN_GENESIS ? undefined : 'a test network')
  await requireGenesis(db, NETWORK, genesis)
}

/** The tokens whose mints the node has: a test network lacks most. Throws a NodeFailure for other decimals than the catalogue's. */
async function readTokens(
  rpc: SolanaRpc,
  mints: ReadonlyMap<string, Address>,
): Promise<ReadonlyMap<string, TokenOf>> {
  const accounts = await readAccounts(rpc, [...mints.values()])
  return new Map(
    [...mints].flatMap(([asset, mint]) => {
      const found = mintOf(accounts.get(mint))
      if (found === undefined) return []
      const { decimals } = findAsset(asset)!.networks[NETWORK]!
      if (found.decimals !== decimals)
        throw new NodeFailure(
          `${NETWORK} is not used: the mint of ${asset}, ${mint}, has ${found.decimals} decimals, and the catalogue has ${decimals}`,
        )
      return [[asset, { mint, program: found.program, decimals }] as const]
    }),
  )
}

/** Decimals on the chain: as many as the catalogue's, or fewer. */
export const chainDecimals = (asset: string): number => findAsset(asset)!.networks[NETWORK]!.decimals

/** The sweep settings of the network. Throws an Error that names the field and the rule. */
export const solanaSweepWorth = (config: SweepWorthConfig): SweepWorth =>
  sweepWorthOf(
    NETWORK,
    (asset) => (findAsset(asset)?.networks[NETWORK] === undefined ? undefined : chainDecimals(asset)),
    config,
  )

/** A decimal string in units of the chain. */
export const onChain = (asset: string, amount: string): bigint => parseAmount(amount, chainDecimals(asset))!

/** Units of the chain as a decimal string of the asset. */
export const offChain = (asset: string, units: bigint): string => formatAmount(units, chainDecimals(asset))

export const lamportsText = (lamports: bigint): string => formatAmount(lamports, decimalsOf(GAS_ASSET))

/** The fee that was paid, in the network's own asset. */
export const feeIn = (lamports: bigint) => ({ asset: GAS_ASSET, amount: lamportsText(lamports) })
