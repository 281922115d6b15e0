import { parseGwei } from 'viem/utils'
import { NETWORKS, type CryptoNetwork } from '../../../src/contract/assets/catalogue.ts'
import type { UsdPrices } from '../../../src/contract/assets/usd-value.ts'
import { leastWorth, sweepWorthOf, type SweepWorthConfig } from '../../../src/networks/sweep-worth.ts'
import { decimalsOn, type EvmChain, type SweepTerms, type Token } from '../chain.ts'
import type { Fees } from '../fees.ts'

/** The settings in a network's section that decide when sweeping is worth its network fee. */
export interface SweepConfig extends SweepWorthConfig {
  /** The most that is offered for a unit of gas of a sweep, in gwei. The withdrawals' ceiling unless given. */
  sweepFeeCeiling?: string | undefined
}

/** The sweep terms of a network's settings. Throws an Error that names the field and the rule. */
export function sweepTermsOf(
  network: CryptoNetwork,
  tokens: ReadonlyMap<string, Token>,
  feeCeiling: bigint,
  { sweepFeeCeiling, ...config }: SweepConfig,
): SweepTerms {
  const { gasAsset } = NETWORKS[network]
  const decimals = (asset: string) =>
    asset === gasAsset || tokens.has(asset) ? decimalsOn({ tokens, gasAsset }, asset) : undefined
  return {
    ...sweepWorthOf(network, decimals, config),
    feeCeiling: sweepFeeCeiling === undefined ? feeCeiling : parseGwei(sweepFeeCeiling),
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

/** The least amount of an asset that is worth a network fee of `cost` wei (`leastWorth`). */
export const leastWorthSweeping = (
  chain: EvmChain,
  prices: UsdPrices,
  asset: string,
  cost: bigint,
): bigint | undefined =>
  leastWorth(chain.network, chain.sweeps, (symbol) => decimalsOn(chain, symbol), prices, asset, cost)
