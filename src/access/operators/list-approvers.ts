import type { FastifyInstance } from 'fastify'
import { Closed } from '../../contract/fields.ts'
import type { Database } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { selectApprovers } from '../../governance/approvals/approver.ts'
import { hookOf } from '../../http/authenticate.ts'
import type { RateLimit } from '../../http/rate-limit.ts'

const NoQuery = Closed({})

/**
 * Adds GET /v2/operators/approvers: who may decide approvals of the token's customer, with the credential of each passkey
 * (docs/reference/operators.md). The console finds the operator's own entries by it.
 */
export function addListApprovers(
  app: FastifyInstance,
  { db, rateLimit }: { db: Database; rateLimit: RateLimit },
): void {
  app.get(
    '/v2/operators/approvers',
    {
      schema: { hide: true, querystring: NoQuery },
      onRequest: hookOf(rateLimit.requireScope(['operators:read_approver'])),
    },
    async ({ caller: { customerId } }) => ({
      items: (await selectApprovers(db, customerId)).map(
        ({ id, name, role, status, operator_id, client_id, key: { credential_id, rp_id } }) => ({
          ...{ id, name, role, status },
          ...presentOf({ operator_id, client_id }),
          ...(credential_id !== undefined && { credential_id, rp_id }),
        }),
      ),
    }),
  )
}
