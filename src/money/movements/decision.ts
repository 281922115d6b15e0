import type { Origin } from '../../contract/actor.ts'
import type { BalanceKey } from '../ledger/balances.ts'
import type { Entry } from '../ledger/entries.ts'
import type { NewTransfer, Transfer } from '../ledger/transfer.ts'
import type { Moment } from '../../db/ids.ts'
import type { Holder } from '../records/holders.ts'
import type { Change, RecordKind, Need } from '../records/need.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { FiatAccount } from '../records/fiat-account.ts'
import type { RequiredApproval } from '../../audit/withdrawal-macs.ts'

/** The values that a movement's decision may use, all read beforehand. */
export interface View {
  now: Moment
  newId: () => string
  /** Throws not-found for a missing profile, disabled for a deactivated one. */
  requireOpen: (profileId: string) => void
  /** A record that the movement needs; undefined where it does not exist. */
  get: <Key, Value, C>(kind: RecordKind<Key, Value, C>, key: Key) => Value | undefined
}

export type Payee = Pick<FiatAccount, 'id' | 'fiat_account_owner' | 'fiat_network_instructions'>

export interface Leg extends NewTransfer {
  entries: Entry[]
  /** The bank account that a wire pays; its MAC covers it. */
  payee?: Payee | undefined
  /** The approvers that a withdrawal needs; its MAC covers it. */
  approval?: RequiredApproval | undefined
}

/** The result of a movement: its transfer and entries, and further changes. */
export interface Decision extends Leg {
  /** For an internal transfer: the leg that credits the other profile. */
  otherLeg?: Leg | undefined
  changes?: readonly Change[] | undefined
  /** The transfer is recorded already, and one of the changes completes it. */
  isOnRecord?: true | undefined
}

export const legsOf = (decision: Decision): Leg[] =>
  decision.otherLeg === undefined ? [decision] : [decision, decision.otherLeg]

/** Returns the value of the first change of this kind in a decision; undefined without one. */
export function changeOf<Key, Value, C>(decision: Decision, kind: RecordKind<Key, Value, C>): C | undefined {
  const found = decision.changes?.find((change) => change.kind === kind)
  return found?.value as C | undefined
}

/** The transfers that a policy governs. */
export const GOVERNED_TYPES = [
  'CRYPTO_WITHDRAWAL',
  'WIRE_WITHDRAWAL',
  'INTERNAL_TRANSFER_DEBIT',
  'PAXOS_TRANSFER_DEBIT',
] as const
type GovernedType = (typeof GOVERNED_TYPES)[number]

/** A payment before it is decided: whose money it takes, and what a policy judges it by. */
export interface Payment extends Holder {
  type: GovernedType
  asset: string
  /** Of a crypto withdrawal. */
  crypto_network?: CryptoNetwork
  /** The address, the id of the fiat account, or the profile that is credited. */
  destination: string
}

export interface Movement {
  origin: Origin
  /** Unique among the customer's transfers: a repeat is answered with the first transfer (already-exists). */
  ref_id?: string | undefined
  /** Another record that is returned instead if it exists, because the movement was made before (already-exists). */
  existing?: Need | undefined
  /** The profile balances that its entries may touch. */
  balances: BalanceKey[]
  /** The account and identity that an internal transfer names for its receiver. They must exist and belong together. */
  receiver?: Pick<Holder, 'account_id' | 'identity_id'> | undefined
  /** The customer's payment that the movement makes, if any. Its holder must exist and may not be barred from withdrawing. */
  payment?: Payment | undefined
  /** Decides everything and posts nothing. */
  dryRun?: boolean | undefined
  needs?: readonly Need[]
  /**
   * Throws the refusal of a caller that may no longer move money: it may have been disabled while the movement
   * waited.
   */
  requireCaller?: () => void
  /** Pure: returns the decision, or throws the `Problem` that refuses it. The pipeline checks holder and funds. */
  decide: (view: View) => Decision
}

const GOVERNED = new Set<string>(GOVERNED_TYPES)

/**
 * Whether a policy governs the transfer. The platform also takes a reward back by a PAXOS_TRANSFER_DEBIT. That movement is no
 * payment of the customer and declares none.
 */
export const isGoverned = ({ type }: Transfer, { payment }: Movement): boolean =>
  GOVERNED.has(type) && (type !== 'PAXOS_TRANSFER_DEBIT' || payment !== undefined)

export type Outcome = { decision: Decision } | { refusal: unknown }
