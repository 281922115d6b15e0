import { Type, type Static, type TObject, type TSchema } from 'typebox'
import type { Context } from './context.ts'
import { Uuid } from '../contract/fields.ts'
import type { OperatorScope } from '../contract/scopes.ts'
import type { Definition, Operation } from '../http/operation.ts'

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

type ById = TObject<{ id: ReturnType<typeof Uuid> }>

/** Declares the reading of one record by its id, which `id` describes. `example` is the id of the demo's record. */
export const readOperation = <Q extends TObject | undefined = undefined, R extends TSchema = TSchema>({
  id,
  example,
  ...definition
}: Omit<Definition<Context, ById, Q, undefined, R>, 'method' | 'params' | 'example'> & {
  id: string
  example: string
}): Operation =>
  operation<ById, Q, undefined, R>({
    problems: ['not-found'],
    ...definition,
    method: 'GET',
    params: Type.Object({ id: Uuid(id) }),
    example: { params: { id: example } },
  })

/** What an operation for operators can reach: also a command that runs it without a service has this. */
export type OperatorContext = Pick<Context, 'db' | 'ledger' | 'settings' | 'policies' | 'rowMacs'>

export type OperatorOperation<Reply = unknown> = Omit<Operation, 'run'> & {
  run: (request: never) => Promise<Reply>
}

type OfOperators<P, Q, B, R> = Omit<
  Definition<OperatorContext, P, Q, B, R>,
  'tag' | 'scope' | 'forOperators'
> & { scope: OperatorScope }

/** Declares an operation for operators alone (docs/reference/operators.md). A second request of it changes nothing, by default. */
export const operatorOperation = <
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
  R extends TSchema = TSchema,
>(
  definition: OfOperators<P, Q, B, R>,
): OperatorOperation<Static<R>> =>
  operation<P, Q, B, R>({
    repeats: 'HARMLESS',
    ...definition,
    tag: 'Operators',
    forOperators: true,
  }) as OperatorOperation<Static<R>>
