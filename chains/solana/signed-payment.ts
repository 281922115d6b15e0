import type { Address } from '@solana/addresses'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { findAsset } from '../../src/contract/assets/catalogue.ts'
import { canonicalOf, differences, type PaymentOn } from '../../src/networks/signed-payment.ts'
import { associatedOf } from './instructions.ts'
import { parsePayment } from './transaction.ts'

/** How signed bytes differ from the payment that was asked for (`Family.disagreementOf`). */
export function disagreementOf(
  payment: PaymentOn,
  mints: Readonly<Record<string, string>> = {},
): string | undefined {
  const { network, raw_transaction, asset, amount, memo } = payment
  const { transfers } = parsePayment(raw_transaction)
  const facts = findAsset(asset)!.networks[network]!
  const token = mints[asset] ?? facts.contractAddress
  const wanted = canonicalOf(payment) as Address
  const accountIn = (program: Address) =>
    token === undefined ? wanted : associatedOf(wanted, token as Address, program)
  const paid = transfers.find(({ target, program }) => target === accountIn(program)) ?? transfers[0]!
  const { target, units, mint, program, decimals, madeFor, memo: signedMemo } = paid
  const account = accountIn(program)
  return differences([
    ['mint', mint ?? 'none', token ?? 'none'],
    ['recipient', target, account],
    ['amount', units, parseAmount(amount, facts.decimals)],
    ['decimals', decimals, facts.decimals],
    ['account made for', madeFor ?? wanted, wanted],
    // Without one, the recipient's account may have required any.
    ['memo', memo == null ? memo : signedMemo, memo],
  ])
}
