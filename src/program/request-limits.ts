import type { FastifyInstance } from 'fastify'
import { onlyNode } from '../db/nodes.ts'
import type { RequestQuota, Rate } from '../http/rate-limit.ts'
import { CustomerLimits, requestDefaults, type RequestLimit } from '../money/records/customer-limits.ts'
import type { Settings } from '../settings.ts'
import type { AppOptions } from './app-options.ts'

/** Reads the limits of customers, and keeps reading them until the app closes. */
export async function openLimits(
  app: FastifyInstance,
  { db, background = db, backgroundNodes = onlyNode(background), settings, log, onLimit }: AppOptions,
): Promise<CustomerLimits> {
  const defaults = requestDefaults(settings)
  const limits = await CustomerLimits.start(backgroundNodes, log, defaults, onLimit)
  app.addHook('onClose', () => limits.stop())
  return limits
}

/** The bucket of a limit without a burst of its own holds the requests of this many seconds. */
const BURST_SECONDS = 5
const DAY_SECONDS = 24 * 60 * 60

/** The limits of requests: of each API client, of its customer, and of the customer's changes in a day. */
export function limitsOfRequests(limits: CustomerLimits, settings: Settings): RequestQuota[] {
  const aSecond = (most: number): Rate => ({ perSecond: most, burst: BURST_SECONDS * most })
  const aDay = (most: number): Rate => ({ perSecond: most / DAY_SECONDS, burst: most })
  const limit = (
    name: RequestLimit,
    { usual, rate, ...rest }: { usual?: Rate; rate: (most: number) => Rate } & Omit<RequestQuota, 'rateOf'>,
  ): RequestQuota => {
    const usualMost = requestDefaults(settings)[name]
    // Made once: most customers have the default.
    const usualRate = usual ?? rate(usualMost)
    return {
      ...rest,
      rateOf({ customerId }) {
        const most = limits.of(customerId, name)
        return most === usualMost ? usualRate : rate(most)
      },
      onRefusal: () => limits.refused(name),
    }
  }
  return [
    limit('client_requests_per_second', {
      usual: { perSecond: settings.rateLimitPerSecond, burst: settings.rateLimitBurst },
      rate: aSecond,
      keyOf: ({ customerId, clientId }) => `${customerId} ${clientId}`,
      countsReads: true,
      describe: ({ perSecond }) => `the rate limit of this client is ${perSecond} requests per second`,
    }),
    limit('requests_per_second', {
      rate: aSecond,
      keyOf: ({ customerId }) => customerId,
      countsReads: true,
      describe: ({ perSecond }) =>
        `the rate limit of this customer, for all its clients, is ${perSecond} requests per second`,
    }),
    limit('changes_per_day', {
      rate: aDay,
      keyOf: ({ customerId }) => customerId,
      countsReads: false,
      describe: ({ burst }) => `the limit of this customer is ${burst} requests in a day that are not reads`,
    }),
  ]
}
