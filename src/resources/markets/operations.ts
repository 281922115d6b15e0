import type { Operation } from '../../http/operation.ts'
import { getTicker } from './get-ticker.ts'
import { listHistoricalCandles } from './list-historical-candles.ts'
import { listHistoricalPrices } from './list-historical-prices.ts'
import { listMarkets } from './list-markets.ts'
import { listPrices } from './list-prices.ts'

export const MARKET_OPERATIONS: readonly Operation[] = [
  listHistoricalPrices,
  listMarkets,
  listPrices,
  getTicker,
  listHistoricalCandles,
]
