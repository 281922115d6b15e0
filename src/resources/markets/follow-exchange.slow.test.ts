import { afterAll, beforeEach, expect, test } from 'vitest'
import { fakeCandle, startFakeKraken } from '../../../test/exchange.ts'
import { ownDatabase } from '../../../test/support.ts'
import { followExchange, type FollowExchangeOptions, type FollowRound } from './follow-exchange.ts'
import { minuteUnderWay } from './import-prices.ts'
import { beginSimulation, simulateUpToNow } from './simulate-prices.ts'

const database = await ownDatabase()
const kraken = await startFakeKraken()
afterAll(() => kraken.close())
beforeEach(() => {
  kraken.requests = []
})

async function follow(changes: Partial<FollowExchangeOptions> = {}): Promise<FollowRound[]> {
  const rounds: FollowRound[] = []
  await followExchange(database.db, {
    exchange: 'kraken',
    markets: ['BTCUSD'],
    url: kraken.url,
    once: true,
    signal: new AbortController().signal,
    onRound: (round) => rounds.push(round),
    onFailure: (error) => expect.unreachable(error.message),
    ...changes,
  })
  return rounds
}

const kept = async () => {
  const { rows } = await database.db.query<{ minute: number; covers: number; price: string }>(
    `select minute, covers_minutes as covers, trim_scale(price) as price from price_minutes
     where market_id = (select id from markets where market = 'BTCUSD') order by minute`,
  )
  return rows
}

/** In exact arithmetic: three of the four prices are equal, the fourth has 4 more in its third decimal. */
const averageOf = (minute: number, minutes: number) => {
  const [open] = fakeCandle(minute, minutes)
  return `${open}1`
}

/** Requires every minute of 30 days to have its price, the last 720 by candles of a minute and the others by those of an hour. */
async function requireWhole() {
  const rows = await kept()
  expect(rows.length).toBeGreaterThanOrEqual(719 * 60)
  expect(rows.at(-1)!.minute - rows[0]!.minute).toBe(rows.length - 1)
  const minutes = rows.filter(({ covers }) => covers === 1).length
  expect(minutes).toBeGreaterThanOrEqual(719)
  expect(minutes).toBeLessThanOrEqual(722)
  const wrong = rows.filter(
    ({ minute, covers, price }) =>
      price !== averageOf(covers === 1 ? minute : minute - (minute % 60), covers),
  )
  expect(wrong).toEqual([])
  return rows
}

test('a market without real prices gets hours, then minutes, then newly ended candles', async () => {
  await beginSimulation(database.db, 1)
  await simulateUpToNow(database.db, 'BTCUSD')
  kraken.lateMinutes = 10
  const [first] = await follow()
  expect(first!.markets.map(({ market }) => market)).toEqual(['BTCUSD'])
  // Kraken's 720 hours and 720 minutes; its current candle may have ended by our clock.
  expect(first!.markets[0]!.candles).toBeGreaterThanOrEqual(1438)
  expect(first!.markets[0]!.candles).toBeLessThanOrEqual(1442)
  const before = await requireWhole()

  kraken.lateMinutes = 0
  kraken.requests = []
  const [second] = await follow()
  // The clock may advance by a minute. Some of the last minutes are requested again, and no hours.
  expect(second!.markets[0]!.minutes_changed).toBeGreaterThanOrEqual(7)
  expect(second!.markets[0]!.minutes_changed).toBeLessThanOrEqual(12)
  expect(second!.markets[0]!.candles).toBeLessThan(20)
  expect(kraken.requests.filter((request) => request.includes('interval=60'))).toEqual([])
  const after = await kept()
  // Just after an hour, some minutes were known only from that hour's candle.
  const known = new Map(before.map(({ minute, covers }) => [minute, covers]))
  const changed = after.filter(({ minute, covers }) => known.get(minute) !== covers)
  expect(changed).toHaveLength(second!.markets[0]!.minutes_changed)
  expect(after.at(-1)!.minute - after[0]!.minute).toBe(after.length - 1)
})

test('after a round that failed between hours and minutes, the next round brings the minutes', async () => {
  await database.owner.query('truncate price_minutes, price_points')
  Object.assign(kraken, { failing: 1, failingOf: 'interval=1' })
  await expect(follow()).rejects.toThrow('503')
  expect((await kept()).every(({ covers }) => covers === 60)).toBe(true)
  await follow()
  await requireWhole()
  kraken.failingOf = ''
})

test('a round does not wait for minutes that the exchange no longer keeps', async () => {
  const { db } = database
  const old = (await minuteUnderWay(db)) - 5000
  await db.query(`delete from price_minutes where covers_minutes = 1 and minute > $1`, [old])
  await db.query(`update price_minutes set covers_minutes = 1 where minute = $1`, [old])
  kraken.forgets = true
  await follow()
  kraken.forgets = false
  const minutes = (await kept()).filter(({ covers }) => covers === 1)
  expect(minutes.length).toBeGreaterThanOrEqual(719)
})

test('a failing exchange is logged and retried, round after round, until the signal', async () => {
  kraken.failing = 1
  await expect(follow()).rejects.toThrow('503')
  kraken.failing = 1
  const stopping = new AbortController()
  const told: string[] = []
  await follow({
    once: false,
    signal: stopping.signal,
    onFailure: (error) => {
      told.push(error.message)
      stopping.abort()
    },
  })
  expect(told).toEqual([expect.stringContaining('503')])
  kraken.failing = 0
  const rounds: FollowRound[] = []
  const again = new AbortController()
  await follow({
    once: false,
    signal: again.signal,
    onRound: (round) => {
      rounds.push(round)
      again.abort()
    },
  })
  expect(rounds).toHaveLength(1)
})

test('a market that the exchange no longer has is reported, and the others go on', async () => {
  const told: string[] = []
  const [round] = await follow({
    markets: ['PAXGEUR', 'BTCUSD'],
    onFailure: (error) => void told.push(error.message),
  })
  expect(told).toEqual(['kraken has no market PAXG/EUR'])
  expect(round!.markets.map(({ market }) => market)).toEqual(['BTCUSD'])
})

test.each<[Partial<FollowExchangeOptions>, string]>([
  [{ exchange: 'frobnicate' }, 'ccxt does not support an exchange frobnicate'],
  [{ markets: ['PAXGEUR'] }, 'kraken has no market PAXG/EUR'],
  [{ url: 'http://127.0.0.1:1' }, 'kraken GET http://127.0.0.1:1/'],
])('%j is refused: %s', async (changes, message) => {
  await expect(follow(changes)).rejects.toThrow(message)
})
