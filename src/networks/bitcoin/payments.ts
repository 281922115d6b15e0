import assert from 'node:assert/strict'
import type { PaymentStatus, Withdrawal } from '../network.ts'
import { decimalOf, minorOf } from './amounts.ts'
import type { BitcoinWallet, WalletTransaction } from './wallet.ts'

/** The outputs of the wallet's transactions that pay others, and each payment's share of the fee. */

/** The payment that a withdrawal asks for. */
export type PaymentTarget = Pick<Withdrawal, 'amount' | 'destination_address'>

/** One of several payments that share a fee: `of` is their number, `rank` the payment's place, from 0. */
export interface FeeShare {
  of: number
  rank: number
}
export const WHOLE_FEE: FeeShare = { of: 1, rank: 0 }

/** A payment's part of a fee, in minor units. All parts add up to the fee, to the last unit. */
export function partOf(fee: bigint, { of, rank }: FeeShare): bigint {
  const upTo = (count: number) => (fee * BigInt(count)) / BigInt(of)
  return upTo(rank + 1) - upTo(rank)
}

/** The outputs that pay a target, in their order. The node lists no change in `details`. */
export function paymentsTo(
  { canonical }: BitcoinWallet,
  { details }: WalletTransaction,
  { amount, destination_address }: PaymentTarget,
): WalletTransaction['details'] {
  return details
    .filter(
      (output) =>
        output.category === 'send' &&
        minorOf(output.amount) === -minorOf(amount) &&
        output.address !== undefined &&
        canonical(output.address) === destination_address,
    )
    .sort((one, other) => Number(one.vout) - Number(other.vout))
}

/** The indexes of all outputs that pay anybody, in their order. */
export function paymentIndexes({ details }: WalletTransaction): string[] {
  const outputs = details.filter(({ category }) => category === 'send').map(({ vout }) => vout)
  return [...new Set(outputs)].sort((one, other) => Number(one) - Number(other))
}

/** The end of a withdrawal that this output of a confirmed transaction has paid. */
export function confirmedBy(
  { coin }: BitcoinWallet,
  transaction: WalletTransaction,
  crypto_tx_index: string,
  share: FeeShare,
): PaymentStatus {
  assert(transaction.fee !== undefined, 'a transaction of the wallet has a fee')
  return {
    state: 'CONFIRMED',
    crypto_tx_hash: transaction.txid,
    crypto_tx_index,
    networkFee: { asset: coin, amount: decimalOf(partOf(-minorOf(transaction.fee), share)) },
  }
}
