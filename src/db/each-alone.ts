import { connectionLost } from './database.ts'

/**
 * Work over many records, one of which may be faulty: written by a later version, made of a lying node's answer, or against
 * an assertion. The faulty record fails alone, and the others go on. A lost connection to the database still ends the work
 * of all.
 */

/** The failure of one record among many. Its name is its kind and id. */
export class RecordFailure extends Error {
  readonly record: string

  constructor(record: string, cause: unknown) {
    super(`${record}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'RecordFailure'
    this.record = record
  }
}

export const customerName = ({ customer_id }: { customer_id: string }) => `customer ${customer_id}`

/**
 * Does some work for each record in turn. Throws an AggregateError of RecordFailure after the last one, where some failed,
 * and at once where the connection to the database is lost.
 */
export async function eachAlone<T>(
  records: Iterable<T> | AsyncIterable<T>,
  nameOf: (record: T) => string,
  work: (record: T) => unknown,
  failed = 'records failed',
): Promise<void> {
  const failures: RecordFailure[] = []
  for await (const record of records)
    try {
      await work(record)
    } catch (error) {
      if (connectionLost(error)) throw error
      // Failures among the parts of a record already have names of their own.
      const { ofRecords, rest } = failuresIn(error)
      failures.push(...ofRecords, ...(rest === undefined ? [] : [new RecordFailure(nameOf(record), rest)]))
    }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} ${failed}`)
}

/** The failures of single records in what a round threw, and what else it threw. */
export function failuresIn(error: unknown): { ofRecords: RecordFailure[]; rest: unknown } {
  if (error instanceof RecordFailure) return { ofRecords: [error], rest: undefined }
  if (!(error instanceof AggregateError)) return { ofRecords: [], rest: error }
  const parts = (error.errors as unknown[]).map(failuresIn)
  const ofRecords = parts.flatMap((part) => part.ofRecords)
  const rest = parts.flatMap((part) => (part.rest === undefined ? [] : [part.rest]))
  return { ofRecords, rest: rest.length > 1 ? new AggregateError(rest, error.message) : rest[0] }
}

/** How long a failure of a record is not reported again. */
const REPORT_AGAIN_MS = 3_600_000
const REPORTED_MAX = 10_000

/** The failures of records that were reported. A record that fails in every round is reported once an hour. */
export class ReportedFailures {
  readonly #reportedAt = new Map<string, number>()

  /** Adds failures, and returns those that are to be reported now. */
  add(failures: readonly RecordFailure[], now = performance.now()): RecordFailure[] {
    return failures.filter(({ message }) => {
      const before = this.#reportedAt.get(message)
      if (before !== undefined && now - before < REPORT_AGAIN_MS) return false
      this.#reportedAt.delete(message)
      const [oldest] = this.#reportedAt.keys()
      if (this.#reportedAt.size >= REPORTED_MAX && oldest !== undefined) this.#reportedAt.delete(oldest)
      this.#reportedAt.set(message, now)
      return true
    })
  }
}

/** Most calls of one `inParts` that may fail: finding one record among 500 takes ten. */
const FAILED_CALLS_MAX = 64

/**
 * Asks a question about many records at once. If that fails, it asks about each half in turn, down to a single failing
 * record, for which `alone` answers. The answers are in the order of the records, with undefined for records not yet asked
 * about at the limit of failures. Throws failures that `concernsAll` names, and a lost connection to the database.
 */
export async function inParts<T, Answer>(
  records: readonly T[],
  ask: (part: T[]) => Promise<Answer[]>,
  alone: (record: T, error: unknown) => Answer,
  concernsAll: (error: unknown) => boolean = () => false,
): Promise<(Answer | undefined)[]> {
  let failed = 0
  async function answersFor(part: T[]): Promise<(Answer | undefined)[]> {
    if (failed >= FAILED_CALLS_MAX) return part.map(() => undefined)
    try {
      return await ask(part)
    } catch (error) {
      if (connectionLost(error) || concernsAll(error)) throw error
      failed++
      if (part.length === 1) return [alone(part[0]!, error)]
      const middle = Math.ceil(part.length / 2)
      return [...(await answersFor(part.slice(0, middle))), ...(await answersFor(part.slice(middle)))]
    }
  }
  return records.length === 0 ? [] : answersFor([...records])
}
