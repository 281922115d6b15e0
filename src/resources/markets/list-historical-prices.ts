import { Type, type Static } from 'typebox'
import { forAll, type Database } from '../../db/database.ts'
import { Closed, NamedObject, OneOf, Timestamp } from '../../contract/fields.ts'
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../../http/lists.ts'
import { microsOf } from '../../http/time-bounds.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  DAY,
  FOUR_WEEKS,
  INCREMENT_MINUTES,
  INCREMENTS,
  startFrom,
  incrementStart,
  startOfInSql,
  type Increment,
} from '../../contract/increments.ts'
import { idOf, MARKETS } from '../../contract/markets.ts'
import { simulateUpToNow } from './simulate-prices.ts'
import { COUNTED } from '../../money/records/write-prices.ts'

const INT32_MAX = 2_147_483_647
const INT64_MAX = 9_223_372_036_854_775_807n

export const MarketParams = Type.Object({
  market: Type.Enum([...MARKETS], {
    type: 'string',
    description: 'Market, by its code.',
    examples: ['BTCUSD'],
  }),
})

// Text, because as a JavaScript number the limit of an int64 equals the limit plus one.
export const MaxDataPoints = Type.Unsafe<string>({
  type: ['string', 'integer'],
  pattern: '^[0-9]{1,19}$',
  inWords: 'must be a whole number',
  description:
    'Upper bound on the number of points (int64, 1 or more): selects the finest increment with at most this many points in the range. Not together with `increment`.',
  examples: [500],
})

const ListHistoricalPricesQuery = Closed({
  max_data_points: Type.Optional(MaxDataPoints),
  'range.begin': Type.Optional(
    Timestamp('Only points that begin then or later; strictly later when `increment` is given.'),
  ),
  'range.end': Type.Optional(
    Timestamp('Only points that begin then or earlier; strictly earlier when `increment` is given.'),
  ),
  'pagination.limit': Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_SIZE_MAX,
      default: PAGE_SIZE_DEFAULT,
      description: 'Number of points to return.',
    }),
  ),
  'pagination.offset': Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: INT32_MAX,
      default: 0,
      description: 'Number of points to skip.',
    }),
  ),
  increment: Type.Optional(
    OneOf(INCREMENTS, 'Time step between points. Not together with `max_data_points`.'),
  ),
})
type ListHistoricalPricesQuery = Static<typeof ListHistoricalPricesQuery>

const PricePoint = NamedObject('HistoricalPrice', {
  average_price: Type.String({
    description:
      'Time-weighted average over the increment that begins at `timestamp`, over its minutes that have a price. At most 8 decimals.',
    examples: ['63450.125'],
  }),
  timestamp: Timestamp('Start of the increment.'),
})

export const listHistoricalPrices = operation({
  method: 'GET',
  url: '/v2/markets/:market/historical-prices',
  scope: 'exchange:historical_prices',
  tag: 'Market Data',
  summary: 'List Historical Prices',
  description:
    'Average prices of a market over ended increments, oldest first. The increment is given, or selected by max_data_points.',
  example: { params: { market: 'BTCUSD' }, query: { max_data_points: '48' } },
  params: MarketParams,
  query: ListHistoricalPricesQuery,
  reply: Type.Object({
    market: Type.String(),
    prices: Type.Array(PricePoint),
    items: Type.Array(PricePoint, { description: 'The same points as `prices`.' }),
    total_count: Type.Integer({ description: 'Number of points in the range, on all pages.' }),
  }),
  async run({ params: { market }, query, db: asked, settings }) {
    const { 'pagination.limit': limit = PAGE_SIZE_DEFAULT, 'pagination.offset': offset = 0 } = query
    requireOneStep(query)
    const range = rangeOf(query, { exclusive: query.increment !== undefined })
    const max = query.max_data_points === undefined ? limit : pointsMax(query.max_data_points)

    const db = forAll(asked)
    if (settings.mode === 'sandbox') await simulateUpToNow(db, market)
    const ask = { db, marketId: idOf(market), range }
    const candidates = query.increment === undefined ? candidatesFor(range, max) : [query.increment]
    if (candidates.length === 1) {
      const [increment] = candidates as [Increment]
      const [[total_count], prices] = await Promise.all([
        countPoints(ask, candidates),
        selectPoints(ask, increment, { limit, offset }),
      ])
      return { market, prices, items: prices, total_count: total_count! }
    }
    const { increment, count } = await finestWithin(ask, candidates, max)
    // Where even the longest increment, four weeks, has too many points, a page is limited to `max` points.
    const prices = await selectPoints(ask, increment, { limit: Math.min(limit, max), offset })
    return { market, prices, items: prices, total_count: count }
  },
})

/** Refuses a query that names its step twice. */
export function requireOneStep({
  increment,
  max_data_points,
}: {
  increment?: Increment
  max_data_points?: string
}): void {
  if (increment !== undefined && max_data_points !== undefined)
    throw problem.badRequest(
      'increment and max_data_points must not be given together',
      'increment',
      'max_data_points',
    )
}

/** Finds the finest candidate with at most `max` points in the range, else the longest, and its number of points. */
export async function finestWithin(
  ask: Ask,
  candidates: readonly Increment[],
  max: number,
): Promise<{ increment: Increment; count: number }> {
  const counts = await countPoints(ask, candidates)
  const finest = counts.findIndex((count) => count <= max)
  return { increment: candidates.at(finest)!, count: counts.at(finest)! }
}

/** Returns the candidate increments, finest first, up to the first that fits even a gapless range. */
export function candidatesFor({ from, to }: MinuteRange, max: number): readonly Increment[] {
  const fits = INCREMENTS.findIndex(
    (increment) => Math.ceil((to - from) / INCREMENT_MINUTES[increment]) <= max,
  )
  return fits < 0 ? INCREMENTS : INCREMENTS.slice(0, fits + 1)
}

export interface Ask {
  db: Database
  marketId: number
  range: MinuteRange
}

/** A range of increment starts, in minutes since 1970: `from` <= start < `to`. */
export interface MinuteRange {
  from: number
  to: number
}

const MICROS_PER_MINUTE = 60_000_000
/** The four-week span that contains the beginning of 1970. */
const EARLIEST = incrementStart(0, FOUR_WEEKS)
/** The latest minute, in the year 5772: the end of a four-week span from there still fits an `integer`. */
const MINUTE_MAX = 2_000_000_000

/** Converts the query's bounds (API behaviour, Market history). Throws when they contradict each other. */
export function rangeOf(
  { 'range.begin': begin, 'range.end': end }: Pick<ListHistoricalPricesQuery, 'range.begin' | 'range.end'>,
  { exclusive }: { exclusive: boolean },
): MinuteRange {
  const first = begin === undefined ? undefined : microsOf(begin, 'range.begin')
  const last = end === undefined ? undefined : microsOf(end, 'range.end')
  if (first !== undefined && last !== undefined && first.floor > last.floor)
    throw problem.badRequest('range.begin must not be after range.end', ['range.begin'])
  const ceiling = ({ floor, exact }: { floor: number; exact: boolean }) => (exact ? floor : floor + 1)
  const after = (micros: number) => Math.floor(micros / MICROS_PER_MINUTE) + 1
  const notBefore = (micros: number) => Math.ceil(micros / MICROS_PER_MINUTE)
  const from = first === undefined ? EARLIEST : exclusive ? after(first.floor) : notBefore(ceiling(first))
  const to = last === undefined ? MINUTE_MAX : exclusive ? notBefore(ceiling(last)) : after(last.floor)
  const known = (minute: number) => Math.min(Math.max(minute, EARLIEST), MINUTE_MAX)
  return { from: known(from), to: known(to) }
}

export function pointsMax(text: string): number {
  const points = BigInt(text)
  if (points < 1n) throw problem.badRequest('max_data_points must be at least 1', 'max_data_points')
  if (points > INT64_MAX)
    throw problem.badRequest(`max_data_points must be at most ${String(INT64_MAX)}`, 'max_data_points')
  return Number(points)
}

/** The current minute by the database's clock. */
const NOW = `floor(extract(epoch from statement_timestamp()) / 60)::integer`
/**
 * Current prices arrive a little after their minute. A price later than this limit is late, and corrects points
 * already served.
 */
const DELAY_MINUTES_MAX = 5
/**
 * A market's ($1) watermark: just after its last priced minute, or DELAY_MINUTES_MAX minutes ago if prices stopped.
 * An increment is served when it has ended by then.
 */
export const KNOWN = `(
  select greatest(least(max(minute) + 1, ${NOW}), ${NOW} - ${DELAY_MINUTES_MAX})
  from price_minutes where market_id = $1)`

/** The points of a market ($1) for increments of this length. */
const pointsOf = (minutes: number) =>
  minutes === 1
    ? `(select minute as starts_at, price as sum, 1 as minutes from price_minutes where market_id = $1) point`
    : `(select starts_at, sum, minutes from price_points
        where market_id = $1 and increment_minutes = ${minutes}) point`

/** In SQL: a start of an increment of this length. Increments of half a day or less that begin before it have ended. */
const endedBy = (minutes: number) => startOfInSql(`(${NOW} - ${INCREMENT_MINUTES.TWELVE_HOURS - 1})`, minutes)

/** Counts the points of each increment in the range, from the stored counts of whole days and four-week spans. */
async function countPoints(
  { db, marketId, range }: Ask,
  increments: readonly Increment[],
): Promise<number[]> {
  const whole = wholeDays(range)
  const { rows } = await db.query<{ counts: number[] }>({
    name: `count-${increments[0]}-${increments.at(-1)}`,
    text: countOf(increments.map((increment) => INCREMENT_MINUTES[increment])),
    values: [marketId, range.from, range.to, whole.from, whole.fourWeeksFrom, whole.fourWeeksTo, whole.to],
  })
  return rows[0]!.counts
}

/** Returns the whole days of a range, and the four-week spans within them. */
function wholeDays({ from, to }: MinuteRange) {
  const first = startFrom(from, DAY)
  const end = incrementStart(to, DAY)
  if (end <= first) return { from, fourWeeksFrom: from, fourWeeksTo: from, to: from }
  const fourWeeksFrom = startFrom(first, FOUR_WEEKS)
  const fourWeeksTo = incrementStart(end, FOUR_WEEKS)
  if (fourWeeksTo <= fourWeeksFrom) return { from: first, fourWeeksFrom: end, fourWeeksTo: end, to: end }
  return { from: first, fourWeeksFrom, fourWeeksTo, to: end }
}

function countOf(lengths: number[]): string {
  const between = (minutes: number, from: string, to: string) => `
    (select count(*) from ${pointsOf(minutes)}
     where starts_at >= ${from} and starts_at < least(${to}, $3::integer, (select known from clock) - ${minutes} + 1))`
  const counts = lengths.map((minutes) => {
    const place = COUNTED.indexOf(minutes)
    if (place < 0) return between(minutes, '$2::integer', '$3::integer')
    return `
      ${between(minutes, '$2::integer', '$4::integer')} +
      ${between(minutes, '(select days_to from ended)', '$3::integer')} +
      (select coalesce(sum(counts[${place + 1}]), 0) from whole)`
  })
  return `
    with clock as materialized (
      select ${KNOWN} as known
    ), ended as materialized (
      select greatest($4::integer, least($7::integer, ${endedBy(DAY)})) as days_to,
             greatest($5::integer, least($6::integer, ${endedBy(FOUR_WEEKS)})) as four_weeks_to
    ), whole as materialized (
      select counts from price_points
      where market_id = $1 and increment_minutes = ${DAY}
        and starts_at >= $4 and starts_at < least($5, (select days_to from ended))
      union all
      select counts from price_points
      where market_id = $1 and increment_minutes = ${FOUR_WEEKS}
        and starts_at >= $5 and starts_at < (select four_weeks_to from ended)
      union all
      select counts from price_points
      where market_id = $1 and increment_minutes = ${DAY}
        and starts_at >= (select four_weeks_to from ended) and starts_at < (select days_to from ended)
    )
    select array[${counts.join(', ')}]::integer[] as counts`
}

/** Up to this offset, skipping rows is faster than finding the page. */
const SKIPPED_MAX = 1_000

/** Reads a page of an increment's points. Averages are rounded here, half up to 8 decimals, exactly. */
async function selectPoints(
  ask: Ask,
  increment: Increment,
  page: { limit: number; offset: number },
): Promise<Static<typeof PricePoint>[]> {
  const minutes = INCREMENT_MINUTES[increment]
  const { from, skip } =
    page.offset > SKIPPED_MAX && minutes <= DAY
      ? await findPage(ask, minutes, page.offset)
      : { from: ask.range.from, skip: page.offset }
  const { rows } = await ask.db.query<Static<typeof PricePoint>>({
    name: `points-${increment}`,
    text: `
      select timestamptz 'epoch' + starts_at * interval '1 minute' as timestamp, ${averageOf(minutes)} as average_price
      from ${pointsOf(minutes)}
      where starts_at >= $2::integer and starts_at < least($3::integer, ${KNOWN} - ${minutes} + 1)
      order by starts_at
      limit $4 offset $5`,
    values: [ask.marketId, from, ask.range.to, page.limit, skip],
  })
  return rows
}

const averageOf = (minutes: number) =>
  minutes === 1
    ? 'trim_scale(round(sum, 8))'
    : 'trim_scale(div(sum * 200000000 + minutes, 2 * minutes) * 0.00000001)'

/**
 * Finds where a page deep in a range begins: the day of its first point, by the counts of the days before, and the
 * number of earlier points of that day.
 */
async function findPage(
  { db, marketId, range }: Ask,
  minutes: number,
  offset: number,
): Promise<{ from: number; skip: number }> {
  const whole = wholeDays(range)
  const blocks = (length: number, from: string, to: string) => `
    select starts_at, ${length} as length, counts[${COUNTED.indexOf(minutes) + 1}] as points
    from price_points
    where market_id = $1 and increment_minutes = ${length}
      and starts_at >= ${from}::integer and starts_at < ${to}::integer`
  const before = `select count(*) from ${pointsOf(minutes)} where starts_at >= $2 and starts_at < $3`
  const { rows } = await db.query<{ starts_at: number; before: number }>({
    name: `page-${minutes}`,
    text: `
      with block as (
        select *
        from (
          select starts_at, length, (${before}) + sum(points) over (order by starts_at) - points as before
          from (
            ${blocks(DAY, '$3', '$4')} union all ${blocks(FOUR_WEEKS, '$4', '$5')} union all ${blocks(DAY, '$5', '$6')}
          ) whole
        ) counted
        where before <= $7::integer
        order by starts_at desc
        limit 1
      )
      select day.starts_at, (block.before + day.before)::integer as before
      from block
      cross join lateral (
        select starts_at, sum(points) over (order by starts_at) - points as before
        from (${blocks(DAY, 'block.starts_at', '(block.starts_at + block.length)')}) days
      ) day
      where block.before + day.before <= $7
      order by day.starts_at desc
      limit 1`,
    values: [marketId, range.from, whole.from, whole.fourWeeksFrom, whole.fourWeeksTo, whole.to, offset],
  })
  const [day] = rows
  return day === undefined
    ? { from: range.from, skip: offset }
    : { from: day.starts_at, skip: offset - day.before }
}
