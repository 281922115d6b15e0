import type { Queryable } from '../db/database.ts'

/** A transaction that is under way, as a person is shown it. */
export interface OpenByHand {
  crypto_tx_hash: string
  raw_transaction: Buffer
  payments: number
  /** The hash that it has on the network, signed or not. */
  txid: string
  /** It is stored without signatures. */
  isAsked: boolean
  /** No later transaction of the same coins was signed, or asked for. */
  isNewest: boolean
  /** The coins that it spends: only one transaction of a coin can be mined. */
  inputs: string[]
  /** The transaction that has spent one of them, as recorded: this one can never be mined. */
  used_by: string | null
  /** How long ago it was stored. */
  age_ms: number
}

/** What a person signs outside of Bursar: PSBTs (BIP 174). `Paid` is a withdrawal with its transaction. */
export interface SignedByHand<Paid> {
  /** The transactions under way, in the order in which they were stored. */
  open: (db: Queryable) => Promise<OpenByHand[]>
  /** What its payments are together, and its fee, as decimal strings. */
  price: (asked: OpenByHand) => Promise<{ amount: string; fee: string }>
  /** Throws an Error unless their transaction pays these withdrawals and the wallet itself, and nothing else can pay them as well. */
  requireSame: (db: Queryable, withdrawals: Paid[]) => Promise<void>
  /** The PSBT of what is asked, in base64, with what a hardware wallet needs. */
  exportPsbt: (asked: OpenByHand) => Promise<string>
  /**
   * The transaction that these PSBTs, in base64, sign together, and what was asked. Throws an Error that names the rule: they are of
   * no transaction that was asked, signatures are missing, or one is of another kind.
   */
  readPsbts: (
    open: readonly OpenByHand[],
    psbts: readonly string[],
  ) => Promise<{ asked: OpenByHand; signed: { raw_transaction: Buffer; crypto_tx_hash: string } }>
}
