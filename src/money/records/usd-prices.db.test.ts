import { expect, test } from 'vitest'
import { newCustomer, ROW_MACS, ownTestService } from '../../../test/support.ts'
import { parseAmount } from '../../contract/assets/amount.ts'
import { simulatedPrice } from '../../contract/assets/simulated-price.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { openDatabase, transaction, type Queryable } from '../../db/database.ts'
import type { Market } from '../../contract/markets.ts'
import { lockMarket, writePrices } from './write-prices.ts'
import { notionalUsd } from '../../contract/assets/usd-value.ts'
import { verify } from '../verify/verify.ts'
import { newestUsdPrices, usdPrices } from './usd-prices.ts'

const service = await ownTestService()
await write('BTCUSD', { 3: '60000', 1: '61234.5678' })
await write('LTCUSD', { 1_500: '70' })
await service.db.query("update markets set source = 'SIMULATED' where market = 'ETHUSD'")

/** Writes prices. Each key of `ago` is the age of a price in minutes. */
async function write(market: Market, ago: Record<number, string>) {
  const now = Math.floor(Date.now() / 60_000)
  await transaction(service.db, async (tx) => {
    const id = await lockMarket(tx, market, 'REAL')
    await writePrices(tx, id!, {
      coversMinutes: 1,
      minute: Object.keys(ago).map((minutes) => now - Number(minutes)),
      second: Object.keys(ago).map(() => 0),
      prices: [Object.values(ago)],
    })
  })
}

const whole = (text: string) => parseAmount(text, 18)!

/** The simulated prices of the last whole minutes: a price is kept for ten seconds, and the next minute may have begun. */
function newestEther(): bigint[] {
  const now = Math.floor(Date.now() / 60_000)
  const assets = { base_asset: 'ETH', quote_asset: 'USD' }
  return [1, 2].map((ago) => whole(simulatedPrice(assets, now - ago)))
}

test('live mode uses the newest real price of the last day; the sandbox also uses simulated and catalogue prices', async () => {
  const live = await usdPrices(service.db, false)
  expect(live.get('BTC')).toBe(whole('61234.5678'))
  expect(live.get('USDG')).toBe(whole('1'))
  for (const symbol of ['ETH', 'LTC', 'SOL']) expect(live.get(symbol)).toBeUndefined()
  const sandbox = await usdPrices(service.db, true)
  expect(sandbox.get('BTC')).toBe(whole('61234.5678'))
  expect(newestEther()).toContain(sandbox.get('ETH'))
  for (const symbol of ['LTC', 'SOL'])
    expect(sandbox.get(symbol)).toBe(whole(findAsset(symbol)!.sandboxPriceUsd!))
})

test('a minute has its price to its last millisecond', async () => {
  const minute = Math.floor(Date.now() / 60_000) - 60
  const at = new Date(60_000 * minute + 59_999).toISOString()
  const price = simulatedPrice({ base_asset: 'ETH', quote_asset: 'USD' }, minute)
  expect((await newestUsdPrices(service.db, true, { at })).get('ETH')).toBe(whole(price))
})

test('prices are read once for many callers, and again after a failure', async () => {
  const reader = openDatabase(service.url, { max: 1, onError: () => undefined })
  let queries = 0
  let broken = true
  const counted: Pick<Queryable, 'query'> = {
    query: ((...call: Parameters<Queryable['query']>) => {
      queries++
      return broken ? Promise.reject(new Error('no')) : reader.query(...call)
    }) as Queryable['query'],
  }
  await expect(usdPrices(counted, true)).rejects.toThrow('no')
  broken = false
  const prices = await Promise.all([1, 2, 3].map(() => usdPrices(counted, true)))
  expect(newestEther()).toContain(prices[0]!.get('ETH'))
  expect(queries).toBe(2)
  await reader.end()
})

test("prices that the service's role writes decide nothing, and the next real price counts", async () => {
  const price = async (symbol: string) => (await newestUsdPrices(service.db, false)).get(symbol)
  const forge = (market: Market) =>
    service.db.query(
      `insert into price_minutes (market_id, covers_minutes, minute, second, price, exact_increment)
       select id, 1, extract(epoch from clock_timestamp())::bigint / 60 - n, 59, 0.01, 1
       from markets, generate_series(0, 2) n where market = $1
       on conflict (market_id, minute) do update set price = 0.01, second = 59`,
      [market],
    )
  for (const market of ['BTCUSD', 'ETHUSD'] as const) await forge(market)
  await service.db.query("update markets set source = 'REAL' where market = 'ETHUSD'")
  expect(await price('ETH')).toBeUndefined()
  expect(await price('BTC')).toBe(whole('61234.5678'))
  // What was written into the history is not sealed with the next price.
  await write('BTCUSD', { 4: '60000', 1: '61235' })
  expect(await price('BTC')).toBe(whole('61234.5678'))
  await service.db.query(
    "update markets set newest_price = 0.01, newest_minute = newest_minute + 1000 where market = 'BTCUSD'",
  )
  const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
  expect(disagreements.map(({ detail }) => detail)).toContainEqual(expect.stringContaining('markets BTCUSD'))
  expect(await price('BTC')).toBeUndefined()
  await service.owner.query('delete from price_minutes where price = 0.01')
  await write('BTCUSD', { 1: '61237' })
  expect(await price('BTC')).toBe(whole('61237'))
})

test('a notional value is cents, rounded down', () => {
  const ether = findAsset('ETH')!
  const minor = parseAmount('1.001', ether.decimals)!
  expect(notionalUsd(minor, ether, new Map([['ETH', whole('3251.42')]]))).toBe('3254.67')
  expect(notionalUsd(minor, ether, new Map())).toBeUndefined()
})

test("a transfer's notional value uses the prices", async () => {
  const customer = await newCustomer(service)
  const path = `/v2/sandbox/profiles/${customer.profile_id}/deposit`
  await customer.call('POST', path, { asset: 'BTC', amount: '0.5', crypto_network: 'BITCOIN' })
  const { body } = await customer.call<{ notional_value: string }>(
    'POST',
    '/v2/transfer/crypto-withdrawals',
    {
      profile_id: customer.profile_id,
      asset: 'BTC',
      crypto_network: 'BITCOIN',
      total: '0.25',
      destination_address: 'bc1qqv9pzxqlyckngw6zf9g9whn9d3eh4qvg8d8phl',
    },
  )
  expect(body.notional_value).toBe('15308.64')
})
