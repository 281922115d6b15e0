import { connectionLost } from '../db/database.ts'
import type { PaymentStatus } from './network.ts'
import { NodeFailure } from './node-failure.ts'
import { reasonOfFailure } from './waiting.ts'

/**
 * The status of one confirmed payment among many. Where judging this payment fails, it alone is UNRESOLVED, and a person
 * must judge it. Throws errors that concern all payments: a node that fails, or a lost connection to the database.
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

/** The status of a payment whose outcome cannot be judged because of this error, which may be the node's. */
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
