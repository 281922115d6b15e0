import type { CryptoNetwork } from '../assets/catalogue.ts'
import type { SecondaryStatus, StatusDetails } from '../ledger/transfer.ts'

/** A withdrawal as a network needs to know it. Amounts are decimal strings of the asset. */
export interface Withdrawal {
  customer_id: string
  transfer_id: string
  crypto_network: CryptoNetwork
  asset: string
  amount: string
  destination_address: string
  memo: string | null
}

/** A signed transaction: kept in the database before it is broadcast, so that a crash repeats the same bytes. */
export interface SignedTransaction {
  raw_transaction: Buffer
  crypto_tx_hash: string
}

export type BroadcastWithdrawal = Withdrawal & SignedTransaction

/** Why a withdrawal cannot be made, for good. */
export interface Refusal {
  secondary_status?: SecondaryStatus
  status_details?: StatusDetails
}

/** What is decided about a withdrawal before anything is signed. */
export type Review =
  | { verdict: 'PASS' }
  | { verdict: 'REJECT'; refusal: Refusal }
  | { verdict: 'HOLD'; secondary_status: SecondaryStatus; holdMs: number }

export type BroadcastAnswer = { accepted: true } | { accepted: false; refusal: Refusal }

/** UNKNOWN: the network has no such transaction (any more); the same bytes are broadcast again. */
export type Progress =
  { state: 'CONFIRMED'; crypto_tx_index: string } | { state: 'PENDING' } | { state: 'UNKNOWN' }

/**
 * One chain family. The worker calls `sign` once for a withdrawal, and the others as often as it takes; they
 * answer in the order they were asked. A call that throws is tried again later.
 */
export interface NetworkAdapter {
  review(withdrawal: Withdrawal): Review
  sign(withdrawals: Withdrawal[]): Promise<SignedTransaction[]>
  broadcast(withdrawals: BroadcastWithdrawal[]): Promise<BroadcastAnswer[]>
  progress(withdrawals: BroadcastWithdrawal[]): Promise<Progress[]>
  /** How long to wait before asking for progress again. */
  pollMs: number
}

/** The adapter of each network that withdrawals can go over; none means that they are refused with 503. */
export type Networks = ReadonlyMap<CryptoNetwork, NetworkAdapter>
