import { formatAmount, parseAmount } from '../assets/amount.ts'
import { findAsset, type Asset, type AssetOnNetwork, type CryptoNetwork } from '../assets/catalogue.ts'
import { problem } from '../contract/problems.ts'
import { canonicalAddress } from '../networks/addresses.ts'
import type { Networks } from '../networks/network.ts'
import { magicOutcome } from '../networks/simulated/magic-addresses.ts'
import { onProfileAs } from '../ledger/conversion.ts'
import { onPlatform } from '../ledger/entries.ts'
import type { Decision, View } from './decision.ts'
import type { Transfer } from '../ledger/transfer.ts'
import { notionalUsd, type UsdPrices } from '../assets/usd-value.ts'

/** Where money can be sent: the networks that are connected, and whether the addresses of test networks are taken. */
export interface Destinations {
  networks: Networks
  settings: { mode: 'sandbox' | 'live' }
}

/** What a withdrawal and the quote for one are asked with. */
export interface WithdrawalRequest {
  asset: string
  crypto_network: CryptoNetwork
  destination_address: string
  amount?: string
  total?: string
}

/** A request that can be paid out: the asset, as its network carries it, and what was asked for. */
export interface WithdrawalTerms {
  asset: Asset
  listing: AssetOnNetwork
  asked: { field: 'amount' | 'total'; minor: bigint }
}

/** Amounts in minor units; `total` is `amount` plus `fee`. */
export interface Amounts {
  amount: bigint
  fee: bigint
  total: bigint
}

/** What the fields that say where are called. An orchestration's have other names. */
const FIELDS = { network: 'crypto_network', address: 'destination_address' }

/** An asset, as the network carries it. */
export type ListedAsset = Pick<WithdrawalTerms, 'asset' | 'listing'>

/**
 * Checks where a withdrawal is to go. Throws bad-request for an asset that there is not, unsupported-network,
 * unsupported-address or, where the network is not connected, unavailable.
 */
export function listedAt(
  request: Pick<WithdrawalRequest, 'asset' | 'crypto_network' | 'destination_address'>,
  { networks, settings }: Destinations,
  fields = FIELDS,
): ListedAsset {
  const { crypto_network, destination_address } = request
  const { asset, listing } = listedOn(request.asset, crypto_network, fields.network)
  const allow = { testNetworks: settings.mode === 'sandbox' }
  const canonical = canonicalAddress(crypto_network, destination_address, allow)
  if (canonical === undefined)
    throw problem.unsupportedAddress(fields.address, { destination_address, crypto_network })
  if (settings.mode === 'live' && magicOutcome(crypto_network, canonical) !== undefined)
    throw problem.unsupportedAddress(
      fields.address,
      { destination_address, crypto_network },
      'it is a magic address of the sandbox, whose key nobody has',
    )
  const why = networks.get(crypto_network)?.refusesDestination?.(canonical)
  if (why !== undefined)
    throw problem.unsupportedAddress(fields.address, { destination_address, crypto_network }, why)
  if (!networks.has(crypto_network)) {
    throw problem.unavailable(
      `crypto_network ${crypto_network} is not connected: nothing can be sent over it`,
    )
  }
  return { asset, listing }
}

/** An asset on a network. Throws bad-request for an asset that there is not, or unsupported-network. */
export function listedOn(symbol: string, crypto_network: CryptoNetwork, field = FIELDS.network): ListedAsset {
  const asset = findAsset(symbol)
  if (asset === undefined) throw problem.badRequest(`asset ${symbol} is not known`)
  const listing = asset.networks[crypto_network]
  if (listing === undefined) {
    const supported = Object.keys(asset.networks)
    throw problem.unsupportedNetwork(field, { asset: asset.symbol, crypto_network, supported })
  }
  return { asset, listing }
}

/** What both the ledger and the network can hold of an asset. */
export const decimalsOfListed = ({ asset, listing }: ListedAsset): number =>
  Math.min(asset.decimals, listing.decimals)

/**
 * Checks what needs no records, in the contract's order: amount or total, asset, network, address, precision.
 * Throws as `routeOf` does, bad-request or exceed-precision (API behaviour, Order of checks).
 */
export function termsOf(request: WithdrawalRequest, context: Destinations): WithdrawalTerms {
  const { field, asked } = amountOrTotal(request)
  const route = listedAt(request, context)
  const { asset } = route
  const decimals = decimalsOfListed(route)
  if (parseAmount(asked, decimals) === undefined) {
    throw problem.exceedPrecision(field, { asset: asset.symbol, decimals })
  }
  return { ...route, asked: { field, minor: parseAmount(asked, asset.decimals)! } }
}

/**
 * Which of the two a withdrawal was asked with. Throws bad-request unless it is exactly one (API behaviour, Crypto
 * withdrawals).
 */
export function amountOrTotal({
  amount,
  total,
}: {
  amount?: string | undefined
  total?: string | undefined
}): {
  field: 'amount' | 'total'
  asked: string
} {
  if (amount !== undefined && total !== undefined) {
    throw problem.badRequest('exactly one of amount and total must be given, not both')
  }
  if (amount !== undefined) return { field: 'amount', asked: amount }
  if (total !== undefined) return { field: 'total', asked: total }
  throw problem.badRequest('exactly one of amount and total must be given')
}

/** The fee of the network's schedule, in minor units. */
export const scheduledFee = ({ asset, listing }: WithdrawalTerms): bigint =>
  parseAmount(listing.fee, asset.decimals)!

/**
 * Amount, fee and total of what was asked for at this fee. Throws below-min-withdraw-limit or
 * exceed-max-withdraw-limit; a total that the fee eats up is below the minimum. `field` is what was asked for, where
 * the client calls it by another name.
 */
export function amountsAt(
  fee: bigint,
  { asset, listing, asked }: WithdrawalTerms,
  field: string = asked.field,
): Amounts {
  const amounts =
    asked.field === 'amount'
      ? { amount: asked.minor, fee, total: asked.minor + fee }
      : { amount: asked.minor - fee, fee, total: asked.minor }
  const { minimum, maximum } = listing
  const what =
    asked.field === 'amount' ? field : `${field} less the fee of ${formatAmount(fee, asset.decimals)}`
  if (amounts.amount < parseAmount(minimum, asset.decimals)!) {
    throw problem.belowMinimum(what, { asset: asset.symbol, minimum })
  }
  if (amounts.amount > parseAmount(maximum, asset.decimals)!) {
    throw problem.aboveMaximum(what, { asset: asset.symbol, maximum })
  }
  return amounts
}

/** What a withdrawal's record says of the request that it comes from. */
type Asked = Pick<Transfer, 'profile_id'> &
  Partial<Pick<Transfer, 'identity_id' | 'account_id' | 'ref_id' | 'group_id' | 'memo' | 'metadata'>> & {
    destination_address: string
    crypto_network: CryptoNetwork
    beneficiary?: Record<string, unknown>
  }

interface Accepted {
  terms: WithdrawalTerms
  amounts: Amounts
  /** The balance that is debited: the asset's, or one that converts to it. */
  balanceAsset: string
  view: Pick<View, 'now' | 'newId'>
  prices: UsdPrices
}

/** The record and entries: profile -total, in flight +amount, fees +fee (ARCHITECTURE, "Life of a withdrawal"). */
export function cryptoWithdrawal(
  customerId: string,
  asked: Asked,
  { terms: { asset }, amounts, balanceAsset, view, prices }: Accepted,
): Decision {
  const { amount, fee, total } = amounts
  // One shape for all: what was not given is undefined, which neither the wire nor the database shows.
  return {
    transfer: {
      id: view.newId(),
      customer_id: customerId,
      profile_id: asked.profile_id,
      identity_id: asked.identity_id,
      account_id: asked.account_id,
      ref_id: asked.ref_id,
      group_id: asked.group_id,
      type: 'CRYPTO_WITHDRAWAL',
      direction: 'DEBIT',
      status: 'PENDING',
      asset: asset.symbol,
      balance_asset: balanceAsset,
      amount: formatAmount(amount, asset.decimals),
      fee: formatAmount(fee, asset.decimals),
      total: formatAmount(total, asset.decimals),
      notional_value: notionalUsd(total, asset, prices),
      destination_address: asked.destination_address,
      crypto_network: asked.crypto_network,
      auto_conversion: balanceAsset === asset.symbol ? undefined : {},
      memo: asked.memo,
      metadata: asked.metadata,
      created_at: view.now.text,
      updated_at: view.now.text,
    },
    entries: [
      ...onProfileAs(asked.profile_id, balanceAsset, -total, asset.symbol),
      onPlatform(`in_flight:${asked.crypto_network}`, asset.symbol, amount),
      onPlatform('fees', asset.symbol, fee),
    ],
    beneficiary: asked.beneficiary,
  }
}
