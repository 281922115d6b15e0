import { connectionLost } from '../db/database.ts'
import type { PaymentStatus } from './network.ts'
import { NodeFailure } from './node-failure.ts'
import { reasonOfFailure } from './waiting.ts'

/**
 * The status of one confirmed payment among many. Where judging it fails, a person must: it is unresolved alone, and the
 * others are judged. Throws what concerns all of them: a node that fails, or a lost connection to the database.
 */
export async function judgeAlone(
  judge: () => PaymentStatus | Promise<PaymentStatus>,
): Promise<PaymentStatus> {
  try {
    return await judge()
  } catch (error) {
    if (error instanceof NodeFailure || connectionLost(error)) throw error
    return unjudged(error)
  }
}

/** The status of a payment that this error keeps from being judged, or the node's refusal to say it. */
export const unjudged = (error: unknown): Extract<PaymentStatus, { state: 'UNRESOLVED' }> => ({
  state: 'UNRESOLVED',
  reason:
    error instanceof NodeFailure
      ? reasonOfFailure(error)
      : {
          code: 'UNRESOLVED',
          detail: `its outcome cannot be judged (${messageOf(error)}): look at the chain, then say so by 'bursar withdrawal resolve'`,
        },
  error,
})

const messageOf = (error: unknown) => (error instanceof Error ? error.message.split('\n')[0] : String(error))
