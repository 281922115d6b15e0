/**
 * The markets of the API (API behaviour, Market history), in its order. The table `markets` holds the same, with an id
 * for each.
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

/** What a market trades, and in which money: BTCUSD is BTC in USD. Every quote asset has three letters. */
export const assetsOf = (market: Market) => ({
  base_asset: market.slice(0, -QUOTE_LENGTH),
  quote_asset: market.slice(-QUOTE_LENGTH),
})

/** The id that a market has in the tables: its place in this list. */
export const idOf = (market: Market) => MARKETS.indexOf(market) + 1
