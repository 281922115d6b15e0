import { setTimeout as pause } from 'node:timers/promises'
import type { Exchange } from 'ccxt'
import { transaction, type Database } from '../../db/database.ts'
import { minuteUnderWay } from './import-prices.ts'
import { assetsOf, type Market } from '../../contract/markets.ts'
import { isCandle, isPrice } from './price-layouts.ts'
import {
  COVERS_MINUTES_MAX,
  lockMarket,
  writePrices,
  type PriceRecords,
} from '../../money/records/write-prices.ts'

export interface FollowExchangeOptions {
  /** The exchange's name in ccxt. */
  exchange: string
  markets: readonly Market[]
  /** The base URL of its API, to replace the URL in ccxt. */
  url?: string | undefined
  /** Runs one round over all markets instead of running until the signal. */
  once: boolean
  signal: AbortSignal
  onRound: (round: FollowRound) => void
  /** Called with the error that ended a round or a market's part of it; the next round tries again. */
  onFailure: (error: Error) => void
}

export interface FollowRound {
  exchange: string
  markets: { market: Market; candles: number; minutes_changed: number }[]
}

const ROUND_MS = 60_000
const TIMEOUT_MS = 10_000
/** Most failed rounds in a row before following ends. */
const FAILURES_MAX = 30
/** Most pages of candles of one length in one round: exchanges return a few hundred at a time. */
const PAGES_MAX = 200
/** The newest candles are requested again, because exchanges still correct them. */
const AGAIN_MINUTES = 5
/** Exchanges keep minutes for about half a day. For a longer gap, hours come first; minutes then take precedence. */
const MINUTES_KEPT = 600
const CANDLES = [
  { timeframe: '1h', minutes: 60 },
  { timeframe: '1m', minutes: 1 },
] as const

/**
 * Keeps markets current from an exchange. Each round imports the ended candles after the end of our history. A
 * failure of the network or the exchange is reported and retried in the next round, at most FAILURES_MAX times in a
 * row.
 */
export async function followExchange(db: Database, options: FollowExchangeOptions): Promise<void> {
  const { markets, once, signal, onRound, onFailure } = options
  const { NetworkError } = await ccxt()
  const exchange = await openExchange(options)
  let failures = 0
  while (!signal.aborted) {
    try {
      await exchange.loadMarkets()
      const round: FollowRound = { exchange: options.exchange, markets: [] }
      for (const market of markets) {
        if (signal.aborted) break
        try {
          round.markets.push({ market, ...(await followMarket(db, exchange, market)) })
        } catch (error) {
          // What the exchange no longer has, or sends wrong, stops no other market.
          if (error instanceof NetworkError || markets.length === 1) throw error
          onFailure(error as Error)
        }
      }
      onRound(round)
      failures = 0
    } catch (error) {
      failures += 1
      if (once || failures === FAILURES_MAX || !(error instanceof NetworkError)) throw error
      onFailure(error)
    }
    if (once) return
    await pause(ROUND_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** The library is large, so only users who follow an exchange install it. */
async function ccxt() {
  try {
    return (await import('ccxt')).default
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('following an exchange needs the package ccxt: npm install ccxt', { cause: error })
  }
}

async function openExchange({ exchange: name, url }: FollowExchangeOptions): Promise<Exchange> {
  const library = await ccxt()
  if (!library.exchanges.includes(name)) throw new Error(`ccxt does not support an exchange ${name}`)
  const Known = library[name as keyof typeof library] as unknown as new (options: object) => Exchange
  const exchange = new Known({ enableRateLimit: true, timeout: TIMEOUT_MS })
  // Keep prices as the text that the exchange sent: ccxt converts numbers with this function.
  Object.assign(exchange, { number: String })
  if (url !== undefined) {
    const parts = Object.keys(exchange.urls.api)
    Object.assign(exchange.urls, { api: Object.fromEntries(parts.map((part) => [part, url])) })
  }
  const lacking = CANDLES.find(({ timeframe }) => !(timeframe in exchange.timeframes))
  if (exchange.has.fetchOHLCV !== true || lacking !== undefined)
    throw new Error(`${name} does not publish candles of both a minute and an hour`)
  return exchange
}

async function followMarket(
  db: Database,
  exchange: Exchange,
  market: Market,
): Promise<{ candles: number; minutes_changed: number }> {
  const { base_asset, quote_asset } = assetsOf(market)
  const symbol = `${base_asset}/${quote_asset}`
  if (!(symbol in (exchange.markets ?? {}))) throw new Error(`${exchange.id} has no market ${symbol}`)
  const now = await minuteUnderWay(db)
  const result = { candles: 0, minutes_changed: 0 }
  // A round may have ended between hours and minutes. Then the hours exist, and the minutes must still be requested.
  const lastOf = {
    '1h': await lastRealMinute(db, market, COVERS_MINUTES_MAX),
    '1m': await lastRealMinute(db, market, 1),
  }
  for (const { timeframe, minutes } of CANDLES) {
    if (minutes > 1 && lastOf['1m'] !== undefined && now - lastOf['1m'] <= MINUTES_KEPT) continue
    const ended = async (since: number | undefined) =>
      (await exchange.fetchOHLCV(symbol, timeframe, since && since * 60_000))
        .map((candle) => readCandle(candle))
        .filter(({ minute }) => minute + minutes <= now)
    const last = lastOf[timeframe]
    let from = last === undefined ? undefined : last + 1 - Math.max(AGAIN_MINUTES, minutes)
    for (let page = 0; page < PAGES_MAX; page++) {
      const candles = await candlesFrom(from, now, ended)
      if (candles.length === 0) break
      result.candles += candles.length
      result.minutes_changed += await writeCandles(db, market, minutes, candles)
      from = candles.at(-1)!.minute + minutes
      if (from + minutes > now) break
    }
  }
  return result
}

interface Candle {
  minute: number
  prices: string[]
}

/** Returns how many minutes have another price than before. */
const writeCandles = (
  db: Database,
  market: Market,
  coversMinutes: number,
  candles: readonly Candle[],
): Promise<number> =>
  transaction(db, async (tx) =>
    writePrices(tx, (await lockMarket(tx, market, 'REAL'))!, {
      coversMinutes,
      minute: candles.map(({ minute }) => minute),
      second: candles.map(() => 0),
      prices: [0, 1, 2, 3].map((column) =>
        candles.map(({ prices }) => prices[column]!),
      ) as PriceRecords['prices'],
    }),
  )

/**
 * Returns a page of candles from a minute on; empty if there are no further ones. Without a history, and where the exchange
 * no longer keeps that minute, the page begins at the oldest candles that the exchange returns by default.
 */
async function candlesFrom(
  from: number | undefined,
  now: number,
  ended: (since: number | undefined) => Promise<Candle[]>,
): Promise<Candle[]> {
  const candles = await ended(from)
  const youngest = candles.at(-1)
  if (from === undefined || (youngest !== undefined && youngest.minute >= from)) return candles
  return now - from > MINUTES_KEPT ? ended(undefined) : []
}

/** Reads a candle of ccxt: milliseconds, open, high, low, close, volume; the prices as text, because we set `number`. */
function readCandle(candle: readonly unknown[]): Candle {
  const [milliseconds, ...values] = candle
  const minute = Number(milliseconds) / 60_000
  const prices = values.slice(0, 4)
  if (!Number.isInteger(minute) || prices.length !== 4 || !prices.every(isPrice) || !isCandle(prices))
    throw new Error(`the exchange sent an invalid candle: ${JSON.stringify(candle).slice(0, 200)}`)
  return { minute, prices }
}

/** Returns the last minute of a market's real history that comes from candles of at most `coversMax` minutes. */
async function lastRealMinute(db: Database, market: Market, coversMax: number): Promise<number | undefined> {
  const { rows } = await db.query<{ minute: number }>(
    `select minute
     from price_minutes
     where market_id = (select id from markets where market = $1 and source = 'REAL') and covers_minutes <= $2
     order by minute desc
     limit 1`,
    [market, coversMax],
  )
  return rows[0]?.minute
}
