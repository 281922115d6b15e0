import type { Hex } from 'viem'

/** The lines of the signer's journal, by their kinds. Amounts are in units of the chain, as decimal strings. */

export interface Line {
  at: string
  network: string
}

interface LineOfWallet extends Line {
  wallet: string
}

/** A nonce of a wallet, an input, or the hash of bytes where the family has none, and the payment that it is used for. */
export interface SignLine extends LineOfWallet {
  kind: 'SIGN'
  nonce: number | string
  /** Other payments may have been signed for it. */
  shared?: true
  transfer_id: string
  asset: string
  units: string
  /** The most that it costs, in the network's own asset: of a transaction that pays many, its part. */
  fee: string
  /** Those of a customer's payment. Older lines have none. */
  customer?: string
  destination?: string
}

interface Approved {
  /** The SHA-256 of what they signed: it is applied once. Lines of version 0 have none. */
  change?: string
}

/** By the approval of people, the journal begins at this nonce: it is new, was lost, or was restored from a backup. */
export interface OpenLine extends LineOfWallet, Approved {
  kind: 'OPEN'
  next_nonce: number
  /** Transfers from before may have been signed on what was lost: only those on record are signed. */
  transfers_from: string
  /** Ends of the lost journal that the worker knows: this one goes on from them. */
  after?: string[]
}

/** By the approval of people, a transfer may be signed anew: what was signed for it with this nonce can never be mined. */
export interface VoidLine extends LineOfWallet, Approved {
  kind: 'VOID'
  nonce: number | string
  transfer_id: string
}

/** By the approval of people, transfers from before the journal began may be signed: none of them was. */
export interface AllowLine extends Line, Approved {
  kind: 'ALLOW'
  transfer_ids: string[]
}

/** By the approval of people, an asset may go to these destinations, once a time has passed. */
export interface DestinationLine extends Line, Approved {
  kind: 'DESTINATION'
  asset: string
  destinations: string[]
  /** They are not named any more. */
  remove?: true
  /** How many have approved it. */
  approvals: number
}

/** A move between a deposit address and the platform's wallets. Each question adds its fee, also a repeated one. */
export interface MoveLine extends LineOfWallet {
  kind: 'MOVE'
  nonce: number | string
  fee: string
}

/** By the approval of people, a nonce is used up by an empty transfer to the wallet itself. */
export interface FillLine extends LineOfWallet, Approved {
  kind: 'FILL'
  nonce: number
  fee: string
}

/**
 * The signature of a key that would sign the same question with other bytes the next time. It is on the disk before it
 * leaves, and the first of a digest counts.
 */
export interface SignatureLine extends LineOfWallet {
  kind: 'SIGNATURE'
  digest: string
  signature: Hex
}

export type NonceLine = SignLine | FillLine
export type JournalLine =
  | NonceLine
  | OpenLine
  | VoidLine
  | AllowLine
  | DestinationLine
  | MoveLine
  | SignatureLine

/** A line that may contradict what is on record. */
export type Judged = Exclude<JournalLine, SignatureLine | MoveLine>
