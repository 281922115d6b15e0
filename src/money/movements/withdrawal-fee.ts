import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { FEE_QUOTES, type FeeQuote } from '../records/fee-quotes.ts'
import type { View } from './decision.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { Problem, problem } from '../../contract/problems.ts'
import {
  decimalsOfListed,
  type Destinations,
  listedAt,
  LIMITS,
  type ListedAsset,
  type WithdrawalTerms,
  type WithdrawalRequest,
} from './crypto-withdrawal.ts'
import type { Orchestration } from '../records/orchestration.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { newestUsdPrices, usdPrices } from '../records/usd-prices.ts'
import { FEE_MARGIN_DECIMALS, type NetworkAdapter, type Networks } from '../../networks/network.ts'
import { type NetworkFee } from '../../networks/moved-on-chain.ts'
import { DestinationRefused, NodeFailure } from '../../networks/node-failure.ts'

/**
 * The fee of a withdrawal: that of its quote, or else that of the schedule, which must cover what the network costs now. Estimates are
 * made for quotes, and to look whether the schedule covers them.
 */

/** Fees of withdrawals paid from USD are whole cents (API behaviour, Crypto withdrawals). */
const CENT_DECIMALS = 2

/** Returns the fee of the network's schedule, in minor units. */
export const scheduledFee = ({ listing }: WithdrawalTerms): bigint => LIMITS.get(listing)!.fee

/** Returns the guaranteed fee if the quote is valid for this withdrawal; throws otherwise. */
export function quotedFee(
  body: WithdrawalRequest & { fee_id?: string },
  terms: WithdrawalTerms,
  view: View,
): bigint {
  const fee_id = body.fee_id!
  const quote = view.get(FEE_QUOTES, fee_id)
  if (quote === undefined) throw problem.notFound('fee quote', fee_id)
  if (quote.transfer_id !== null)
    throw problem.expired('the fee quote was used by another withdrawal', { fee_id })
  if (quote.expires_at <= view.now.text)
    throw problem.expired(`the fee quote expired at ${quote.expires_at}`, {
      fee_id,
      expired_at: quote.expires_at,
    })
  const wrong = (field: string) => problem.badRequest(`fee_id is a quote for another ${field}`, 'fee_id')
  if (quote.asset !== body.asset) throw wrong('asset')
  if (quote.crypto_network !== body.crypto_network) throw wrong('crypto_network')
  if (addressKey(quote) !== addressKey(body)) throw wrong('destination_address')

  const fee = parseAmount(quote.fee, terms.asset.decimals)!
  const asked = terms.asked.field === 'amount' ? terms.asked.minor : terms.asked.minor - fee
  if (asked > quotedAmount(quote, fee, terms)) throw wrong('amount: this withdrawal is larger')
  return fee
}

const quotedAmount = (quote: FeeQuote, fee: bigint, { asset }: WithdrawalTerms): bigint =>
  quote.amount === null
    ? parseAmount(quote.total!, asset.decimals)! - fee
    : parseAmount(quote.amount, asset.decimals)!

/** Returns the canonical spelling of the destination, because a destination has several. */
const addressKey = ({
  crypto_network,
  destination_address,
}: {
  crypto_network: string
  destination_address: string
}) => canonicalAddress(crypto_network as CryptoNetwork, destination_address, { testNetworks: true })

/** How long an estimate for a destination is reused. Base fees change by up to an eighth per block. */
const FRESH_MS = 10_000
/** Longest wait of a withdrawal without a quote for its estimate. */
const WAIT_MS_MAX = 2_000
/** Most cached destinations per network. */
const REMEMBERED_MAX = 1_000

/** The estimate of each asset and destination, pending or resolved, with its start time; by network. */
const estimates = new WeakMap<NetworkAdapter, Map<string, { since: number; cost: Promise<NetworkFee> }>>()

/**
 * Returns the node's estimate for a destination, at most `ageMsMax` old. All callers share it, so that a queue of
 * withdrawals costs the node little.
 */
function costTo(
  adapter: NetworkAdapter,
  asset: string,
  destination: string,
  ageMsMax: number,
): Promise<NetworkFee> {
  const known = estimates.get(adapter) ?? new Map<string, { since: number; cost: Promise<NetworkFee> }>()
  estimates.set(adapter, known)
  const [key, now] = [`${asset} ${destination}`, performance.now()]
  const fresh = known.get(key)
  if (fresh !== undefined && now - fresh.since < ageMsMax) return fresh.cost
  const [oldest] = known.keys()
  if (known.size >= REMEMBERED_MAX && oldest !== undefined) known.delete(oldest)
  known.delete(key)
  const cost = adapter.estimateFee!(asset, destination)
  known.set(key, { since: now, cost })
  return cost
}

/**
 * Estimates the cost of a withdrawal to a destination on a real network now, in minor units of the withdrawn asset:
 * the node's estimate plus the network's margin, rounded up. Undefined where no price converts the fee's asset to the
 * withdrawn asset. Throws unavailable when the node does not answer, and unsupported-address for a destination that
 * the network refuses.
 */
export async function estimatedFee(
  db: Queryable,
  adapter: NetworkAdapter,
  { route, where: { crypto_network, destination_address }, sandbox }: Asked,
  { margin = adapter.feeMargin ?? '0', ageMsMax = 0 } = {},
): Promise<bigint | undefined> {
  const { symbol } = route.asset
  const cost = await costTo(adapter, symbol, destination_address, ageMsMax).catch((error: unknown) => {
    if (error instanceof DestinationRefused)
      throw problem.unsupportedAddress(
        'destination_address',
        { destination_address, crypto_network },
        { refused: error.message },
      )
    if (!(error instanceof NodeFailure)) throw error
    throw problem.unavailable('the fees of the network are not available now; try again', error)
  })
  const prices =
    cost.asset === symbol
      ? new Map([[symbol, 1n]])
      : await (ageMsMax === 0 ? newestUsdPrices : usdPrices)(db, sandbox)
  return feeFor(cost, margin, route, prices)
}

type Where = Pick<WithdrawalRequest, 'crypto_network' | 'destination_address'>

/** The withdrawal whose cost is asked for. In a sandbox its asset may have a simulated price. */
interface Asked {
  route: ListedAsset
  where: Where
  sandbox: boolean
}

/**
 * Estimates the network's own cost of a withdrawal without a quote, in minor units of the withdrawn asset, without
 * the margin. Undefined where it is unknown: on a simulated network, without prices, or when the node does not answer
 * within WAIT_MS_MAX. Then the scheduled fee applies, because a node failure must not stop withdrawals from being
 * accepted. Throws unsupported-address for a destination that the network refuses.
 */
export async function networkCost(
  db: Queryable,
  networks: Networks,
  asked: Asked,
  margin = '0',
): Promise<bigint | undefined> {
  const adapter = networks.get(asked.where.crypto_network)
  if (adapter?.estimateFee === undefined) return undefined
  const tooLong = new AbortController()
  const limit = pause(WAIT_MS_MAX, undefined, { signal: tooLong.signal }).catch(() => undefined)
  const estimate = estimatedFee(db, adapter, asked, { margin, ageMsMax: FRESH_MS }).catch(
    (error: unknown) => {
      if (error instanceof Problem && error.slug === 'unavailable') return undefined
      throw error
    },
  )
  return Promise.race([estimate, limit]).finally(() => tooLong.abort())
}

/**
 * Estimates the network's own cost of an orchestration's payout: `networkCost` with the margin, since an
 * orchestration cannot name a quote. Returns the problem for a refused destination, and 0 where there is nothing to
 * estimate.
 */
export async function payoutCost(
  db: Queryable,
  { destination_asset, destination: { crypto } }: Pick<Orchestration, 'destination_asset' | 'destination'>,
  { networks, settings }: Destinations,
): Promise<bigint | Problem> {
  if (crypto === undefined || networks.get(crypto.network)?.estimateFee === undefined) return 0n
  const where = { crypto_network: crypto.network, destination_address: crypto.address }
  try {
    const route = listedAt({ asset: destination_asset, ...where }, { networks, settings })
    const margin = networks.get(crypto.network)!.feeMargin
    const asked = { route, where, sandbox: settings.mode === 'sandbox' }
    return (await networkCost(db, networks, asked, margin)) ?? 0n
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return error.slug === 'unsupported-address' ? error.at('destination.crypto.address') : error
  }
}

/**
 * Throws bad-request when the scheduled fee does not cover the network's own cost for this destination. The client is
 * not charged a fee that it has not seen, and the platform does not pay the difference. A fee quote covers the cost.
 */
export function requireFeeCovers(
  cost: bigint | undefined,
  terms: WithdrawalTerms,
  { crypto_network }: Where,
): void {
  const fee = scheduledFee(terms)
  if (cost === undefined || cost <= fee) return
  const { symbol, decimals } = terms.asset
  const text = (minor: bigint) => `${formatAmount(minor, decimals)} ${symbol}`
  throw problem.badRequest(
    `fee_id must be given: the fee of ${text(fee)} does not cover the ${text(cost)} that ${crypto_network} costs now for ` +
      'this destination; POST /v2/transfer/fees/crypto-withdrawal quotes a fee that does',
    'fee_id',
  )
}

/**
 * Converts a network's cost to a fee in the withdrawn asset, with the margin, at these prices; undefined without a
 * price.
 */
function feeFor(
  cost: NetworkFee,
  margin: string,
  { asset, listing }: ListedAsset,
  prices: UsdPrices,
): bigint | undefined {
  const [costPrice, price] = [prices.get(cost.asset), prices.get(asset.symbol)]
  if (costPrice === undefined || price === undefined) return undefined
  const route = decimalsOfListed({ asset, listing })
  const decimals = asset.platformStablecoin ? Math.min(route, CENT_DECIMALS) : route
  const whole = 100n * 10n ** BigInt(FEE_MARGIN_DECIMALS)
  const charged =
    parseAmount(cost.amount, decimalsOf(cost.asset))! * (whole + parseAmount(margin, FEE_MARGIN_DECIMALS)!)
  const numerator = charged * costPrice * 10n ** BigInt(decimals)
  const denominator = whole * price * 10n ** BigInt(decimalsOf(cost.asset))
  const fee = (numerator + denominator - 1n) / denominator
  return fee * 10n ** BigInt(asset.decimals - decimals)
}
