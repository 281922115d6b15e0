/*
 * Invariants of market history, for any minutes in any order:
 * 1. a point is the exact average of the minutes in its increment. It exists if it has a minute, its increment has
 * ended, and the known prices reach its end or are five minutes late;
 * 2. the pages together equal one big page, and total_count is its length;
 * 3. max_data_points selects the finest increment that fits.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs, SEED, seededRandom } from '../../../test/seed.ts'
import { newCustomer, ownTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { INCREMENTS, INCREMENT_MINUTES, type Increment } from '../../contract/increments.ts'
import type { Market } from '../../contract/markets.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { momentOfMicros } from '../../db/ids.ts'

interface Prices {
  market: string
  prices: { average_price: string; timestamp: string }[]
  items: unknown
  total_count: number
}

/** The final price of each minute, in units of 0.0001. */
const worlds: Partial<Record<Market, Map<number, bigint>>> = {}
const EMPTY: Market = 'PYUSDGBP'

const decimal = (units: bigint) => `${units / 10_000n}.${String(units % 10_000n).padStart(4, '0')}`

/** Returns runs of minutes with gaps of any length between them. */
function gappy(random: (below: number) => number, from: number, to: number, stretches: number) {
  const minutes = new Map<number, bigint>()
  for (let run = 0; run < stretches; run++) {
    const first = from + random(to - from)
    const length = 1 + random(random(4) === 0 ? 400 : 12)
    for (let n = 0; n < length && first + n < to; n++) minutes.set(first + n, BigInt(1 + random(900_000_000)))
  }
  return minutes
}

/** Writes overlapping pieces in any order; later pieces correct wrong prices in earlier ones. */
async function write(market: Market, minutes: Map<number, bigint>, random: (below: number) => number) {
  const records = [...minutes].map(([minute, units]) => ({ minute, units, order: random(1e9) }))
  records.sort((a, b) => a.order - b.order)
  const early = records
    .filter(() => random(5) === 0)
    .map((record) => ({ ...record, units: record.units + 7n }))
  const all = [...early, ...records]
  for (let at = 0; at < all.length;) {
    const piece = all.slice(at, at + 1 + random(2000))
    at += piece.length
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, market, 'REAL')
      await writePrices(tx, id!, {
        coversMinutes: 1,
        minute: piece.map(({ minute }) => minute),
        second: piece.map(() => 0),
        prices: [piece.map(({ units }) => decimal(units))],
      })
    })
  }
}

const service = await ownTestService()
const customer = await newCustomer(service)
/** The current minute when the tests begin. */
const start = await minuteUnderWay()
const draw = seededRandom()
const random = (below: number) => Math.floor(draw() * below)
// Half a year with gaps, beyond the current minute; a few whole days; a single minute.
worlds.BTCUSD = gappy(random, start - 260_000, start + 3000, 700)
worlds.ETHUSD = new Map(
  Array.from({ length: 4500 }, (_, n) => [start - 4500 + n, BigInt(1 + random(1e9))] as const),
)
worlds.LTCUSD = new Map([[start - 50_000, 1n]])
for (const [market, minutes] of Object.entries(worlds)) await write(market as Market, minutes, random)
worlds[EMPTY] = new Map()

// The reference, which uses none of the code under test.

interface Asked {
  begin?: number | undefined
  end?: number | undefined
  increment?: Increment | undefined
}

interface Point {
  average_price: string
  timestamp: number
}
const known = new Map<string, Point[]>()

/** Computes all points of an increment, rounded half up to 8 decimals. */
function everyPoint(market: Market, increment: Increment): Point[] {
  const key = `${market} ${increment}`
  const before = known.get(key)
  if (before !== undefined) return before
  const length = INCREMENT_MINUTES[increment]
  const monday = ['ONE_WEEK', 'TWO_WEEKS', 'FOUR_WEEKS'].includes(increment) ? 4 * 24 * 60 : 0
  const groups = new Map<number, bigint[]>()
  for (const [minute, units] of worlds[market]!) {
    const at = minute - ((((minute - monday) % length) + length) % length)
    if (!groups.has(at)) groups.set(at, [])
    groups.get(at)!.push(units)
  }
  const points = [...groups]
    .sort(([a], [b]) => a - b)
    .map(([at, units]) => {
      const sum = units.reduce((total, one) => total + one, 0n) * 10_000n
      const count = BigInt(units.length)
      const rounded = (2n * sum + count) / (2n * count)
      const text = `${rounded / 100_000_000n}.${String(rounded % 100_000_000n).padStart(8, '0')}`
      return { average_price: text.replace(/\.?0+$/, ''), timestamp: at }
    })
  known.set(key, points)
  return points
}

/** Computes the points that a request with these bounds (in microseconds) returns at this minute. */
function reference(
  market: Market,
  increment: Increment,
  { begin, end, increment: given }: Asked,
  now: number,
) {
  const last = Math.max(...worlds[market]!.keys())
  const ended = Math.max(Math.min(last + 1, now), now - 5)
  return everyPoint(market, increment).filter(({ timestamp }) => {
    if (timestamp + INCREMENT_MINUTES[increment] > ended) return false
    const micros = timestamp * 60_000_000
    if (given !== undefined)
      return (begin === undefined || micros > begin) && (end === undefined || micros < end)
    return (begin === undefined || micros >= begin) && (end === undefined || micros <= end)
  })
}

const timestamp = (minute: number) => momentOfMicros(minute * 60_000_000).text
const onTheWire = (points: { average_price: string; timestamp: number }[]) =>
  points.map((point) => ({ ...point, timestamp: timestamp(point.timestamp) }))

async function minuteUnderWay(): Promise<number> {
  const { rows } = await service.db.query<{ now: number }>(
    'select floor(extract(epoch from clock_timestamp()) / 60)::integer as now',
  )
  return rows[0]!.now
}

async function ask(market: Market, query: Record<string, string | number | undefined>): Promise<Prices> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const parameters = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  )
  const path = `/v2/markets/${market}/historical-prices?${parameters.toString()}`
  const { status, body } = await customer.call<Prices>('GET', path)
  expect(status, JSON.stringify(body)).toBe(200)
  expect(body.items).toEqual(body.prices)
  expect(body.market).toBe(market)
  return body
}

const bounds = ({ begin, end }: Asked) => ({
  'range.begin': begin === undefined ? undefined : momentOfMicros(begin).text,
  'range.end': end === undefined ? undefined : momentOfMicros(end).text,
})

/** The database's clock advances while tests run, so the expected result before or after the request is correct. */
async function eitherSide<T>(question: () => Promise<T>, answerAt: (now: number) => unknown): Promise<T> {
  const before = await minuteUnderWay()
  const answer = await question()
  const after = await minuteUnderWay()
  if (after !== before) return eitherSide(question, answerAt)
  expect(answer).toEqual(answerAt(before))
  return answer
}

const markets = fc.constantFrom<Market>('BTCUSD', 'BTCUSD', 'BTCUSD', 'ETHUSD', 'LTCUSD', EMPTY)
/** A moment relative to now: near and far, on and next to the starts of increments. */
const moment = fc
  .tuple(
    fc.oneof(fc.integer({ min: -261_000, max: 4000 }), fc.integer({ min: -5000, max: 10 })),
    fc.constantFrom(1, 1, 5, 60, 1440, 10_080, 40_320),
    fc.constantFrom(0, 0, 0, 1, 30_000_000, -1),
  )
  .map(([minute, aligned, micros]) => (span: number) => {
    const monday = aligned > 1440 ? 5760 : 0
    const at = Math.floor((span + minute - monday) / aligned) * aligned + monday
    return at * 60_000_000 + micros
  })
const range = fc
  .tuple(fc.option(moment, { nil: undefined }), fc.option(moment, { nil: undefined }))
  .map(([one, other]) => () => {
    const [a, b] = [one?.(start), other?.(start)]
    return a !== undefined && b !== undefined && a > b ? { begin: b, end: a } : { begin: a, end: b }
  })

describe('List Historical Prices', () => {
  test('an increment is missing until its last minute arrives or is late', async () => {
    const draw = seededRandom()
    const random = (below: number) => Math.floor(draw() * below)
    // The market's last price is some minutes ago; its increments count as ended after five minutes.
    const prices = async () => {
      const now = await minuteUnderWay()
      const end = now - (now % 5)
      return { now, end, ...(await ask('BCHUSD', { increment: 'FIVE_MINUTES' })) }
    }
    const { end } = await prices()
    const [first, last] = [end - 10, end - 1]
    const minutes = (from: number, to: number) =>
      new Map(Array.from({ length: to - from }, (_, n) => [from + n, 10_000n] as const))
    await write('BCHUSD', minutes(first, last), random)
    const before = await prices()
    const there = (starts: number[]) => starts.map((at) => ({ average_price: '1', timestamp: timestamp(at) }))
    expect(before.prices).toEqual(there(before.end === end ? [first] : [first, first + 5]))
    expect(before.total_count).toBe(before.prices.length)
    await write('BCHUSD', minutes(last, end), random)
    expect((await prices()).prices).toEqual(there([first, first + 5]))
  })

  describe('properties', () => {
    test('points of an increment are the exact averages of the minutes in it', async () => {
      await fc.assert(
        fc.asyncProperty(
          markets,
          fc.constantFrom(...INCREMENTS),
          range,
          fc.constantFrom(1, 10, 100, 1000),
          fc.oneof(fc.nat(20), fc.nat(20_000)),
          async (market, increment, rangeAt, limit, offset) => {
            const asked = { ...rangeAt(), increment }
            await eitherSide(
              () =>
                ask(market, {
                  ...bounds(asked),
                  increment,
                  'pagination.limit': limit,
                  'pagination.offset': offset,
                }),
              (now) => {
                const all = reference(market, increment, asked, now)
                const prices = onTheWire(all.slice(offset, offset + limit))
                return { market, prices, items: prices, total_count: all.length }
              },
            )
          },
        ),
        runs(400),
      )
    })

    test('max_data_points selects the finest increment that fits', async () => {
      await fc.assert(
        fc.asyncProperty(
          markets,
          range,
          fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 9000 })),
          fc.constantFrom(undefined, 1, 100, 1000),
          fc.constantFrom(undefined, 0, 3, 700),
          fc.boolean(),
          async (market, rangeAt, points, limit, offset, given) => {
            const asked = rangeAt()
            const max = given ? points : (limit ?? 100)
            await eitherSide(
              () =>
                ask(market, {
                  ...bounds(asked),
                  max_data_points: given ? points : undefined,
                  'pagination.limit': limit,
                  'pagination.offset': offset,
                }),
              (now) => {
                const every = INCREMENTS.map((increment) => reference(market, increment, asked, now))
                const all = every.find((found) => found.length <= max) ?? every.at(-1)!
                const skipped = offset ?? 0
                const prices = onTheWire(all.slice(skipped, skipped + Math.min(limit ?? 100, max)))
                return { market, prices, items: prices, total_count: all.length }
              },
            )
          },
        ),
        runs(250),
      )
    })

    test('the pages together equal one big page', async () => {
      const PAGES = 12
      let [asks, ofSeveralPages] = [0, 0]
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom<Market>('BTCUSD', 'ETHUSD'),
          fc.constantFrom(...INCREMENTS),
          range,
          fc.integer({ min: 1, max: 30 }),
          async (market, increment, rangeAt, limitMin) => {
            // Increments that ended five minutes before the start do not change, so the clock may advance.
            const ended = start - 5 - INCREMENT_MINUTES[increment]
            const { begin, end = Infinity } = rangeAt()
            const asked = { begin, end: Math.min(end, (ended + 1) * 60_000_000), increment }
            if (begin !== undefined && begin > asked.end) return
            const all = onTheWire(reference(market, increment, asked, start))
            const limit = Math.min(1000, Math.max(limitMin, Math.ceil(all.length / PAGES)))
            asks += 1
            if (all.length > limit) ofSeveralPages += 1
            const seen: unknown[] = []
            for (let page = 0; page <= all.length / limit; page++) {
              const { prices, total_count } = await ask(market, {
                ...bounds(asked),
                increment,
                'pagination.limit': limit,
                'pagination.offset': page * limit,
              })
              expect(total_count).toBe(all.length)
              seen.push(...prices)
            }
            expect(seen).toEqual(all)
          },
        ),
        { seed: SEED, numRuns: 60 },
      )
      expect(ofSeveralPages, `of ${asks} asks`).toBeGreaterThan(asks / 5)
    })
  })
})
