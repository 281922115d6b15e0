import { InvalidArgumentError } from 'commander'
import { momentAt, type Moment } from '../db/ids.ts'
import { microsOf, microsToTimestamp } from '../http/time-bounds.ts'

export const momentOf = (micros: number): Moment => momentAt(microsToTimestamp(micros))

/** Reads a day, which begins at 00:00 UTC, or an RFC 3339 time. For commander. */
export function moment(text: string): Moment {
  try {
    return momentOf(microsOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text, 'it').floor)
  } catch {
    throw new InvalidArgumentError('must be a day, such as 2026-01-31, or an RFC 3339 time.')
  }
}
