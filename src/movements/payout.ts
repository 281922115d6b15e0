import { formatAmount, parseAmount } from '../assets/amount.ts'
import { decimalsOf, findAsset } from '../assets/catalogue.ts'
import { Problem, problem } from '../contract/problems.ts'
import type { BalanceKey } from '../ledger/balances.ts'
import { convertible, inUnitsOf } from '../ledger/conversion.ts'
import type { Decision, View } from './ledger.ts'
import type { UsdPrices } from '../assets/usd-value.ts'
import type { OwnCustody } from './own-custody.ts'
import { requirePayable, type FiatAccount } from '../records/fiat-account.ts'
import type { Orchestration } from '../records/orchestration.ts'
import {
  amountsAt,
  carriedBy,
  cryptoWithdrawal,
  decimalsOfRoute,
  type Destinations,
  routeOf,
  scheduledFee,
  termsOf,
} from './crypto-withdrawal.ts'
import { fiatWithdrawal, requireWires, wireAmount } from './fiat-withdrawal.ts'
import { internalTransfer } from './internal-transfer.ts'

/** What an orchestration is to do. */
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

/** The networks and assets that some orders go out over, for `readOwnCustody`. */
export const routesOf = (orders: Pick<Order, 'destination' | 'destination_asset'>[]) =>
  orders.flatMap(({ destination: { crypto }, destination_asset: asset }) =>
    crypto === undefined ? [] : { crypto_network: crypto.network, asset },
  )

/** The transfer to an orchestration's destination, as far as it can be told without records. */
export interface Payout {
  balances: BalanceKey[]
  /** Throws not-found or disabled for the records that it needs. Funds are the caller's to check. */
  decide: (
    view: Pick<View, 'now' | 'newId' | 'profileExists' | 'requireHolder'>,
    /** The orchestration's id, the fiat account that it pays to, if it is one, and what a sandbox's real networks may pay. */
    known: { group_id: string; fiatAccounts: ReadonlyMap<string, FiatAccount>; ownCustody: OwnCustody },
  ) => Decision
}

/** Throws bad-request unless there are such assets and one can be had for the other. */
export function requireConvertible(order: Pick<Order, 'source_asset' | 'destination_asset'>): void {
  for (const field of ['source_asset', 'destination_asset'] as const) {
    if (findAsset(order[field]) === undefined)
      throw problem.badRequest(`${field} ${order[field]} is not known`)
  }
  const { source_asset, destination_asset } = order
  if (!convertible(source_asset, destination_asset)) {
    throw problem.badRequest(
      `source_asset ${source_asset} cannot be converted to destination_asset ${destination_asset}`,
    )
  }
}

/**
 * Throws, for a destination that cannot be paid in this asset, what a withdrawal would be refused with; bad-request
 * for one that changes nothing.
 */
export function requireDestination(
  order: Pick<Order, 'profile_id' | 'source_asset' | 'destination_asset' | 'destination'>,
  context: Destinations,
): void {
  const { destination_asset: asset, destination } = order
  const { crypto, profile } = destination
  if (crypto !== undefined) {
    const fields = { network: 'destination.crypto.network', address: 'destination.crypto.address' }
    routeOf({ asset, crypto_network: crypto.network, destination_address: crypto.address }, context, fields)
  } else if (profile === undefined) {
    requireWires({ asset }, context.networks, 'destination_asset')
  } else if (profile.profile_id === order.profile_id && asset === order.source_asset) {
    throw problem.badRequest(
      'destination must be given, or another profile or asset than the source: this would change nothing',
    )
  }
}

/**
 * The destination transfer of an orchestration (design section 5): a crypto withdrawal, a wire or an internal
 * transfer, which converts what it debits. Throws as a withdrawal does for what is refused without a record.
 * What source or destination has no decimals for is refused, or left on the profile when `rest` says so.
 */
export function payoutOf(
  order: Order,
  context: Destinations,
  rest: 'REFUSED' | 'STAYS',
  prices: UsdPrices,
  /** The network's own cost for the destination, in minor units, where it is known; or that it is not paid to. */
  cost: bigint | Problem = 0n,
): Payout {
  requireConvertible(order)
  requireDestination(order, context)
  const { customer_id, profile_id, source_asset, destination_asset, destination } = order
  const { crypto, fiat, profile } = destination
  const minor = payable(order, rest)
  const total = formatAmount(minor, decimalsOf(destination_asset))
  const balances: BalanceKey[] = [{ profile_id, asset: source_asset }]
  const record = {
    profile_id,
    identity_id: order.identity_id,
    account_id: order.account_id,
    metadata: order.metadata,
  }

  if (crypto !== undefined) {
    const { address: destination_address, network: crypto_network } = crypto
    const terms = termsOf({ asset: destination_asset, crypto_network, destination_address, total }, context)
    if (cost instanceof Problem) throw cost
    // No quote can be named here: the fee is at least what the network takes.
    const scheduled = scheduledFee(terms)
    const amounts = amountsAt(cost > scheduled ? cost : scheduled, terms, 'source_amount')
    return {
      balances,
      decide(view, { group_id, ownCustody }) {
        view.requireHolder(order)
        ownCustody.take(profile_id, { crypto_network, asset: destination_asset }, amounts.amount)
        const asked = { ...record, group_id, destination_address, crypto_network }
        return cryptoWithdrawal(customer_id, asked, {
          terms,
          amounts,
          balanceAsset: source_asset,
          view,
          prices,
        })
      },
    }
  }

  if (fiat !== undefined) {
    const minor = wireAmount({ asset: destination_asset, total }, context.networks, 'source_amount')
    return {
      balances,
      decide(view, { group_id, fiatAccounts }) {
        view.requireHolder(order)
        const fiat_account = requirePayable(fiatAccounts, fiat.bank_account_id)
        const what = { fiat_account, memo: fiat.memo, minor, balanceAsset: source_asset }
        return fiatWithdrawal(customer_id, { ...record, group_id, ...what }, view)
      },
    }
  }

  const to_profile_id = profile!.profile_id
  return {
    balances: [...balances, { profile_id: to_profile_id, asset: destination_asset }],
    decide(view, { group_id }) {
      view.requireHolder(order)
      if (!view.profileExists(to_profile_id)) throw problem.notFound('profile', to_profile_id)
      const ends = { group_id, from_profile_id: profile_id, to_profile_id }
      const what = { asset: destination_asset, minor, balanceAsset: source_asset }
      return internalTransfer(customer_id, { ...record, ...ends, ...what }, view)
    },
  }
}

/** The source amount, or what of it can go all the way, in minor units of the destination asset. */
function payable(order: Order, rest: 'REFUSED' | 'STAYS'): bigint {
  const { source_asset: asset, destination_asset, source_amount } = order
  const decimals = Math.min(decimalsOf(asset), decimalsAt(order))
  const sourceDecimals = decimalsOf(asset)
  const minor = parseAmount(source_amount, sourceDecimals)
  const unit = 10n ** BigInt(sourceDecimals - decimals)
  if (minor === undefined || (rest === 'REFUSED' && minor % unit !== 0n))
    throw problem.exceedPrecision('source_amount', { asset, decimals })
  const whole = minor - (minor % unit)
  if (whole === 0n)
    throw problem.badRequest(`source_amount ${source_amount} ${asset} is too little for the destination`)
  return inUnitsOf(destination_asset, whole, asset)!
}

/** How many decimals the destination takes. */
const decimalsAt = ({ destination_asset, destination: { crypto } }: Order): number =>
  crypto === undefined
    ? decimalsOf(destination_asset)
    : decimalsOfRoute(carriedBy(destination_asset, crypto.network))
