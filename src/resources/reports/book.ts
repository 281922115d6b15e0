import { Type } from 'typebox'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll, type Database } from '../../db/database.ts'
import { HorizonUnknown } from '../../db/horizon.ts'
import { momentOfMicros, type Moment } from '../../db/ids.ts'
import type { Request } from '../../http/operation.ts'
import { EVER, microsOf } from '../../http/time-bounds.ts'
import type { Book } from '../../money/books/book.ts'

/** The parameter by which operators of the deployment choose one customer's entries. */
export const OF_CUSTOMER = {
  customer_id: Type.Optional(Uuid('For operators of the deployment: only the entries of this customer.')),
}

/**
 * The book of a caller: an API client's is its customer's, that of an operator of the deployment is the whole ledger. Throws
 * bad-request where anybody else asks for another customer's.
 */
export function bookOf({
  db,
  customerId,
  scopes,
  query,
}: Pick<Request, 'customerId' | 'scopes'> & { db: Database; query: { customer_id?: string } }): Book {
  const asked = query.customer_id?.toLowerCase()
  if (scopes.includes('operators:read_ledger')) return { db: forEverybody(forAll(db)), customerId: asked }
  if (asked !== undefined && asked !== customerId)
    throw problem.badRequest('customer_id: only operators of the deployment name a customer', 'customer_id')
  return { db: forEverybody(db), customerId }
}

const TIME = { minLength: 10, maxLength: 40 }
/** A time of a report: a day, which begins at 00:00 UTC, or a time of RFC 3339. */
export const ReportTime = (description: string) =>
  Type.Optional(
    Type.String({ ...TIME, description: `${description} An RFC 3339 time, or a day: 00:00 UTC.` }),
  )

/** Reads a time of a report; `otherwise` where none is given. Throws bad-request. */
export function reportTime(query: Record<string, unknown>, name: string, otherwise: number): Moment {
  const text = query[name] as string | undefined
  const micros =
    text === undefined
      ? otherwise
      : microsOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text, name).floor
  return momentOfMicros(micros)
}

/** The time of a report: `from` to before `to`. Without bounds it is all time. Throws bad-request. */
export const reportPeriod = (query: Record<string, unknown>, to = 'to') => ({
  from: reportTime(query, 'from', EVER.from),
  to: reportTime(query, to, EVER.to),
})

/** Runs a report. Throws unavailable where no moment is final. */
export async function reported<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof HorizonUnknown)) throw error
    throw problem.unavailable(`reports are final at no moment: ${error.message}`, error)
  }
}
