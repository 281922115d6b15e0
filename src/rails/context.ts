import type { Networks } from '../chains/network.ts'
import type { Database } from '../db/database.ts'
import type { Ledger } from '../money/movements/queue.ts'
import type { Settings } from '../settings.ts'

/** What moves money between the ledger and the networks. */
export interface RailsContext {
  /** The records of one customer, at its node. */
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
}
