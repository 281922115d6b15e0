import type { SigningEvidence } from '../contract/approval.ts'
import type { Queryable } from '../db/database.ts'
import type { BroadcastWithdrawal, PaymentStatus, SignedTransaction } from './network.ts'
import type { OpenTransactionRow } from './network-transactions.ts'
import type { WaitingReason } from './waiting.ts'

/** Signatures that are made outside of this process: by a signer process, or by a person. */

/** A withdrawal that a signer process or a person is asked about. */
export type AskedWithdrawal = BroadcastWithdrawal & { evidence: SigningEvidence }

/** The answer: the signed transaction, why there is none yet, or how the withdrawal has ended without one. */
export type SignerAnswer =
  | { signed: SignedTransaction }
  | { reason: WaitingReason }
  | { status: Extract<PaymentStatus, { state: 'CONFIRMED' | 'VOID' }> }

/** A transaction that is under way, as a person is shown it. Amounts are decimal strings. */
export interface OpenByHand extends OpenTransactionRow {
  /** The hash that it has on the network, signed or not. */
  txid: string
  /** It is stored without signatures. */
  isAsked: boolean
  /** No later transaction of the same coins was signed, or asked for. */
  isNewest: boolean
  /** The coins that it spends: only one transaction of a coin can be mined. */
  inputs: string[]
}

/** An open transaction with what it costs. */
export interface PricedByHand extends OpenByHand {
  /** What its payments are together. */
  amount: string
  fee: string
}

/** What a person signs outside of Bursar: PSBTs (BIP 174). */
export interface SignedByHand {
  /** The transactions under way, in the order in which they were stored. */
  open(db: Queryable): Promise<OpenByHand[]>
  price(one: OpenByHand): Promise<PricedByHand>
  /** Throws an Error unless these bytes pay these withdrawals and the wallet itself, and nothing else can pay them as well. */
  requireSame(db: Queryable, withdrawals: BroadcastWithdrawal[]): Promise<void>
  /** The PSBT of what is asked, in base64, with what a hardware wallet needs. */
  exportPsbt(one: OpenByHand): Promise<string>
  /**
   * The transaction that these PSBTs, in base64, sign together, and what was asked. Throws an Error that names the rule: they are of
   * no transaction that was asked, signatures are missing, or one is of another kind.
   */
  readPsbts(
    open: readonly OpenByHand[],
    psbts: readonly string[],
  ): Promise<{ asked: OpenByHand; signed: SignedTransaction }>
}
