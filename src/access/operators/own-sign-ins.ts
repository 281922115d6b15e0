import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { OperatorScope } from '../../contract/scopes.ts'
import { transaction, type Database } from '../../db/database.ts'
import { hookOf } from '../../http/authenticate.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { passkeyToWire, sessionToWire } from './fields.ts'
import { lockOperator } from './operators.ts'
import { listPasskeys, removePasskey } from './passkeys.ts'
import { endSession, listSessions } from './sessions.ts'

/**
 * An operator's own sessions and passkeys (docs/reference/operators.md). These routes read the operator's access token, so its
 * role decides: a VIEWER lists them and removes none.
 */

export interface OwnSignInOptions {
  db: Database
  rateLimit: RateLimit
}

const Params = Closed({ id: Uuid('Session or passkey.') })
const NoQuery = Closed({})

export function addOwnSignIns(app: FastifyInstance, { db, rateLimit }: OwnSignInOptions): void {
  const options = (scope: OperatorScope, params?: typeof Params) => ({
    schema: { hide: true, querystring: NoQuery, ...(params && { params }) },
    onRequest: hookOf(rateLimit.requireScope([scope])),
  })

  app.get('/v2/operators/sessions', options('operators:read_session'), async ({ caller }) => ({
    items: (await listSessions(db, caller.actor.id)).map(sessionToWire),
  }))

  app.delete('/v2/operators/sessions/:id', options('operators:delete_session', Params), (request) =>
    removing(db, request, 'session', endSession),
  )

  app.get('/v2/operators/passkeys', options('operators:read_passkey'), async ({ caller }) => ({
    items: (await listPasskeys(db, caller.actor.id)).map(passkeyToWire),
  }))

  app.delete('/v2/operators/passkeys/:id', options('operators:delete_passkey', Params), (request) =>
    removing(db, request, 'passkey', removePasskey),
  )
}

function removing(
  db: Database,
  { caller, params, id: request_id, ip }: FastifyRequest,
  what: string,
  remove: typeof endSession,
): Promise<object> {
  const { id } = params as { id: string }
  return transaction(db, async (tx) => {
    // The token names it, and operators are never deleted.
    const operator = (await lockOperator(tx, caller.actor.id))!
    const origin = { actor: caller.actor, request_id, ip }
    if (!(await remove(tx, operator, id, origin))) throw problem.notFound(what, id)
    return {}
  })
}
