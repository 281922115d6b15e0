import { Type, type Static, type TObject, type TProperties } from 'typebox'
import { csvIn } from '../../contract/csv.ts'
import { Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forAll, type Database } from '../../db/database.ts'
import { momentAt, momentOfMicros } from '../../db/ids.ts'
import { nextCursor, pageOf } from '../../http/lists.ts'
import type { Operation, Request } from '../../http/operation.ts'
import { refuseUnknown } from '../../http/require-horizon.ts'
import { EVER, microsOf } from '../../http/time-bounds.ts'
import { finalTime, type Book, type Time } from '../../money/books/book.ts'

/** Lines of an answer in JSON without pages; a file has all of them. */
const LINES_MAX = 10_000
/** What a cursor has: the time of the last line, in microseconds, and how many lines of that time were shown. */
const PLACE = [/^\d{1,16}$/, /^\d{1,9}$/]

const DECIMAL = String.raw`^-?\d+(\.\d+)?$`
/** A signed decimal. */
export const Figure = (description: string) =>
  Type.String({ pattern: DECIMAL, description, examples: ['-25.5'] })
const isNumber = ({ type, pattern }: { type?: string; pattern?: string }) =>
  type === 'integer' || pattern === DECIMAL

/** The parameter by which operators of the deployment choose one customer's entries. */
export const OF_CUSTOMER = {
  customer_id: Type.Optional(Uuid('For operators of the deployment: only the entries of this customer.')),
}

/** A time of a report: a day, which begins at 00:00 UTC, or a time of RFC 3339. */
export const ReportTime = (description: string) =>
  Type.Optional(
    Type.String({
      ...{ pattern: String.raw`^\d{4}-\d\d-\d\d`, maxLength: 40 },
      inWords: 'must be a day such as 2026-01-31, or a time of RFC 3339',
      description: `${description} An RFC 3339 time, or a day: 00:00 UTC.`,
    }),
  )
const FROM = { from: ReportTime('The beginning of the time (default: that of the ledger).') }
export const PERIOD = { ...FROM, to: ReportTime('Its end, not included (default: now).') }
export const UNTIL = { ...FROM, at: ReportTime('Balances before this moment (default: now).') }

type Bounds = Partial<Record<'from' | 'to' | 'at', string>>

/** The time that is asked for: `from` to before `to` or `at`. Without bounds it is all time. Throws bad-request. */
export function reportPeriod(asked: Bounds): Time {
  const timeOf = (name: keyof Bounds, otherwise: number) => {
    const text = asked[name]?.replace(/^\d{4}-\d\d-\d\d$/, '$&T00:00:00Z')
    return momentOfMicros(text === undefined ? otherwise : microsOf(text, name).floor)
  }
  return { from: timeOf('from', EVER.from), to: timeOf('at' in asked ? 'at' : 'to', EVER.to) }
}

/** What of a book's time is final. Throws bad-request, and unavailable where no moment is final. */
export const finalPeriod = async (book: Book, asked: Bounds): Promise<Time> =>
  finalTime(book, reportPeriod(asked)).catch(
    refuseUnknown((reason) => `reports are final at no moment: ${reason}`),
  )

/** What a report is made of: a request, a book, and a time of it that is final. */
export interface AskedReport<Query> extends Pick<Request, 'customerId' | 'scopes'> {
  db: Database
  query: Query
  /** The record that the report is about, where it is about one. */
  params?: { id: string }
  book: Book
  time: Time
}
type Asking<Query> = Omit<AskedReport<Query>, 'book' | 'time'>

/**
 * Reads what a request asks for. The book of an API client is its customer's, that of an operator of the deployment is the whole
 * ledger, unless the report is about one record. Throws bad-request, also where anybody else names another customer.
 */
async function askedOf<Query>(request: Asking<Query>): Promise<AskedReport<Query>> {
  const { db, customerId, scopes, params } = request
  const query: Bounds & { customer_id?: string } = request.query as object
  const { customer_id: named = customerId } = query
  const readsAll = params?.id === undefined && scopes.includes('operators:read_ledger')
  if (!readsAll && named !== customerId)
    throw problem.badRequest('customer_id: only operators of the deployment name a customer', 'customer_id')
  const book = readsAll ? { db: forAll(db), customerId: query.customer_id } : { db, customerId }
  return { ...request, book, time: await finalPeriod(book, query) }
}

/** Lines, a part at a time. */
type Parts = AsyncIterable<readonly object[]> | Iterable<readonly object[]>

/** Writes a file of the answer, a part at a time. */
type Write<Query> = (asked: AskedReport<Query>) => Promise<AsyncIterable<string>>

interface ReportDefinition<Parameters extends TProperties, Query>
  extends
    Pick<Operation, 'url' | 'summary' | 'params' | 'problems' | 'example' | 'forOperators'>,
    Partial<Pick<Operation, 'scope' | 'tag'>> {
  description: string
  /** With `limit` and `page_cursor`, the answer in JSON has pages, and each line its `created_at`. */
  query: Parameters
  line: TProperties
  /** Members of the answer besides its time and lines. */
  more?: TProperties
  /** Reads the lines, a part at a time, and the other members. */
  read: (asked: AskedReport<Query>) => Promise<{ lines: Parts }>
  /** Where the answer has the form `application/xml`, too. */
  xml?: Write<Query>
}

/** Declares a report: lines about a time, as JSON and as a file of CSV, which has all of them. */
export function report<Parameters extends TProperties, Query = Static<TObject<Parameters>>>(
  definition: ReportDefinition<Parameters, Query>,
): Operation {
  const { query, line, more: members, read, xml, ...about } = definition
  // Balances mean little without their time.
  const columns = [...('at' in query ? ['from', 'to'] : []), ...Object.keys(line)]
  const numbers = Object.keys(line).filter((name) => isNumber(line[name]!))
  const csv: Write<Query> = async (asked) =>
    csvIn(columns, during(asked.time, (await read(asked)).lines), numbers)
  const form = (write: Write<Query>) => async (request: Asking<Query>) => write(await askedOf(request))
  return {
    ...{ method: 'GET', scope: 'reports:read_report', tag: 'Reports', ...about },
    description: `${about.description} \`Accept: text/csv\` answers a file, of all lines.`,
    query: Closed(query),
    reply: Type.Object({
      from: Timestamp('The beginning of the time.'),
      to: Timestamp('Its end: a moment below which no entry can appear any more.'),
      items: Type.Array(Type.Object(line)),
      ...members,
    }),
    async run(request: Asking<Query>) {
      const page = pageOf(about.url, { limit: LINES_MAX, ...request.query }, PLACE)
      const asked = await askedOf(request)
      const { from, to } = asked.time
      const [begin = from.micros, shown = 0] = page.after?.map(Number) ?? []
      const { lines, ...more } = await read({ ...asked, time: { from: momentOfMicros(begin), to } })
      const items: object[] = []
      let toSkip = shown
      for await (const part of lines) {
        items.push(...part.slice(toSkip))
        toSkip = Math.max(0, toSkip - part.length)
        if (items.length > page.limit) break
      }
      const answer = { from: from.text, to: to.text, items: items.slice(0, page.limit), ...more }
      if (items.length <= page.limit) return answer
      if (!('page_cursor' in query))
        throw problem.badRequest(`from: more than ${LINES_MAX} lines: ask for less, or for a file`, 'from')
      const times = answer.items.map((item) => momentAt((item as { created_at: string }).created_at).micros)
      const last = times.at(-1)!
      const ofLast = times.filter((time) => time === last).length + (last === begin ? shown : 0)
      return { ...answer, next_page_cursor: nextCursor([last, ofLast].map(String), page) }
    },
    forms: { 'text/csv': form(csv), ...(xml && { 'application/xml': form(xml) }) },
  }
}

/** Each line with the time of its report. */
async function* during({ from, to }: Time, parts: Parts) {
  for await (const lines of parts) yield lines.map((line) => ({ from: from.text, to: to.text, ...line }))
}
