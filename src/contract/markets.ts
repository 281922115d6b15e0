/**
 * The markets of the API (API behaviour, Market history), in its order. The table `markets` holds the same markets
 * with their ids.
 */
export const MARKETS = [
  'ETHEUR',
  'ETHUSD',
  'BTCEUR',
  'BTCUSD',
  'PAXGUSD',
  'BCHUSD',
  'LTCUSD',
  'ETHGBP',
  'BTCGBP',
  'LTCGBP',
  'BCHGBP',
  'USDPUSD',
  'ETHBRL',
  'BTCBRL',
  'LTCBRL',
  'BCHBRL',
  'USDPGBP',
  'USDPBRL',
  'LINKUSD',
  'MATICUSD',
  'AAVEUSD',
  'UNIUSD',
  'AAVEMXN',
  'BCHMXN',
  'BTCMXN',
  'ETHMXN',
  'LTCMXN',
  'USDPMXN',
  'AAVEEUR',
  'BCHEUR',
  'LTCEUR',
  'LINKEUR',
  'MATICEUR',
  'PAXGEUR',
  'SOLEUR',
  'USDPEUR',
  'UNIEUR',
  'PYUSDEUR',
  'PYUSDGBP',
] as const
export type Market = (typeof MARKETS)[number]

const QUOTE_LENGTH = 3

/** Splits a market into base and quote asset: BTCUSD is BTC in USD. Every quote asset has three letters. */
export const assetsOf = (market: Market) => ({
  base_asset: market.slice(0, -QUOTE_LENGTH),
  quote_asset: market.slice(-QUOTE_LENGTH),
})

/** Returns a market's id in the tables: its position in this list. */
export const idOf = (market: Market) => MARKETS.indexOf(market) + 1
