import type { RequestQuota } from '../http/rate-limit.ts'
import type { Settings } from '../settings.ts'

/** The bucket of a customer holds the requests of this many seconds. */
const BURST_SECONDS = 5
const DAY_SECONDS = 24 * 60 * 60

/**
 * The limits of requests, each counted by each process: of each API client, of its customer, and of the customer's changes
 * in a day. A rate of 0 is no limit.
 */
export const limitsOfRequests = ({
  rateLimitPerSecond,
  rateLimitBurst,
  customerRateLimitPerSecond,
  customerChangesPerDay,
}: Settings): RequestQuota[] => [
  {
    rate: { perSecond: rateLimitPerSecond, burst: rateLimitBurst },
    keyOf: ({ customerId, clientId }) => `${customerId} ${clientId}`,
    countsReads: true,
    detail: `the rate limit of this client is ${rateLimitPerSecond} requests per second`,
  },
  {
    rate: { perSecond: customerRateLimitPerSecond, burst: BURST_SECONDS * customerRateLimitPerSecond },
    keyOf: ({ customerId }) => customerId,
    countsReads: true,
    detail: `the rate limit of this customer, for all its clients, is ${customerRateLimitPerSecond} requests per second`,
  },
  {
    rate: { perSecond: customerChangesPerDay / DAY_SECONDS, burst: customerChangesPerDay },
    keyOf: ({ customerId }) => customerId,
    countsReads: false,
    detail: `the limit of this customer is ${customerChangesPerDay} requests in a day that are not reads`,
  },
]
