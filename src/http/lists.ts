import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { UUID } from '../db/ids.ts'
import { OneOf, Timestamp } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'
import { awaitHorizon, requireHorizon } from './require-horizon.ts'
import type { TimeRange } from './time-bounds.ts'

/** Pages of lists (API behaviour, Lists): keyset pages, and cursors tied to their filters. */

export const PAGE_SIZE_DEFAULT = 100
export const PAGE_SIZE_MAX = 1000
/** Limit of the JSON of records in memory at once. A larger page is read and answered in parts (whole-page.ts). */
export const PARTS = { bytesMax: 1024 * 1024 }
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

export interface PageRequest {
  limit: number
  descending: boolean
  /** The sort key of the previous page's last record, as returned by `keyOf`. */
  after: string[] | undefined
  fingerprint: string
  /** Set where the page ends at a transaction under way. */
  completeUntil?: string
}

export interface PagedQuery {
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
  const records = rows.slice(0, page.limit).map(toWire)
  const items = records.slice(0, countWithin(PARTS.bytesMax / copies, records))
  if (rows.length === items.length || items.length === 0)
    return { items, ...(page.completeUntil !== undefined && { complete_until: page.completeUntil }) }
  const next_page_cursor = nextCursor(keyOf(rows[items.length - 1]!), page)
  return items.length === records.length
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

export const bytesOf = (record: unknown) => Buffer.byteLength(JSON.stringify(record)) + 1

/** An upper bound of a value's size as JSON, in bytes. A character takes at most 6, when it is written as \\u0001. */
function maxBytesOf(value: unknown): number {
  if (typeof value === 'string') return 3 + 6 * value.length
  if (typeof value !== 'object' || value === null) return 26
  let bytes = 3
  // An array's indexes count too, which only makes the bound larger.
  for (const key in value) bytes += 3 + 6 * key.length + maxBytesOf((value as Record<string, unknown>)[key])
  return bytes
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
