import type { WaitingCode } from '../contract/waiting-codes.ts'
import type { SecondaryStatus, StatusDetails } from '../contract/transfer-status.ts'
import { NodeRefusal, NoSigningKey, WalletLocked, type NodeFailure } from './node-failure.ts'

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

/** A withdrawal that waits for this reason delays its profile's in every asset: the network's own asset pays the fee of all. */
export const DELAYS_ALL_ASSETS: WaitingCode = 'FEE_NOT_COVERED'

/** The reason of a withdrawal that waits because of a node's failure. */
export function reasonOfFailure(failure: NodeFailure): WaitingReason {
  const detail = failure.message
  if (failure instanceof NoSigningKey) return { code: 'NO_SIGNING_KEY', detail }
  if (failure instanceof WalletLocked) return { code: 'WALLET_LOCKED', detail }
  return { code: failure instanceof NodeRefusal ? 'NODE_REFUSED' : 'NODE_DOWN', detail }
}

/** Why a withdrawal can never be paid. */
export interface PaymentRefusal {
  secondary_status?: SecondaryStatus
  status_details?: StatusDetails
}

/** The refusal of a withdrawal whose destination the network does not pay. */
export const refusedDestination = (
  { destination_address }: { destination_address: string },
  message: string,
) => ({ status_details: { invalid_destination_address: { message, destination_address } } })

/** In what a signer process says of a transfer that its journal has. */
export const SIGNED_WITH_NONCE = 'was signed with nonce'
