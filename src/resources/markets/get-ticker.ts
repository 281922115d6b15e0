import { Type, type Static } from 'typebox'
import { NamedObject, Timestamp } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { DAY } from '../../contract/increments.ts'
import { MarketParams } from './list-historical-prices.ts'
import { idOf } from '../../contract/markets.ts'
import { simulateUpToNow } from './simulate-prices.ts'

const price = (description: string) => Type.String({ description, examples: ['63450.12'] })

const Span = (description: string) => {
  const range = { begin: Timestamp('Start of its first minute.'), end: Timestamp('End of its last minute.') }
  const prices = { open: price('First price.'), high: price('Highest price.'), low: price('Lowest price.') }
  return Type.Optional(Type.Object({ ...prices, range: Type.Object(range) }, { description }))
}

const Ticker = NamedObject('Ticker', {
  market: Type.String({ description: 'The market. While it has no price, the other members are absent.' }),
  last_execution: Type.Optional(Type.Object({ price: price('The newest price of the history.') })),
  last_day: Span('The 24 hours that end with the minute of the newest price.'),
  today: Span('The day of the newest price, in UTC, up to its minute.'),
  snapshot_at: Type.Optional(Timestamp('Start of the minute of the newest price.')),
})

export const getTicker = operation({
  method: 'GET',
  url: '/v2/markets/:market/ticker',
  scope: null,
  tag: 'Market Data',
  summary: 'Get Ticker',
  description:
    'The newest price of a market, and first, highest and lowest price of the day. Nothing is traded, so there are no bids, asks and volumes. Needs no access token.',
  params: MarketParams,
  example: { params: { market: 'BTCUSD' } },
  reply: Ticker,
  async run({ params: { market }, db: asked, settings }): Promise<Static<typeof Ticker>> {
    const db = forAll(asked)
    if (settings.mode === 'sandbox') await simulateUpToNow(db, market)
    const { rows } = await db.query<SpanRow>({ name: 'ticker', text: SELECT, values: [idOf(market), DAY] })
    const [last_day, today] = rows.map(({ open, high, low, begin, end }) => ({
      ...{ open, high, low },
      range: { begin, end },
    }))
    if (last_day === undefined || today === undefined) return { market }
    const { price, snapshot_at } = rows[0]!
    return { market, last_execution: { price }, last_day, today, snapshot_at }
  },
})

type SpanRow = Record<'price' | 'snapshot_at' | 'begin' | 'end' | 'open' | 'high' | 'low', string>

/** The day up to the newest price, and the part of it since midnight: at most 1,440 minutes each, by the primary key. */
const SELECT = `
  select trim_scale(newest.close) as price, timestamptz 'epoch' + newest.minute * interval '1 minute' as snapshot_at,
         timestamptz 'epoch' + span.first * interval '1 minute' as begin,
         timestamptz 'epoch' + (newest.minute + 1) * interval '1 minute' as end,
         trim_scale(day.open) as open, trim_scale(day.high) as high, trim_scale(day.low) as low
  from (
    select minute, coalesce(close, price) as close from price_minutes where market_id = $1 order by minute desc limit 1
  ) newest
  cross join lateral (
    values (newest.minute - $2::integer + 1), (newest.minute - newest.minute % $2::integer)
  ) span (first)
  cross join lateral (
    select (array_agg(coalesce(open, price) order by minute))[1] as open,
           max(coalesce(high, price)) as high, min(coalesce(low, price)) as low
    from price_minutes
    where market_id = $1 and minute >= span.first and minute <= newest.minute
  ) day
  order by span.first`
