/** Time in market history is whole minutes since 1970, UTC. */

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
 * The length of each increment in minutes (API behaviour, Market history), finest first. Each holds a whole number of
 * the one before it, so that roll-ups are made of roll-ups.
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

/** 1970-01-05, a Monday: weeks, fortnights and four-week spans are counted from it. */
const FIRST_MONDAY = 4 * DAY

/** Where increments of this length are counted from. All that fit into a day begin with the day, in UTC. */
const originOf = (minutes: number) => (minutes > DAY ? FIRST_MONDAY : 0)

/** The start of the increment of this length that the minute is in. */
export const startOf = (minute: number, minutes: number) =>
  Math.floor((minute - originOf(minutes)) / minutes) * minutes + originOf(minutes)

/** The first start of an increment of this length that is not before the minute. */
export const startFrom = (minute: number, minutes: number) => startOf(minute + minutes - 1, minutes)

/** `startOf` for a column, in SQL. */
export const startOfInSql = (column: string, minutes: number) => {
  const origin = originOf(minutes)
  // What is before the origin would be rounded the other way; nothing here is older than its first four weeks.
  return origin === 0
    ? `${column} - ${column} % ${minutes}`
    : `${column} - (${column} - ${origin} + ${minutes}) % ${minutes}`
}
