import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cloneDatabase, type TestDatabase } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { selectMarkets } from './list-markets.ts'
import { MARKETS, type Market } from './markets.ts'
import { priceStatus } from './price-status.ts'
import { simulatedPrice, simulateMarkets, startSimulation } from './simulate-prices.ts'
import { lockMarket, writePrices } from './write-prices.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await cloneDatabase()
})
afterAll(() => database.drop())

// Every process must compute these prices, forever: other prices would change a sandbox's history.
test.each<[Market, number, string]>([
  ['BTCUSD', 29_500_000, '105630.2'],
  ['BTCUSD', 29_500_001, '105521.3'],
  ['ETHEUR', 29_500_000, '3039.76'],
  ['USDPUSD', 29_500_000, '1.00011'],
  ['PYUSDGBP', 29_540_320, '0.7507'],
  ['BTCMXN', 29_500_000, '1954937.94'],
])('%s in minute %i is %s', (market, minute, price) => {
  expect(simulatedPrice(market, minute)).toBe(price)
})

test('prices stay near their reference, move little in a minute, and agree between markets', () => {
  const at = (market: Market, minute: number) => Number(simulatedPrice(market, minute))
  for (let minute = 29_500_000; minute < 29_600_000; minute += 97) {
    expect(Math.abs(at('BTCUSD', minute) / 100_000 - 1)).toBeLessThan(0.2)
    expect(Math.abs(at('BTCUSD', minute + 1) / at('BTCUSD', minute) - 1)).toBeLessThan(0.01)
    expect(Math.abs(at('USDPUSD', minute) - 1)).toBeLessThan(0.001)
    const euro = at('BTCUSD', minute) / at('BTCEUR', minute)
    expect(Math.abs(at('ETHUSD', minute) / at('ETHEUR', minute) / euro - 1)).toBeLessThan(0.0001)
  }
})

test('processes that start together create every market once; missing prices are added later', async () => {
  const { db } = database
  const made = await Promise.all([1, 2, 3].map(() => simulateMarkets(db, { days: 1 })))
  const total = made.reduce((a, b) => a + b)
  // The clock may advance by a minute, and another process then adds that minute.
  expect(total).toBeGreaterThanOrEqual(MARKETS.length * 1440)
  expect(total).toBeLessThanOrEqual(MARKETS.length * 1442)
  const { markets } = await priceStatus(db)
  for (const { source, minutes } of markets) {
    expect(source).toBe('SIMULATED')
    expect(minutes).toBeGreaterThanOrEqual(1440)
  }
  const { rows } = await db.query<{ market: Market; minute: number; price: string }>(
    `select market, minute, trim_scale(price) as price from price_minutes join markets on id = market_id
     where minute % 97 = 0`,
  )
  expect(rows.length).toBeGreaterThan(MARKETS.length * 10)
  for (const { market, minute, price } of rows) expect(price).toBe(simulatedPrice(market, minute))

  // A market with a real price keeps it; an outdated simulated market is continued.
  await transaction(db, async (tx) => {
    const id = await lockMarket(tx, 'BTCUSD', 'REAL')
    await writePrices(tx, id!, { coversMinutes: 1, minute: [29_000_000], second: [0], prices: [['7']] })
  })
  await db.query(
    `delete from price_minutes where market_id = 1 and minute > (select max(minute) - 10 from price_minutes)`,
  )
  expect(await simulateMarkets(db, { days: 1 })).toBeGreaterThanOrEqual(10)
  const btc = (await selectMarkets(db)).find(({ market }) => market === 'BTCUSD')!
  expect(btc).toMatchObject({ source: 'REAL', first_time: '2025-02-19T21:20:00.000000Z' })
  expect(btc.last_time).toBe(btc.first_time)
})

test('it runs in the background and stops between two markets', async () => {
  const own = await cloneDatabase()
  const simulation = startSimulation({ db: own.db, days: 30, log: pino({ level: 'silent' }) })
  await expect
    .poll(async () => (await own.db.query('select from markets where source is not null')).rowCount, {
      timeout: 30_000,
    })
    .toBeGreaterThan(0)
  const before = performance.now()
  await simulation.stop()
  expect(performance.now() - before).toBeLessThan(10_000)
  const { markets } = await priceStatus(own.db)
  const begun = markets.filter(({ source }) => source !== undefined)
  expect(begun.length).toBeLessThan(MARKETS.length)
  for (const { minutes } of begun) expect(minutes).toBe(30 * 1440)
  await own.drop()
})
