/** When the attempts of a delivery are made, and how many of an endpoint may start now. Pure: times are in seconds. */

const MINUTE = 60
const HOUR = 60 * MINUTE
const LAST_AFTER = 24 * HOUR
const DELAYS = [5, 30, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR]

/** The delays between attempts, in seconds. The first attempt is made at once, the last one 24 h after it. */
export const RETRY_DELAYS_SECONDS: readonly number[] = [
  ...DELAYS,
  LAST_AFTER - DELAYS.reduce((sum, delay) => sum + delay),
]
/** Delays differ by up to this share, so that the deliveries of an outage do not come back all at once. */
const JITTER = 0.2

/** An endpoint may ask for this pause at most. */
export const RETRY_AFTER_SECONDS_MAX = HOUR

/**
 * Returns the seconds until the next attempt, or undefined when this was the last one. `attempts` is the number made since
 * the delivery was sent or resent, with this one. `random` is from 0 to 1.
 */
export function secondsToNextAttempt(
  attempts: number,
  { retryAfterSeconds = 0, random }: { retryAfterSeconds?: number | undefined; random: number },
): number | undefined {
  const delay = RETRY_DELAYS_SECONDS[attempts - 1]
  if (delay === undefined) return undefined
  return Math.max(delay * (1 - JITTER + 2 * JITTER * random), retryAfterSeconds)
}

/** RFC 9110, 5.6.7: the format that senders must use. */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** Reads a `Retry-After` header, seconds or an HTTP date: the seconds to wait, up to an hour. Undefined if it says none. */
export function readRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? ''
  const seconds = /^\d+$/.test(text)
    ? Number(text)
    : HTTP_DATE.test(text)
      ? Math.ceil((Date.parse(text) - nowMs) / 1000)
      : NaN
  return seconds > 0 ? Math.min(seconds, RETRY_AFTER_SECONDS_MAX) : undefined
}

/** Statuses by which an endpoint says that it is overloaded. They halve its rate for a minute. */
const OVERLOADED = new Set([429, 502, 503, 504])
export const isOverloaded = (statusCode: number | undefined): boolean => OVERLOADED.has(statusCode ?? 0)
export const SLOW_SECONDS = MINUTE

/** Slots are given out this far ahead. A claim every 100 ms then keeps up with the highest rate. */
export const AHEAD_SECONDS = 0.2

/** The rate of an endpoint, with its moments as seconds from now: negative for the past. */
export interface EndpointRate {
  perSecond: number
  nextIn: number
  slowFor: number
}

/**
 * Returns the times of the next deliveries, as seconds from now: evenly spaced, `most` of them at most, none further ahead
 * than `AHEAD_SECONDS`. No second has more starts than the rate, because a pause earns no burst.
 */
export function nextSlots({ perSecond, nextIn, slowFor }: EndpointRate, most: number): number[] {
  const interval = intervalOf({ perSecond, slowFor })
  const first = Math.max(nextIn, 0)
  const slots: number[] = []
  for (let slot = first; slot < AHEAD_SECONDS && slots.length < most; slot = first + slots.length * interval)
    slots.push(slot)
  return slots
}

export const intervalOf = ({ perSecond, slowFor }: Omit<EndpointRate, 'nextIn'>): number =>
  (slowFor > 0 ? 2 : 1) / perSecond
