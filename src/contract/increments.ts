/** Time in market history is in whole minutes since 1970, UTC. */

export type Increment =
  | 'ONE_MINUTE'
  | 'FIVE_MINUTES'
  | 'FIFTEEN_MINUTES'
  | 'THIRTY_MINUTES'
  | 'ONE_HOUR'
  | 'TWO_HOURS'
  | 'TWELVE_HOURS'
  | 'ONE_DAY'
  | 'ONE_WEEK'
  | 'TWO_WEEKS'
  | 'FOUR_WEEKS'

/**
 * The length of each increment in minutes (API behaviour, Market history), finest first. Each is a whole multiple of
 * the one before it, so that a roll-up is the sum of finer roll-ups.
 */
export const INCREMENT_MINUTES: Readonly<Record<Increment, number>> = {
  ONE_MINUTE: 1,
  FIVE_MINUTES: 5,
  FIFTEEN_MINUTES: 15,
  THIRTY_MINUTES: 30,
  ONE_HOUR: 60,
  TWO_HOURS: 120,
  TWELVE_HOURS: 720,
  ONE_DAY: 1440,
  ONE_WEEK: 10_080,
  TWO_WEEKS: 20_160,
  FOUR_WEEKS: 40_320,
}
export const INCREMENTS = Object.keys(INCREMENT_MINUTES) as Increment[]

export const DAY = INCREMENT_MINUTES.ONE_DAY
export const FOUR_WEEKS = INCREMENT_MINUTES.FOUR_WEEKS

/** 1970-01-05, a Monday: the origin of weeks, fortnights and four-week spans. */
const FIRST_MONDAY = 4 * DAY

/** Returns the origin of increments of this length. Increments of at most a day begin with the day, in UTC. */
const originOf = (minutes: number) => (minutes > DAY ? FIRST_MONDAY : 0)

export const incrementStart = (minute: number, minutes: number) =>
  Math.floor((minute - originOf(minutes)) / minutes) * minutes + originOf(minutes)

/** Returns the first start of an increment of this length at or after the minute. */
export const startFrom = (minute: number, minutes: number) => incrementStart(minute + minutes - 1, minutes)

/**
 * Returns the length of the shortest increment that contains a whole record of this many minutes; every longer
 * increment contains it, too. Undefined if no increment does.
 */
export function containingIncrement(first: number, coversMinutes: number): number | undefined {
  if (coversMinutes === 1) return 1
  return Object.values(INCREMENT_MINUTES).find(
    (minutes) => incrementStart(first, minutes) + minutes >= first + coversMinutes,
  )
}

/** `incrementStart` for a column, in SQL. */
export const startOfInSql = (column: string, minutes: number) => {
  const origin = originOf(minutes)
  // Integer division would round minutes before the origin the other way. Nothing here is older than the origin's
  // first four weeks.
  return origin === 0
    ? `${column} - ${column} % ${minutes}`
    : `${column} - (${column} - ${origin} + ${minutes}) % ${minutes}`
}
