import { LRUCache } from 'lru-cache'

/** Most requests of this process that are under way at once. */
const IN_FLIGHT_MAX = 1_024
/** Endpoints not known to answer fast share half of the places: the other half always remains for fast endpoints. */
const UNPROVEN_MAX = IN_FLIGHT_MAX / 2
/** Requests under way to one endpoint: at the beginning, at most, and after a failure. */
const WINDOW_FIRST = 8
const WINDOW_MAX = 64
const WINDOW_MIN = 1
/** An endpoint whose requests take longer is slow. */
const FAST_MS = 1_000
const ENDPOINTS_KNOWN_MAX = 20_000

interface Endpoint {
  inFlight: Set<{ since: number }>
  /** How many may be in flight: one more after each success, half after a failure. */
  window: number
  /** Whether the last request succeeded, and within `FAST_MS`. */
  proven: boolean
}

/**
 * The places of this process for requests under way. Each endpoint has a window that grows with its successes. A dead or
 * slow endpoint holds few places, and all dead and slow ones together at most half.
 */
export class Places {
  #endpoints = new LRUCache<string, Endpoint>({ max: ENDPOINTS_KNOWN_MAX })
  #busy = new Map<string, Endpoint>()
  #inFlight = 0
  #unproven = 0

  get areFull(): boolean {
    return this.#inFlight >= IN_FLIGHT_MAX
  }

  /** The endpoints with requests under way that may begin no further one now. */
  full(now = performance.now()): string[] {
    return [...this.#busy.keys()].filter((id) => this.free(id, now) === 0)
  }

  /** The endpoints that may begin a request while the others hold all of their places; undefined: all endpoints may. */
  admitted(now = performance.now()): string[] | undefined {
    if (this.#unproven < UNPROVEN_MAX) return undefined
    return [...this.#endpoints].flatMap(([id, endpoint]) => (this.#freeOf(endpoint, now) > 0 ? id : []))
  }

  /** The number of further requests that this endpoint may begin now. */
  free(id: string, now = performance.now()): number {
    return this.#freeOf(this.#of(id), now)
  }

  #freeOf(endpoint: Endpoint, now: number): number {
    const { inFlight, window } = endpoint
    const others = isProven(endpoint, now) ? Infinity : UNPROVEN_MAX - this.#unproven
    return Math.max(0, Math.min(window - inFlight.size, IN_FLIGHT_MAX - this.#inFlight, others))
  }

  /** Takes a place. Returns the function that gives it back, with the request's outcome; undefined if no request was made. */
  take(id: string, now = performance.now()): (outcome: { succeeded: boolean } | undefined) => void {
    const endpoint = this.#of(id)
    const countsAsUnproven = !isProven(endpoint, now)
    const request = { since: now }
    endpoint.inFlight.add(request)
    this.#busy.set(id, endpoint)
    this.#inFlight++
    if (countsAsUnproven) this.#unproven++
    return (outcome) => {
      if (!endpoint.inFlight.delete(request)) return
      if (endpoint.inFlight.size === 0) this.#busy.delete(id)
      this.#inFlight--
      if (countsAsUnproven) this.#unproven--
      if (outcome === undefined) return
      endpoint.proven = outcome.succeeded && performance.now() - request.since < FAST_MS
      endpoint.window = outcome.succeeded
        ? Math.min(endpoint.window + 1, WINDOW_MAX)
        : Math.max(Math.floor(endpoint.window / 2), WINDOW_MIN)
    }
  }

  #of(id: string): Endpoint {
    const known = this.#endpoints.get(id) ?? this.#busy.get(id)
    if (known !== undefined) return known
    const endpoint: Endpoint = { inFlight: new Set(), window: WINDOW_FIRST, proven: false }
    this.#endpoints.set(id, endpoint)
    return endpoint
  }
}

function isProven({ proven, inFlight }: Endpoint, now: number): boolean {
  // Places are taken in order of time.
  const [oldest] = inFlight
  return proven && (oldest === undefined || now - oldest.since < FAST_MS)
}
