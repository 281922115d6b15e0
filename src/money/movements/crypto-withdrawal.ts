import { minorUnits } from '../../contract/assets/precision.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import {
  ASSETS,
  findAsset,
  type Asset,
  type AssetOnNetwork,
  type CryptoNetwork,
} from '../../contract/assets/catalogue.ts'
import { problem } from '../../contract/problems.ts'
import { addressFault, canonicalAddress } from '../../contract/addresses/addresses.ts'
import { addressRefusal } from '../../contract/addresses/destination-rules.ts'
import type { Networks } from '../../networks/network.ts'
import { magicOutcome } from '../../networks/simulated/magic-addresses.ts'
import { onProfileAs } from '../ledger/conversion.ts'
import { onPlatform } from '../ledger/entries.ts'
import type { Decision, View } from './decision.ts'
import type { Transfer } from '../ledger/transfer.ts'
import { notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'

/** Where money can be sent: the connected networks, and whether addresses of test networks are accepted. */
export interface Destinations {
  networks: Networks
  settings: { mode: 'sandbox' | 'live'; convertUsdc?: boolean }
}

/** The common fields of a request for a withdrawal and of a request for its fee quote. */
export interface WithdrawalRequest {
  asset: string
  crypto_network: CryptoNetwork
  destination_address: string
  amount?: string
  total?: string
}

/** A valid request: the asset, its listing on the network, and the requested amount or total. */
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

/** The names of the request's destination fields. An orchestration has other names. */
const FIELDS = { network: 'crypto_network', address: 'destination_address' }

export type ListedAsset = Pick<WithdrawalTerms, 'asset' | 'listing'>

/**
 * Checks the destination of a withdrawal. Throws bad-request for an unknown asset, unsupported-network,
 * unsupported-address, or unavailable where the network is not connected.
 */
export function listedAt(
  request: Pick<WithdrawalRequest, 'asset' | 'crypto_network' | 'destination_address'>,
  { networks, settings }: Destinations,
  fields = FIELDS,
): ListedAsset {
  const { crypto_network } = request
  const listed = listedOn(request.asset, crypto_network, fields.network)
  payableAddress(request, { networks, settings }, fields.address)
  if (!networks.has(crypto_network)) {
    throw problem.unavailable(
      `crypto_network ${crypto_network} is not connected: nothing can be sent over it`,
    )
  }
  return listed
}

/**
 * Returns the canonical form of an address that withdrawals can be paid to. Throws unsupported-address for any other text,
 * and for an address where the money, or this asset, would be lost. `field` is the client's name for the address.
 */
export function payableAddress(
  {
    crypto_network,
    destination_address,
    asset,
  }: Pick<WithdrawalRequest, 'crypto_network' | 'destination_address'> & { asset?: string | undefined },
  { networks, settings }: Destinations,
  field = FIELDS.address,
): string {
  const allow = { testNetworks: settings.mode === 'sandbox' }
  const canonical = canonicalAddress(crypto_network, destination_address, allow)
  if (canonical === undefined)
    throw problem.unsupportedAddress(
      field,
      { destination_address, crypto_network },
      { fault: addressFault(crypto_network, destination_address, allow) },
    )
  if (settings.mode === 'live' && magicOutcome(crypto_network, canonical) !== undefined)
    throw problem.unsupportedAddress(
      field,
      { destination_address, crypto_network },
      { refused: 'it is a magic address of the sandbox, for which no private key exists' },
    )
  const why =
    addressRefusal(crypto_network, { address: canonical, asset }) ??
    networks.get(crypto_network)?.refusesDestination?.(canonical)
  if (why !== undefined)
    throw problem.unsupportedAddress(field, { destination_address, crypto_network }, { refused: why })
  return canonical
}

/** Finds an asset's listing on a network. Throws bad-request for an unknown asset, or unsupported-network. */
export function listedOn(symbol: string, crypto_network: CryptoNetwork, field = FIELDS.network): ListedAsset {
  const asset = findAsset(symbol)
  if (asset === undefined) throw problem.badRequest(`asset ${symbol} is unknown`, 'asset')
  const listing = asset.networks[crypto_network]
  if (listing === undefined) {
    const supported = Object.keys(asset.networks)
    throw problem.unsupportedNetwork(field, { asset: asset.symbol, crypto_network, supported })
  }
  return { asset, listing }
}

/** Returns the decimals that both the ledger and the network can represent. */
export const decimalsOfListed = ({ asset, listing }: ListedAsset): number =>
  Math.min(asset.decimals, listing.decimals)

/**
 * Checks everything that needs no records, in the contract's order: amount or total, asset, network, address,
 * precision. Throws as `listedAt` does, bad-request or exceed-precision (API behaviour, Order of checks).
 */
export function termsOf(request: WithdrawalRequest, context: Destinations): WithdrawalTerms {
  const { field, asked } = amountOrTotal(request)
  const route = listedAt(request, context)
  const { asset } = route
  const decimals = decimalsOfListed(route)
  const exact = minorUnits(field, asked, { asset: asset.symbol, decimals })
  const minor = decimals === asset.decimals ? exact : parseAmount(asked, asset.decimals)!
  return { asset, listing: route.listing, asked: { field, minor } }
}

/**
 * Returns the requested field and its text. Throws bad-request unless exactly one of amount and total is given (API
 * behaviour, Crypto withdrawals).
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
    throw problem.badRequest('exactly one of amount and total must be given, not both', 'amount', 'total')
  }
  if (amount !== undefined) return { field: 'amount', asked: amount }
  if (total !== undefined) return { field: 'total', asked: total }
  throw problem.badRequest('exactly one of amount and total must be given', 'amount', 'total')
}

/** What a listing charges and allows, in minor units: the same for each request. */
export const LIMITS = new Map(
  ASSETS.flatMap(({ decimals, networks }) =>
    Object.values(networks).map((listing) => {
      const { fee, minimum, maximum } = listing
      const [feeMinor, least, most] = [fee, minimum, maximum].map((text) => parseAmount(text, decimals)!)
      return [listing, { fee: feeMinor!, least: least!, most: most! }] as const
    }),
  ),
)

/**
 * Computes amount, fee and total of a request at this fee. Throws below-min-withdraw-limit or
 * exceed-max-withdraw-limit; a total that does not exceed the fee is below the minimum. `field` is the client's name
 * for the requested amount, where it differs.
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
  const { least, most } = LIMITS.get(listing)!
  if (amounts.amount >= least && amounts.amount <= most) return amounts
  const { minimum, maximum } = listing
  const what =
    asked.field === 'amount' ? field : `${field} less the fee of ${formatAmount(fee, asset.decimals)}`
  // A total that is less than the fee would send nothing.
  const amount = formatAmount(amounts.amount < 0n ? 0n : amounts.amount, asset.decimals)
  throw amounts.amount < least
    ? problem.belowMinimum(field, { asset: asset.symbol, minimum, amount }, what)
    : problem.aboveMaximum(field, { asset: asset.symbol, maximum, amount }, what)
}

/** The request's fields that are copied to the withdrawal's record. */
type CryptoWithdrawalRequest = Pick<Transfer, 'profile_id'> &
  Partial<Pick<Transfer, 'identity_id' | 'account_id' | 'ref_id' | 'group_id' | 'memo' | 'metadata'>> & {
    destination_address: string
    crypto_network: CryptoNetwork
    beneficiary?: Record<string, unknown>
  }

interface AcceptedRequest {
  terms: WithdrawalTerms
  amounts: Amounts
  /** The debited balance: the withdrawal's asset, or an asset that converts to it. */
  balanceAsset: string
  view: Pick<View, 'now' | 'newId'>
  prices: UsdPrices
}

/**
 * Builds the record and entries: profile -total, in flight +amount, fees +fee (ARCHITECTURE, "Life of a withdrawal").
 */
export function cryptoWithdrawal(
  customerId: string,
  asked: CryptoWithdrawalRequest,
  { terms: { asset }, amounts, balanceAsset, view, prices }: AcceptedRequest,
): Decision {
  const { amount, fee, total } = amounts
  // One object shape for all withdrawals: absent fields are undefined, which neither the wire nor the database shows.
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
