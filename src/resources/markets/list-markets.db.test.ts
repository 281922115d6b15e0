import { describe, expect, test } from 'vitest'
import { newCustomer, ownTestService } from '../../../test/support.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { transaction } from '../../db/database.ts'
import { assetsOf, idOf, MARKETS } from '../../contract/markets.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'

const service = await ownTestService()

describe('List Markets', () => {
  test('the table holds the markets of the API, in its order', async () => {
    const { rows } = await service.db.query<{ id: number; market: string }>('select id, market from markets')
    expect(rows.sort((a, b) => a.id - b.id)).toEqual(MARKETS.map((market) => ({ id: idOf(market), market })))
    for (const market of MARKETS) {
      const { base_asset, quote_asset } = assetsOf(market)
      expect(base_asset + quote_asset).toBe(market)
      expect([findAsset(base_asset)?.symbol, findAsset(quote_asset)?.symbol]).toEqual([
        base_asset,
        quote_asset,
      ])
    }
  })

  test('markets have a span and a source once they have prices, for every customer the same', async () => {
    await transaction(service.db, async (tx) => {
      const id = await lockMarket(tx, 'BTCUSD', 'REAL')
      const minute = [29_459_520, 29_459_525]
      await writePrices(tx, id!, { coversMinutes: 1, minute, second: [0, 0], prices: [['1', '2']] })
    })
    const [one, other] = await Promise.all([newCustomer(service), newCustomer(service)])
    const { status, body } = await one.call<{ markets: Record<string, unknown>[] }>('GET', '/v2/markets')
    expect(status).toBe(200)
    expect(body.markets.map(({ market }) => market)).toEqual([...MARKETS])
    expect(body.markets.find(({ market }) => market === 'BTCUSD')).toEqual({
      market: 'BTCUSD',
      base_asset: 'BTC',
      quote_asset: 'USD',
      first_time: '2026-01-05T00:00:00.000000Z',
      last_time: '2026-01-05T00:05:00.000000Z',
      source: 'REAL',
    })
    expect(body.markets[0]).toEqual({ market: 'ETHEUR', base_asset: 'ETH', quote_asset: 'EUR' })
    expect((await other.call('GET', '/v2/markets')).body).toEqual(body)
  })
})
