import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import type { PaymentStatus } from '../../src/networks/network.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/** Where a payment is in the chain, and what it has cost, where that is known. */
interface Place {
  crypto_tx_hash: string
  crypto_tx_index: string
  networkFee?: NetworkFee | undefined
}

/** The status of a payment whose end is not believed yet, or is a person's to judge. */
export const unresolved = (
  reason: WaitingReason,
  { networkFee, ...place }: Place,
): Extract<PaymentStatus, { state: 'UNRESOLVED' }> => ({
  state: 'UNRESOLVED',
  reason,
  ...place,
  ...(networkFee && { networkFee }),
})

/** Why a person judges what a transaction has done. */
export const toBeJudged = (detail: string): WaitingReason => ({
  code: 'UNRESOLVED',
  detail: `${detail}: look at the destination's balance, then say so by 'bursar withdrawal resolve'`,
})
