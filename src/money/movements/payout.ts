import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset } from '../../contract/assets/catalogue.ts'
import { Problem, problem } from '../../contract/problems.ts'
import type { BalanceKey } from '../ledger/balances.ts'
import { convertible, inUnitsOf } from '../ledger/conversion.ts'
import type { Decision, Movement, View } from './decision.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { needsOf, takeOwnCustody } from './paid-in-limit.ts'
import { FIAT_ACCOUNTS, requirePayable } from '../records/fiat-account.ts'
import { need } from '../records/need.ts'
import type { Orchestration } from '../records/orchestration.ts'
import {
  amountsAt,
  listedOn,
  cryptoWithdrawal,
  decimalsOfListed,
  type Destinations,
  listedAt,
  termsOf,
} from './crypto-withdrawal.ts'
import { fiatWithdrawal, requireWires, wireAmount } from './fiat-withdrawal.ts'
import { internalTransfer } from './internal-transfer.ts'
import { scheduledFee } from './withdrawal-fee.ts'

/** The terms of an orchestration that its payout follows. */
export type Order = Pick<
  Orchestration,
  | 'customer_id'
  | 'profile_id'
  | 'identity_id'
  | 'account_id'
  | 'source_asset'
  | 'destination_asset'
  | 'source_amount'
  | 'destination'
  | 'metadata'
>

/** The transfer to an orchestration's destination, as far as it is known without records. */
export interface Payout extends Pick<Movement, 'balances' | 'payment' | 'needs'> {
  /** Throws not-found or disabled for the records that it needs. `group_id` is the orchestration's id. */
  decide: (view: View, group_id: string) => Decision
}

/**
 * Throws bad-request unless both assets exist and convert to each other. USDC converts in a sandbox, and in live mode where
 * BURSAR_CONVERT_USDC says so. `field` is the client's name for the destination's asset.
 */
export function requireConvertible(
  { source_asset, destination_asset }: Pick<Order, 'source_asset' | 'destination_asset'>,
  { mode, convertUsdc = false }: Destinations['settings'],
  field = 'destination_asset',
): void {
  for (const [name, asset] of [
    ['source_asset', source_asset],
    [field, destination_asset],
  ] as const)
    if (findAsset(asset) === undefined) throw problem.badRequest(`${name} ${asset} is unknown`, name)
  if (!convertible(source_asset, destination_asset, { usdc: mode === 'sandbox' || convertUsdc }))
    throw problem.badRequest(
      `source_asset ${source_asset} cannot be converted to ${field} ${destination_asset}`,
      'source_asset',
      field,
    )
}

/**
 * Throws the problem that a withdrawal to this destination would be refused with; bad-request for a destination that
 * changes nothing.
 */
export function requireDestination(
  order: Pick<Order, 'profile_id' | 'source_asset' | 'destination_asset' | 'destination'>,
  context: Destinations,
): void {
  const { destination_asset: asset, destination } = order
  const { crypto, profile } = destination
  if (crypto !== undefined) {
    const fields = { network: 'destination.crypto.network', address: 'destination.crypto.address' }
    listedAt({ asset, crypto_network: crypto.network, destination_address: crypto.address }, context, fields)
  } else if (profile === undefined) {
    requireWires({ asset }, context.networks, 'destination_asset')
  } else if (profile.profile_id === order.profile_id && asset === order.source_asset) {
    throw problem.badRequest(
      'destination must be given, or the profile or asset must differ from the source: this order would change nothing',
      'destination',
    )
  }
}

/**
 * Builds the destination transfer of an orchestration (API behaviour, Orchestrations): a crypto withdrawal, a wire or
 * an internal transfer, with its conversion. Throws as a withdrawal does for refusals that need no record.
 * `remainder` decides about decimals that source or destination cannot represent: reject the order, or keep them on
 * the profile.
 */
export function payoutOf(
  order: Order,
  context: Destinations,
  remainder: 'REJECT' | 'KEEP',
  prices: UsdPrices,
  /**
   * The network's own cost for the destination, in minor units, where it is known; or the problem of a refused
   * destination.
   */
  cost: bigint | Problem = 0n,
): Payout {
  requireConvertible(order, context.settings)
  requireDestination(order, context)
  const { customer_id, profile_id, source_asset, destination_asset, destination } = order
  const { crypto, fiat, profile } = destination
  const minor = payable(order, remainder)
  const total = formatAmount(minor, decimalsOf(destination_asset))
  const balances: BalanceKey[] = [{ profile_id, asset: source_asset }]
  const holder = { profile_id, identity_id: order.identity_id, account_id: order.account_id }
  const paid = { ...holder, asset: destination_asset }
  const record = { ...holder, metadata: order.metadata }

  if (crypto !== undefined) {
    const { address: destination_address, network: crypto_network } = crypto
    const terms = termsOf({ asset: destination_asset, crypto_network, destination_address, total }, context)
    if (cost instanceof Problem) throw cost
    // No quote can be named here, so the fee is at least the network's own cost.
    const scheduled = scheduledFee(terms)
    const amounts = amountsAt(cost > scheduled ? cost : scheduled, terms, 'source_amount')
    const route = { profile_id, crypto_network, asset: destination_asset }
    return {
      balances,
      payment: { type: 'CRYPTO_WITHDRAWAL', ...paid, crypto_network, destination: destination_address },
      needs: needsOf(context.networks, { crypto_network, asset: destination_asset }),
      decide(view, group_id) {
        const changes = takeOwnCustody(view, context.networks, route, amounts.amount)
        const asked = { ...record, group_id, destination_address, crypto_network }
        const how = { terms, amounts, balanceAsset: source_asset, view, prices }
        return { ...cryptoWithdrawal(customer_id, asked, how), changes }
      },
    }
  }

  if (fiat !== undefined) {
    const cents = wireAmount({ asset: destination_asset, total }, context.networks, 'source_amount')
    const { bank_account_id } = fiat
    return {
      balances,
      payment: { type: 'WIRE_WITHDRAWAL', ...paid, destination: bank_account_id },
      needs: [need(FIAT_ACCOUNTS, bank_account_id)],
      decide(view, group_id) {
        const fiat_account = requirePayable(view.get(FIAT_ACCOUNTS, bank_account_id), bank_account_id)
        const what = { fiat_account, memo: fiat.memo, minor: cents, balanceAsset: source_asset }
        return fiatWithdrawal(customer_id, { ...record, group_id, ...what }, view)
      },
    }
  }

  const to_profile_id = profile!.profile_id
  return {
    balances: [...balances, { profile_id: to_profile_id, asset: destination_asset }],
    payment: { type: 'INTERNAL_TRANSFER_DEBIT', ...paid, destination: to_profile_id },
    decide(view, group_id) {
      view.requireOpen(to_profile_id)
      const ends = { group_id, from_profile_id: profile_id, to_profile_id }
      const what = { asset: destination_asset, minor, balanceAsset: source_asset }
      return internalTransfer(customer_id, { ...record, ...ends, ...what }, view)
    },
  }
}

/**
 * Returns the source amount, or its part that the destination can represent, in minor units of the destination asset.
 */
function payable(order: Order, remainder: 'REJECT' | 'KEEP'): bigint {
  const { source_asset: asset, destination_asset, source_amount } = order
  const sourceDecimals = decimalsOf(asset)
  const decimals = Math.min(sourceDecimals, decimalsAt(order))
  const minor = parseAmount(source_amount, sourceDecimals)
  const unit = 10n ** BigInt(sourceDecimals - decimals)
  if (minor === undefined || (remainder === 'REJECT' && minor % unit !== 0n))
    throw problem.exceedPrecision('source_amount', {
      asset: decimals < sourceDecimals ? destination_asset : asset,
      decimals,
    })
  const whole = minor - (minor % unit)
  if (whole === 0n)
    throw problem.badRequest(
      `source_amount ${source_amount} ${asset} is too little for the destination`,
      'source_amount',
    )
  return inUnitsOf(destination_asset, whole, asset)!
}

const decimalsAt = ({ destination_asset, destination: { crypto } }: Order): number =>
  crypto === undefined
    ? decimalsOf(destination_asset)
    : decimalsOfListed(listedOn(destination_asset, crypto.network))
