import type { Database } from './db/database.ts'
import type { Ledger } from './movements/queue.ts'
import type { Networks } from './networks/network.ts'
import type { CustomerLimits } from './records/customer-limits.ts'
import type { Policies } from './records/policy.ts'
import type { RowMacs } from './records/row-macs.ts'
import type { WebhookSecrets } from './records/webhook-secrets.ts'
import type { Settings } from './settings.ts'

/** The context of every operation and of the worker. */
export interface Context {
  /** The records of the request's customer, at its node. */
  db: Database
  /** The records of nobody, such as prices and networks. On a plain database the same pool. */
  shared: Database
  ledger: Ledger
  networks: Networks
  /** Asks nodes of networks in the customer's share of questions to them. Throws unavailable once the client has left. */
  askNodes: <T>(ask: () => Promise<T>) => Promise<T>
  settings: Settings
  webhookSecrets: WebhookSecrets
  policies: Policies
  rowMacs: RowMacs
  limits: CustomerLimits
  /** The public URL of this service, and its token issuer. No slash at the end. */
  baseUrl: string
}
