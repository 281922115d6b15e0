import { BursarError, BursarUnreachable, retryAfterMs } from './errors.ts'

/** How often and how long the same request is sent again. */
export interface Retries {
  /** Most times that a request is sent; 1 never repeats. */
  attempts: number
  /** Longest that all attempts and the pauses between them take together. */
  totalMs: number
  /** Longest that one attempt waits for its answer. */
  attemptMs: number
  /** Pause before the second attempt; it doubles with each, up to `pauseMsMax`, and is shortened by up to half at random. */
  pauseMs: number
  pauseMsMax: number
}

export const RETRIES: Retries = {
  attempts: 5,
  totalMs: 60_000,
  attemptMs: 30_000,
  pauseMs: 200,
  pauseMsMax: 5_000,
}

/** The service refused the request before it did anything. */
const TOO_MANY_REQUESTS = 429
/** No answer from the service: the outcome is unknown. */
const UNANSWERED = new Set([502, 503, 504])

export interface Sending {
  retries: Retries
  signal?: AbortSignal | null | undefined
  /** Whether the request may be sent again when its outcome is unknown. */
  repeatable: boolean
  /** The ref_id that `BursarUnreachable` reports. */
  refId?: string | undefined
}

/** A response that has arrived in full, and whether an earlier attempt may have been carried out. */
export interface Sent {
  response: Response
  repeated: boolean
}

/**
 * Sends a request, and sends it again where that is safe: after 429 always; after no answer, 502, 503 and 504 if it is
 * repeatable. Returns the last response. Throws `BursarUnreachable` when the service gave none, the reason of an aborted
 * signal, and any `BursarError` of the attempt itself.
 */
export async function sendAgain(
  attempt: (signal: AbortSignal) => Promise<Response>,
  { retries, signal, repeatable, refId }: Sending,
): Promise<Sent> {
  const deadline = performance.now() + retries.totalMs
  const remainingMs = () => Math.max(deadline - performance.now(), 0)
  let response: Response | undefined
  let failure: unknown
  let repeated = false
  let sent = 0
  while (sent < retries.attempts) {
    signal?.throwIfAborted()
    sent++
    const tooLong = AbortSignal.timeout(Math.ceil(Math.min(retries.attemptMs, remainingMs())))
    try {
      response = await whole(await attempt(signal ? AbortSignal.any([signal, tooLong]) : tooLong))
    } catch (error) {
      if (error instanceof BursarError) throw error
      signal?.throwIfAborted()
      response = undefined
      failure = error
    }
    const unanswered = response === undefined || UNANSWERED.has(response.status)
    if (!(unanswered ? repeatable : response?.status === TOO_MANY_REQUESTS)) break
    const pauseMs = Math.max(backoffMs(sent, retries), retryAfterMs(response) ?? 0)
    if (sent === retries.attempts || pauseMs >= remainingMs()) break
    repeated ||= unanswered
    await pause(pauseMs, signal)
  }
  if (response !== undefined && !isOfProxy(response)) return { response, repeated }
  if (response !== undefined) failure = new Error(`HTTP ${response.status}, which is not from Bursar`)
  throw new BursarUnreachable(`no answer in ${sent} attempts: ${causeOf(failure)}`, refId, failure)
}

/** The service answers every failure in JSON, so a 5xx without JSON is from a proxy, which does not know the outcome. */
const isOfProxy = ({ status, headers }: Response): boolean =>
  status >= 500 && !/\bjson\b/.test(headers.get('content-type') ?? '')

/** Reads the whole body, so that a connection that breaks in the middle of the body counts as no answer. */
async function whole(response: Response): Promise<Response> {
  const text = await response.text()
  const { status, statusText, headers } = response
  return new Response(text === '' ? null : text, { status, statusText, headers })
}

function backoffMs(sent: number, { pauseMs, pauseMsMax }: Retries): number {
  return Math.min(pauseMs * 2 ** (sent - 1), pauseMsMax) * (1 - Math.random() / 2)
}

/** Waits for a time, or until the signal aborts. */
export async function pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    await orAborted(new Promise((resolve) => (timer = setTimeout(resolve, ms))), signal)
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for shared work, or until the signal aborts; the work itself continues. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return work
  signal.throwIfAborted()
  const done = new AbortController()
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { signal: done.signal }),
  )
  try {
    return await Promise.race([work, aborted])
  } finally {
    done.abort()
  }
}

/** The cause of a failed `fetch`: its message is only 'fetch failed', and in Node the cause has the details. */
function causeOf(failure: unknown): string {
  const { message, cause } = failure as Error & { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? message
}
