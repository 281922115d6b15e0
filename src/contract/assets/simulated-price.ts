import { strict as assert } from 'node:assert'
import { formatAmount, parseAmount } from './amount.ts'
import { findAsset, type Asset } from './catalogue.ts'

const MILLION = 1_000_000
const USD_DECIMALS = 6

/** The largest deviation of an asset from its reference price: the amplitude of the widest wave, in millionths. */
const DEVIATIONS_MAX: Record<Asset['kind'], number> = { crypto: 100_000, fiat: 5_000, stablecoin: 500 }

/** Waves of 16,384 minutes (11 days) and less, each a quarter as long as the last and half as high, like a random walk. */
const LONGEST_WAVE = 14
const WAVES = 8

/**
 * Computes the simulated price of a market at a minute since 1970, as a decimal string. The price follows by integer
 * arithmetic from the two assets and the minute alone. So all processes agree, and ETHUSD, ETHEUR and the euro match.
 */
export function simulatedPrice(
  { base_asset, quote_asset }: { base_asset: string; quote_asset: string },
  minute: number,
): string {
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
    const point = Math.floor(minute / length)
    const into = minute - point * length
    const between = crest(seed, wave, point) * (length - into) + crest(seed, wave, point + 1) * into
    // The product stays below 2^53: 2^15 from a crest, 2^14 from a wave, 2^17 from the widest wave.
    sum += Math.trunc((between * (widest / 2 ** wave)) / (length * 2 ** 15))
  }
  return sum
}

/** Computes the height of a wave at a point, from -2^15 to 2^15 - 1, by a hash (the finalizer of MurmurHash3). */
function crest(seed: number, wave: number, point: number): number {
  let hash = Math.imul(seed + wave, 0x9e3779b1) ^ Math.imul(point, 0x85ebca77)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >> 16
}

/** FNV-1a. */
const seedOf = (symbol: string) =>
  [...symbol].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193), 0x811c9dc5)
