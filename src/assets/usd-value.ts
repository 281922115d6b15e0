import { formatAmount } from './amount.ts'
import type { Asset } from './catalogue.ts'

/** What a whole unit of each asset is worth in USD, by its ticker, times 10^18. What has no price is not there. */
export type UsdPrices = ReadonlyMap<string, bigint>

/** Of the prices. */
export const PRICE_DECIMALS = 18
const CENT_DECIMALS = 2

/**
 * USD value of an amount in minor units, in cents rounded down (API behaviour, Transfers); undefined where there is no
 * price.
 */
export function notionalUsd(minor: bigint, asset: Asset, prices: UsdPrices): string | undefined {
  const price = prices.get(asset.symbol)
  if (price === undefined) return undefined
  const scale = 10n ** BigInt(asset.decimals + PRICE_DECIMALS - CENT_DECIMALS)
  return formatAmount((minor * price) / scale, CENT_DECIMALS)
}
