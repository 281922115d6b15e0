import { Temporal } from 'temporal-polyfill'

export interface Period {
  /** YYYY-MM. */
  name: string
  /** Its first microsecond, and the first microsecond after it. */
  start: string
  next: string
  /** Its last microsecond. */
  end: string
}

/** Parses a month YYYY-MM of the years 1000 to 2999, whose timestamps sort as text. Undefined for any other text. */
export function periodOf(name: string): Period | undefined {
  if (!/^[12]\d{3}-(0[1-9]|1[0-2])$/.test(name)) return undefined
  const month = Temporal.PlainYearMonth.from(name)
  const lastDay = month.toPlainDate({ day: month.daysInMonth })
  return {
    name,
    start: `${name}-01T00:00:00.000000Z`,
    next: `${lastDay.add({ days: 1 }).toString()}T00:00:00.000000Z`,
    end: `${lastDay.toString()}T23:59:59.999999Z`,
  }
}

/** Returns the last month that ended before this moment, or an earlier month by `earlier` months. */
export function lastPeriod(now: string, earlier = 0): Period {
  const month = Temporal.PlainYearMonth.from(now.slice(0, 7)).subtract({ months: 1 + earlier })
  return periodOf(month.toString())!
}

/** Returns the months from `since` (YYYY-MM) to `last`, the oldest first; none where `since` is later. */
export function monthsSince(since: string, last: Period): Period[] {
  const months: Period[] = []
  for (let month = last; month.name >= since; month = lastPeriod(month.start)) months.unshift(month)
  return months
}
