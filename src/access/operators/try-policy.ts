import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { Closed } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { Database } from '../../db/database.ts'
import { completeDocument, NewPolicyDocument } from '../../governance/policy/policy-document.ts'
import type { Policies } from '../../governance/policy/policy.ts'
import { tryPolicy } from '../../governance/policy/try-policy.ts'
import { hookOf } from '../../http/authenticate.ts'
import type { RateLimit } from '../../http/rate-limit.ts'

const NoQuery = Closed({})

/**
 * Adds POST /v2/operators/policy-trials: what a policy would have done with the customer's payments of the last 30 days
 * (docs/reference/operators.md). It changes nothing.
 */
export function addPolicyTrials(
  app: FastifyInstance,
  { db, rateLimit, policies }: { db: Database; rateLimit: RateLimit; policies: Policies },
): void {
  app.post(
    '/v2/operators/policy-trials',
    {
      schema: { hide: true, querystring: NoQuery, body: NewPolicyDocument },
      onRequest: hookOf(rateLimit.requireScope(['policy:read_policy'])),
    },
    async ({ caller, body }) => {
      if (caller.actor.type !== 'OPERATOR') throw problem.forbidden('policy trials are for operators')
      const document = completeDocument(body as Static<typeof NewPolicyDocument>)
      return tryPolicy(db, policies, caller.customerId, document)
    },
  )
}
