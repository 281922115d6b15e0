import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Kraken returns at most this many candles, with the current one among them. */
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
  /** Number of minutes by which the exchange's clock is behind ours. */
  lateMinutes: number
  /** Number of next requests that fail, as those of an overloaded exchange do. */
  failing: number
  /** Text in the URL of the requests that fail; empty for all requests. */
  failingOf: string
  /** Whether a request for candles before the oldest one gets no candle, instead of the oldest candles. */
  forgets: boolean
  close: () => Promise<void>
}

/** Returns the open, high, low and close of a candle of this many minutes. */
export const fakeCandle = (minute: number, minutes: number): [string, string, string, string] => {
  const price = `${60_000 + (minute % 1000)}.${String(minutes).padStart(2, '0')}`
  return [price, `${price}4`, price, price]
}

/** A server that answers like Kraken's public API: assets, pairs, and candles up to the current one. */
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
