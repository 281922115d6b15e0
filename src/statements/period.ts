import { Temporal } from 'temporal-polyfill'

/** A calendar month, UTC: what a statement covers. */
export interface Period {
  /** YYYY-MM. */
  name: string
  /** Its first microsecond, and the first after it. */
  start: string
  next: string
  /** Its last microsecond. */
  end: string
}

/** The month YYYY-MM of the years 1000 to 2999, whose moments sort as text; or undefined when it is none. */
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

/** The month that ended last, before the one of this moment, or so many months earlier. */
export function lastPeriod(now: string, earlier = 0): Period {
  const month = Temporal.PlainYearMonth.from(now.slice(0, 7)).subtract({ months: 1 + earlier })
  return periodOf(month.toString())!
}
