import type { Database } from './db/database.ts'
import type { Ledger } from './movements/queue.ts'
import type { Networks } from './networks/network.ts'
import type { Policies } from './records/policy.ts'
import type { WebhookSecrets } from './records/webhook-secrets.ts'
import type { Settings } from './settings.ts'

/** The context of every operation and of the worker. */
export interface Context {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  webhookSecrets: WebhookSecrets
  policies: Policies
  /** The public URL of this service, and its token issuer. No slash at the end. */
  baseUrl: string
}
