import { parseAmount } from '../assets/amount.ts'
import { decimalsOf, findAsset, type Asset } from '../assets/catalogue.ts'
import type { Queryable } from '../db/database.ts'
import { problem } from '../http/problems.ts'
import { decimalsOfRoute, type Route } from '../ledger/movements/crypto-withdrawal.ts'
import type { NetworkAdapter, NetworkFee } from '../networks/networks.ts'
import { NodeFailure } from '../networks/node-failure.ts'

/** Older prices of market history are none: a fee by them would be one of another day. */
const PRICE_AGE_MAX_MINUTES = 1_440
const PRICE_DECIMALS = 18
/** Of a margin, in percent. */
export const MARGIN_DECIMALS = 4
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
  const prices =
    cost.asset === symbol
      ? new Map([[symbol, 1n]])
      : await pricesInUsd(db, [findAsset(cost.asset)!, route.asset], sandbox)
  return feeFor(cost, adapter.feeMargin ?? '0', route, prices)
}

/** The same by these prices, each of one whole asset. */
export function feeFor(
  cost: NetworkFee,
  margin: string,
  { asset, carried }: Route,
  prices: ReadonlyMap<string, bigint>,
): bigint | undefined {
  const [costPrice, price] = [prices.get(cost.asset), prices.get(asset.symbol)]
  if (costPrice === undefined || price === undefined) return undefined
  const route = decimalsOfRoute({ asset, carried })
  const decimals = asset.platformStablecoin ? Math.min(route, CENT_DECIMALS) : route
  const whole = 100n * 10n ** BigInt(MARGIN_DECIMALS)
  const charged =
    parseAmount(cost.amount, decimalsOf(cost.asset))! * (whole + parseAmount(margin, MARGIN_DECIMALS)!)
  const numerator = charged * costPrice * 10n ** BigInt(decimals)
  const denominator = whole * price * 10n ** BigInt(decimalsOf(cost.asset))
  const fee = (numerator + denominator - 1n) / denominator
  return fee * 10n ** BigInt(asset.decimals - decimals)
}

/**
 * The newest prices of market history in USD; platform stablecoins are worth one. In the sandbox simulated prices count
 * too, and the catalogue's are the last resort. What has no price is not there.
 */
async function pricesInUsd(
  db: Queryable,
  assets: readonly Asset[],
  sandbox: boolean,
): Promise<Map<string, bigint>> {
  const { rows } = await db.query<{ market: string; price: string }>(
    `
    select m.market, round(p.price, ${PRICE_DECIMALS}) as price
    from markets m
    cross join lateral (
      select price
      from price_minutes
      where market_id = m.id and minute >= extract(epoch from clock_timestamp())::bigint / 60 - ${PRICE_AGE_MAX_MINUTES}
      order by minute desc
      limit 1
    ) p
    where m.market = any ($1::text[]) and (m.source = 'REAL' or $2)`,
    [assets.map(({ symbol }) => `${symbol}USD`), sandbox],
  )
  const known = new Map(rows.map(({ market, price }) => [market, price]))
  return new Map(
    assets.flatMap(({ symbol, platformStablecoin, sandboxPriceUsd }) => {
      const text = platformStablecoin
        ? '1'
        : (known.get(`${symbol}USD`) ?? (sandbox ? sandboxPriceUsd : undefined))
      const price = text === undefined ? 0n : parseAmount(text, PRICE_DECIMALS)!
      return price === 0n ? [] : [[symbol, price] as const]
    }),
  )
}
