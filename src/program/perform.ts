import { asDatabase, CustomerPool } from '../db/customer-pool.ts'
import { forCustomer } from '../db/parts.ts'
import type { Policies } from '../governance/policy/policy.ts'
import type { Perform } from '../http/mount.ts'
import type { Request } from '../http/operation.ts'
import { Shares } from '../http/shares.ts'
import type { RowMacs } from '../audit/sealed-rows.ts'
import { WebhookSecrets } from '../money/records/webhook-secrets.ts'
import type { Context } from '../resources/context.ts'
import type { AppOptions } from './app-options.ts'

/** Most questions to the networks' nodes that a customer's requests have under way: estimates of fees. */
const QUESTIONS_MAX = 8
/** The part of the connections for requests that the statements of one customer may take. */
const CONNECTIONS_SHARE = 1 / 4

export function performWith(
  { db, ledger, networks, settings, masterKeys, baseUrl, beginAnew, advanceClock }: AppOptions,
  policies: Policies,
  rowMacs: RowMacs,
): Perform {
  const webhookSecrets = new WebhookSecrets(masterKeys)
  const connections = new Shares(Math.max(1, Math.floor((db.options.max ?? 1) * CONNECTIONS_SHARE)))
  const questions = new Shares(QUESTIONS_MAX)
  // Written out: spreading the context and the request took 2 % of a request.
  return (operation, request) => {
    // A public operation has no customer: all public operations together have one share.
    const pool = request.customerId === '' ? db : forCustomer(db, request.customerId)
    return operation.run({
      params: request.params,
      query: request.query,
      body: request.body,
      customerId: request.customerId,
      clientId: request.clientId,
      scopes: request.scopes,
      origin: request.origin,
      requireCaller: request.requireCaller,
      answerWith: request.answerWith,
      problemOf: request.problemOf,
      asker: request.asker,
      db: asDatabase(new CustomerPool(pool, connections, request.customerId, request.asker)),
      ledger,
      networks,
      askNodes: (ask) => questions.run(request.customerId, request.asker, ask),
      settings,
      webhookSecrets,
      policies,
      rowMacs,
      baseUrl,
      beginAnew,
      advanceClock,
    } satisfies Request & Context as never)
  }
}
