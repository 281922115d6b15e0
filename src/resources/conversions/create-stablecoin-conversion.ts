import { minorUnits } from '../../contract/assets/precision.ts'
import { Type } from 'typebox'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, Metadata, RefId, Uuid } from '../../contract/fields.ts'
import { PAYMENT_PROBLEMS, problem } from '../../contract/problems.ts'
import { internalTransfer } from '../../money/movements/internal-transfer.ts'
import { requireConvertible } from '../../money/movements/payout.ts'
import { operation } from '../operation.ts'
import { conversionOf, StablecoinConversion } from './conversion.ts'

export const createStablecoinConversion = operation({
  method: 'POST',
  url: '/v2/conversion/stablecoins',
  scope: 'conversion:write_conversion_stablecoin',
  tag: 'Conversions',
  takesMoney: true,
  summary: 'Create Stablecoin Conversion',
  description:
    'Converts between USD and stablecoins on a profile, one to one and without a fee. It is settled at once.',
  body: Closed({
    profile_id: Uuid('Profile whose balances change.'),
    amount: Amount('Amount to convert, in the source asset.'),
    source_asset: AssetSymbol,
    target_asset: AssetSymbol,
    ref_id: Type.Optional(RefId),
    identity_id: Type.Optional(Uuid('Identity that asks for it.')),
    account_id: Type.Optional(Uuid('Account that asks for it.')),
    metadata: Type.Optional(Metadata),
  }),
  example: {
    bodies: {
      'USD to USDG': {
        profile_id: EXAMPLE.profile_id,
        amount: '100',
        source_asset: 'USD',
        target_asset: 'USDG',
        ref_id: 'conversion-2026-0001',
      },
    },
  },
  reply: StablecoinConversion,
  problems: PAYMENT_PROBLEMS,
  async run({ body, customerId, origin, requireCaller, settings, ledger }) {
    const { profile_id, amount, source_asset, target_asset, ...asked } = body
    if (source_asset === target_asset)
      throw problem.badRequest('target_asset must differ from source_asset', 'target_asset')
    requireConvertible({ source_asset, destination_asset: target_asset }, settings, 'target_asset')
    const minor = targetUnitsOf(amount, source_asset, target_asset)
    const { transfer } = await ledger.submit(customerId, {
      ref_id: asked.ref_id,
      payment: {
        type: 'INTERNAL_TRANSFER_DEBIT',
        ...{ profile_id, identity_id: asked.identity_id, account_id: asked.account_id },
        ...{ asset: target_asset, destination: profile_id },
      },
      requireCaller,
      origin,
      balances: [
        { profile_id, asset: source_asset },
        { profile_id, asset: target_asset },
      ],
      decide(view) {
        view.requireOpen(profile_id)
        const ends = { from_profile_id: profile_id, to_profile_id: profile_id }
        const how = { asset: target_asset, minor, balanceAsset: source_asset }
        const decision = internalTransfer(customerId, { ...asked, ...ends, ...how }, view)
        // The group has the id of the debit: reads recognise a conversion by this.
        const group_id = decision.transfer.id
        const { otherLeg } = decision
        return {
          ...decision,
          transfer: { ...decision.transfer, group_id },
          otherLeg: otherLeg && { ...otherLeg, transfer: { ...otherLeg.transfer, group_id } },
        }
      },
    })
    return conversionOf(transfer)
  },
})

/** The amount in minor units of the target. Throws exceed-precision for decimals that either asset lacks. */
function targetUnitsOf(amount: string, source: string, target: string): bigint {
  const decimals = Math.min(decimalsOf(source), decimalsOf(target))
  const asset = decimalsOf(source) === decimals ? source : target
  const minor = minorUnits('amount', amount, { asset, decimals })
  if (minor === 0n) throw problem.badRequest('amount must be greater than zero', 'amount')
  return parseAmount(formatAmount(minor, decimals), decimalsOf(target))!
}
