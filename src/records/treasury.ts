import type { CryptoNetwork } from '../assets/catalogue.ts'
import { PLATFORM_ID } from '../db/ids.ts'

export { PLATFORM_ID }

/**
 * What the platform moves for itself: SEND from a hot wallet to cold storage, CONSOLIDATION of a wallet's coins. Each is
 * a row of `transfers` that the worker signs and settles as it does withdrawals.
 */
export type TreasuryType = 'TREASURY_SEND' | 'TREASURY_CONSOLIDATION'

/** In SQL: the types of transfers that a customer takes money out with. */
export const WITHDRAWAL_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`

/** In SQL: the types of transfers that the worker signs. */
export const PAYOUT_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL', 'TREASURY_SEND', 'TREASURY_CONSOLIDATION')`

/** In SQL: whoever may own a transfer, for looking one up by its id alone. */
export const OWNERS = `(select id from customers union all select '${PLATFORM_ID}'::uuid)`

/** Of a consolidation, kept as its transfer's metadata. */
export interface ConsolidationTerms {
  /** The most that it pays for 1,000 virtual bytes, a decimal string. */
  max_fee_rate: string
}

/** What an operator ordered, and how far it is. Amounts are decimal strings. */
export interface TreasuryTransfer {
  id: string
  type: TreasuryType
  /** The operator's own name for it: no two have the same. Null for a consolidation. */
  reference: string | null
  crypto_network: CryptoNetwork
  asset: string
  amount: string
  destination_address: string
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  /** How far its transaction is: HELD, SIGNED, BROADCAST or DONE; null until the worker has begun. */
  state: string | null
  crypto_tx_hash: string | null
  /** Why it is not signed or not taken. */
  /** Why it waits, as `networks status` says it; null where it does not wait. */
  waiting_code: string | null
  waiting_detail: string | null
  created_at: string
}
