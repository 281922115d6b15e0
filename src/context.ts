import type { Database } from './db/database.ts'
import type { Ledger } from './movements/queue.ts'
import type { Networks } from './networks/network.ts'
import type { Settings } from './settings.ts'

/** What every operation, and the worker, can reach. */
export interface Context {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  /** Where clients reach this service; also the token issuer. No slash at the end. */
  baseUrl: string
}
