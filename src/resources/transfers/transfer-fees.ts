import { Type, type Static } from 'typebox'
import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { valueIn } from '../../contract/assets/usd-value.ts'
import { Amount, AssetSymbol, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import type { Database } from '../../db/database.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { selectQuoteOf } from '../../money/records/fee-quotes.ts'
import type { LedgerEntry } from './transfer-history.ts'
import { newestUsdPrices } from '../../money/records/usd-prices.ts'

/** The quoted fee and the real fee of a withdrawal. `fee` of the transfer is what its customer was charged. */
export const TransferFees = NamedObject('TransferFees', {
  quote: Type.Optional(
    Type.Object(
      {
        id: Uuid('The `fee_id` of the withdrawal.'),
        fee: Amount('The quoted fee, in the asset of the transfer.'),
        created_at: Timestamp('When it was quoted.'),
        expires_at: Timestamp('End of the guarantee.'),
      },
      {
        description:
          'The fee quote that the withdrawal used. It is deleted 30 days after its end. Without a quote, the fee is that of the schedule.',
      },
    ),
  ),
  network_fee: Type.Optional(
    Type.Object(
      { asset: AssetSymbol, amount: Amount('What the network took for its transaction.') },
      { description: 'Absent before the end, and on a simulated network.' },
    ),
  ),
  network_fee_value: Type.Optional(
    Amount(
      'The network fee in the asset of the transfer, by the prices of its end, rounded up to at most eight decimals.',
    ),
  ),
  difference: Type.Optional(
    Type.String({
      description:
        'The fee charged less `network_fee_value`: what the platform has won, or lost where it is negative. A fee that was given back counts as nothing.',
      examples: ['-0.25'],
    }),
  ),
})
export type TransferFees = Static<typeof TransferFees>

/**
 * Reads the fees of a crypto withdrawal. The value of the network fee and the difference are absent where market history has
 * no price of that time.
 */
export async function selectFeesOf(
  { db, sandbox }: { db: Database; sandbox: boolean },
  customerId: string,
  { id, asset, fee, status }: Pick<Transfer, 'id' | 'asset' | 'fee' | 'status'>,
  entries: readonly LedgerEntry[],
): Promise<TransferFees> {
  const quote = await selectQuoteOf(db, customerId, id)
  const taken = entries.find(({ account }) => account.startsWith('network_fees:'))
  if (taken === undefined) return { ...(quote !== undefined && { quote }) }
  const [decimals, gas] = [decimalsOf(asset), taken.asset]
  const minor = -parseStoredAmount(taken.amount, decimalsOf(gas))
  const prices = await newestUsdPrices(db, sandbox, { at: taken.created_at })
  const value = valueIn(asset, { asset: gas, minor }, prices)
  const charged = status === 'FAILED' ? 0n : parseAmount(fee, decimals)!
  return {
    ...(quote !== undefined && { quote }),
    network_fee: { asset: gas, amount: formatAmount(minor, decimalsOf(gas)) },
    ...(value !== undefined && {
      network_fee_value: formatAmount(value, decimals),
      difference: formatAmount(charged - value, decimals),
    }),
  }
}
