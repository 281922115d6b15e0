import { Type, type Static } from 'typebox'
import { Closed, Filter, NamedObject, Timestamp } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { DAY } from '../../contract/increments.ts'
import { simulatedPrice } from '../../contract/assets/simulated-price.ts'
import { assetsOf, idOf, MARKETS, type Market } from '../../contract/markets.ts'
import { LAST_MINUTE } from './simulate-prices.ts'

const MarketPrice = NamedObject('MarketPrice', {
  market: Type.Enum([...MARKETS], { type: 'string' }),
  current_price: Type.String({ description: 'The newest price.', examples: ['63450.12'] }),
  yesterday_price: Type.Optional(
    Type.String({
      description: 'The newest price of 24 to 48 hours before; absent where there is none.',
      examples: ['62980.5'],
    }),
  ),
  snapshot_at: Timestamp('Start of the minute of the newest price.'),
})

export const listPrices = operation({
  method: 'GET',
  url: '/v2/all-markets/prices',
  scope: null,
  tag: 'Market Data',
  summary: 'List Prices',
  description:
    'The newest price of each market, and the price of 24 hours before. Markets without prices are left out. Needs no access token.',
  example: { query: { markets: ['BTCUSD', 'ETHUSD'] } },
  query: Closed({
    markets: Filter(Type.Enum([...MARKETS], { type: 'string' }), 'Only these markets; all by default.'),
  }),
  reply: Type.Object({
    prices: Type.Array(MarketPrice),
    items: Type.Array(MarketPrice, { description: 'The same prices as `prices`.' }),
  }),
  async run({ query: { markets = MARKETS }, db }) {
    const { rows } = await forAll(db).query<PriceRow>({
      name: 'list-prices',
      text: SELECT,
      values: [markets.map(idOf), DAY],
    })
    const prices = rows.map(({ market, snapshot_at, ...row }) => {
      const { current_price, yesterday_price } = row.simulated_minute === null ? row : simulated(market, row)
      return { market, current_price, ...(yesterday_price !== null && { yesterday_price }), snapshot_at }
    })
    return { prices, items: prices }
  },
})

type PriceRow = Omit<Static<typeof MarketPrice>, 'market' | 'yesterday_price'> & {
  market: Market
  yesterday_price: string | null
  /** The last minute of a simulated market, whose prices need not be written; null for a real one. */
  simulated_minute: number | null
  /** The first minute of a simulated market; null for a real one. */
  first_minute: number | null
}

function simulated(
  market: Market,
  { simulated_minute, first_minute }: Pick<PriceRow, 'simulated_minute' | 'first_minute'>,
) {
  const priceAt = (minute: number) => simulatedPrice(assetsOf(market), minute)
  const yesterday = simulated_minute! - DAY
  return {
    current_price: priceAt(simulated_minute!),
    yesterday_price: yesterday < first_minute! ? null : priceAt(yesterday),
  }
}

/** Two look-ups in the primary key for each market. */
const SELECT = `
  select market, trim_scale(coalesce(newest.close, newest.price)) as current_price,
         trim_scale(coalesce(before.close, before.price)) as yesterday_price,
         timestamptz 'epoch' + coalesce(simulated_minute, newest.minute) * interval '1 minute' as snapshot_at,
         simulated_minute, first_minute
  from markets
  cross join lateral (
    select minute, price, close from price_minutes where market_id = markets.id order by minute desc limit 1
  ) newest
  cross join lateral (
    select case source when 'SIMULATED' then ${LAST_MINUTE} end as simulated_minute
  ) simulation
  left join lateral (
    select minute as first_minute from price_minutes
    where market_id = markets.id and simulated_minute is not null order by minute limit 1
  ) oldest on true
  left join lateral (
    select price, close
    from price_minutes
    where market_id = markets.id and minute <= newest.minute - $2::integer and minute > newest.minute - 2 * $2::integer
    order by minute desc
    limit 1
  ) before on true
  where id = any ($1)
  order by id`
