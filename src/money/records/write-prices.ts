import { strict as assert } from 'node:assert'
import { type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import {
  containingIncrement,
  DAY,
  FOUR_WEEKS,
  INCREMENT_MINUTES,
  incrementStart,
  startOfInSql,
} from '../../contract/increments.ts'
import type { Market } from '../../contract/markets.ts'

/** Prices of one market as columns, with one record per index, in the form of the database parameters. */
export interface PriceRecords {
  /** How many minutes each record counts for: 1, or the length of a candle. */
  coversMinutes: number
  /** The start of each record, in minutes since 1970, and its second within that minute. */
  minute: number[]
  second: number[]
  /** Decimal strings: either one price per record, or open, high, low and close. */
  prices: [string[]] | [string[], string[], string[], string[]]
}

/** The `exact_increment` of a record that no increment contains as a whole. */
const NEVER_EXACT = 2_147_483_647

/** The longest supported candle: Kraken's 15 days. */
export const COVERS_MINUTES_MAX = 21_600

/**
 * Locks a market for writing and returns its id. Simulated and real prices are never mixed, because their average
 * would be meaningless. The first real price removes the simulated prices. A market with real prices gets no
 * simulated prices: then the result is undefined.
 */
export async function lockMarket(
  tx: Transaction,
  market: Market,
  source: 'SIMULATED' | 'REAL',
): Promise<number | undefined> {
  const { rows } = await tx.query<{ id: number; source: 'SIMULATED' | 'REAL' | null }>(
    'select id, source from markets where market = $1 for update',
    [market],
  )
  const [found] = rows
  assert(found !== undefined, `the table markets lacks ${market}`)
  if (found.source === source) return found.id
  if (found.source === 'REAL') return undefined
  if (found.source === 'SIMULATED') {
    await tx.query('delete from price_minutes where market_id = $1', [found.id])
    await tx.query('delete from price_points where market_id = $1', [found.id])
  }
  await tx.query('update markets set source = $2 where id = $1', [found.id, source])
  return found.id
}

/**
 * Writes prices of a market that the transaction has locked, and updates every affected roll-up. The order, the
 * batches and repeats of records do not affect the result. Of two records of one minute, the shorter one counts (a
 * minute's candle, not the hour's), then the later one within the minute, then the newer one. Returns the number of
 * changed minutes.
 */
export async function writePrices(tx: Transaction, marketId: number, records: PriceRecords): Promise<number> {
  const { coversMinutes, minute, second, prices } = records
  assert(
    coversMinutes >= 1 && coversMinutes <= COVERS_MINUTES_MAX,
    'a record covers at most COVERS_MINUTES_MAX minutes',
  )
  const { rows } = await tx.query<{
    changed: number
    days: number[]
    minute: number | null
    price: string | null
  }>({
    name: 'write-prices',
    text: WRITE,
    values: [
      marketId,
      coversMinutes,
      arrayLiteral(minute),
      arrayLiteral(second),
      ...[0, 1, 2, 3].map((column) => arrayLiteral(prices[column] ?? [])),
      arrayLiteral(minute.map((first) => containingIncrement(first, coversMinutes) ?? NEVER_EXACT)),
    ],
  })
  const { changed, days } = rows[0]!
  if (days.length > 0) {
    await tx.query({ name: 'count-days', text: COUNT_DAYS, values: [marketId, days] })
    const fourWeeks = [...new Set(days.map((day) => incrementStart(day, FOUR_WEEKS)))]
    await tx.query({ name: 'count-four-weeks', text: COUNT_FOUR_WEEKS, values: [marketId, fourWeeks] })
  }
  await sealNewest(tx, marketId, rows[0]!)
  return changed
}

/**
 * Stores the newest real price of a market with its MAC. It takes the price from this transaction's own writes, so that a
 * price that somebody else wrote into the database is not sealed. A stored newest minute in the future is replaced.
 */
async function sealNewest(
  tx: Transaction,
  marketId: number,
  { minute, price }: { minute: number | null; price: string | null },
): Promise<void> {
  if (minute === null) return
  const { rows } = await tx.query<{ market: string }>(
    `
    update markets set newest_minute = $2, newest_price = $3
    where id = $1 and source = 'REAL'
      and (newest_minute is null or newest_minute <= $2 or newest_minute > extract(epoch from clock_timestamp()) / 60)
    returning market`,
    [marketId, minute, price],
  )
  for (const { market } of rows) await (await ownRowMacs()).seal(tx, 'markets', market)
}

/** A minute's candle, in SQL: columns that are null equal its price. */
const CANDLE_OF_MINUTE = `coalesce(open, price) as open, coalesce(high, price) as high,
           coalesce(low, price) as low, coalesce(close, price) as close`

/** The candles of a market ($1) for increments of this length, in SQL. */
export const candlesOf = (minutes: number) =>
  minutes === 1
    ? `(select minute as starts_at, exact_increment, ${CANDLE_OF_MINUTE}
        from price_minutes where market_id = $1) candle`
    : `(select starts_at, exact_increment, open, high, low, close
        from price_points where market_id = $1 and increment_minutes = ${minutes}) candle`

const LENGTHS = Object.values(INCREMENT_MINUTES)
/** The increments whose points are counted per day and per four weeks, in the order of `price_points.counts`. */
export const COUNTED = LENGTHS.filter((minutes) => minutes <= DAY)

/**
 * The changes of the minutes are summed from increment to increment. Sums are exact, so adding differences equals
 * adding up everything again. The old price is the price before this statement; the market is locked, so nothing else
 * changes it. A high or a low cannot be corrected by a difference, so a candle is recomputed from its shorter
 * candles. Those that this statement changes (`of_`) precede those in the tables.
 */
const WRITE = `
  with incoming as (
    select distinct on (minute) minute, second, price, exact_increment,
           case when moved then open end as open, case when moved then high end as high,
           case when moved then low end as low, case when moved then close end as close
    from (
      select first + step as minute, second, coalesce((open + high + low + close) * 0.25, open) as price, place,
             exact_increment, open, high, low, close,
             greatest(open, high, low, close) > least(open, high, low, close) as moved
      from unnest($3::integer[], $4::smallint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[], $9::integer[])
        with ordinality as record (first, second, open, high, low, close, exact_increment, place)
      cross join generate_series(0, $2::integer - 1) as step
    ) covered
    order by minute, second desc, place desc
  ), written as (
    insert into price_minutes as kept
      (market_id, covers_minutes, minute, second, price, exact_increment, open, high, low, close)
    select $1, $2, minute, second, trim_scale(price), exact_increment,
           trim_scale(open), trim_scale(high), trim_scale(low), trim_scale(close)
    from incoming
    on conflict (market_id, minute) do update
    set covers_minutes = excluded.covers_minutes, second = excluded.second, price = excluded.price,
        exact_increment = excluded.exact_increment,
        open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
    where (excluded.covers_minutes, -excluded.second) <= (kept.covers_minutes, -kept.second)
      and (excluded.covers_minutes, excluded.second, excluded.price, excluded.exact_increment,
           excluded.open, excluded.high, excluded.low, excluded.close)
        is distinct from (kept.covers_minutes, kept.second, kept.price, kept.exact_increment,
                          kept.open, kept.high, kept.low, kept.close)
    returning minute, price, exact_increment, open, high, low, close
  ), compared as materialized (
    select w.*, (select price from price_minutes m where m.market_id = $1 and m.minute = w.minute) as before
    from written w
  ), of_1 as (
    select minute as starts_at,
           price - coalesce(before, 0) as sum,
           case when before is null then 1 else 0 end as minutes,
           exact_increment, ${CANDLE_OF_MINUTE}
    from compared
  ), ${LENGTHS.slice(1).map(addUp).join(', ')}
  select (select count(*)::integer from written) as changed,
         array(select starts_at from of_${DAY}) as days, newest.*
  from (values (0)) one_row
  left join (select minute, price from written order by minute desc limit 1) newest on true`

function addUp(minutes: number, index: number): string {
  const finer = LENGTHS[index]!
  return `
  of_${minutes} as (
    select ${startOfInSql('starts_at', minutes)} as starts_at, sum(sum) as sum, sum(minutes)::integer as minutes,
           max(exact_increment) as exact_increment,
           (array_agg(open order by starts_at))[1] as open, max(high) as high,
           min(low) as low, (array_agg(close order by starts_at desc))[1] as close
    from (
      select distinct on (starts_at) *
      from (
        select starts_at, sum, minutes, exact_increment, open, high, low, close, true as changed from of_${finer}
        union all
        select kept.*, false
        from (select distinct ${startOfInSql('starts_at', minutes)} as touched from of_${finer}) span
        cross join lateral (
          select starts_at, 0, 0, exact_increment, open, high, low, close
          from ${candlesOf(finer)}
          where starts_at >= touched and starts_at < touched + ${minutes}
          offset 0
        ) kept
      ) both_of_them
      order by starts_at, changed desc
    ) made_of
    group by 1
  ), written_${minutes} as (
    insert into price_points as kept
      (market_id, increment_minutes, starts_at, minutes, sum, exact_increment, open, high, low, close)
    select $1, ${minutes}, starts_at, minutes, sum, exact_increment, open, high, low, close
    from of_${minutes}
    order by starts_at
    on conflict (market_id, increment_minutes, starts_at) do update
    set minutes = kept.minutes + excluded.minutes, sum = kept.sum + excluded.sum,
        exact_increment = excluded.exact_increment,
        open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close
  )`
}

const COUNT_DAYS = `
  update price_points day
  set counts = array[minutes, ${COUNTED.slice(1)
    .map(
      (minutes) => `
        (select count(*) from price_points
         where market_id = $1 and increment_minutes = ${minutes}
           and starts_at >= day.starts_at and starts_at < day.starts_at + ${DAY})`,
    )
    .join(', ')}]
  where market_id = $1 and increment_minutes = ${DAY} and starts_at = any ($2::integer[])`

const COUNT_FOUR_WEEKS = `
  update price_points four_weeks
  set counts = (
    select array[${COUNTED.map((_, index) => `sum(counts[${index + 1}])`).join(', ')}]
    from price_points
    where market_id = $1 and increment_minutes = ${DAY}
      and starts_at >= four_weeks.starts_at and starts_at < four_weeks.starts_at + ${FOUR_WEEKS}
  )
  where market_id = $1 and increment_minutes = ${FOUR_WEEKS} and starts_at = any ($2::integer[])`
