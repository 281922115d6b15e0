import { parseGwei } from 'viem/utils'
import { parseAmount } from '../../../contract/assets/amount.ts'
import { ASSETS, NETWORKS, type CryptoNetwork } from '../../../contract/assets/catalogue.ts'
import { PERCENT_DECIMALS } from '../../network-sections.ts'
import { decimalsOn, isNative, onChain, type EvmChain, type SweepTerms, type Token } from '../chain.ts'
import type { Fees } from '../fees.ts'
import type { UsdPrices } from '../../../contract/assets/usd-value.ts'

/** The settings in a network's section that decide when sweeping is worth its network fee. */
export interface SweepConfig {
  /** The most that a sweep may cost, in percent of the value it moves. */
  sweepCostMax?: string | undefined
  /** The most that is offered for a unit of gas of a sweep, in gwei. The withdrawals' ceiling unless given. */
  sweepFeeCeiling?: string | undefined
  /** By asset, the amount from which on it is swept at any cost. */
  sweepMinimum?: Record<string, string> | undefined
}

const COST_MAX_PERCENT = '5'
const WHOLE = 100n * 10n ** BigInt(PERCENT_DECIMALS)

/** The sweep terms of a network's settings. Throws an Error that names the field and the rule. */
export function sweepTermsOf(
  network: CryptoNetwork,
  tokens: ReadonlyMap<string, Token>,
  feeCeiling: bigint,
  { sweepCostMax = COST_MAX_PERCENT, sweepFeeCeiling, sweepMinimum = {} }: SweepConfig,
): SweepTerms {
  const { gasAsset } = NETWORKS[network]
  const costMax = parseAmount(sweepCostMax, PERCENT_DECIMALS)
  if (costMax === undefined || costMax === 0n)
    throw new Error(`sweep_cost_max must be above 0 and have at most ${PERCENT_DECIMALS} decimals`)
  const minimum = new Map<string, bigint>()
  for (const [asset, amount] of Object.entries(sweepMinimum)) {
    if (asset !== gasAsset && !tokens.has(asset))
      throw new Error(`sweep_minimum.${asset}: ${network} has no such asset`)
    const units = parseAmount(amount, decimalsOn({ tokens, gasAsset }, asset))
    if (units === undefined || units === 0n)
      throw new Error(`sweep_minimum.${asset} must be above 0 and within the asset's decimals`)
    minimum.set(asset, units)
  }
  return {
    costMax,
    feeCeiling: sweepFeeCeiling === undefined ? feeCeiling : parseGwei(sweepFeeCeiling),
    minimum,
  }
}

/**
 * The price of a unit of gas of a sweep, in wei: the current price with room for the base fee to rise by a quarter (two
 * full blocks). A sweep pays all that it offers, so that no gas is left at the address.
 */
export function sweepGasPrice({ sweeps }: EvmChain, { current, tip }: Fees): bigint {
  const roomy = current + (current - tip) / 4n
  return roomy < sweeps.feeCeiling ? roomy : sweeps.feeCeiling
}

/**
 * The least amount of an asset that is worth a network fee of `cost` wei, in units of the chain: the section's
 * `sweep_minimum`, or the amount that keeps the cost within `sweep_cost_max`, and the smallest withdrawal at least.
 * Undefined where the price of the asset or of gas is missing.
 */
export function leastWorthSweeping(
  chain: EvmChain,
  prices: UsdPrices,
  asset: string,
  cost: bigint,
): bigint | undefined {
  const given = chain.sweeps.minimum.get(asset)
  if (given !== undefined) return given
  const value = isNative(chain, asset) ? cost : inUnitsOf(chain, prices, asset, cost)
  if (value === undefined) return undefined
  const least = ceilDivide(value * WHOLE, chain.sweeps.costMax)
  const { minimum } = ASSETS.find(({ symbol }) => symbol === asset)!.networks[chain.network]!
  const smallest = onChain(chain, asset, minimum)
  return least > smallest ? least : smallest
}

/** The value of `wei` of the gas asset in units of another asset, rounded up. */
function inUnitsOf(chain: EvmChain, prices: UsdPrices, asset: string, wei: bigint): bigint | undefined {
  const [ofGas, ofAsset] = [prices.get(chain.gasAsset), prices.get(asset)]
  if (ofGas === undefined || ofAsset === undefined) return undefined
  const scale = (of: string) => 10n ** BigInt(decimalsOn(chain, of))
  return ceilDivide(wei * ofGas * scale(asset), ofAsset * scale(chain.gasAsset))
}

const ceilDivide = (a: bigint, b: bigint) => (a + b - 1n) / b
