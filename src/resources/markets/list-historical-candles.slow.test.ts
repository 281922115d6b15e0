/*
 * Invariants of candles, for any minutes in any order:
 * 1. a candle has the open of its first minute, the highest and lowest price, and the close of its last minute;
 * 2. a candle combines the candles of every finer increment in the same way;
 * 3. a minute has the shortest record that covers it, and a candle is exact unless a record reaches beyond it;
 * 4. the pages together are the whole list, in either order.
 */
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import { newCustomer, ownTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { importPrices } from './import-prices.ts'
import { INCREMENT_MINUTES, INCREMENTS, type Increment } from '../../contract/increments.ts'
import { MARKETS, type Market } from '../../contract/markets.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { momentOfMicros } from '../../db/ids.ts'

interface Candle {
  timestamp: string
  open: string
  high: string
  low: string
  close: string
  exact: boolean
}
interface Candles {
  market: string
  increment: Increment
  items: Candle[]
  next_page_cursor?: string
}

const service = await ownTestService()
const customer = await newCustomer(service)

/** 2026-01-05, a Monday on which no four-week span begins, in minutes. */
const START = 29_459_520
const at = (minute: number) => momentOfMicros(minute * 60_000_000).text

async function ask(market: Market, query: Record<string, string | number | undefined> = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const parameters = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  )
  const path = `/v2/markets/${market}/historical-candles?${parameters.toString()}`
  return customer.call<Candles>('GET', path)
}

/** Reads every candle of an increment, oldest first, page by page. */
async function everyCandle(market: Market, query: Record<string, string | number | undefined>) {
  const items: Candle[] = []
  let cursor: string | undefined
  do {
    const { status, body } = await ask(market, { ...query, page_cursor: cursor })
    expect(status, JSON.stringify(body)).toBe(200)
    items.push(...body.items)
    cursor = body.next_page_cursor
  } while (cursor !== undefined)
  return query.order === 'ASC' ? items : items.reverse()
}

/** A record of a price source: prices in units of 0.01. */
interface PriceRecord {
  first: number
  covers: number
  prices: [number] | [open: number, high: number, low: number, close: number]
}

const decimal = (units: number) => `${Math.floor(units / 100)}.${String(units % 100).padStart(2, '0')}`

async function write(market: Market, records: PriceRecord[]) {
  for (const { first, covers, prices } of records)
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, market, 'REAL')
      const columns = prices.map((units) => [decimal(units)])
      await writePrices(tx, id!, {
        coversMinutes: covers,
        minute: [first],
        second: [0],
        prices: columns as [string[]] | [string[], string[], string[], string[]],
      })
    })
}

// The reference, which uses none of the code under test.

interface Folded {
  at: number
  open: number
  high: number
  low: number
  close: number
  /** The first minute of its records, and the one after the last. */
  begin: number
  end: number
}

/** The final record of each minute: the shortest one that covers it, and of those the newest. */
function minutesOf(records: PriceRecord[]): Folded[] {
  const minutes = new Map<number, PriceRecord>()
  for (const record of records)
    for (let minute = record.first; minute < record.first + record.covers; minute++)
      if (record.covers <= (minutes.get(minute)?.covers ?? Infinity)) minutes.set(minute, record)
  return [...minutes]
    .sort(([a], [b]) => a - b)
    .map(([minute, record]) => {
      const [open, high = open, low = open, close = open] = record.prices
      return { at: minute, open, high, low, close, begin: record.first, end: record.first + record.covers }
    })
}

const startOf = (minute: number, length: number) => {
  const monday = length > 1440 ? 4 * 1440 : 0
  return minute - ((((minute - monday) % length) + length) % length)
}

/** Combines sorted finer candles into candles of this many minutes. */
function fold(finer: Folded[], length: number): Folded[] {
  const candles: Folded[] = []
  for (const one of finer) {
    const start = startOf(one.at, length)
    const last = candles.at(-1)
    if (last?.at !== start) candles.push({ ...one, at: start })
    else
      Object.assign(last, {
        high: Math.max(last.high, one.high),
        low: Math.min(last.low, one.low),
        close: one.close,
        begin: Math.min(last.begin, one.begin),
        end: Math.max(last.end, one.end),
      })
  }
  return candles
}

const onTheWire = (candles: Folded[], length: number): Candle[] =>
  candles.map(({ at: start, open, high, low, close, begin, end }) => ({
    timestamp: at(start),
    open: canonical(open),
    high: canonical(high),
    low: canonical(low),
    close: canonical(close),
    exact: begin >= start && end <= start + length,
  }))
const canonical = (units: number) => String(units / 100)

const units = fc.integer({ min: 1, max: 99_999 })
const record: fc.Arbitrary<PriceRecord> = fc
  .tuple(
    fc.constantFrom(1, 1, 1, 1, 2, 5, 60, 240, 1440, 10_080),
    fc.oneof(fc.nat(300), fc.nat(70_000)),
    units,
    units,
    units,
    units,
    fc.integer({ min: 0, max: 3 }),
  )
  .map(([covers, minute, one, two, three, four, shape]) => {
    const first = START + minute - (covers === 2 ? 0 : minute % covers)
    const [low, high] = [Math.min(one, two, three, four), Math.max(one, two, three, four)]
    return { first, covers, prices: covers === 1 && shape === 0 ? [one] : [three, high, low, four] }
  })

describe('List Historical Candles', () => {
  test('every candle combines its minutes, and the candles of every finer increment', async () => {
    let next = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 150, max: 1000 }),
        fc.constantFrom('ASC', 'DESC'),
        async (records, limit, order) => {
          const market = MARKETS[next++ % MARKETS.length]!
          await service.owner.query('truncate price_minutes, price_points')
          await write(market, records)
          const minutes = minutesOf(records)
          // Lists up to this length are read back whole; longer lists of minutes only in part.
          const shown = new Map<Increment, Folded[]>()
          for (const increment of INCREMENTS) {
            const length = INCREMENT_MINUTES[increment]
            const expected = fold(minutes, length)
            const part = expected.slice(-2000)
            const answered = await everyCandle(market, {
              increment,
              limit,
              order,
              'range.begin': at(part[0]!.at),
            })
            expect(answered).toEqual(onTheWire(part, length))
            shown.set(increment, expected)
            for (const [finer, candles] of shown)
              if (INCREMENT_MINUTES[finer] < length) expect(fold(candles, length)).toEqual(expected)
          }
        },
      ),
      runs(12),
    )
  })

  test('one batch of many minutes leaves the same tables as single minutes', async () => {
    const [one, other] = ['BTCUSD', 'ETHUSD'] as const
    await service.owner.query('truncate price_minutes, price_points')
    const records: PriceRecord[] = Array.from({ length: 400 }, (_, n) => {
      const [open, close] = [100 + ((n * 37) % 90), 100 + ((n * 53) % 90)]
      return {
        first: START + ((n * 7) % 400) * 3,
        covers: 1,
        prices: [open, Math.max(open, close) + 5, Math.min(open, close) - 5, close],
      }
    })
    await write(one, records)
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, other, 'REAL')
      await writePrices(tx, id!, {
        coversMinutes: 1,
        minute: records.map(({ first }) => first),
        second: records.map(() => 0),
        prices: [0, 1, 2, 3].map((column) => records.map(({ prices }) => decimal(prices[column]!))) as [
          string[],
          string[],
          string[],
          string[],
        ],
      })
    })
    for (const increment of INCREMENTS)
      expect(await everyCandle(other, { increment })).toEqual(await everyCandle(one, { increment }))
  })

  describe('requests', () => {
    const MARKET: Market = 'BTCUSD'
    beforeAll(async () => {
      await service.owner.query('truncate price_minutes, price_points')
      await write(
        MARKET,
        Array.from({ length: 120 }, (_, n) => ({ first: START + n, covers: 1, prices: [n + 1] })),
      )
    })
    const starts = ({ body }: { body: Candles }) =>
      body.items.map(({ timestamp }) => Date.parse(timestamp) / 60_000 - START)

    test('newest first by default; the bounds are inclusive', async () => {
      const bounds = {
        increment: 'THIRTY_MINUTES',
        'range.begin': at(START + 30),
        'range.end': at(START + 90),
      }
      expect(starts(await ask(MARKET, bounds))).toEqual([90, 60, 30])
      expect(starts(await ask(MARKET, { ...bounds, order: 'ASC' }))).toEqual([30, 60, 90])
    })

    test.each([
      [{ max_data_points: 120 }, 'ONE_MINUTE', 100],
      [{ max_data_points: 119 }, 'FIVE_MINUTES', 24],
      [{ max_data_points: 4 }, 'THIRTY_MINUTES', 4],
      [{}, 'FIVE_MINUTES', 24],
      [{ limit: 2 }, 'ONE_HOUR', 2],
    ] as const)('%j infers %s', async (query, increment, count) => {
      const { body } = await ask(MARKET, query)
      expect([body.increment, body.items.length]).toEqual([increment, count])
    })

    test('later pages keep the increment of the first', async () => {
      const first = await ask(MARKET, { max_data_points: 120, limit: 70 })
      const cursor = first.body.next_page_cursor
      const second = await ask(MARKET, { max_data_points: 120, limit: 70, page_cursor: cursor })
      expect(second.body).toMatchObject({ increment: 'ONE_MINUTE' })
      expect(second.body.next_page_cursor).toBeUndefined()
      expect([...starts(first), ...starts(second)]).toEqual(Array.from({ length: 120 }, (_, n) => 119 - n))
      const other = await ask('ETHUSD', { max_data_points: 120, page_cursor: cursor })
      expect(other.status).toBe(400)
    })

    test('a market without prices has no candle', async () => {
      expect((await ask('PYUSDGBP', { increment: 'ONE_DAY' })).body).toEqual({
        market: 'PYUSDGBP',
        increment: 'ONE_DAY',
        items: [],
      })
    })
  })
})

describe('six columns without a header', () => {
  const rows = Array.from({ length: 30 }, (_, n) => ({
    open: 20 + n,
    high: 40 + n,
    low: 9 + n,
    close: 15 + n,
  }))
  test.each([
    ["in Coinbase's order", ({ open, high, low, close }: (typeof rows)[0]) => [low, high, open, close]],
    ['in the usual order', ({ open, high, low, close }: (typeof rows)[0]) => [open, high, low, close]],
  ])('%s', async (name, columns) => {
    await service.owner.query('truncate price_minutes, price_points')
    const path = join(tmpdir(), `bursar-candles-${process.pid}.csv`)
    await writeFile(path, rows.map((row, n) => `${(START + n) * 60},${columns(row).join(',')},1\n`).join(''))
    await importPrices(service.db, { path, market: 'LTCUSD', again: true })
    const candles = await everyCandle('LTCUSD', { increment: 'ONE_MINUTE' })
    expect(candles, name).toEqual(
      rows.map((row, n) => ({
        timestamp: at(START + n),
        open: String(row.open),
        high: String(row.high),
        low: String(row.low),
        close: String(row.close),
        exact: true,
      })),
    )
  })
})
