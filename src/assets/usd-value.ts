import { formatAmount } from './amount.ts'
import type { Asset } from './catalogue.ts'

/** The USD price of one whole unit of each asset, times 10^18, by symbol. Assets without a price are absent. */
export type UsdPrices = ReadonlyMap<string, bigint>

/** Decimals of the prices. */
export const PRICE_DECIMALS = 18
const CENT_DECIMALS = 2

/**
 * Computes the USD value of an amount in minor units, in cents rounded down (API behaviour, Transfers). Undefined
 * without a price.
 */
export function notionalUsd(minor: bigint, asset: Asset, prices: UsdPrices): string | undefined {
  const price = prices.get(asset.symbol)
  if (price === undefined) return undefined
  const scale = 10n ** BigInt(asset.decimals + PRICE_DECIMALS - CENT_DECIMALS)
  return formatAmount((minor * price) / scale, CENT_DECIMALS)
}
