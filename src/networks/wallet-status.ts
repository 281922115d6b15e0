import type { WaitingReason } from './waiting.ts'

/** What an adapter says of its wallets, for operators: metrics, the console, `bursar networks status` and `doctor`. */

/** A confirmed transaction of the hot wallet that the chain has dropped. */
export interface TakenBack {
  nonce: number
  /** Absent where no stored transaction has the nonce. */
  crypto_tx_hash?: string
  transfer_id?: string
  /** The deposit address that it sent gas to, where it paid no withdrawal. */
  top_up?: string
  /** The withdrawal had failed, and was refunded: its bytes are never broadcast again, since they might pay this time. */
  refunded?: true
  /** Why the node does not accept it now. */
  refusal?: string
}

/** A wallet or account of the hot wallet's with an order of its own, by its address. */
export interface LaneStatus {
  lane: string
  /** Its part of what is held, by asset; absent where it holds nothing to pay with. */
  held?: Record<string, string>
  /** Transactions that are signed and not mined. */
  in_flight: number
  /** By the journal of the signer process; absent without its answer. */
  journal?: {
    next_nonce: number
    /** Signatures that this database does not know; negative: nonces that it gave out and the signer has not signed. */
    ahead: number
  }
  blocked?: WaitingReason
}

export interface SignerStatus {
  reachable: boolean
  error?: string
}

/** An adapter's part of `bursar networks status`. Amounts are decimal strings, by asset. */
export interface NetworkStatus {
  height: number
  /** Which of the nodes are silent, or have not read their chain to the end. */
  behind?: string
  /** Held on the network: in the hot wallet, in former ones, and at deposit addresses that are not swept yet. */
  held: Record<string, string>
  /** The hot wallet's part; absent where it holds everything. */
  hotWallet?: Record<string, string>
  formerWallets?: { address: string; held: Record<string, string> }[]
  /** What pays at the same time, where that is more than one: a lane that is stuck delays no other. */
  lanes?: LaneStatus[]
  /** The process that signs for the lanes; absent where there is none. */
  signer?: SignerStatus
  /** Confirmed transactions that the chain has dropped. */
  takenBack?: TakenBack[]
}
