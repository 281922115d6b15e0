import { Type, type Static, type TObject, type TProperties } from 'typebox'
import { csvIn } from '../../contract/csv.ts'
import { Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll, type Database } from '../../db/database.ts'
import { momentAt, momentOfMicros, type Moment } from '../../db/ids.ts'
import { PAGE_SIZE_DEFAULT } from '../../http/lists.ts'
import type { Operation, Request } from '../../http/operation.ts'
import { refuseUnknown } from '../../http/require-horizon.ts'
import { EVER, microsOf } from '../../http/time-bounds.ts'
import { finalTime, type Book, type Time } from '../../money/books/book.ts'
import { operation } from '../operation.ts'

/** Lines of an answer in JSON; a file has all of them. */
const LINES_MAX = 10_000

/** A signed decimal. */
export const Figure = (description: string) => Type.String({ description, examples: ['-25.5'] })

/** The parameter by which operators of the deployment choose one customer's entries. */
export const OF_CUSTOMER = {
  customer_id: Type.Optional(Uuid('For operators of the deployment: only the entries of this customer.')),
}

/** A time of a report: a day, which begins at 00:00 UTC, or a time of RFC 3339. */
export const ReportTime = (description: string) =>
  Type.Optional(
    Type.String({
      ...{ minLength: 10, maxLength: 40 },
      description: `${description} An RFC 3339 time, or a day: 00:00 UTC.`,
    }),
  )
const FROM = { from: ReportTime('The beginning of the time (default: that of the ledger).') }
export const PERIOD = { ...FROM, to: ReportTime('Its end, not included (default: now).') }
export const UNTIL = { ...FROM, at: ReportTime('Balances before this moment (default: now).') }
/** What each report says of its time. */
export const ITS_TIME = {
  from: Timestamp('The beginning of the time.'),
  to: Timestamp('Its end: a moment below which no entry can appear any more.'),
}

function reportTime(query: Record<string, unknown>, name: string, otherwise: number): Moment {
  const text = query[name] as string | undefined
  if (text === undefined) return momentOfMicros(otherwise)
  return momentOfMicros(microsOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text, name).floor)
}

/** The time that is asked for: `from` to before `to` or `at`. Without bounds it is all time. Throws bad-request. */
export const reportPeriod = (query: Record<string, unknown>): Time => ({
  from: reportTime(query, 'from', EVER.from),
  to: reportTime(query, 'at' in query ? 'at' : 'to', EVER.to),
})

/** What of a book's time is final. Throws bad-request, and unavailable where no moment is final. */
export const finalPeriod = async (book: Book, query: Record<string, unknown>): Promise<Time> =>
  finalTime(book, reportPeriod(query)).catch(
    refuseUnknown((reason) => `reports are final at no moment: ${reason}`),
  )

type Asking = Pick<Request, 'customerId' | 'scopes'> & { db: Database; query: Record<string, unknown> }

/** What a report is made of: a book, and a time of it that is final. */
export interface AskedReport<Query = Record<string, unknown>> {
  book: Book
  time: Time
  query: Query
  /** Where the lines begin: later than the time on a page that is not the first. */
  begin: Moment
  /** How many lines of `begin` earlier pages had. */
  shown: number
}

/**
 * Reads what a request asks for. The book of an API client is its customer's, that of an operator of the deployment is the whole
 * ledger. Throws bad-request, also where anybody else names another customer.
 */
async function askedOf({ db, customerId, scopes, query }: Asking): Promise<AskedReport> {
  const named = query.customer_id as string | undefined
  const readsAll = scopes.includes('operators:read_ledger')
  if (!readsAll && named !== undefined && named !== customerId)
    throw problem.badRequest('customer_id: only operators of the deployment name a customer', 'customer_id')
  const book = readsAll
    ? { db: forEverybody(forAll(db)), customerId: named }
    : { db: forEverybody(db), customerId }
  const time = await finalPeriod(book, query)
  return { book, time, query, ...placeIn(query.page_cursor as string | undefined, time.from) }
}

/** Reads a cursor: the time of the last line of a page, and how many lines of that time were shown. Throws bad-request. */
function placeIn(cursor: string | undefined, from: Moment): { begin: Moment; shown: number } {
  if (cursor === undefined) return { begin: from, shown: 0 }
  const [, micros, shown] = /^(\d{16})_(\d{9})$/.exec(cursor) ?? []
  if (micros === undefined)
    throw problem.badRequest('page_cursor is not a cursor of this list', 'page_cursor')
  return { begin: momentOfMicros(Number(micros)), shown: Number(shown) }
}

/** Lines, a part at a time. */
type Parts = AsyncIterable<readonly object[]> | Iterable<readonly object[]>

interface ReportDefinition<Q extends TProperties, Line extends TProperties>
  extends Pick<Operation, 'summary'>, Partial<Pick<Operation, 'scope' | 'tag' | 'forOperators' | 'example'>> {
  path: string
  description: string
  /** With `limit`, the answer in JSON has pages, and each line its `created_at`. */
  query: Q
  line: Line
  /** The columns of the lines that are numbers; all others are text. */
  numbers: readonly string[]
  /** Members of the answer besides its time and lines. */
  more?: TProperties
  /** Reads the lines from `begin` on, a part at a time, and the other members. */
  read: (asked: AskedReport<Static<TObject<Q>>>) => Promise<{ lines: Parts; more?: object }>
}

/** Declares a report: lines about a time, as JSON and as a file of CSV, which has all of them. */
export function report<Q extends TProperties, Line extends TProperties>(
  definition: ReportDefinition<Q, Line>,
): Operation {
  const { path, query, line, numbers, more: members, example, read: _, ...about } = definition
  const read = definition.read as ReportDefinition<TProperties, Line>['read']
  const hasPages = 'limit' in query
  return operation({
    ...{ scope: 'reports:read_report', tag: 'Reports', ...about },
    example: { ...(example as object) },
    method: 'GET',
    url: `/v2/reports/${path}`,
    description: `${definition.description} \`Accept: text/csv\` answers a file, of all lines.`,
    query: Closed(query),
    reply: Type.Object({ ...ITS_TIME, items: Type.Array(Type.Object(line)), ...members }),
    async run(request) {
      const asked = await askedOf(request as Asking)
      const { lines, more } = await read(asked)
      const { time, begin, shown } = asked
      const { limit = hasPages ? PAGE_SIZE_DEFAULT : LINES_MAX } = asked.query as { limit?: number }
      let skipped = 0
      const items: object[] = []
      for await (const part of lines) {
        for (const line of part)
          if (skipped < shown && microsOfLine(line) === begin.micros) skipped += 1
          else items.push(line)
        if (items.length > limit) break
      }
      const page = items.slice(0, limit)
      const answer = { from: time.from.text, to: time.to.text, items: page, ...more }
      if (items.length <= limit) return answer as never
      if (!hasPages)
        throw problem.badRequest(`from: more than ${limit} lines: ask for less, or for a file`, 'from')
      const last = microsOfLine(page.at(-1)!)
      const ofLast = page.filter((line) => microsOfLine(line) === last).length
      const count = ofLast + (last === begin.micros ? skipped : 0)
      return { ...answer, next_page_cursor: `${last}_${String(count).padStart(9, '0')}` } as never
    },
    forms: {
      async 'text/csv'(request) {
        const all = { ...(request as Asking).query, page_cursor: undefined }
        const asked = await askedOf({ ...(request as Asking), query: all })
        // Balances mean little without their time.
        const columns = [...('at' in query ? ['from', 'to'] : []), ...Object.keys(line)]
        return csvIn(columns, during(asked.time, (await read(asked)).lines), numbers)
      },
    },
  })
}

const microsOfLine = (line: object) => momentAt((line as { created_at: string }).created_at).micros

/** Each line with the time of its report. */
async function* during({ from, to }: Time, parts: Parts) {
  for await (const lines of parts) yield lines.map((line) => ({ from: from.text, to: to.text, ...line }))
}
