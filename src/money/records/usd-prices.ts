import { parseAmount } from '../../contract/assets/amount.ts'
import { simulatedPrice } from '../../contract/assets/simulated-price.ts'
import { ASSETS } from '../../contract/assets/catalogue.ts'
import { PRICE_DECIMALS, type UsdPrices } from '../../contract/assets/usd-value.ts'
import { forAll, type Queryable } from '../../db/database.ts'
import { keptFor } from '../../db/kept.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'

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
 * Reads the newest real prices, each with its MAC; platform stablecoins are worth one USD. In the sandbox the prices of
 * simulated markets count too, with the catalogue's reference prices as the last resort. Prices older than `ageMaxMinutes`
 * are ignored, and so are prices that no Bursar with the master key wrote. With `at`, the prices are those of market history
 * at that time. They have no MAC: nothing may be decided by them.
 */
export async function newestUsdPrices(
  db: Queryable,
  sandbox: boolean,
  { ageMaxMinutes = PRICE_AGE_MAX_MINUTES, at }: { ageMaxMinutes?: number; at?: string } = {},
): Promise<UsdPrices> {
  const { rows } = await forAll(db).query<PriceRow>(
    `
    select r.market, round(p.price, ${PRICE_DECIMALS}) as price, is_sealed, ${sealOf('markets')},
           case when r.source = 'SIMULATED' then least(wanted.minute, now.minute - 1)::integer end as simulated_minute
    from markets r
    cross join (select floor(extract(epoch from clock_timestamp()) / 60)::bigint as minute) now
    cross join lateral (
      select coalesce(floor(extract(epoch from $4::timestamptz) / 60)::bigint, now.minute) as minute
    ) wanted
    cross join lateral (
      select r.source = 'REAL' and $4::timestamptz is null as is_sealed
    ) kind
    left join lateral (
      select newest_price as price
      where is_sealed and r.newest_minute between wanted.minute - $3 and wanted.minute
      union all
      (select price
       from price_minutes
       where r.source = 'REAL' and not is_sealed and market_id = r.id and minute between wanted.minute - $3 and wanted.minute
       order by minute desc
       limit 1)
    ) p on true
    where r.market = any ($1::text[]) and (r.source = 'REAL' or $2)`,
    [ASSETS.map(({ symbol }) => `${symbol}USD`), sandbox, ageMaxMinutes, at],
  )
  const macs = await ownRowMacs()
  const known = new Map(
    rows.flatMap(({ market, price, is_sealed, simulated_minute, ...seal }) => {
      if (simulated_minute !== null) return [[market, simulatedUsd(market, simulated_minute)]]
      const isGenuine = !is_sealed || macs.isGenuine('markets', market, seal)
      return price === null || !isGenuine ? [] : [[market, price]]
    }),
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

interface PriceRow extends Seal {
  market: string
  price: string | null
  is_sealed: boolean
  /** The minute of the wanted price of a simulated market. */
  simulated_minute: number | null
}

const simulatedUsd = (market: string, minute: number): string =>
  simulatedPrice({ base_asset: market.slice(0, -'USD'.length), quote_asset: 'USD' }, minute)
