import type { WaitingCode } from '../../contract/waiting-codes.ts'

/**
 * The label `reason` of each code. Dashboards and alerts know these labels. Codes that need the same action of an operator share
 * one.
 */
export const REASON_LABELS: Record<WaitingCode, string> = {
  HOT_WALLET_SHORT: 'hot_wallet',
  KEPT_FOR_OLDER: 'hot_wallet',
  FEE_NOT_COVERED: 'hot_wallet',
  KEPT_FOR_CUSTOMERS: 'kept_for_customers',
  FEE_ABOVE_CEILING: 'fee',
  UNKNOWN_SPENDS: 'unknown_transactions',
  TAKEN_BACK: 'taken_back',
  NODE_DOWN: 'node',
  NODE_BEHIND: 'node',
  NODE_REFUSED: 'node',
  WALLET_LOCKED: 'wallet_locked',
  NO_SIGNING_KEY: 'no_signing_key',
  SIGNER_DOWN: 'signer_down',
  SIGNER_REFUSES: 'signer_refuses',
  WAITING_SIGNATURE: 'signature',
  BEHIND_ANOTHER: 'behind',
  IN_FLIGHT_LIMIT: 'in_flight_limit',
  NEXT_TRANSACTION: 'next_transaction',
  COINS_SPENT: 'coins_spent',
  FROZEN: 'frozen',
  NOT_APPROVED: 'standing',
  NOT_PAID_IN: 'not_paid_in',
  AWAITING_APPROVAL: 'approval',
  NOT_ACCEPTED: 'not_accepted',
  SCREENING: 'screening',
  TOKEN_REFUSES: 'token',
  TOKEN_DELIVERS_LESS: 'token',
  SECOND_NODE: 'node',
  NODES_DISAGREE: 'nodes_disagree',
  NONCE_USED: 'nonce_used',
  UNRESOLVED: 'unresolved',
  SIGNED_ELSEWHERE: 'signed_elsewhere',
  WIRE_TO_TAKE: 'wire_to_take',
  WIRE_TAKEN: 'wire_taken',
}
