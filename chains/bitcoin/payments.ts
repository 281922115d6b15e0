import assert from 'node:assert/strict'
import { outputScriptOf } from '../../src/contract/addresses/addresses.ts'
import type { BroadcastWithdrawal, PaymentStatus, Withdrawal } from '../../src/networks/network.ts'
import { decimalOf, minorOf } from './amounts.ts'
import { partOf, type FeeShare } from '../kit/fee-share.ts'
import { decode } from './decode.ts'
import type { BitcoinWallet, WalletTransaction } from './wallet.ts'

/** The outputs of the wallet's transactions that pay withdrawals, and each payment's share of the fee. */

export type PaymentTarget = Pick<Withdrawal, 'amount' | 'destination_address'>

export const WHOLE_FEE: FeeShare = { of: 1, rank: 0 }

export const shareAmong = (indexes: string[], index: string): FeeShare => ({
  of: indexes.length,
  rank: indexes.indexOf(index),
})

/**
 * The indexes of the outputs that pay a target, in their order. They are read from the transaction's own bytes, because the
 * node's list of payments leaves out what goes to change addresses of its wallet.
 */
export function paymentsTo(
  { network }: Pick<BitcoinWallet, 'network'>,
  raw: Buffer,
  { amount, destination_address }: PaymentTarget,
): string[] {
  const script = outputScriptOf(network, destination_address)
  if (script === undefined) return []
  return decode(raw).outputs.flatMap((output, index) =>
    output.amount === minorOf(amount) && Buffer.from(output.script).equals(script) ? String(index) : [],
  )
}

/** As `paymentsTo`, in a withdrawal's own transaction: its output alone, where that is known. */
export const paymentsOf = (wallet: BitcoinWallet, withdrawal: BroadcastWithdrawal): string[] =>
  paymentsTo(wallet, withdrawal.raw_transaction, withdrawal).filter(
    (index) => (withdrawal.crypto_tx_index ?? index) === index,
  )

export const walletBytesOf = ({ hex }: WalletTransaction): Buffer => Buffer.from(hex, 'hex')

/** The indexes of all outputs that pay others, by the node's word, in their order. */
export function paymentIndexes({ details }: WalletTransaction): string[] {
  const outputs = details.filter(({ category }) => category === 'send').map(({ vout }) => vout)
  return [...new Set(outputs)].sort((a, b) => Number(a) - Number(b))
}

/** The final status of a withdrawal that this output of a confirmed transaction has paid. */
export function confirmedBy(
  { coin }: BitcoinWallet,
  transaction: WalletTransaction,
  crypto_tx_index: string,
  share: FeeShare,
): PaymentStatus {
  assert(transaction.fee !== undefined, 'a transaction of the wallet has a fee')
  const fee = partOf(-minorOf(transaction.fee), share)
  return {
    state: 'CONFIRMED',
    crypto_tx_hash: transaction.txid,
    crypto_tx_index,
    ...(fee !== 0n && { networkFee: { asset: coin, amount: decimalOf(fee) } }),
  }
}
