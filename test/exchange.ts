import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How many candles Kraken gives at most, the one under way among them. */
const CANDLES_MAX = 720

const asset = (altname: string, decimals: number) => ({
  aclass: 'currency',
  altname,
  decimals,
  display_decimals: 5,
  status: 'enabled',
})
const pair = (altname: string, wsname: string, base: string) => ({
  altname,
  wsname,
  aclass_base: 'currency',
  base,
  aclass_quote: 'currency',
  quote: 'ZUSD',
  cost_decimals: 5,
  pair_decimals: 1,
  lot: 'unit',
  lot_decimals: 8,
  lot_multiplier: 1,
  leverage_buy: [2, 3],
  leverage_sell: [2, 3],
  fees: [[0, 0.4]],
  fees_maker: [[0, 0.25]],
  fee_volume_currency: 'ZUSD',
  margin_call: 80,
  margin_stop: 40,
  ordermin: '0.00005',
  costmin: '0.5',
  tick_size: '0.1',
  status: 'online',
})
const ASSETS = { XXBT: asset('XBT', 10), XETH: asset('ETH', 10), ZUSD: asset('USD', 4) }
const PAIRS = {
  XXBTZUSD: pair('XBTUSD', 'XBT/USD', 'XXBT'),
  XETHZUSD: pair('ETHUSD', 'ETH/USD', 'XETH'),
}

export interface FakeKraken {
  url: string
  requests: string[]
  /** Moves its clock, which is ours, by minutes. */
  lateMinutes: number
  /** So many of the next requests fail, as when the exchange is overloaded. */
  failing: number
  /** Which requests these are: all, or those whose URL has this in it. */
  failingOf: string
  /** Whether it answers with no candle, instead of with the oldest it has, when asked for what is older. */
  forgets: boolean
  close: () => Promise<void>
}

/** The open, high, low and close that it has for a candle of so many minutes. */
export const fakeCandle = (minute: number, minutes: number): [string, string, string, string] => {
  const price = `${60_000 + (minute % 1000)}.${String(minutes).padStart(2, '0')}`
  return [price, `${price}4`, price, price]
}

/** A server that answers like Kraken's public API: assets, pairs and candles, up to the one under way. */
export async function startFakeKraken(): Promise<FakeKraken> {
  const answer = (url: URL) => {
    if (url.pathname === '/0/public/Assets') return { result: ASSETS }
    if (url.pathname === '/0/public/AssetPairs') return { result: PAIRS }
    const minutes = Number(url.searchParams.get('interval'))
    const name = url.searchParams.get('pair') ?? ''
    if (url.pathname !== '/0/public/OHLC' || !(name in PAIRS)) return { error: ['EQuery:Unknown asset pair'] }
    const now = Math.floor(performance.timeOrigin / 60_000 + performance.now() / 60_000) - fake.lateMinutes
    const underWay = now - (now % minutes)
    const since = Number(url.searchParams.get('since') ?? 0) / 60
    if (fake.forgets && since > 0 && since < underWay - CANDLES_MAX * minutes)
      return { result: { [name]: [], last: since * 60 } }
    const candles = Array.from({ length: CANDLES_MAX }, (_, n) => underWay - (CANDLES_MAX - 1 - n) * minutes)
      .filter((minute) => minute > since)
      .map((minute) => [minute * 60, ...fakeCandle(minute, minutes), '60000.0', '1.5', 7])
    return { result: { [name]: candles, last: (underWay - minutes) * 60 } }
  }
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url!, 'http://kraken')
    fake.requests.push(`${url.pathname}${url.search}`)
    const fails = fake.failing > 0 && request.url!.includes(fake.failingOf)
    if (fails) fake.failing -= 1
    response.writeHead(fails ? 503 : 200, { 'content-type': 'application/json' })
    response.end(fails ? 'Service Unavailable' : JSON.stringify({ error: [], ...answer(url) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const fake: FakeKraken = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    lateMinutes: 0,
    failing: 0,
    failingOf: '',
    forgets: false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return fake
}
