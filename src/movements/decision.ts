import type { BalanceKey } from '../ledger/balances.ts'
import type { Entry } from '../ledger/entries.ts'
import type { NewTransfer } from '../ledger/transfer.ts'
import type { Moment } from '../db/ids.ts'
import type { Holder } from '../records/holders.ts'
import type { Change, Kind, Need } from '../records/need.ts'
import type { Payee } from './withdrawal-macs.ts'

/** What a movement may ask while it is decided: plain values, read before. */
export interface View {
  now: Moment
  newId: () => string
  profileExists: (profileId: string) => boolean
  /** A record that the movement needs; undefined where there is none. */
  get: <Key, Value, C>(kind: Kind<Key, Value, C>, key: Key) => Value | undefined
}

/** A record to keep and the entries to post. */
export interface Leg extends NewTransfer {
  entries: Entry[]
  /** The bank account that a wire pays, which its MAC is over. */
  payee?: Payee | undefined
}

/** What a movement comes to: its transfer and entries, and what else it changes. */
export interface Decision extends Leg {
  /** Of an internal transfer: the leg that credits the other profile. */
  otherLeg?: Leg | undefined
  changes?: readonly Change[] | undefined
}

/** The records that a decision makes: one, or the two of an internal transfer. */
export const legsOf = (decision: Decision): Leg[] =>
  decision.otherLeg === undefined ? [decision] : [decision, decision.otherLeg]

/** The first record of a kind that a decision adds. */
export function changeOf<Key, Value, C>(decision: Decision, kind: Kind<Key, Value, C>): C | undefined {
  const found = decision.changes?.find((one) => one.kind === kind)
  return found?.value as C | undefined
}

/** One request to move money. */
export interface Movement {
  /** No two transfers of a customer have the same: the second is answered with the first (already-exists). */
  ref_id?: string | undefined
  /** Another record that answers instead where it is there, because the movement was made before (already-exists). */
  existing?: Need | undefined
  /** The profile balances that its entries may touch. */
  balances: BalanceKey[]
  /** Whose money it takes, where it takes any: it must exist and may not be barred from taking it out. */
  holder?: Holder
  /** The records that it is decided by. */
  needs?: readonly Need[]
  /** Throws the refusal of a caller that may no longer move money: it may have been disabled while the movement waited. */
  requireCaller?: () => void
  /** Pure: gives the decision, or throws the `Problem` that refuses it. The pipeline checks holder and funds. */
  decide: (view: View) => Decision
}

/** What became of a movement. */
export type Outcome = { decision: Decision } | { refusal: unknown }
