import type { TObject, TSchema } from 'typebox'
import type { Context } from './context.ts'
import type { Definition, Operation } from './http/operation.ts'

/**
 * Declares one operation: its route, scope, schemas and handler. The schemas validate requests, serialise replies and
 * make the API document.
 */
export function operation<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
  R extends TSchema = TSchema,
>(definition: Definition<Context, P, Q, B, R>): Operation {
  return definition
}
