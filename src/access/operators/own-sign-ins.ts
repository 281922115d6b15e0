import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { Closed, Items, Nothing, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { OperatorScope } from '../../contract/scopes.ts'
import { transaction, type Database } from '../../db/database.ts'
import { hookOf } from '../../http/authenticate.ts'
import { ofOperators } from '../../http/openapi.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { passkeyToWire, sessionToWire, ShownPasskey, ShownSession } from './fields.ts'
import { lockOperator } from './operators.ts'
import { listPasskeys, removePasskey } from './passkeys.ts'
import { endSession, listSessions } from './sessions.ts'

/**
 * An operator's own sessions and passkeys (docs/reference/operators.md). These routes read the operator's access token, so
 * its role decides: a VIEWER lists them and removes none.
 */

export interface OwnSignInOptions {
  db: Database
  rateLimit: RateLimit
}

const Params = Closed({ id: Uuid('Session or passkey.') })

export function addOwnSignIns(app: FastifyInstance, { db, rateLimit }: OwnSignInOptions): void {
  const options = (scope: OperatorScope, summary: string, reply: TSchema) => ({
    schema: ofOperators(summary, scope, reply),
    onRequest: hookOf(rateLimit.requireScope([scope])),
  })
  const removal = (scope: OperatorScope, summary: string) => {
    const { schema, onRequest } = options(scope, summary, Nothing)
    return { schema: { ...schema, params: Params }, onRequest }
  }

  app.get(
    '/v2/operators/sessions',
    options('operators:read_session', 'List Own Sessions', Items(ShownSession)),
    async ({ caller }) => ({ items: (await listSessions(db, caller.actor.id)).map(sessionToWire) }),
  )

  app.delete(
    '/v2/operators/sessions/:id',
    removal('operators:delete_session', 'End Own Session'),
    (request) => removing(db, request, 'session', endSession),
  )

  app.get(
    '/v2/operators/passkeys',
    options('operators:read_passkey', 'List Own Passkeys', Items(ShownPasskey)),
    async ({ caller }) => ({ items: (await listPasskeys(db, caller.actor.id)).map(passkeyToWire) }),
  )

  app.delete(
    '/v2/operators/passkeys/:id',
    removal('operators:delete_passkey', 'Remove Own Passkey'),
    (request) => removing(db, request, 'passkey', removePasskey),
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
