import { createHash } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import { Type, type TSchema } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { firstIdAt, momentAt, UUID } from '../db/ids.ts'
import { OneOf, Timestamp } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'
import { awaitHorizon, requireHorizon } from './require-horizon.ts'

/** Lists (API behaviour, Lists): filters on time, keyset pages, cursors tied to their filters. */

export const PAGE_SIZE_DEFAULT = 100
export const PAGE_SIZE_MAX = 1000
/** Limit of the JSON of records in memory at once. A larger page is read and answered in parts (whole-page.ts). */
export const PARTS = { bytesMax: 1024 * 1024 }
/** Records read before their size is checked: a full page of the default size, and one more. */
const FIRST_ROWS = PAGE_SIZE_DEFAULT + 1

const bound = (field: string, meaning: string) => Type.Optional(Timestamp(`${field} ${meaning}.`))

/** The five bounds on a time field; they combine. */
export function timeBounds<F extends string>(field: F) {
  return {
    [`${field}.lt`]: bound(field, 'strictly before'),
    [`${field}.lte`]: bound(field, 'before or equal'),
    [`${field}.eq`]: bound(field, 'exactly equal'),
    [`${field}.gte`]: bound(field, 'after or equal'),
    [`${field}.gt`]: bound(field, 'strictly after'),
  } as Record<`${F}.${'lt' | 'lte' | 'eq' | 'gte' | 'gt'}`, ReturnType<typeof bound>>
}

export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_SIZE_MAX,
      default: PAGE_SIZE_DEFAULT,
      description: 'Page size.',
    }),
  ),
  order: Type.Optional(OneOf(['DESC', 'ASC'], 'Sort order.', { default: 'DESC' })),
  page_cursor: Type.Optional(
    Type.String({
      maxLength: 300,
      description: '`next_page_cursor` of the previous page.',
    }),
  ),
}

/** The query parameters of a list that has one order only. */
export const newestFirst = { limit: pageParameters.limit, page_cursor: pageParameters.page_cursor }

/** The sort key that clients of other platforms send. Most lists have no other. */
export const orderByCreation = {
  order_by: Type.Optional(OneOf(['CREATED_AT'], 'Sort key.', { default: 'CREATED_AT' })),
}

/** The last members of a list's reply. */
export const pageEnd = {
  next_page_cursor: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
  complete_until: Type.Optional(
    Timestamp(
      'In ascending order, where the list ends before its request: when a transaction began that is still under way. Later records are not shown yet.',
    ),
  ),
}

export const listReply = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    ...pageEnd,
  })

/** A half-open span of whole microseconds since 1970: `from` <= t < `to`. */
export interface TimeRange {
  from: number
  to: number
}

/** All records are from 1970 or later. After 2255, a number cannot hold microseconds exactly. */
export const EVER: TimeRange = { from: 0, to: Number.MAX_SAFE_INTEGER }

/**
 * The range of times that satisfy all bounds on `field`. Records have microseconds, bounds may have nanoseconds: a bound
 * between two microseconds is after the earlier, before the later and equal to neither.
 */
export function timeRange(query: Record<string, unknown>, field: string): TimeRange {
  const range = { ...EVER }
  for (const comparison of ['lt', 'lte', 'eq', 'gte', 'gt'] as const) {
    const text = query[`${field}.${comparison}`]
    if (typeof text !== 'string') continue
    const { floor, exact } = microsOf(text, `${field}.${comparison}`)
    const ceiling = exact ? floor : floor + 1
    if (comparison === 'lt') range.to = Math.min(range.to, ceiling)
    if (comparison === 'lte' || comparison === 'eq') range.to = Math.min(range.to, floor + 1)
    if (comparison === 'gte' || comparison === 'eq') range.from = Math.max(range.from, ceiling)
    if (comparison === 'gt') range.from = Math.max(range.from, floor + 1)
  }
  return { from: Math.min(range.from, EVER.to), to: Math.max(range.to, EVER.from) }
}

/**
 * Parses a date-time of a request as whole microseconds since 1970, rounded down; `exact` when nothing was rounded. A time
 * outside the years 1685 to 2254 becomes the nearest time in that span: no record has such a time, and neither a number nor
 * PostgreSQL can hold each such time exactly. Throws bad-request for an impossible date-time.
 */
export function microsOf(text: string, field: string): { floor: number; exact: boolean } {
  let nanos: bigint
  try {
    nanos = Temporal.Instant.from(text).epochNanoseconds
  } catch {
    throw problem.badRequest(`${field} must be an RFC 3339 date-time with at most nanoseconds`, [field])
  }
  const floor = nanos / 1000n - (nanos % 1000n < 0n ? 1n : 0n)
  const exact = floor * 1000n === nanos
  return { floor: Math.min(Math.max(Number(floor), -EVER.to), EVER.to), exact }
}

/** Formats microseconds since 1970 as a PostgreSQL timestamp. A `Date` would lose the microseconds. */
export const microsToTimestamp = (micros: number) =>
  Temporal.Instant.fromEpochNanoseconds(BigInt(micros) * 1000n).toString()

/** A time in a cursor: microseconds since 1970, between 2001 and 2286. Every match is a valid time. */
export const MICROS = /^\d{16}$/

export interface PageRequest {
  limit: number
  descending: boolean
  /** The sort key of the previous page's last record, as returned by `keyOf`. */
  after: string[] | undefined
  fingerprint: string
  /** Set where the page ends at a transaction under way. */
  completeUntil?: string
}

interface PagedQuery {
  limit?: number
  order?: 'DESC' | 'ASC'
  page_cursor?: string
}

/**
 * Reads `limit`, `order` and `page_cursor`. Throws bad-request for a changed cursor, or a cursor of another list or other
 * filters. `key` holds a pattern for each part of the list's sort key: nothing else passes from a cursor into SQL.
 */
export function pageOf(list: string, query: PagedQuery, key: RegExp[] = [UUID]): PageRequest {
  const { limit = PAGE_SIZE_DEFAULT, page_cursor, ...filters } = query
  const fingerprint = fingerprintOf(list, filters)
  return {
    limit,
    descending: query.order !== 'ASC',
    after: page_cursor === undefined ? undefined : readCursor(page_cursor, fingerprint, key),
    fingerprint,
  }
}

/**
 * Reads the rows of a page. `read` selects at most `limit + 1` rows whose times of creation (or of the sort key) are in a
 * range. An ascending page ends at the horizon, so that a reader that walks on misses no record (src/db/horizon.ts). The
 * transactions that are under way are short, so the page waits a moment for them: a client that lists right after its own
 * request then sees its record. Throws unavailable where the horizon is unknown.
 */
export async function readPage<Row>(
  db: Queryable,
  page: PageRequest,
  range: TimeRange,
  read: (range: TimeRange) => Promise<Row[]>,
): Promise<Row[]> {
  if (page.descending) return read(range)
  let horizon = await requireHorizon(db, NOT_AVAILABLE)
  const wanted = Math.min(range.to, horizon.readAt.micros)
  const within = () => ({ from: range.from, to: Math.min(range.to, horizon.micros) })
  const rows = await read(within())
  if (rows.length > page.limit || horizon.micros >= wanted) return rows
  horizon = await awaitHorizon(db, horizon, wanted, NOT_AVAILABLE)
  if (horizon.micros < wanted) page.completeUntil = horizon.text
  return read(within())
}

const NOT_AVAILABLE = (reason: string) =>
  `lists in ascending order are not available: ${reason}; order=DESC works`

export const fingerprintOf = (list: string, filters: object): string =>
  digest(JSON.stringify([list, Object.entries(filters).sort(byName).map(withSortedValues)]))

type FilterEntry = [name: string, value: unknown]
const byName = ([a]: FilterEntry, [b]: FilterEntry) => (a < b ? -1 : 1)
/** The values of a filter select the same records in any order, and so do its pairs. */
const withSortedValues = ([name, value]: FilterEntry): FilterEntry => [
  name,
  Array.isArray(value)
    ? [...new Set(value as string[])].sort()
    : value instanceof Object
      ? Object.entries(value).sort(byName)
      : value,
]

/**
 * Makes a page from `limit + 1` rows; the extra row shows that there is a next page. Records beyond `PARTS.bytesMax` are left
 * to the next part of the page, and `left` says how many records the page still has room for. A part has at least one record.
 * `keyOf` returns the sort key of a row as strings. `copies` is how often the reply contains each record.
 */
export function pageReply<Row, Item>(
  rows: Row[],
  page: PageRequest,
  keyOf: (row: Row) => string[],
  toWire: (row: Row) => Item,
  { copies = 1 }: { copies?: number } = {},
): PageReply<Item> {
  const all = rows.slice(0, page.limit).map(toWire)
  const items = all.slice(0, countWithin(PARTS.bytesMax / copies, all))
  if (rows.length === items.length || items.length === 0)
    return { items, ...(page.completeUntil !== undefined && { complete_until: page.completeUntil }) }
  const next_page_cursor = nextCursor(keyOf(rows[items.length - 1]!), page)
  return items.length === all.length
    ? { items, next_page_cursor }
    : { items, next_page_cursor, left: page.limit - items.length }
}

interface PageReply<Item> {
  items: Item[]
  next_page_cursor?: string
  complete_until?: string
  left?: number
}

/** Counts the records that fit into this many bytes of JSON; at least one. */
function countWithin(bytesMax: number, records: unknown[]): number {
  // Writing the JSON to measure it would double the cost of the reply. Few pages are near the limit, so a cheap upper
  // bound decides first.
  let bound = 0
  for (const record of records) bound += maxBytesOf(record)
  if (bound <= bytesMax) return records.length
  let bytes = 0
  const tooMany = records.findIndex((record) => (bytes += bytesOf(record)) > bytesMax)
  return tooMany === -1 ? records.length : Math.max(1, tooMany)
}

const bytesOf = (record: unknown) => Buffer.byteLength(JSON.stringify(record)) + 1

/** An upper bound of a value's size as JSON, in bytes. A character takes at most 6, when it is written as \\u0001. */
function maxBytesOf(value: unknown): number {
  if (typeof value === 'string') return 3 + 6 * value.length
  if (typeof value !== 'object' || value === null) return 26
  let bytes = 3
  // An array's indexes count too, which only makes the bound larger.
  for (const key in value) bytes += 3 + 6 * key.length + maxBytesOf((value as Record<string, unknown>)[key])
  return bytes
}

/** An SQL condition with a `?` for each value. Without one of them, the filter was not given and the condition is left out. */
export type Condition = [condition: string, ...values: unknown[]]

/** The conditions that the bounds on `field` set on `column`, an SQL expression. A side without a bound sets none. */
export const timeConditions = (query: object, field: string, column = field): Condition[] =>
  rangeConditions(column, timeRange(query as Record<string, unknown>, field))

const rangeConditions = (column: string, { from, to }: TimeRange): Condition[] => [
  [`${column} >= ?::timestamptz`, from === EVER.from ? undefined : microsToTimestamp(from)],
  [`${column} < ?::timestamptz`, to === EVER.to ? undefined : microsToTimestamp(to)],
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

/**
 * Lists a customer's records by creation time, which is the order of their ids, so that the primary key serves the
 * bounds on `created_at`, the order and the cursor; or by another time. `select` names the columns and the table.
 * Throws bad-request for a changed cursor, or a cursor of another list.
 */
export async function listByCreation<Row extends { id: string }, Item>(
  db: Queryable,
  customerId: string,
  query: PagedQuery,
  { list, select, alias, sameIds = [], orderBy, where, keep, toWire, copies = 1 }: ListByCreation<Row, Item>,
): Promise<PageReply<Item>> {
  const page = pageOf(list, query, orderBy && [MICROS, UUID])
  const of = alias === undefined ? '' : `${alias}.`
  const [direction, beyond] = page.descending ? ['desc', '<'] : ['asc', '>']
  const timeOf = (row: Row) => String(momentAt(row[orderBy!] as string).micros)
  const keyOf = (row: Row) => [...(orderBy === undefined ? [] : [timeOf(row)]), row.id]
  const created = timeRange(query as Record<string, unknown>, 'created_at')
  const isByUpdate = orderBy === 'updated_at'
  const read = async (range: TimeRange, after: string[] | undefined, count: number): Promise<Row[]> => {
    const further = (id: string): Condition =>
      orderBy === undefined
        ? [`${id} ${beyond} ?::uuid`, after?.[0]]
        : [
            `(${of}${orderBy}, ${id}) ${beyond} (?::timestamptz, ?::uuid)`,
            after && microsToTimestamp(Number(after[0])),
            after?.[1],
          ]
    const rows = await selectWhere<Row>(
      db,
      select,
      [
        [`${of}customer_id = ?`, customerId],
        ...[`${of}id`, ...sameIds].flatMap((id) => createdIn(id, isByUpdate ? created : range)),
        ...(isByUpdate ? rangeConditions(`${of}updated_at`, range) : []),
        ...where,
        ...[`${of}id`, ...(orderBy === undefined ? sameIds : [])].map(further),
      ],
      `order by ${orderBy === undefined ? '' : `${of}${orderBy} ${direction}, `}${of}id ${direction}
      limit ${count}`,
    )
    const kept = keep === undefined ? rows : await keep(rows)
    // The page goes on after records that are left out.
    return kept.length === rows.length || rows.length < count
      ? kept
      : [...kept, ...(await read(range, keyOf(rows.at(-1)!), count))].slice(0, count)
  }

  const bytesMax = PARTS.bytesMax / copies
  const walked = isByUpdate ? timeRange(query as Record<string, unknown>, 'updated_at') : created
  const rows = await readPage(db, page, walked, async (range) => {
    const rows: Row[] = []
    let wanted = Math.min(page.limit + 1, FIRST_ROWS)
    let bytes = 0
    // Large records are read in parts: reading a thousand of them at once, to discard most, took 120 MiB.
    while (bytes <= bytesMax) {
      const last = rows.at(-1)
      const more = await read(range, last === undefined ? page.after : keyOf(last), wanted)
      rows.push(...more)
      const left = page.limit + 1 - rows.length
      if (more.length < wanted || left === 0) break
      for (const row of more) bytes += bytesOf(toWire(row))
      const fitting = Math.floor(((bytesMax - bytes) * rows.length) / bytes)
      wanted = Math.min(left, Math.max(1, fitting))
    }
    return rows
  })
  return pageReply(rows, page, keyOf, toWire, { copies })
}

interface ListByCreation<Row, Item> {
  /** The list's name, for its cursors. */
  list: string
  /** The statement without its `where`. The customer's id is `$1`. */
  select: string
  /** The alias of the listed table in `select`, when it joins others. */
  alias?: string
  /** Columns of joined tables with the same ids, of which an index then serves bounds and cursor, too. */
  sameIds?: string[]
  /** The column of a time that orders the list before the id; absent: the time of creation, which the id has. */
  orderBy?: keyof Row & string
  where: Condition[]
  /** Returns the records that are shown; all, where it is absent. */
  keep?: ((rows: Row[]) => Promise<Row[]>) | undefined
  toWire: (row: Row) => Item
  /** How often the reply repeats each record (default: 1). */
  copies?: number
}

/** The cursor of the next page, after this sort key. */
export const nextCursor = (key: string[], page: PageRequest) => writeCursor(key, page.fingerprint)

const digest = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 16)

function writeCursor(key: string[], fingerprint: string): string {
  const text = key.join(' ')
  return Buffer.from(digest(fingerprint + text) + text).toString('base64url')
}

function readCursor(cursor: string, fingerprint: string, key: RegExp[]): string[] {
  const bytes = Buffer.from(cursor, 'base64url')
  const text = bytes.toString('utf8', 16)
  // Decoding skips characters outside base64url, so the cursor must also equal the encoding of its bytes.
  const intact =
    bytes.toString('base64url') === cursor && bytes.toString('latin1', 0, 16) === digest(fingerprint + text)
  const parts = intact ? text.split(' ') : []
  if (parts.length !== key.length || !key.every((shape, index) => shape.test(parts[index]!)))
    throw problem.badRequest(
      'page_cursor is not a cursor of this list with these filters and this order',
      'page_cursor',
    )
  return parts
}

/** The values of an id filter that can match. A value that is not a UUID matches nothing. */
export const uuidsOf = (values: string[] | undefined) => values?.filter((value) => UUID.test(value))
