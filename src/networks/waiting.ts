import { NodeRefusal, NoSigningKey, WalletLocked, type NodeFailure } from './node-failure.ts'

/**
 * Why a withdrawal waits. Metrics, alerts and decisions use the code. The detail is for people, and its words may change at
 * any time.
 */
export type WaitingCode =
  /** The hot wallet cannot pay this withdrawal. */
  | 'HOT_WALLET_SHORT'
  /** The hot wallet could pay it, and keeps the money for an older withdrawal that has waited too long. */
  | 'KEPT_FOR_OLDER'
  /** A send to cold storage would take what customers' unsigned withdrawals need. */
  | 'KEPT_FOR_CUSTOMERS'
  /** The hot wallet's coins, or its gas, do not cover the fee of the transaction. */
  | 'FEE_NOT_COVERED'
  /** The network's fee is above the configured ceiling, or above the most that a consolidation pays. */
  | 'FEE_ABOVE_CEILING'
  /** The hot wallet has sent transactions that this database has no record of. */
  | 'UNKNOWN_SPENDS'
  /** The chain has dropped confirmed transactions of the hot wallet. */
  | 'TAKEN_BACK'
  /** The node does not answer, or is not a node of the network. */
  | 'NODE_DOWN'
  /** The node has not read its chain to the end. */
  | 'NODE_BEHIND'
  /** The node answers, and refuses the transaction or the call. */
  | 'NODE_REFUSED'
  /** The hot wallet is locked with a passphrase: a person must unlock it. */
  | 'WALLET_LOCKED'
  /** This process has no key of the hot wallet. */
  | 'NO_SIGNING_KEY'
  /** The signer process does not answer, or cannot use the wallet's key now. */
  | 'SIGNER_DOWN'
  /** The signer process refuses the transaction by its own rules. */
  | 'SIGNER_REFUSES'
  /** A person has not signed it yet, or has not brought the answer of a signer without a network. */
  | 'WAITING_SIGNATURE'
  /** An earlier withdrawal of the same profile and asset waits. */
  | 'BEHIND_ANOTHER'
  /** The most transactions that may be in flight at a time are in flight. */
  | 'IN_FLIGHT_LIMIT'
  /** The transaction that was just signed had no place for the withdrawal: the next one pays it. */
  | 'NEXT_TRANSACTION'
  /** The coins that a consolidation was to merge are spent. */
  | 'COINS_SPENT'
  /** Signing is frozen for everything, the network, the customer or the profile. */
  | 'FROZEN'
  /** The account or identity that the withdrawal names may take no money out. */
  | 'NOT_APPROVED'
  /** A sandbox pays over a real network no more than the customer deposited over it. */
  | 'NOT_PAID_IN'
  /** Approvers have not signed it yet. */
  | 'AWAITING_APPROVAL'
  /** The withdrawal's record was changed after it was accepted: its MAC does not match. */
  | 'NOT_ACCEPTED'
  /** The operator's screening endpoint has not allowed it. */
  | 'SCREENING'
  /** The token refuses every transfer of the hot wallet. */
  | 'TOKEN_REFUSES'
  /** The token takes a fee from transfers: less than the amount would arrive. */
  | 'TOKEN_DELIVERS_LESS'
  /** A node says that the transaction has failed, and the second node cannot tell yet. */
  | 'SECOND_NODE'
  /** A node says that the transaction has failed, and the second node says something else. */
  | 'NODES_DISAGREE'
  /** Another transaction has the nonce of the signed one, and it is not known which. */
  | 'NONCE_USED'
  /** The chain shows an outcome that only an operator can judge. */
  | 'UNRESOLVED'
  /** The withdrawal was signed for a network or bank that is not configured any more. */
  | 'SIGNED_ELSEWHERE'
  /** An operator may take the wire and send it. */
  | 'WIRE_TO_TAKE'
  /** An operator has taken the wire, and has not said what became of it. */
  | 'WIRE_TAKEN'

/** Why a withdrawal waits, for programs and for people. */
export interface WaitingReason {
  code: WaitingCode
  /** A sentence for operators, with amounts and ids in it. */
  detail: string
  /** In how many milliseconds to check again; where absent, at the network's pace. */
  recheckMs?: number
}

/** What a signer process refuses, or a person is to sign, changes only by a person, or as a window moves on. */
export const SIGNER_RECHECK_MS = 30_000

/** The outcome of a withdrawal that is not signed yet. */
export const deferred = (reason: WaitingReason) => ({ outcome: 'DEFERRED', reason }) as const

/** The reason of a withdrawal that waits behind another of the same profile and asset. */
export const BEHIND_ANOTHER: WaitingReason = {
  code: 'BEHIND_ANOTHER',
  detail: 'an earlier withdrawal of the profile waits',
}

/** A withdrawal that waits for one of these reasons delays no other: each concerns the payment itself. */
export const DELAYS_NOBODY: readonly WaitingCode[] = [
  'NOT_APPROVED',
  'NOT_PAID_IN',
  'AWAITING_APPROVAL',
  'NOT_ACCEPTED',
  'SCREENING',
  'SIGNER_REFUSES',
  'TOKEN_REFUSES',
  'TOKEN_DELIVERS_LESS',
]

/** A withdrawal that waits for this reason delays its profile's in every asset: the network's own asset pays the fee of all. */
export const DELAYS_ALL_ASSETS: WaitingCode = 'FEE_NOT_COVERED'

/** The reason of a withdrawal that waits because of a node's failure. */
export function reasonOfFailure(failure: NodeFailure): WaitingReason {
  const detail = failure.message
  if (failure instanceof NoSigningKey) return { code: 'NO_SIGNING_KEY', detail }
  if (failure instanceof WalletLocked) return { code: 'WALLET_LOCKED', detail }
  return { code: failure instanceof NodeRefusal ? 'NODE_REFUSED' : 'NODE_DOWN', detail }
}
