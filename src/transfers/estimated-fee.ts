import { parseAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import type { Queryable } from '../db/database.ts'
import { problem } from '../http/problems.ts'
import { decimalsOfRoute, type Route } from '../ledger/movements/crypto-withdrawal.ts'
import { newestUsdPrices, type UsdPrices } from '../ledger/usd-prices.ts'
import { FEE_MARGIN_DECIMALS, type NetworkAdapter, type NetworkFee } from '../networks/networks.ts'
import { NodeFailure } from '../networks/node-failure.ts'

/** What is paid from USD is whole cents (spec 4.1, balance_asset). */
const CENT_DECIMALS = 2

/**
 * What a withdrawal costs on a real network now, in minor units of the asset withdrawn: the node's estimate and the
 * network's margin, rounded up. Undefined where the network's fees are paid in an asset that has no price in this one.
 * Throws unavailable when the node does not answer.
 */
export async function estimatedFee(
  db: Queryable,
  route: Route,
  adapter: NetworkAdapter,
  sandbox: boolean,
): Promise<bigint | undefined> {
  const { symbol } = route.asset
  const cost = await adapter.estimateFee!(symbol).catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
    throw problem.unavailable('the network cannot be asked for its fees now; try again', error)
  })
  const prices = cost.asset === symbol ? new Map([[symbol, 1n]]) : await newestUsdPrices(db, sandbox)
  return feeFor(cost, adapter.feeMargin ?? '0', route, prices)
}

/** The same by these prices. */
export function feeFor(
  cost: NetworkFee,
  margin: string,
  { asset, carried }: Route,
  prices: UsdPrices,
): bigint | undefined {
  const [costPrice, price] = [prices.get(cost.asset), prices.get(asset.symbol)]
  if (costPrice === undefined || price === undefined) return undefined
  const route = decimalsOfRoute({ asset, carried })
  const decimals = asset.platformStablecoin ? Math.min(route, CENT_DECIMALS) : route
  const whole = 100n * 10n ** BigInt(FEE_MARGIN_DECIMALS)
  const charged =
    parseAmount(cost.amount, decimalsOf(cost.asset))! * (whole + parseAmount(margin, FEE_MARGIN_DECIMALS)!)
  const numerator = charged * costPrice * 10n ** BigInt(decimals)
  const denominator = whole * price * 10n ** BigInt(decimalsOf(cost.asset))
  const fee = (numerator + denominator - 1n) / denominator
  return fee * 10n ** BigInt(asset.decimals - decimals)
}
