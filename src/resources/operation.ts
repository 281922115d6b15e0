import { Type, type Static, type TObject, type TSchema } from 'typebox'
import type { Context } from './context.ts'
import { Closed, Filter, FilterValue, FilterWithoutCommas, Uuid } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
  type Condition,
} from '../http/lists.ts'
import type { OperatorScope } from '../contract/scopes.ts'
import type { Definition, Operation } from '../http/operation.ts'
import type { SealedName } from '../audit/row-macs.ts'

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

/** The query of a list, as its schema has validated it. */
export type ListQuery = Record<string, unknown>

/** A filter of a list: its parameter, and the SQL condition with one `?` that a given value sets. */
interface ListFilter {
  parameter: TSchema
  where: string
  /** What the condition compares with; the given value by default. Undefined: there is no condition. */
  compareWith?: (given: unknown) => unknown
}

/** Filters by the values of a column. */
export const filterBy = {
  ids: (column: string, description: string): ListFilter => ({
    parameter: Filter(FilterValue, description),
    where: `${column} = any (?::uuid[])`,
    compareWith: (given) => uuidsOf(given as string[] | undefined),
  }),
  values: (column: string, description: string, item: TSchema = FilterValue): ListFilter => ({
    parameter: Filter(item, description),
    where: `${column} = any (?::text[])`,
  }),
  /** Values that may have commas. */
  texts: (column: string, description: string): ListFilter => ({
    parameter: FilterWithoutCommas(FilterValue, description),
    where: `${column} = any (?::text[])`,
  }),
}

export const parametersOf = <Name extends string>(filters: Record<Name, ListFilter>) =>
  Object.fromEntries(
    Object.entries<ListFilter>(filters).map(([name, { parameter }]) => [name, parameter]),
  ) as Record<Name, TSchema>

export const conditionsOf = (filters: Record<string, ListFilter>, query: ListQuery): Condition[] =>
  Object.entries(filters).map(([name, { where, compareWith = (value: unknown) => value }]) => [
    where,
    compareWith(query[name]),
  ])

interface ListDefinition<Row> extends Pick<
  Definition<Context, undefined, undefined, undefined, TSchema>,
  'url' | 'scope' | 'tag' | 'summary' | 'description' | 'problems'
> {
  example: Record<string, unknown>
  list: string
  item: TSchema
  /** The statement without its `where`. The customer's id is `$1`. */
  select: string | ((query: ListQuery) => string)
  /** The alias of the listed table in `select`, when it joins others. */
  alias?: string
  /** The listed table, where a record is shown only if its MAC is right: it tells people where to pay. */
  sealed?: SealedName
  filters: Record<string, ListFilter>
  /** Parameters between the filters and those of every list. */
  parameters?: Record<string, TSchema>
  /** Conditions that are not of one filter. */
  where?: (query: ListQuery) => Condition[]
  toWire: (row: Row, context: Pick<Context, 'networks'> & { query: ListQuery }) => unknown
}

/** Declares the list of a customer's records by creation time, newest first (API behaviour, Lists). */
export function listOperation<Row extends { id: string }>({
  list,
  item,
  select,
  alias,
  sealed,
  filters,
  parameters,
  where = () => [],
  toWire,
  example,
  ...definition
}: ListDefinition<Row>): Operation {
  const query = Closed({
    ...parametersOf(filters),
    ...timeBounds('created_at'),
    ...parameters,
    ...orderByCreation,
    ...pageParameters,
  })
  return operation({
    ...definition,
    method: 'GET',
    query,
    example: { query: example },
    reply: listReply(item),
    run: ({ query, customerId, db, networks, rowMacs }) =>
      listByCreation(db, customerId, query, {
        list,
        select: typeof select === 'string' ? select : select(query),
        ...(alias !== undefined && { alias }),
        where: [...conditionsOf(filters, query), ...where(query)],
        keep: sealed && ((rows: Row[]) => rowMacs.genuine(db, sealed, customerId, rows)),
        toWire: (row: Row) => toWire(row, { networks, query }),
      }),
  })
}
