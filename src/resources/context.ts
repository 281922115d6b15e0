import type { Policies } from '../governance/policy/policy.ts'
import type { RowMacs } from '../audit/sealed-rows.ts'
import type { RailsContext } from '../rails/context.ts'
import type { WebhookSecrets } from '../money/records/webhook-secrets.ts'

/** The context of every operation and of the worker. */
export interface Context extends RailsContext {
  /** Asks nodes of networks, within the customer's share of such requests. Throws unavailable once the client has left. */
  askNodes: <T>(ask: () => Promise<T>) => Promise<T>
  webhookSecrets: WebhookSecrets
  policies: Policies
  rowMacs: RowMacs
  /** The public URL of this service, and its token issuer. No slash at the end. */
  baseUrl: string
  /** Empties the sandbox and starts the service again; undefined where it may not be emptied. */
  beginAnew: (() => Promise<void>) | undefined
  /** Moves the clock of the sandbox forward by an ISO 8601 duration, and returns its time. */
  advanceClock: ((duration: string) => Promise<string>) | undefined
}
