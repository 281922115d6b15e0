import { Type, type Static } from 'typebox'
import { forAll, type Queryable } from '../../db/database.ts'
import { NamedObject, OneOf, Timestamp } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { assetsOf, MARKETS, type Market } from '../../contract/markets.ts'
import { LAST_MINUTE } from './simulate-prices.ts'

const MarketRecord = NamedObject('Market', {
  market: Type.Enum([...MARKETS], { type: 'string' }),
  base_asset: Type.String({ description: 'The priced asset.' }),
  quote_asset: Type.String({ description: 'The asset of the price.' }),
  first_time: Type.Optional(Timestamp('Start of the first minute that has a price; absent while none has.')),
  last_time: Type.Optional(Timestamp('Start of the last minute that has a price.')),
  source: Type.Optional(
    OneOf(['SIMULATED', 'REAL'], 'SIMULATED in a sandbox; REAL when imported or followed. Never both.'),
  ),
})

export const listMarkets = operation({
  method: 'GET',
  url: '/v2/markets',
  scope: null,
  tag: 'Market Data',
  summary: 'List Markets',
  description: 'Lists the markets, with the time span and the source of their prices. Needs no access token.',
  reply: Type.Object({ markets: Type.Array(MarketRecord) }),
  async run({ db }) {
    return { markets: await selectMarkets(forAll(db)) }
  },
})

interface MarketRow {
  market: Market
  source: 'SIMULATED' | 'REAL' | null
  first_time: string | null
  last_time: string | null
}

/** Reads every market. Its first and last minute are each one look-up in the primary key. */
export async function selectMarkets(db: Queryable): Promise<Static<typeof MarketRecord>[]> {
  const { rows } = await db.query<MarketRow>(`
    select market, source,
           timestamptz 'epoch' + first.minute * interval '1 minute' as first_time,
           timestamptz 'epoch' + (case source when 'SIMULATED' then ${LAST_MINUTE} else last.minute end) * interval '1 minute' as last_time
    from markets
    left join lateral (
      select minute from price_minutes where market_id = markets.id order by minute limit 1
    ) first on true
    left join lateral (
      select minute from price_minutes where market_id = markets.id order by minute desc limit 1
    ) last on true
    order by id`)
  return rows.map(({ market, source, first_time, last_time }) => ({
    market,
    ...assetsOf(market),
    ...(first_time !== null && last_time !== null && { first_time, last_time }),
    ...(source !== null && { source }),
  }))
}
