import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import { addressGroup } from './address-group.ts'
import type { Authenticate } from './authenticate.ts'
import type { Caller } from './operation.ts'
import { problem } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'

/** Maximum remembered callers. Beyond it, the least recently seen caller starts with a full bucket again. */
const KEYS_MAX = 10_000

interface Bucket {
  tokens: number
  /** Time of that count, in milliseconds of the process. */
  at: number
}

/** Token buckets: `burst` tokens at most, refilled by `perSecond`. */
export class TokenBuckets {
  readonly #perSecond: number
  readonly #burst: number
  #buckets = new LRUCache<string, Bucket>({ max: KEYS_MAX })

  constructor({ perSecond, burst }: { perSecond: number; burst: number }) {
    this.#perSecond = perSecond
    this.#burst = burst
  }

  /** Seconds until a token is available; 0 if one is available now. */
  wait(key: string): number {
    const { tokens } = this.#filled(key)
    return tokens >= 1 ? 0 : (1 - tokens) / this.#perSecond
  }

  /** Takes a token if one is available. Returns the same seconds as `wait`. */
  take(key: string): number {
    const seconds = this.wait(key)
    if (seconds === 0) this.#filled(key).tokens -= 1
    return seconds
  }

  /**
   * Takes the tokens of a request of `count` items, of which `take` has taken one. A request larger than the bucket
   * needs a full one and leaves a debt, so that the rate holds on average. Returns the seconds until all are available.
   */
  takeRest(key: string, count: number): number {
    const bucket = this.#filled(key)
    // The refused request is repeated from its beginning, so the wait is for all its tokens.
    const missing = Math.min(count, this.#burst) - 1 - bucket.tokens
    if (missing > 0) return (missing + 1) / this.#perSecond
    bucket.tokens -= count - 1
    return 0
  }

  #filled(key: string): Bucket {
    const now = performance.now()
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) {
      bucket = { tokens: this.#burst, at: now }
      this.#buckets.set(key, bucket)
    }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond)
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
  return ({ ip }, _reply, done) => {
    const seconds = perSecond === 0 ? 0 : buckets.take(addressGroup(ip))
    if (seconds === 0) return done()
    done(
      problem.tooManyRequests(
        `the rate limit of this address for requests without an access token is ${perSecond} per second`,
        seconds,
      ),
    )
  }
}

/** The checks of a client before its request is read. */
export interface RateLimit {
  /** Requires an access token with a scope, and then that the client is within its rate. */
  requireScope: (scopes: readonly Scope[]) => Authenticate
  /** Counts each item of a request as a request. `requireScope` has counted the first. */
  requireRateOf: (caller: Caller, count: number) => void
}

/** Limits the requests per second of each client. A rate of 0 is no limit. */
export function withRateLimit(
  requireScope: (scopes: readonly Scope[]) => Authenticate,
  { perSecond, burst }: { perSecond: number; burst: number },
): RateLimit {
  if (perSecond === 0) return { requireScope, requireRateOf: () => undefined }
  const buckets = new TokenBuckets({ perSecond, burst })
  const keyOf = ({ customerId, clientId }: Caller) => `${customerId} ${clientId}`
  const require = (seconds: number): undefined => {
    if (seconds > 0)
      throw problem.tooManyRequests(
        `the rate limit of this client is ${perSecond} requests per second`,
        seconds,
      )
    return undefined
  }
  const requireRate = ({ caller }: FastifyRequest) => require(buckets.take(keyOf(caller)))
  return {
    requireScope(scopes) {
      const authenticate = requireScope(scopes)
      return (request) => {
        const waiting = authenticate(request)
        return waiting === undefined ? requireRate(request) : waiting.then(() => requireRate(request))
      }
    },
    requireRateOf: (caller, count) => require(buckets.takeRest(keyOf(caller), count)),
  }
}
