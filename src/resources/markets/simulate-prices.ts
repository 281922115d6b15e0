import { strict as assert } from 'node:assert'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { findAsset, type Asset } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { DAY } from './increments.ts'
import { assetsOf, MARKETS, type Market } from './markets.ts'
import { lockMarket, writePrices } from './write-prices.ts'

// ---------------------------------------------------------------------------------------------------------------
// Simulated prices: each asset in USD, by whole-number arithmetic on (asset, minute) alone. So every process computes
// the same prices, and ETHUSD, ETHEUR and the euro agree with each other.

const MILLION = 1_000_000
const USD_DECIMALS = 6

/** The largest deviation of an asset from its reference price: the amplitude of the widest wave, in millionths. */
const DEVIATIONS_MAX: Record<Asset['kind'], number> = { crypto: 100_000, fiat: 5_000, stablecoin: 500 }

/**
 * Waves of 16,384 minutes (11 days) and less, each a quarter as long as the last and half as high, like a random
 * walk.
 */
const LONGEST_WAVE = 14
const WAVES = 8

/** Computes the simulated price of a market in a minute, as a decimal string. */
export function simulatedPrice(market: Market, minute: number): string {
  const { base_asset, quote_asset } = assetsOf(market)
  const [base, quote] = [inUsd(base_asset, minute), inUsd(quote_asset, minute)]
  const decimals = base / quote >= 100n ? 2 : 5
  return formatAmount((base * 10n ** BigInt(decimals)) / quote, decimals)
}

function inUsd(symbol: string, minute: number): bigint {
  const asset = findAsset(symbol)
  assert(asset?.sandboxPriceUsd !== undefined, `${symbol} needs a reference price`)
  const reference = parseAmount(asset.sandboxPriceUsd, USD_DECIMALS)!
  return symbol === 'USD'
    ? reference * BigInt(MILLION)
    : reference * BigInt(MILLION + computeDeviation(symbol, DEVIATIONS_MAX[asset.kind], minute))
}

/** Computes how far an asset is from its reference price at a minute, in millionths of that price. */
function computeDeviation(symbol: string, widest: number, minute: number): number {
  const seed = seedOf(symbol)
  let sum = 0
  for (let wave = 0; wave < WAVES; wave++) {
    const length = 2 ** (LONGEST_WAVE - 2 * wave)
    const at = Math.floor(minute / length)
    const into = minute - at * length
    const between = crest(seed, wave, at) * (length - into) + crest(seed, wave, at + 1) * into
    // The product stays below 2^53: 2^15 from a crest, 2^14 from a wave, 2^17 from the widest wave.
    sum += Math.trunc((between * (widest / 2 ** wave)) / (length * 2 ** 15))
  }
  return sum
}

/** Computes the height of a wave at a point, from -2^15 to 2^15 - 1, by a hash (the finalizer of MurmurHash3). */
function crest(seed: number, wave: number, at: number): number {
  let hash = Math.imul(seed + wave, 0x9e3779b1) ^ Math.imul(at, 0x85ebca77)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >> 16
}

/** FNV-1a. */
const seedOf = (symbol: string) =>
  [...symbol].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193), 0x811c9dc5)

// ---------------------------------------------------------------------------------------------------------------
// Filling a sandbox with simulated prices.

const FAILURE_PAUSE_MS = 10_000
/** A pause between two markets, to leave the processor to others. */
const BREATH_MS = 50
/** Limits the size of a statement. */
const BATCH_MINUTES_MAX = 20_000

export interface Simulation {
  /** Finishes the current market and stops. */
  stop(): Promise<void>
}

/**
 * Simulates prices in the background: first the last days of every market without real prices, then each new minute.
 */
export function startSimulation(options: { db: Database; days: number; log: Logger }): Simulation {
  const { db, days, log } = options
  const stopping = new AbortController()
  const { signal } = stopping

  async function round(): Promise<number> {
    const minutes = await simulateMarkets(db, { days, signal })
    if (minutes >= DAY) log.info({ minutes }, 'simulated prices written')
    return untilNextMinute(db)
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const restMs = await round().catch((error: unknown) => {
        log.error({ err: error }, 'simulating prices failed; will retry')
        return FAILURE_PAUSE_MS
      })
      await pause(restMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    stop() {
      stopping.abort()
      return running
    },
  }
}

/** A minute's price is written when the minute is over by the database's clock. */
async function untilNextMinute(db: Database): Promise<number> {
  const { rows } = await db.query<{ ms: number }>(
    'select ceil((60 - extract(second from clock_timestamp())) * 1000)::integer as ms',
  )
  return rows[0]!.ms
}

/**
 * Brings every market without real prices up to the last whole minute, starting `days` ago or where it stopped. Each
 * market is one transaction. Concurrent processes take different markets. Returns the number of minutes written.
 */
export async function simulateMarkets(
  db: Database,
  { days, signal }: { days: number; signal?: AbortSignal },
): Promise<number> {
  let made = 0
  for (const market of MARKETS) {
    if (signal?.aborted) break
    const minutes = await transaction(db, (tx) => simulateMarket(tx, market, days))
    made += minutes
    if (minutes >= DAY) await pause(BREATH_MS)
  }
  return made
}

async function simulateMarket(tx: Transaction, market: Market, days: number): Promise<number> {
  const locked = await tx.query({
    name: 'lock-simulated-market',
    text: `select 1 from markets where market = $1 and source is distinct from 'REAL' for update skip locked`,
    values: [market],
  })
  if (locked.rowCount === 0) return 0
  // A separate statement: `skip locked` does not wait, so the first statement's snapshot may be older than the lock.
  const { rows } = await tx.query<{ next: number | null; now: number }>({
    name: 'select-simulated-until',
    text: `
      select (select minute + 1 from price_minutes where market_id = markets.id order by minute desc limit 1) as next,
             floor(extract(epoch from clock_timestamp()) / 60)::integer as now
      from markets
      where market = $1`,
    values: [market],
  })
  const found = rows[0]!
  const from = Math.max(found.next ?? 0, found.now - days * DAY)
  if (from >= found.now) return 0
  const marketId = await lockMarket(tx, market, 'SIMULATED')
  assert(marketId !== undefined, 'a locked market cannot receive real prices')
  for (let first = from; first < found.now; first += BATCH_MINUTES_MAX) {
    const count = Math.min(BATCH_MINUTES_MAX, found.now - first)
    const minute = Array.from({ length: count }, (_, n) => first + n)
    await writePrices(tx, marketId, {
      coversMinutes: 1,
      minute,
      second: minute.map(() => 0),
      prices: [minute.map((one) => simulatedPrice(market, one))],
    })
  }
  return found.now - from
}
