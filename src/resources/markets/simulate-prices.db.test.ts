import { expect, test } from 'vitest'
import { ownTestService } from '../../../test/support.ts'
import { simulatedPrice } from '../../contract/assets/simulated-price.ts'
import { transaction } from '../../db/database.ts'
import { assetsOf, MARKETS, type Market } from '../../contract/markets.ts'
import { priceStatus } from './price-status.ts'
import { beginSimulation, simulateUpToNow } from './simulate-prices.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'

const service = await ownTestService()

interface Price {
  market: Market
  current_price: string
  yesterday_price?: string
  snapshot_at: string
}
const get = async <Body>(path: string) => (await service.app.inject(path)).json<Body>()
const newestPrices = async () => (await get<{ prices: Price[] }>('/v2/all-markets/prices')).prices
const spans = async () =>
  (await get<{ markets: { market: Market; first_time?: string; last_time?: string }[] }>('/v2/markets'))
    .markets
const minuteOf = (time: string | undefined) => Date.parse(time!) / 60_000
const written = async (market: Market) =>
  (
    await service.db.query<{ minute: number; price: string }>(
      `select minute, trim_scale(price) as price from price_minutes join markets on id = market_id
       where market = $1 order by minute`,
      [market],
    )
  ).rows

test('processes that start together begin each market once; its history is written when it is asked for', async () => {
  const { db } = service
  await Promise.all([1, 2, 3].map(() => beginSimulation(db, 2)))
  const { markets } = await priceStatus(db)
  expect(markets.map(({ source, minutes }) => [source, minutes])).toEqual(MARKETS.map(() => ['SIMULATED', 1]))
  // Lists that need the newest prices only have all of them.
  const span = (await spans()).find(({ market }) => market === 'ETHEUR')!
  const days = (minuteOf(span.last_time) - minuteOf(span.first_time) + 1) / 1440
  expect(days).toBeCloseTo(2, 2)
  const newest = await newestPrices()
  expect(newest.map(({ market }) => market)).toEqual([...MARKETS])

  await Promise.all([1, 2, 3].map(() => simulateUpToNow(db, 'ETHEUR')))
  const history = await written('ETHEUR')
  expect(history.length).toBeGreaterThanOrEqual(2 * 1440)
  expect(history[0]!.minute).toBe(minuteOf(span.first_time))
  for (const [index, { minute, price }] of history.entries()) {
    expect(minute).toBe(history[0]!.minute + index)
    expect(price).toBe(simulatedPrice(assetsOf('ETHEUR'), minute))
  }
  // What a list computed is what was written.
  const { current_price, yesterday_price, snapshot_at } = newest[MARKETS.indexOf('ETHEUR')]!
  const at = (minute: number) => history.find((one) => one.minute === minute)!.price
  expect(Number(current_price)).toBe(Number(at(minuteOf(snapshot_at))))
  expect(Number(yesterday_price)).toBe(Number(at(minuteOf(snapshot_at) - 1440)))
  expect(await written('BTCUSD')).toHaveLength(1)
})

test('an old history goes on without a gap, and a market with real prices keeps them', async () => {
  const { db } = service
  await service.owner.query(
    `delete from price_minutes where market_id = 1 and minute > (select max(minute) - 10 from price_minutes)`,
  )
  await simulateUpToNow(db, 'ETHEUR')
  const history = await written('ETHEUR')
  expect(history.at(-1)!.minute - history[0]!.minute).toBe(history.length - 1)

  await transaction(db, async (tx) => {
    const id = await lockMarket(tx, 'BTCUSD', 'REAL')
    await writePrices(tx, id!, { coversMinutes: 1, minute: [29_000_000], second: [0], prices: [['7']] })
  })
  await simulateUpToNow(db, 'BTCUSD')
  await beginSimulation(db, 1)
  expect(await written('BTCUSD')).toEqual([{ minute: 29_000_000, price: '7' }])
  const [btc] = (await newestPrices()).filter(({ market }) => market === 'BTCUSD')
  expect(btc).toEqual({
    market: 'BTCUSD',
    current_price: '7',
    snapshot_at: '2025-02-19T21:20:00.000000Z',
  })
})
