import type { UsdPrices } from '../contract/assets/usd-value.ts'
import { usdPrices } from '../money/records/usd-prices.ts'
import type { Networks, Payer, PayoutNetwork } from '../networks/network.ts'
import type { Database } from '../db/database.ts'
import type { Ledger } from '../money/movements/queue.ts'
import type { Settings } from '../settings.ts'

/** The parts of a context that moving money between the ledger and the networks takes. */
export interface RailsContext {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
}

/** The newest prices in USD; in a sandbox also simulated ones. */
export const pricesIn = ({ db, settings }: Pick<RailsContext, 'db' | 'settings'>): Promise<UsdPrices> =>
  usdPrices(db, settings.mode === 'sandbox')

/** A network, and the adapter that pays withdrawals over it. */
export interface Rail {
  network: PayoutNetwork
  adapter: Payer
}
