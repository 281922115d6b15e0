import type { Logger } from 'pino'
import type { Networks } from '../networks/network.ts'
import type { ExampleRecords } from '../contract/example-records.ts'
import type { Tracing } from '../contract/tracing.ts'
import type { Database } from '../db/database.ts'
import type { RequestMeter } from '../http/requests.ts'
import type { MasterKeys } from '../keys/master-keys.ts'
import type { Ledger } from '../money/movements/queue.ts'
import type { Settings } from '../settings.ts'

/** What the HTTP service is built from. */
export interface AppOptions {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  masterKeys: MasterKeys
  baseUrl: string
  log: Logger
  /** Called for each request. */
  meter?: RequestMeter | undefined
  tracing?: Tracing | undefined
  /** Called for each row of a table that is refused, because its MAC is missing or wrong. */
  onForged?: (table: string) => void
  /** Reads the demo's records for the examples of the API reference; undefined while there are none. */
  exampleRecords?: () => Promise<ExampleRecords | undefined>
  /** Connections for background work, which requests do not occupy (default: `db`). */
  background?: Database
  /** A connection for health checks, which no request occupies (default: `db`). */
  health?: Database
  /** How often refused requests are written to the audit log (default: each second). */
  refusalsEveryMs?: number
  /**
   * Begins to stop the service, to empty its sandbox and to start it again. Rejects with forbidden for a sandbox that may
   * not be emptied. Undefined where nobody can ask for it.
   */
  beginAnew?: (() => Promise<void>) | undefined
  /** Moves the clock of a sandbox forward by an ISO 8601 duration, and returns its time; undefined in live mode. */
  advanceClock?: ((duration: string) => Promise<string>) | undefined
}
