import { formatAmount } from './amount.ts'
import { ASSETS, decimalsOf, type Asset } from './catalogue.ts'

/** The USD price of one whole unit of each asset, times 10^18, by symbol. Assets without a price are absent. */
export type UsdPrices = ReadonlyMap<string, bigint>

export const PRICE_DECIMALS = 18
/** Decimals of USD amounts in words: cents. */
export const CENT_DECIMALS = 2
const DECIMALS_MAX = Math.max(...ASSETS.map(({ decimals }) => decimals))
/** By the decimals of an asset: what an amount in minor units times its price is divided by to get cents. */
const CENTS_OF = Array.from(
  { length: DECIMALS_MAX + 1 },
  (_, decimals) => 10n ** BigInt(decimals + PRICE_DECIMALS - CENT_DECIMALS),
)

/**
 * Computes the USD value of an amount in minor units, in cents rounded down (API behaviour, Transfers). Undefined
 * without a price.
 */
export function notionalUsd(minor: bigint, asset: Asset, prices: UsdPrices): string | undefined {
  const price = prices.get(asset.symbol)
  if (price === undefined) return undefined
  return formatAmount((minor * price) / CENTS_OF[asset.decimals]!, CENT_DECIMALS)
}

/** Decimals of a converted value, and of the USD amounts that limits count. More would serve no purpose. */
export const VALUE_DECIMALS = 8

/**
 * Converts minor units of one asset to minor units of another at these prices, rounded up to eight decimals. Undefined
 * unless both have a price.
 */
export function valueIn(
  to: string,
  { asset, minor }: { asset: string; minor: bigint },
  prices: UsdPrices,
): bigint | undefined {
  if (asset === to) return minor
  const [price, toPrice] = [prices.get(asset), prices.get(to)]
  if (price === undefined || toPrice === undefined) return undefined
  const decimals = Math.min(decimalsOf(to), VALUE_DECIMALS)
  const numerator = minor * price * 10n ** BigInt(decimals)
  const denominator = toPrice * 10n ** BigInt(decimalsOf(asset))
  const value = (numerator + denominator - 1n) / denominator
  return value * 10n ** BigInt(decimalsOf(to) - decimals)
}
