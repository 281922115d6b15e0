import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import { addressGroup } from './address-group.ts'
import type { Authenticate } from './authenticate.ts'
import type { Caller } from './operation.ts'
import { problem } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'

/** Maximum remembered callers. Beyond it, the least recently seen caller starts with a full bucket again. */
const KEYS_MAX = 10_000
/** How many requests an access token is worth: its signature takes 1 to 4 ms of CPU. */
const TOKEN_COST = 10
/** A request counts once more for each further part of its path and body of this size. Most requests have one part. */
const PART_BYTES = 4 * 1024

/** How many requests a request counts as, before its body is read. One that does not say its length has the longest body. */
function partsOf({ headers, raw, routeOptions }: FastifyRequest): number {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  const said = length === undefined ? (encoding === undefined ? 0 : Infinity) : Number(length)
  return 1 + Math.floor((raw.url!.length + Math.min(said, routeOptions.bodyLimit)) / PART_BYTES)
}

interface Bucket {
  tokens: number
  /** When `tokens` was counted, in milliseconds of the process. */
  at: number
}

/** A bucket holds `burst` tokens at most and is refilled by `perSecond`. */
export interface Rate {
  perSecond: number
  burst: number
}

/** Token buckets by key. They are made for the first caller: a service has some ten of them, of 2 ms each. */
export class TokenBuckets {
  readonly #rate: Rate
  #buckets?: LRUCache<string, Bucket>

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /** Seconds until a token is available; 0 if one is available now. */
  wait(key: string): number {
    const { tokens } = this.#filled(key)
    return tokens >= 1 ? 0 : (1 - tokens) / this.#rate.perSecond
  }

  /**
   * Takes `count` tokens, of which `taken` were taken before. A request larger than the bucket needs a full one and leaves a
   * debt, so that the rate holds on average. Returns the seconds until all are available; 0 if they were taken.
   */
  take(key: string, count = 1, taken = 0): number {
    const { perSecond, burst } = this.#rate
    const bucket = this.#filled(key)
    // The refused request is repeated from its beginning, so the wait is for all its tokens.
    const missing = Math.min(count, burst) - taken - bucket.tokens
    if (missing > 0) return (missing + taken) / perSecond
    bucket.tokens -= count - taken
    return 0
  }

  /** Gives back the tokens of a request that another limit refused. */
  giveBack(key: string, count = 1): void {
    const bucket = this.#buckets?.get(key)
    if (bucket !== undefined) bucket.tokens += count
  }

  #filled(key: string): Bucket {
    const { perSecond, burst } = this.#rate
    const now = performance.now()
    let bucket = this.#buckets?.get(key)
    if (bucket === undefined) {
      bucket = { tokens: burst, at: now }
      ;(this.#buckets ??= new LRUCache({ max: KEYS_MAX })).set(key, bucket)
    }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
    bucket.at = now
    return bucket
  }
}

/** Limits the requests of an address to public operations, at the rate of a client. A rate of 0 is no limit. */
export function rateLimitOfAddress({
  perSecond,
  burst,
}: {
  perSecond: number
  burst: number
}): onRequestHookHandler {
  const buckets = new TokenBuckets({ perSecond, burst })
  return (request, _reply, done) => {
    const seconds = perSecond === 0 ? 0 : buckets.take(addressGroup(request.ip), partsOf(request))
    if (seconds === 0) return done()
    done(
      problem.tooManyRequests(
        `the rate limit of this address for requests without an access token is ${perSecond} per second`,
        seconds,
      ),
    )
  }
}

type Requester = Pick<Caller, 'customerId' | 'clientId'>

/** The checks of a client before its request is read. */
export interface RateLimit {
  /** Requires an access token with a scope, and then that the client is within its rate. */
  requireScope: (scopes: readonly Scope[]) => Authenticate
  /** Counts each item of a request as a request. `requireScope` has counted its parts. */
  requireRateOf: (request: FastifyRequest, count: number) => void
  /** Requires that the client and its customer are within the rate of access tokens, before one is signed. */
  requireRateOfToken: (holder: Requester) => void
}

export interface RequestQuota {
  keyOf: (caller: Requester) => string
  rate: Rate
  /** Whether the limit counts requests that only read, and the work of a request: each of its parts (`partsOf`). */
  countsReads: boolean
  detail: string
}

/** Limits the requests of each client and customer. A request must be within all quotas, in this order. A rate of 0 is no limit. */
export function withRateLimit(
  requireScope: (scopes: readonly Scope[]) => Authenticate,
  quotas: readonly RequestQuota[],
): RateLimit {
  const limits = quotas
    .filter(({ rate }) => rate.perSecond > 0)
    .map((quota) => {
      const tokenRate = {
        perSecond: Math.max(1, quota.rate.perSecond / TOKEN_COST),
        burst: Math.max(TOKEN_COST, quota.rate.burst / TOKEN_COST),
      }
      return {
        ...quota,
        buckets: new TokenBuckets(quota.rate),
        tokenRate,
        tokens: new TokenBuckets(tokenRate),
      }
    })

  const requireRate = (request: FastifyRequest): undefined => {
    const { caller } = request
    const isRead = request.method === 'GET'
    const parts = partsOf(request)
    for (let index = 0; index < limits.length; index++) {
      const limit = limits[index]!
      if (isRead && !limit.countsReads) continue
      const seconds = limit.buckets.take(limit.keyOf(caller), limit.countsReads ? parts : 1)
      if (seconds === 0) continue
      for (const { buckets, keyOf, countsReads } of limits.slice(0, index))
        if (!isRead || countsReads) buckets.giveBack(keyOf(caller), countsReads ? parts : 1)
      throw problem.tooManyRequests(limit.detail, seconds)
    }
    return undefined
  }
  return {
    requireScope(scopes) {
      const authenticate = requireScope(scopes)
      return (request) => {
        const waiting = authenticate(request)
        return waiting === undefined ? requireRate(request) : waiting.then(() => requireRate(request))
      }
    },
    requireRateOf(request, count) {
      const { caller } = request
      for (const { buckets, keyOf, countsReads, detail } of limits) {
        const taken = countsReads ? partsOf(request) : 1
        const seconds = buckets.take(keyOf(caller), Math.max(count, taken), taken)
        if (seconds > 0) throw problem.tooManyRequests(detail, seconds)
      }
    },
    requireRateOfToken(holder) {
      for (const { tokens, tokenRate, keyOf, countsReads } of limits) {
        if (!countsReads) continue
        const seconds = tokens.take(keyOf(holder))
        if (seconds > 0)
          throw problem.tooManyRequests(
            `${tokenRate.perSecond} access tokens a second are issued; use a token until it expires`,
            seconds,
          )
      }
    },
  }
}
