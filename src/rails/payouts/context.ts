import type { Networks } from '../../networks/network.ts'
import type { Database } from '../../db/database.ts'
import type { Ledger } from '../../money/movements/queue.ts'
import type { Settings } from '../../settings.ts'

/** The parts of a context that moving money between the ledger and the networks takes. */
export interface RailsContext {
  /** The records of customers, each customer's at its own database node. */
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
}
