/**
 * Why a withdrawal waits, by what ends it: time, a person, or something about that payment alone. Metrics, alerts and
 * decisions use the code. The detail beside it is for people, and its words may change at any time.
 */

/** Reasons that pass without a person. */
export const PASSING_CODES = [
  /** The hot wallet could pay it, and keeps the money for an older withdrawal that has waited too long. */
  'KEPT_FOR_OLDER',
  /** A send to cold storage would take what customers' unsigned withdrawals need. */
  'KEPT_FOR_CUSTOMERS',
  /** The node does not answer, or is not a node of the network. */
  'NODE_DOWN',
  /** The node has not read its chain to the end. */
  'NODE_BEHIND',
  /** The signer process does not answer, or cannot use the wallet's key now. */
  'SIGNER_DOWN',
  /** An earlier withdrawal of the same profile and asset waits. */
  'BEHIND_ANOTHER',
  /** The most transactions that may be in flight at a time are in flight. */
  'IN_FLIGHT_LIMIT',
  /** The transaction that was just signed had no place for the withdrawal: the next one pays it. */
  'NEXT_TRANSACTION',
  /** A node says that the transaction has failed, and the second node cannot tell yet. */
  'SECOND_NODE',
] as const

/** Reasons that concern the payment itself: a withdrawal that waits for one of them delays no other. */
export const PAYMENT_CODES = [
  /** The account or identity that the withdrawal names may take no money out. */
  'NOT_APPROVED',
  /** A sandbox pays over a real network no more than the customer deposited over it. */
  'NOT_PAID_IN',
  /** Approvers have not signed it yet. */
  'AWAITING_APPROVAL',
  /** The withdrawal's record was changed after it was accepted: its MAC does not match. */
  'NOT_ACCEPTED',
  /** The operator's screening endpoint has not allowed it. */
  'SCREENING',
  /** The signer process refuses the transaction by its own rules. */
  'SIGNER_REFUSES',
  /** The token refuses every transfer of the hot wallet. */
  'TOKEN_REFUSES',
  /** The token takes a fee from transfers: less than the amount would arrive. */
  'TOKEN_DELIVERS_LESS',
] as const

/** Reasons that hold up other payments, too, until an operator acts. */
type PersonCode =
  /** The hot wallet cannot pay this withdrawal. */
  | 'HOT_WALLET_SHORT'
  /** The hot wallet's coins, or its gas, do not cover the fee of the transaction. */
  | 'FEE_NOT_COVERED'
  /** The network's fee is above the configured ceiling, or above the most that a consolidation pays. */
  | 'FEE_ABOVE_CEILING'
  /** The hot wallet has sent transactions that this database has no record of. */
  | 'UNKNOWN_SPENDS'
  /** The chain has dropped confirmed transactions of the hot wallet. */
  | 'TAKEN_BACK'
  /** The node answers, and refuses the transaction or the call. */
  | 'NODE_REFUSED'
  /** The hot wallet is locked with a passphrase: a person must unlock it. */
  | 'WALLET_LOCKED'
  /** This process has no key of the hot wallet. */
  | 'NO_SIGNING_KEY'
  /** A person has not signed it yet, or has not brought the answer of a signer without a network. */
  | 'WAITING_SIGNATURE'
  /** The coins that a consolidation was to merge are spent. */
  | 'COINS_SPENT'
  /** Signing is frozen for everything, the network, the customer or the profile. */
  | 'FROZEN'
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

export type WaitingCode = (typeof PASSING_CODES)[number] | (typeof PAYMENT_CODES)[number] | PersonCode
