import { parseAmount } from '../../contract/assets/amount.ts'
import { ASSETS } from '../../contract/assets/catalogue.ts'
import { PRICE_DECIMALS, type UsdPrices } from '../../contract/assets/usd-value.ts'
import type { Queryable } from '../../db/database.ts'
import { keptFor } from '../../db/kept.ts'
import { ownRowMacs, sealOf, type Seal } from './row-macs.ts'

/** Older prices of market history are ignored: a value computed from them would be out of date. */
const PRICE_AGE_MAX_MINUTES = 1_440
/** Prices are per minute, so a cache of this age saves a query for each transfer. */
const KEPT_MS = 10_000

const livePrices = keptFor(KEPT_MS, (db) => newestUsdPrices(db, false))
const sandboxPrices = keptFor(KEPT_MS, (db) => newestUsdPrices(db, true))

/** Returns the newest prices, at most ten seconds old. Throws when they cannot be read. */
export const usdPrices = (db: Queryable, sandbox: boolean): Promise<UsdPrices> =>
  sandbox ? sandboxPrices(db) : livePrices(db)

/**
 * Reads the newest real prices, each with its MAC; platform stablecoins are worth one USD. In the sandbox simulated prices
 * count too, with the catalogue's reference prices as the last resort. Older prices than `ageMaxMinutes` are ignored, and so are
 * those that no Bursar with the master key wrote. With `at`, the prices are those of market history at that time, which have no
 * MAC: nothing may be decided by them.
 */
export async function newestUsdPrices(
  db: Queryable,
  sandbox: boolean,
  { ageMaxMinutes = PRICE_AGE_MAX_MINUTES, at }: { ageMaxMinutes?: number; at?: string } = {},
): Promise<UsdPrices> {
  const { rows } = await db.query<{ market: string; price: string; is_sealed: boolean } & Seal>(
    `
    select r.market, round(p.price, ${PRICE_DECIMALS}) as price, is_sealed, ${sealOf('markets')}
    from markets r
    cross join (select extract(epoch from coalesce($4::timestamptz, clock_timestamp()))::bigint / 60 as minute) wanted
    cross join lateral (
      select r.source = 'REAL' and $4::timestamptz is null as is_sealed
    ) kind
    cross join lateral (
      select newest_price as price
      where is_sealed and r.newest_minute between wanted.minute - $3 and wanted.minute
      union all
      (select price
       from price_minutes
       where not is_sealed and market_id = r.id and minute between wanted.minute - $3 and wanted.minute
       order by minute desc
       limit 1)
    ) p
    where r.market = any ($1::text[]) and (r.source = 'REAL' or $2)`,
    [ASSETS.map(({ symbol }) => `${symbol}USD`), sandbox, ageMaxMinutes, at],
  )
  const macs = await ownRowMacs()
  const known = new Map(
    rows
      .filter(({ is_sealed, market, ...seal }) => !is_sealed || macs.isGenuine('markets', market, seal))
      .map(({ market, price }) => [market, price]),
  )
  return new Map(
    ASSETS.flatMap(({ symbol, platformStablecoin, sandboxPriceUsd }) => {
      const text = platformStablecoin
        ? '1'
        : (known.get(`${symbol}USD`) ?? (sandbox ? sandboxPriceUsd : undefined))
      const price = text === undefined ? 0n : parseAmount(text, PRICE_DECIMALS)!
      return price === 0n ? [] : [[symbol, price] as const]
    }),
  )
}
