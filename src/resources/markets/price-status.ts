import type { Queryable } from '../../db/database.ts'
import { FOUR_WEEKS } from '../../contract/increments.ts'
import { selectMarkets } from './list-markets.ts'
import type { Market } from '../../contract/markets.ts'

export interface MarketStatus {
  market: Market
  source?: 'SIMULATED' | 'REAL'
  first_time?: string
  last_time?: string
  minutes: number
  imports: { file: string; records: number; finished: boolean }[]
}

/** Reads the extent of every market's price history, for operators. */
export async function priceStatus(db: Queryable): Promise<{ markets: MarketStatus[] }> {
  const [markets, minutes, imports] = await Promise.all([
    selectMarkets(db),
    db.query<{ market: Market; minutes: number }>(
      `select market, sum(minutes)::integer as minutes
       from price_points
       join markets on id = market_id
       where increment_minutes = ${FOUR_WEEKS}
       group by market`,
    ),
    db.query<{ market: Market; file: string; records: string; finished: boolean }>(
      `select market, name as file, records, finished
       from price_imports
       join markets on id = market_id
       order by updated_at`,
    ),
  ])
  return {
    markets: markets.map(({ market, source, first_time, last_time }) => ({
      market,
      ...(source && { source }),
      ...(first_time && last_time && { first_time, last_time }),
      minutes: minutes.rows.find((row) => row.market === market)?.minutes ?? 0,
      imports: imports.rows
        .filter((row) => row.market === market)
        .map(({ file, records, finished }) => ({ file, records: Number(records), finished })),
    })),
  }
}
