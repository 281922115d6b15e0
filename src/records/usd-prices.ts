import { parseAmount } from '../assets/amount.ts'
import { ASSETS } from '../assets/catalogue.ts'
import { PRICE_DECIMALS, type UsdPrices } from '../assets/usd-value.ts'
import { poolOf } from '../db/customer-pool.ts'
import type { Queryable } from '../db/database.ts'

/** Older prices of market history are ignored: a value computed from them would be out of date. */
const PRICE_AGE_MAX_MINUTES = 1_440
/** Prices are per minute, so a cache of this age saves a query for each transfer. */
const KEPT_MS = 10_000

interface Kept {
  readAt: number
  prices: Promise<UsdPrices>
}
const keptLive = new WeakMap<Queryable, Kept>()
const keptSandbox = new WeakMap<Queryable, Kept>()

/** Returns the newest prices, at most ten seconds old. Throws when they cannot be read. */
export function usdPrices(asked: Queryable, sandbox: boolean): Promise<UsdPrices> {
  const db = poolOf(asked)
  const kept = sandbox ? keptSandbox : keptLive
  const known = kept.get(db)
  const now = performance.now()
  if (known !== undefined && now - known.readAt < KEPT_MS) return known.prices
  const prices = newestUsdPrices(db, sandbox)
  kept.set(db, { readAt: now, prices })
  // After a failure, the next caller reads again.
  prices.catch(() => kept.delete(db))
  return prices
}

/**
 * Reads the newest prices of market history; platform stablecoins are worth one USD. In the sandbox simulated prices
 * count too, with the catalogue's reference prices as the last resort. Older prices than `ageMaxMinutes` are ignored.
 * With `at`, the prices are those of that time.
 */
export async function newestUsdPrices(
  db: Queryable,
  sandbox: boolean,
  { ageMaxMinutes = PRICE_AGE_MAX_MINUTES, at }: { ageMaxMinutes?: number; at?: string } = {},
): Promise<UsdPrices> {
  const { rows } = await db.query<{ market: string; price: string }>(
    `
    select m.market, round(p.price, ${PRICE_DECIMALS}) as price
    from markets m
    cross join (select extract(epoch from coalesce($4::timestamptz, clock_timestamp()))::bigint / 60 as minute) wanted
    cross join lateral (
      select price
      from price_minutes
      where market_id = m.id and minute between wanted.minute - $3 and wanted.minute
      order by minute desc
      limit 1
    ) p
    where m.market = any ($1::text[]) and (m.source = 'REAL' or $2)`,
    [ASSETS.map(({ symbol }) => `${symbol}USD`), sandbox, ageMaxMinutes, at],
  )
  const known = new Map(rows.map(({ market, price }) => [market, price]))
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
