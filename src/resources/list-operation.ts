import { Type, type Static, type TObject, type TSchema } from 'typebox'
import type { SealedName } from '../audit/sealed-rows.ts'
import { Closed, Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import { requireKnownAssets } from '../contract/known-assets.ts'
import type { Queryable } from '../db/database.ts'
import { firstIdAt, momentAt, momentOfMicros, UUID } from '../db/ids.ts'
import {
  bytesOf,
  orderByCreation,
  PAGE_SIZE_DEFAULT,
  pageEnd,
  pageOf,
  pageParameters,
  pageReply,
  PARTS,
  readPage,
  uuidsOf,
  type PagedQuery,
  type PageRequest,
} from '../http/lists.ts'
import type { Definition, Operation, Request } from '../http/operation.ts'
import { EVER, MICROS, timeBounds, timeRange, type TimeRange } from '../http/time-bounds.ts'
import type { Context } from './context.ts'

/** The query of a list, as its schema has validated it. */
export type ListQuery = Record<string, unknown>

/** An SQL condition with a `?` for each value. Without one of them, the filter was not given and the condition is left out. */
export type Condition = [condition: string, ...values: unknown[]]

/** A filter of a list: its parameter, and the SQL condition with one `?` that a given value sets. */
interface ListFilter {
  parameter: TSchema
  where: string
  /** What the condition compares with; the given value by default. Undefined: there is no condition. */
  compareWith?: (given: unknown) => unknown
  /** Throws bad-request for a value that cannot be. */
  require?: (name: string, given: string[] | undefined) => void
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
  knownAssets: (column: string, description: string): ListFilter => ({
    ...filterBy.values(column, description),
    require: requireKnownAssets,
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

/** The conditions that the bounds on `field` set on `column`, an SQL expression. A side without a bound sets none. */
export const timeConditions = (query: ListQuery, field: string, column = field): Condition[] =>
  rangeConditions(column, timeRange(query, field))

const rangeConditions = (column: string, { from, to }: TimeRange): Condition[] => [
  [`${column} >= ?::timestamptz`, from === EVER.from ? undefined : momentOfMicros(from).text],
  [`${column} < ?::timestamptz`, to === EVER.to ? undefined : momentOfMicros(to).text],
]

/** The conditions on an id whose record was created in this range: ids sort by creation time. */
export const createdIn = (id: string, { from, to }: TimeRange): Condition[] => [
  [`${id} >= ?`, firstIdAt(from)],
  [`${id} < ?`, firstIdAt(to)],
]

/** Selects rows by the conditions that are given. `end` is what follows them. */
export async function selectWhere<Row extends object>(
  db: Queryable,
  select: string,
  where: readonly Condition[],
  end: string,
): Promise<Row[]> {
  const given = where.filter(([, ...values]) => !values.includes(undefined))
  let number = 0
  const numbered = given.map(([condition]) => condition.replaceAll('?', () => `$${(number += 1)}`))
  const { rows } = await db.query<Row>(
    `
      ${select}
      where ${numbered.join('\n        and ')}
      ${end}`,
    given.flatMap(([, ...values]) => values),
  )
  return rows
}

type Parameters = Record<string, TSchema>

/** A request for a list. Its filters are untyped, because only their conditions read them. */
type ListRequest<P, X extends Parameters> = Omit<Request<P> & Context, 'query'> & {
  query: Static<TObject<X>> & PagedQuery & ListQuery
}

interface ListDefinition<Row, Shown, P, X extends Parameters> extends Pick<
  Definition<Context, undefined, undefined, undefined, TSchema>,
  'url' | 'scope' | 'alternativeScope' | 'tag' | 'summary' | 'description' | 'problems'
> {
  params?: P
  example: NonNullable<Operation['example']>
  /** The list's name, for its cursors. */
  list: string
  item: TSchema
  /** The names of the list in the reply (default: `items`). The second has the same records. */
  names?: readonly [name: string, copy?: string]

  filters?: Record<string, ListFilter>
  /** Parameters after the filters. */
  parameters?: X
  /** False: there are no bounds on `created_at`. */
  bounded?: false
  /** The time of a record's last change, in SQL, where the list has bounds on it. */
  updatedAt?: string
  /** The parameters of order and page. */
  page?: Parameters

  /** Throws a problem for a request that cannot have an answer. */
  check?: (request: ListRequest<P, X>) => unknown
  /** The records by creation time, whose order is that of their ids, or by another time: a statement without its `where`. */
  select?: string | ((query: ListQuery) => string)
  /** The alias of the listed table in `select`, when it joins others. */
  alias?: string
  /** Columns of joined tables with the same ids, of which an index then serves bounds and cursor, too. */
  sameIds?: (query: ListQuery) => string[]
  /** The column of a time that orders the list before the id; undefined: the time of creation, which the id has. */
  orderBy?: (query: ListQuery) => string | undefined
  /** Conditions that are not of one filter. */
  where?: (request: ListRequest<P, X>) => Condition[]
  /** The listed table, where a record is shown only if its MAC is right: it tells people where to pay. */
  sealed?: SealedName
  /** Adds to the records what other statements read. */
  complete?: (rows: Row[], request: ListRequest<P, X>) => Promise<Shown[]>
  /** Reads the records and one more, instead of `select`: where the conditions of one statement find them by no index. */
  read?: (request: ListRequest<P, X>, page: PageRequest, range: TimeRange) => Promise<Shown[]>
  /** The sort key of a record that `read` returns, and a pattern for each of its parts (default: the id). */
  key?: { of: (row: Shown) => string[]; shape: RegExp[] }
  toWire?: (row: Shown, request: ListRequest<P, X>) => unknown
}

/**
 * Declares a list (API behaviour, Lists), newest first: its filters, order and page. What it reads is `select` with conditions,
 * so that the primary key serves the bounds on `created_at`, the order and the cursor; or its own `read`.
 */
export function listOperation<
  Row extends { id: string },
  Shown extends object = Row,
  P extends TObject = TObject,
  X extends Parameters = Record<never, TSchema>,
>(definition: ListDefinition<Row, Shown, P, X>): Operation {
  const { filters = {}, parameters, updatedAt, bounded = true, names: [name, copy] = ['items'] } = definition
  const { page = { ...orderByCreation, ...pageParameters }, item } = definition
  return {
    ...definition,
    method: 'GET',
    query: Closed({
      ...parametersOf(filters),
      ...parameters,
      ...(bounded && timeBounds('created_at')),
      ...(updatedAt !== undefined && timeBounds('updated_at')),
      ...page,
    }),
    reply: Type.Object({
      [name]: Type.Array(item),
      ...(copy !== undefined && { [copy]: Type.Array(item, sameAs(name)) }),
      ...pageEnd,
    }),
    async run(request: ListRequest<P, X>) {
      for (const [filter, { require }] of Object.entries(filters))
        require?.(filter, request.query[filter] as string[] | undefined)
      await definition.check?.(request)
      const { items, ...rest } = await readList(definition, request)
      return { [name]: items, ...(copy !== undefined && { [copy]: items }), ...rest }
    },
  }
}

const sameAs = (name: string) =>
  name === 'items'
    ? {
        deprecated: true,
        description: 'Deprecated: the same records as `items`, which replaces it.',
      }
    : { description: `The same records as \`${name}\`.` }

/** Reads a page. Throws bad-request for a changed cursor, or a cursor of another list. */
async function readList<Row extends { id: string }, Shown extends object, P, X extends Parameters>(
  definition: ListDefinition<Row, Shown, P, X>,
  request: ListRequest<P, X>,
) {
  const { list, names = ['items'], read, key, toWire = (row: Shown): unknown => row } = definition
  const { query, params, db } = request
  const orderBy = definition.orderBy?.(query)
  const { of: keyOf, shape } = key ?? keyBy(orderBy)
  const page = pageOf([list, ...Object.values(params ?? {})].join(' '), query, shape)
  const copies = names.length
  const wired = (row: Shown) => toWire(row, request)
  const walked = timeRange(query, orderBy === 'updated_at' ? 'updated_at' : 'created_at')
  const rows = await readPage(db, page, walked, (range) => {
    if (read !== undefined) return read(request, page, range)
    const part = partsOf(definition, request, { orderBy, page, range })
    return inParts(page, PARTS.bytesMax / copies, part, keyOf, wired)
  })
  return pageReply(rows, page, keyOf, wired, { copies })
}

/** The sort key of records by a time, or by their ids. */
const keyBy = (orderBy: string | undefined) => ({
  shape: orderBy === undefined ? [UUID] : [MICROS, UUID],
  of(row: object): string[] {
    const columns = row as Record<string, string>
    return orderBy === undefined ? [columns.id!] : [String(momentAt(columns[orderBy]!).micros), columns.id!]
  },
})

/** Reads records after a sort key: the first of a page, or the next ones. */
type ReadPart<Row> = (after: string[] | undefined, count: number) => Promise<Row[]>

/** Records read before their size is checked: a full page of the default size, and one more. */
const FIRST_ROWS = PAGE_SIZE_DEFAULT + 1

/** Reads large records in parts: reading a thousand of them at once, to discard most, took 120 MiB. */
async function inParts<Row>(
  { limit, after }: PageRequest,
  bytesMax: number,
  read: ReadPart<Row>,
  keyOf: (row: Row) => string[],
  toWire: (row: Row) => unknown,
): Promise<Row[]> {
  const rows: Row[] = []
  let wanted = Math.min(limit + 1, FIRST_ROWS)
  let bytes = 0
  while (bytes <= bytesMax) {
    const last = rows.at(-1)
    const more = await read(last === undefined ? after : keyOf(last), wanted)
    rows.push(...more)
    const left = limit + 1 - rows.length
    if (more.length < wanted || left === 0) break
    for (const row of more) bytes += bytesOf(toWire(row))
    const fitting = Math.floor(((bytesMax - bytes) * rows.length) / bytes)
    wanted = Math.min(left, Math.max(1, fitting))
  }
  return rows
}

/** How a list's own statement reads records of a range, in the page's order. */
function partsOf<Row extends { id: string }, Shown extends object, P, X extends Parameters>(
  definition: ListDefinition<Row, Shown, P, X>,
  request: ListRequest<P, X>,
  { orderBy, page, range }: { orderBy: string | undefined; page: PageRequest; range: TimeRange },
): ReadPart<Shown> {
  const { select = '', alias, filters = {}, updatedAt, where = () => [], sealed } = definition
  const { complete = (rows: Row[]) => Promise.resolve(rows as unknown as Shown[]) } = definition
  const { query, customerId, db, rowMacs } = request
  const of = alias === undefined ? '' : `${alias}.`
  const sameIds = definition.sameIds?.(query) ?? []
  const [direction, beyond] = page.descending ? ['desc', '<'] : ['asc', '>']
  const isByUpdate = orderBy === 'updated_at'
  const created = isByUpdate ? timeRange(query, 'created_at') : range
  const further = (id: string, after: string[] | undefined): Condition =>
    orderBy === undefined
      ? [`${id} ${beyond} ?::uuid`, after?.[0]]
      : [
          `(${of}${orderBy}, ${id}) ${beyond} (?::timestamptz, ?::uuid)`,
          after && momentOfMicros(Number(after[0])).text,
          after?.[1],
        ]
  const read: ReadPart<Row> = async (after, count) => {
    const rows = await selectWhere<Row>(
      db,
      typeof select === 'string' ? select : select(query),
      [
        [`${of}customer_id = ?`, customerId],
        ...[`${of}id`, ...sameIds].flatMap((id) => createdIn(id, created)),
        ...(isByUpdate ? rangeConditions(`${of}updated_at`, range) : []),
        ...conditionsOf(filters, query),
        ...(updatedAt === undefined ? [] : timeConditions(query, 'updated_at', updatedAt)),
        ...where(request),
        ...[`${of}id`, ...(orderBy === undefined ? sameIds : [])].map((id) => further(id, after)),
      ],
      `order by ${orderBy === undefined ? '' : `${of}${orderBy} ${direction}, `}${of}id ${direction}
      limit ${count}`,
    )
    const genuine = sealed === undefined ? rows : await rowMacs.genuine(db, sealed, customerId, rows)
    // The page goes on after records that are left out.
    return genuine.length === rows.length || rows.length < count
      ? genuine
      : [...genuine, ...(await read(keyBy(orderBy).of(rows.at(-1)!), count))].slice(0, count)
  }
  return async (after, count) => complete(await read(after, count), request)
}
