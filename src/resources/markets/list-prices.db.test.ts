import { beforeEach, describe, expect, test } from 'vitest'
import { startTestService, ownTestService } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { DAY } from '../../contract/increments.ts'
import type { Market } from '../../contract/markets.ts'
import { beginSimulation } from './simulate-prices.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { momentOfMicros } from '../../db/ids.ts'

const service = await ownTestService()
beforeEach(() => service.owner.query('truncate price_minutes, price_points'))

const START = 29_459_520
const at = (minute: number) => momentOfMicros(minute * 60_000_000).text

async function write(market: Market, minutes: Record<number, [string, string?, string?, string?]>) {
  await transaction(service.db, async (tx) => {
    const id = await lockMarket(tx, market, 'REAL')
    for (const [minute, prices] of Object.entries(minutes))
      await writePrices(tx, id!, {
        coversMinutes: 1,
        minute: [Number(minute)],
        second: [0],
        prices: prices.map((price) => [price!]) as [string[]],
      })
  })
}

async function prices(query = '') {
  const reply = await service.app.inject(`/v2/all-markets/prices${query}`)
  expect(reply.statusCode).toBe(200)
  const { prices: found, items } = reply.json<{ prices: object[]; items: object[] }>()
  expect(items).toEqual(found)
  return found
}

describe('Get Ticker', () => {
  const ticker = async (market: string) => {
    const reply = await service.app.inject(`/v2/markets/${market}/ticker`)
    expect(reply.statusCode).toBe(200)
    return reply.json<object>()
  }

  test('the newest price, and the figures of the 24 hours and of the day that end with it', async () => {
    const noon = START - (START % DAY) + DAY / 2
    await write('BTCUSD', {
      [noon]: ['11', '12.5', '10', '12.50'],
      [noon - DAY / 2]: ['13', '14', '9', '9'],
      // The minute before midnight, and the first and the last minute around the beginning of the 24 hours.
      [noon - DAY / 2 - 1]: ['20', '30', '2', '3'],
      [noon - DAY + 1]: ['7.10'],
      [noon - DAY]: ['1000', '2000', '0.1', '1000'],
    })
    const end = at(noon + 1)
    expect(await ticker('BTCUSD')).toEqual({
      market: 'BTCUSD',
      last_execution: { price: '12.5' },
      last_day: { open: '7.1', high: '30', low: '2', range: { begin: at(noon + 1 - DAY), end } },
      today: { open: '13', high: '14', low: '9', range: { begin: at(noon - DAY / 2), end } },
      snapshot_at: at(noon),
    })
  })

  test('a market whose only price is that of midnight, and one without any', async () => {
    const midnight = START - (START % DAY)
    await write('ETHUSD', { [midnight]: ['3'] })
    const three = { open: '3', high: '3', low: '3' }
    expect(await ticker('ETHUSD')).toMatchObject({
      last_day: three,
      today: { ...three, range: { begin: at(midnight), end: at(midnight + 1) } },
    })
    expect(await ticker('LTCUSD')).toEqual({ market: 'LTCUSD' })
    const unknown = await service.app.inject('/v2/markets/NOPE/ticker')
    expect(unknown.statusCode).toBe(400)
  })

  test('a simulated market has its newest minutes', async () => {
    await service.owner.query(`update markets set source = null`)
    await beginSimulation(service.db, 2)
    const [simulated] = (await prices('?markets=BTCUSD')) as { current_price: string }[]
    const { last_execution, last_day } = (await ticker('BTCUSD')) as {
      last_execution: { price: string }
      last_day: { high: string; low: string }
    }
    // Another minute may have begun between the two.
    const next = ((await prices('?markets=BTCUSD')) as { current_price: string }[])[0]!
    expect([simulated!.current_price, next.current_price]).toContain(last_execution.price)
    expect(Number(last_day.low)).toBeLessThan(Number(last_day.high))
    await service.owner.query(`update markets set source = null`)
  })
})

describe('List Prices', () => {
  test('the newest price is the close of its minute; the one before is a day to two days older', async () => {
    await write('BTCUSD', {
      [START]: ['10', '20', '5', '15.50'],
      [START - DAY]: ['9'],
      [START - DAY + 1]: ['8'],
      [START - 2 * DAY + 1]: ['7'],
    })
    await write('ETHUSD', { [START]: ['3'], [START - 2 * DAY + 1]: ['2.5', '2.5', '2', '2.25'] })
    await write('LTCUSD', { [START]: ['1'], [START - 2 * DAY]: ['4'] })
    expect(await prices()).toEqual([
      { market: 'ETHUSD', current_price: '3', yesterday_price: '2.25', snapshot_at: at(START) },
      { market: 'BTCUSD', current_price: '15.5', yesterday_price: '9', snapshot_at: at(START) },
      { market: 'LTCUSD', current_price: '1', snapshot_at: at(START) },
    ])
  })

  test('the named markets, once each and in the order of the API; without prices they are left out', async () => {
    await write('BTCUSD', { [START]: ['1'] })
    await write('ETHUSD', { [START]: ['2'] })
    expect(await prices('?markets=BTCUSD,LTCUSD&markets=BTCUSD')).toMatchObject([{ market: 'BTCUSD' }])
    expect(await prices('?markets=LTCUSD')).toEqual([])
    expect(await prices()).toHaveLength(2)
  })

  test('an address above the rate limit gets the time to ask again', async () => {
    const limited = await startTestService({
      BURSAR_RATE_LIMIT_PER_SECOND: '1',
      BURSAR_RATE_LIMIT_BURST: '2',
    })
    try {
      const from = (remoteAddress: string) =>
        limited.app.inject({ url: '/v2/all-markets/prices', remoteAddress })
      expect((await from('192.0.2.1')).statusCode).toBe(200)
      expect((await from('192.0.2.1')).statusCode).toBe(200)
      const refused = await from('192.0.2.1')
      expect(refused.statusCode).toBe(429)
      expect(refused.headers['retry-after']).toBe('1')
      expect(refused.json()).toMatchObject({ detail: expect.stringContaining('address') as unknown })
      expect((await from('192.0.2.2')).statusCode).toBe(200)
    } finally {
      await limited.close()
    }
  })
})
