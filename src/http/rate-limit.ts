import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Authenticate } from './authenticate.ts'
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

/** Requires an access token with a scope, and then that the client is within its rate. A rate of 0 is no limit. */
export function withRateLimit(
  requireScope: (scopes: readonly Scope[]) => Authenticate,
  { perSecond, burst }: { perSecond: number; burst: number },
): (scopes: readonly Scope[]) => Authenticate {
  if (perSecond === 0) return requireScope
  const buckets = new TokenBuckets({ perSecond, burst })
  const requireRate = ({ caller: { customerId, clientId } }: FastifyRequest): undefined => {
    const seconds = buckets.take(`${customerId} ${clientId}`)
    if (seconds > 0)
      throw problem.tooManyRequests(
        `the rate limit of this client is ${perSecond} requests per second`,
        seconds,
      )
    return undefined
  }
  return (scopes) => {
    const authenticate = requireScope(scopes)
    return (request) => {
      const waiting = authenticate(request)
      return waiting === undefined ? requireRate(request) : waiting.then(() => requireRate(request))
    }
  }
}
