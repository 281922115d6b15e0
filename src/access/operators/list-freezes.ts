import type { FastifyInstance } from 'fastify'
import type { Database } from '../../db/database.ts'
import { hookOf } from '../../http/authenticate.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { selectFreezesOfCustomer } from '../../money/records/freezes.ts'
import { Closed } from '../../contract/fields.ts'

const NoQuery = Closed({})

/**
 * Adds GET /v2/operators/freezes: the freezes of the token's customer and of its profiles (docs/reference/operators.md). An API
 * client does not see them: the reason of a freeze may be a suspicion against the people whom the client serves.
 */
export function addListFreezes(
  app: FastifyInstance,
  { db, rateLimit }: { db: Database; rateLimit: RateLimit },
): void {
  app.get(
    '/v2/operators/freezes',
    {
      schema: { hide: true, querystring: NoQuery },
      onRequest: hookOf(rateLimit.requireScope(['operators:read_freeze'])),
    },
    async ({ caller: { customerId } }) => ({
      items: (await selectFreezesOfCustomer(db, customerId)).map(
        ({ subject, reason, detail, created_at }) => ({
          ...(subject !== customerId && { profile_id: subject }),
          reason,
          detail,
          created_at,
        }),
      ),
    }),
  )
}
