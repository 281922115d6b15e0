import { type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Origin } from '../../contract/actor.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import type { LedgerEvent } from '../../audit/audit.ts'

/**
 * The chart of accounts. Profile balances are liabilities of the platform (positive). The platform's accounts are the
 * other side. Platform accounts keep no running balance row, so they are never a hot spot.
 */
export type PlatformAccount =
  | `in_flight:${CryptoNetwork | 'WIRE'}`
  | `custody:${CryptoNetwork}`
  // Money in cold storage: the amount moved there from hot wallets less the amount moved back. Negative where the
  // platform has added money of its own.
  | `cold:${CryptoNetwork}`
  // Money on the sandbox's simulated networks: invented, and never custody of a real network of the same name.
  | `simulated:${CryptoNetwork}`
  // Actual transaction fees. Compared with `fees`, this account shows the profit or loss on network fees.
  | `network_fees:${CryptoNetwork}`
  | 'bank'
  | 'fees'
  | 'conversion'
  | 'rewards'
  // Connects the two legs of an internal transfer, which are posted together.
  | 'internal'
  // Connects the two sides of a transfer between customers. It sums to zero over both customers.
  | 'between_customers'

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

/** One ledger transaction: the entries of one event of one transfer, zero-sum per asset. */
export interface Posting {
  /** For SWEPT, the id of the sweep; for an acknowledged transaction, its id. */
  transfer_id: string
  event: LedgerEvent
  entries: Entry[]
  origin: Origin
  /** The action in the audit log, where it is not that of the event: `transfer.create` for CREATED, and so on. */
  action?: AuditAction | undefined
}

/** Builds the entries of a transaction's actual network fee: it has left custody and is the platform's loss. */
export const networkFeeEntries = (network: CryptoNetwork, asset: string, fee: bigint): Entry[] => [
  onPlatform(`network_fees:${network}`, asset, -fee),
  onPlatform(`custody:${network}`, asset, fee),
]

/**
 * Builds the entries for money of the platform that has left a network's hot wallet; negative for money that has come
 * in.
 */
export const coldEntries = (network: CryptoNetwork, asset: string, left: bigint): Entry[] => [
  onPlatform(`cold:${network}`, asset, -left),
  onPlatform(`custody:${network}`, asset, left),
]
