import { Temporal } from 'temporal-polyfill'
import { Type } from 'typebox'
import { Timestamp } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'

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

/** A time in a cursor: microseconds since 1970, between 2001 and 2286. Every match is a valid time. */
export const MICROS = /^\d{16}$/
