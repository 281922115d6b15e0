import { strict as assert } from 'node:assert'
import { decimalsOf, type CryptoNetwork } from '../assets/catalogue.ts'

/**
 * The chart of accounts. Profile balances are what the platform owes (liabilities, positive); the platform's
 * accounts are the other side. Platform accounts keep no running row: they are never a hot spot.
 */
export type PlatformAccount =
  | `in_flight:${CryptoNetwork | 'WIRE'}`
  | `custody:${CryptoNetwork}`
  // What the platform keeps off its hot wallets: what was moved there less what came back. More came back than was moved
  // there where the platform has put in money of its own.
  | `cold:${CryptoNetwork}`
  // What the sandbox's networks hold: invented, and never custody of a real network of the same name.
  | `simulated:${CryptoNetwork}`
  // What transactions have really cost; against `fees`, what was made or lost on them.
  | `network_fees:${CryptoNetwork}`
  | 'bank'
  | 'fees'
  | 'conversion'
  | 'rewards'
  // Between the two sides of an internal transfer, which are posted together.
  | 'internal'

/** One line of a ledger transaction. `amount` is signed, in minor units of the asset. */
export interface Entry {
  account: 'profile' | PlatformAccount
  profile_id: string | null
  asset: string
  amount: bigint
}

export const onProfile = (profile_id: string, asset: string, amount: bigint): Entry => ({
  account: 'profile',
  profile_id,
  asset,
  amount,
})

export const onPlatform = (account: PlatformAccount, asset: string, amount: bigint): Entry => ({
  account,
  profile_id: null,
  asset,
  amount,
})

/**
 * What happened to a transfer; or SWEPT: a transaction that moves what lies at deposit addresses has ended. Each event
 * is posted once: it is part of the entries' primary key. SETTLED is also the event of a transaction that an operator
 * has acknowledged.
 */
export type LedgerEvent = 'CREATED' | 'SETTLED' | 'REFUNDED' | 'SWEPT'

/** One ledger transaction: the entries of one event of one transfer, zero-sum per asset. */
export interface Posting {
  /** Of SWEPT, the id of the sweep; of an acknowledged transaction, its id. */
  transfer_id: string
  event: LedgerEvent
  entries: Entry[]
}

/** What a transaction on a network has really cost: it has left custody, and is the platform's loss. */
export const networkFeeEntries = (network: CryptoNetwork, asset: string, fee: bigint): Entry[] => [
  onPlatform(`network_fees:${network}`, asset, -fee),
  onPlatform(`custody:${network}`, asset, fee),
]

/** Money of the platform that has left a network's hot wallet; negative: that has come in to it. */
export const coldEntries = (network: CryptoNetwork, asset: string, left: bigint): Entry[] => [
  onPlatform(`cold:${network}`, asset, -left),
  onPlatform(`custody:${network}`, asset, left),
]

/** Throws an assertion unless the assets exist and the entries sum to zero for each. */
export function requireBalanced(entries: Entry[]): void {
  const sums = new Map<string, bigint>()
  for (const { asset, amount } of entries) sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  for (const [asset, sum] of sums) {
    decimalsOf(asset)
    assert(sum === 0n, `a ledger transaction must balance: ${asset} is off by ${sum}`)
  }
}
