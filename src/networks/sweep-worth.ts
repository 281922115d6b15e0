import { parseAmount } from '../contract/assets/amount.ts'
import { ASSETS, NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { UsdPrices } from '../contract/assets/usd-value.ts'
import { PERCENT_DECIMALS } from './section.ts'

/** When sweeping a deposit address is worth its network fee. */

export interface SweepWorthConfig {
  /** The most that a sweep may cost, in percent of the value it moves. */
  sweepCostMax?: string | undefined
  /** By asset, the amount from which on it is swept at any cost. */
  sweepMinimum?: Record<string, string> | undefined
}

export interface SweepWorth {
  /** The most that a sweep may cost, in millionths of the amount that it moves. */
  costMax: bigint
  /** By asset, in units of the chain: an amount from this one on is swept at any cost. */
  minimum: ReadonlyMap<string, bigint>
}

/** The decimals of an asset on the chain; undefined where the network does not have it. */
type DecimalsOn = (asset: string) => number | undefined

const COST_MAX_PERCENT = '5'
const WHOLE = 100n * 10n ** BigInt(PERCENT_DECIMALS)

/** Reads the settings of a network. Throws an Error that names the field and the rule. */
export function sweepWorthOf(
  network: CryptoNetwork,
  decimalsOn: DecimalsOn,
  { sweepCostMax = COST_MAX_PERCENT, sweepMinimum = {} }: SweepWorthConfig,
): SweepWorth {
  const costMax = parseAmount(sweepCostMax, PERCENT_DECIMALS)
  if (costMax === undefined || costMax === 0n)
    throw new Error(`sweep_cost_max must be above 0 and have at most ${PERCENT_DECIMALS} decimals`)
  const minimum = new Map<string, bigint>()
  for (const [asset, amount] of Object.entries(sweepMinimum)) {
    const decimals = decimalsOn(asset)
    if (decimals === undefined) throw new Error(`sweep_minimum.${asset}: ${network} has no such asset`)
    const units = parseAmount(amount, decimals)
    if (units === undefined || units === 0n)
      throw new Error(`sweep_minimum.${asset} must be above 0 and within the asset's decimals`)
    minimum.set(asset, units)
  }
  return { costMax, minimum }
}

/**
 * The least amount of an asset that is worth a network fee of `cost`, in units of the chain: the section's `sweep_minimum`, or
 * the amount that keeps the cost within `sweep_cost_max`, and the smallest withdrawal at least. Undefined where the price of the
 * asset or of the network's own is missing.
 */
export function leastWorth(
  network: CryptoNetwork,
  { costMax, minimum }: SweepWorth,
  decimalsOn: (asset: string) => number,
  prices: UsdPrices,
  asset: string,
  cost: bigint,
): bigint | undefined {
  const given = minimum.get(asset)
  if (given !== undefined) return given
  const { gasAsset } = NETWORKS[network]
  const [ofGas, ofAsset] = asset === gasAsset ? [1n, 1n] : [prices.get(gasAsset), prices.get(asset)]
  if (ofGas === undefined || ofAsset === undefined) return undefined
  const scale = (of: string) => 10n ** BigInt(decimalsOn(of))
  const value = ceilDivide(cost * ofGas * scale(asset), ofAsset * scale(gasAsset))
  const least = ceilDivide(value * WHOLE, costMax)
  const smallest = parseAmount(
    ASSETS.find(({ symbol }) => symbol === asset)!.networks[network]!.minimum,
    decimalsOn(asset),
  )!
  return least > smallest ? least : smallest
}

const ceilDivide = (a: bigint, b: bigint) => (a + b - 1n) / b
