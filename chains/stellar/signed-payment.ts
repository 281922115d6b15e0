import { parseAmount } from '../../src/contract/assets/amount.ts'
import { findAsset } from '../../src/contract/assets/catalogue.ts'
import { differences, type PaymentOn } from '../../src/networks/signed-payment.ts'
import { paymentsIn, type StellarPayment } from './envelope.ts'

/** How signed bytes differ from the payment that was asked for (`Family.disagreementOf`), which is the one at `index`, or any. */
export function disagreementOf(
  { raw_transaction, network, asset, amount, ...wanted }: PaymentOn,
  issuers: Readonly<Record<string, string>> = {},
  index?: number,
): string | undefined {
  const { memo, payments } = paymentsIn(raw_transaction)
  const { contractAddress, decimals } = findAsset(asset)!.networks[network]!
  const [code, issuer] = contractAddress?.split('-') ?? []
  const key = code === undefined ? 'native' : `${code}:${issuers[asset] ?? issuer}`
  const units = parseAmount(amount, decimals)
  const toIt = payments.filter(({ destination }) => destination === wanted.destination_address)
  const isIt = (paid: StellarPayment) => paid.asset === key && parseAmount(paid.amount, decimals) === units
  const paid = index === undefined ? (toIt.find(isIt) ?? toIt[0] ?? payments[0]!) : payments[index]!
  return differences([
    ['asset', paid.asset, key],
    ['amount', parseAmount(paid.amount, decimals), units],
    ['destination', paid.destination, wanted.destination_address],
    ['memo', memo ?? null, wanted.memo ?? null],
  ])
}
