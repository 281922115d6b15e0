import { Type, type Static } from 'typebox'
import { Closed, NamedObject, OneOf, Timestamp } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import { pageOf, pageParameters, pageReply, type PageRequest } from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { INCREMENT_MINUTES, INCREMENTS, type Increment } from '../../contract/increments.ts'
import {
  candidatesFor,
  finestWithin,
  KNOWN,
  MarketParams,
  MaxDataPoints,
  pointsMax,
  rangeOf,
  requireOneStep,
  type Ask,
} from './list-historical-prices.ts'
import { idOf } from '../../contract/markets.ts'
import { simulateUpToNow } from './simulate-prices.ts'
import { candlesOf } from '../../money/records/write-prices.ts'

const price = (description: string) => Type.String({ description, examples: ['63450.125'] })

const Candle = NamedObject('HistoricalCandle', {
  timestamp: Timestamp('Start of the increment.'),
  open: price('First price.'),
  high: price('Highest price.'),
  low: price('Lowest price.'),
  close: price('Last price.'),
  exact: Type.Boolean({
    description:
      'False where only an average, or a candle that exceeds this increment, is known of some minute; that minute counts with the average, or with that candle.',
  }),
})
type Candle = Static<typeof Candle>

/**
 * Lists the candles of a market, newest first (API behaviour, Market history). A candle combines the finer candles in
 * its increment: the open of the first, the highest, the lowest, the close of the last. Includes the increments that
 * List Historical Prices includes.
 */
export const listHistoricalCandles = operation({
  method: 'GET',
  url: '/v2/markets/:market/historical-candles',
  scope: 'exchange:historical_prices',
  tag: 'Market Data',
  summary: 'List Historical Candles',
  description:
    'Open, high, low and close of a market over ended increments, newest first. The increment is given, or selected by max_data_points.',
  example: { params: { market: 'BTCUSD' }, query: { increment: 'ONE_HOUR', limit: 24 } },
  params: MarketParams,
  query: Closed({
    max_data_points: Type.Optional(MaxDataPoints),
    'range.begin': Type.Optional(Timestamp('Only candles that begin then or later.')),
    'range.end': Type.Optional(Timestamp('Only candles that begin then or earlier.')),
    increment: Type.Optional(OneOf(INCREMENTS, 'Length of a candle. Not together with `max_data_points`.')),
    ...pageParameters,
  }),
  reply: Type.Object({
    market: Type.String(),
    increment: OneOf(INCREMENTS, 'Length of the candles.'),
    items: Type.Array(Candle),
    next_page_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
  }),
  async run({ params: { market }, query, db: asked, settings }) {
    requireOneStep(query)
    const range = rangeOf(query, { exclusive: false })
    const page = pageOf(`candles ${market}`, query, [INCREMENT_MINUTES_TEXT, MINUTE])
    const max = query.max_data_points === undefined ? page.limit : pointsMax(query.max_data_points)
    const db = forAll(asked)
    if (settings.mode === 'sandbox') await simulateUpToNow(db, market)
    const ask = { db, marketId: idOf(market), range }
    const increment = query.increment ?? incrementOfCursor(page) ?? (await inferred(ask, max))
    const limit = query.increment === undefined ? Math.min(page.limit, max) : page.limit
    const rows = await selectCandles(ask, increment, page, limit + 1)
    const minutes = String(INCREMENT_MINUTES[increment])
    const keyOf = ({ starts_at }: CandleRow) => [minutes, String(starts_at)]
    return { market, increment, ...pageReply(rows, { ...page, limit }, keyOf, toWire) }
  },
})

/** The parts of a cursor: the length of the candles, which is the same on every page, and the last start. */
const INCREMENT_MINUTES_TEXT = new RegExp(`^(?:${Object.values(INCREMENT_MINUTES).join('|')})$`)
const MINUTE = /^-?[0-9]{1,9}$/

const incrementOfCursor = ({ after }: PageRequest): Increment | undefined =>
  after && INCREMENTS.find((increment) => INCREMENT_MINUTES[increment] === Number(after[0]))

/** Returns the finest increment with at most `max` candles in the range. */
async function inferred(ask: Ask, max: number): Promise<Increment> {
  const candidates = candidatesFor(ask.range, max)
  return candidates.length === 1 ? candidates[0]! : (await finestWithin(ask, candidates, max)).increment
}

type CandleRow = Candle & { starts_at: number }

const toWire = ({ starts_at: _, ...candle }: CandleRow): Candle => candle

/** Reads the candles of an increment that follow the last candle of the previous page. */
async function selectCandles(
  { db, marketId, range }: Ask,
  increment: Increment,
  { descending, after }: PageRequest,
  count: number,
): Promise<CandleRow[]> {
  const minutes = INCREMENT_MINUTES[increment]
  const last = after && Number(after[1])
  const { rows } = await db.query<CandleRow>({
    name: `candles-${increment}-${descending ? 'desc' : 'asc'}`,
    text: `
      select starts_at, timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp,
             trim_scale(open) as open, trim_scale(high) as high, trim_scale(low) as low, trim_scale(close) as close,
             exact_increment <= ${minutes} as exact
      from ${candlesOf(minutes)}
      where starts_at >= $2::integer and starts_at < least($3::integer, ${KNOWN} - ${minutes} + 1)
      order by starts_at ${descending ? 'desc' : 'asc'}
      limit $4`,
    values: [
      marketId,
      last === undefined || descending ? range.from : Math.max(range.from, last + 1),
      last === undefined || !descending ? range.to : Math.min(range.to, last),
      count,
    ],
  })
  return rows
}
