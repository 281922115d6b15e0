import { formatAmount, parseAmount } from '../assets/amount.ts'
import { findAsset, type Asset, type AssetOnNetwork, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Context } from '../http/operation.ts'
import { problem } from '../http/problems.ts'
import { canonicalAddress } from '../networks/addresses.ts'

/** What a withdrawal and the quote for one are asked with. */
export interface WithdrawalRequest {
  asset: string
  crypto_network: CryptoNetwork
  destination_address: string
  amount?: string
  total?: string
}

/** A request that can be paid out: the asset, as its network carries it, and what was asked for. */
export interface Terms {
  asset: Asset
  carried: AssetOnNetwork
  asked: { field: 'amount' | 'total'; minor: bigint }
}

/** Amounts in minor units; `total` is `amount` plus `fee`. */
export interface Amounts {
  amount: bigint
  fee: bigint
  total: bigint
}

/**
 * Checks what needs no records, in the contract's order: amount or total, asset, network, address, precision.
 * Throws bad-request, unsupported-network, unsupported-address, exceed-precision or, where the network is not
 * connected, unavailable. Spec 4.1 and section 7.
 */
export function termsOf(
  request: WithdrawalRequest,
  { networks, settings }: Pick<Context, 'networks' | 'settings'>,
): Terms {
  const { amount, total, crypto_network, destination_address } = request
  if (amount !== undefined && total !== undefined) {
    throw problem.badRequest('exactly one of amount and total must be given, not both')
  }
  const asked = amount ?? total
  if (asked === undefined) throw problem.badRequest('exactly one of amount and total must be given')
  const field = amount === undefined ? 'total' : 'amount'

  const asset = findAsset(request.asset)
  if (asset === undefined) throw problem.badRequest(`asset ${request.asset} is not known`)
  const carried = asset.networks[crypto_network]
  if (carried === undefined) {
    const supported = Object.keys(asset.networks)
    throw problem.unsupportedNetwork({ asset: asset.symbol, crypto_network, supported })
  }
  const allow = { testNetworks: settings.mode === 'sandbox' }
  if (canonicalAddress(crypto_network, destination_address, allow) === undefined) {
    throw problem.unsupportedAddress({ destination_address, crypto_network })
  }
  if (!networks.has(crypto_network)) {
    throw problem.unavailable(
      `crypto_network ${crypto_network} is not connected: nothing can be sent over it`,
    )
  }

  const decimals = Math.min(asset.decimals, carried.decimals)
  if (parseAmount(asked, decimals) === undefined) {
    throw problem.exceedPrecision(field, { asset: asset.symbol, decimals })
  }
  return { asset, carried, asked: { field, minor: parseAmount(asked, asset.decimals)! } }
}

/** The fee of the network's schedule, in minor units. */
export const scheduledFee = ({ asset, carried }: Terms): bigint => parseAmount(carried.fee, asset.decimals)!

/**
 * Amount, fee and total of what was asked for at this fee. Throws below-min-withdraw-limit or
 * exceed-max-withdraw-limit; a total that the fee eats up is below the minimum.
 */
export function amountsAt(fee: bigint, { asset, carried, asked }: Terms): Amounts {
  const amounts =
    asked.field === 'amount'
      ? { amount: asked.minor, fee, total: asked.minor + fee }
      : { amount: asked.minor - fee, fee, total: asked.minor }
  const { minimum, maximum } = carried
  const what =
    asked.field === 'amount' ? 'amount' : `total less the fee of ${formatAmount(fee, asset.decimals)}`
  if (amounts.amount < parseAmount(minimum, asset.decimals)!) {
    throw problem.belowMinimum(what, { asset: asset.symbol, minimum })
  }
  if (amounts.amount > parseAmount(maximum, asset.decimals)!) {
    throw problem.aboveMaximum(what, { asset: asset.symbol, maximum })
  }
  return amounts
}
