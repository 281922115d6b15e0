import { Type, type Static, type TObject, type TProperties } from 'typebox'
import { csvIn } from '../../contract/csv.ts'
import { Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll, type Database } from '../../db/database.ts'
import { HorizonUnknown } from '../../db/horizon.ts'
import { momentOfMicros, type Moment } from '../../db/ids.ts'
import type { Operation, Request } from '../../http/operation.ts'
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
export async function finalPeriod(book: Book, query: Record<string, unknown>): Promise<Time> {
  const asked = reportPeriod(query)
  return finalTime(book, asked).catch((error: unknown) => {
    if (!(error instanceof HorizonUnknown)) throw error
    throw problem.unavailable(`reports are final at no moment: ${error.message}`, error)
  })
}

type Asking = Pick<Request, 'customerId' | 'scopes'> & { db: Database; query: Record<string, unknown> }

/**
 * The book of a caller: an API client's is its customer's, that of an operator of the deployment is the whole ledger. Throws
 * bad-request where anybody else asks for another customer's.
 */
function bookOf({ db, customerId, scopes, query }: Asking): Book {
  const asked = query.customer_id as string | undefined
  if (scopes.includes('operators:read_ledger')) return { db: forEverybody(forAll(db)), customerId: asked }
  if (asked !== undefined && asked !== customerId)
    throw problem.badRequest('customer_id: only operators of the deployment name a customer', 'customer_id')
  return { db: forEverybody(db), customerId }
}

/** What a report is made of: a book, and a time of it that is final. */
export interface AskedReport<Query = Record<string, unknown>> {
  book: Book
  time: Time
  query: Query
  /** The records that belong to no customer. */
  db: Database
}

/** Reads what a request asks for. Throws bad-request, and unavailable where no moment is final. */
export async function askedOf<Query extends Record<string, unknown>>(
  request: Asking & { query: Query },
): Promise<AskedReport<Query>> {
  const book = bookOf(request)
  return { book, query: request.query, db: forAll(request.db), time: await finalPeriod(book, request.query) }
}

interface ReportDefinition<Q extends TProperties, Line extends TProperties>
  extends
    Pick<Operation, 'summary' | 'description'>,
    Partial<Pick<Operation, 'scope' | 'tag' | 'forOperators'>> {
  path: string
  query: Q
  line: Line
  /** The columns of the lines that are numbers; all others are text. */
  numbers: readonly string[]
  /** Members of the answer besides its time and lines. */
  more?: TProperties
  /** Reads the lines, a part at a time, and the other members. */
  read: (
    asked: AskedReport<Static<TObject<Q>>>,
  ) => Promise<{ lines: AsyncIterable<readonly object[]>; more?: object }>
}

/** Declares a report: lines about a time, as JSON and as a file of CSV, which has all of them. */
export function report<Q extends TProperties, Line extends TProperties>(
  definition: ReportDefinition<Q, Line>,
): Operation {
  const { path, query, line, numbers, more, read, description = '', ...about } = definition
  const reading = async (request: Asking) => {
    const asked = await askedOf(request)
    return { ...asked, ...(await read(asked as never)) }
  }
  return operation({
    ...{ scope: 'reports:read_report', tag: 'Reports', ...about },
    method: 'GET',
    url: `/v2/reports/${path}`,
    description: `${description} \`Accept: text/csv\` answers a file.`.trim(),
    query: Closed(query),
    example: {},
    reply: Type.Object({ ...ITS_TIME, items: Type.Array(Type.Object(line)), ...more }),
    async run(request) {
      const { time, lines, ...found } = await reading(request as Asking)
      const items: object[] = []
      for await (const part of lines) {
        items.push(...part)
        if (items.length > LINES_MAX)
          throw problem.badRequest(
            `from: more than ${LINES_MAX} lines: ask for less, or for a file (Accept: text/csv)`,
            'from',
          )
      }
      return { from: time.from.text, to: time.to.text, items, ...found.more } as never
    },
    forms: {
      async 'text/csv'(request) {
        const { time, lines } = await reading(request as Asking)
        // Balances mean little without their time.
        const columns = [...('at' in query ? ['from', 'to'] : []), ...Object.keys(line)]
        return csvIn(columns, during(time, lines), numbers)
      },
    },
  })
}

/** Each line with the time of its report. */
async function* during({ from, to }: Time, parts: AsyncIterable<readonly object[]>) {
  for await (const lines of parts) yield lines.map((line) => ({ from: from.text, to: to.text, ...line }))
}
