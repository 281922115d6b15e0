import type { Transaction } from '../db/database.ts'

/** A confirmed transfer to one of our addresses. */
export interface FoundDeposit {
  /** In its canonical spelling. */
  address: string
  asset: string
  /** A decimal string of the asset. */
  amount: string
  crypto_tx_hash: string
  crypto_tx_index: string
  /** The block that it was found in, on networks that report it. */
  block?: { number: bigint; hash: string }
  /** It is worth more than one node's word credits: a second node is asked, whatever its amount. */
  needsSecondNode?: true
}

export interface DepositScan {
  cursor: string
  found: FoundDeposit[]
  /** There is more to scan at once. */
  isBehind?: boolean
  /** Transactions that may be refills: cold storage has paid the hot wallet. */
  refills?: string[]
  /** Deposits of earlier scans whose transactions the chain has dropped: a reorganisation deeper than `confirmations`. */
  removed?: Pick<FoundDeposit, 'crypto_tx_hash' | 'crypto_tx_index'>[]
  /** Records, in the transaction that records these deposits, that they were returned. */
  keep?(tx: Transaction): Promise<void>
  /** Why some addresses were not read, while others were: RecordFailures, and a failure of the node. To be reported. */
  failed?: readonly Error[]
}

/** The result of reading blocks without enough confirmations. */
export interface DepositSight {
  seen: (FoundDeposit & { block: { number: bigint; hash: string } })[]
  /** Confirmed blocks were read up to this one. */
  readUpTo: bigint
  /** Some of the newest blocks were not read. */
  isBehind?: boolean
  /** Called once the deposits are recorded. Without the call, they are returned again next time. */
  recorded?: () => void
}

/** How many confirmations a deposit needs from this value on. In USD. */
export interface DepthFrom {
  from_usd: string
  confirmations: number
}

/**
 * Whether a found deposit may be credited. WAITS: this is not known yet, perhaps because the second node does not answer.
 * DISAGREES: the second node gives another answer.
 */
export type DepositVerdict =
  | { verdict: 'AGREES' }
  | { verdict: 'WAITS'; detail: string; secondNode?: true }
  | { verdict: 'DISAGREES'; detail: string }

/** Where a credited deposit is after a reorganisation: in its block, in another confirmed block, or nowhere. */
export type CreditedStanding = 'THERE' | 'MOVED' | 'GONE'

/** The chain has dropped blocks that were scanned for deposits: a reorganisation deeper than `confirmations`. */
export class ChainReorganised extends Error {}
