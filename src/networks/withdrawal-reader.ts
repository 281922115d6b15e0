import type { Queryable, Transaction } from '../db/database.ts'
import type { PayoutNetwork } from './network.ts'

/**
 * What a network asks about withdrawals beside their transactions: their amounts, destinations and ends are the ledger's. Whoever
 * connects a network gives it. While a part of the database is gone, no money is kept, and what is unsigned is undefined.
 */
export interface WithdrawalReader {
  /**
   * By asset, the oldest withdrawal that has waited for the hot wallet long enough for the money to be kept for it, for a day at
   * most. Otherwise small withdrawals would take every refill before it suffices for a large one. The platform's own never keep any.
   */
  longestWaiting(tx: Transaction, network: PayoutNetwork): Promise<Reserved[]>
  /** By asset, customers' PENDING withdrawals that are not signed: a send to cold storage leaves their money in the hot wallet. */
  unsigned(tx: Transaction, network: PayoutNetwork): Promise<Unsigned[] | undefined>
  /** The withdrawals whose transaction this is, in the order of its outputs; of these customers alone, where they are named. */
  paidBy(
    db: Queryable,
    network: PayoutNetwork,
    hash: string,
    customerIds?: readonly string[],
  ): Promise<PaidByTransaction[]>
  /** How a withdrawal has ended; undefined where it does not exist. */
  endOf(db: Queryable, customerId: string, transferId: string): Promise<EndOfWithdrawal | undefined>
}

/** A withdrawal that the hot wallet's money is kept for. */
export interface Reserved {
  transfer_id: string
  asset: string
  /** A decimal string. */
  amount: string
  destination_address: string
}

/** Customers' unsigned withdrawals of an asset: their sum, a decimal string, and their number. */
export interface Unsigned {
  asset: string
  amount: string
  count: number
}

export interface PaidByTransaction {
  transfer_id: string
  crypto_tx_index: string
  amount: string
  destination_address: string
}

export interface EndOfWithdrawal {
  status: string
  /** The transaction that paid it. */
  crypto_tx_hash: string | null
  /** Its bytes, where the last transaction had replaced it. */
  raw_transaction: Buffer | null
}
