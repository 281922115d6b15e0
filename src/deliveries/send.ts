import type { LookupFunction } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import { resolverFor, type Resolve } from './resolve.ts'
import { faultOfAddress, faultOfTarget, type TargetRules } from './targets.ts'

const CONNECT_MS_MAX = 5_000
/** Of an attempt in all, with the token that it may have to fetch. */
export const ATTEMPT_MS_MAX = 15_000
/** How much of an answer is read. The connection is closed then. */
const ANSWER_BYTES_MAX = 4 * 1024
/** Idle connections are kept this long. Receivers often close theirs after 5 s. */
const KEEP_ALIVE_MS = 4_000

/** No answer came, or the target is not allowed. The message is for the customer: it has no address and no secret. */
export class SendFailure extends Error {}

export interface Answer {
  statusCode: number
  headers: Record<string, string | string[] | undefined>
  /** The first bytes, as they came: a compressed body is not inflated. */
  body: Buffer
  /** Whether `body` is only the beginning. */
  isCut: boolean
}

interface Post {
  url: string
  headers: Record<string, string>
  body: string
  /** Ends the request: the attempt takes too long, or the process stops. */
  signal: AbortSignal
  bytesMax?: number
}

/**
 * Sends POST requests to targets that the rules allow. It uses no proxy and follows no redirect. A name is resolved right
 * before each connection, every address must be allowed, and the connection goes to these very addresses: an answer of
 * the DNS that changes later is never used.
 */
export class Sender {
  readonly #rules: TargetRules
  readonly #agent: Agent

  constructor(rules: TargetRules, resolve: Resolve = resolverFor(rules)) {
    this.#rules = rules
    this.#agent = new Agent({
      // Places bound the connections (places.ts). A limit for each host would let one endpoint hold another one up.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: ATTEMPT_MS_MAX,
      bodyTimeout: ATTEMPT_MS_MAX,
      connect: { timeout: CONNECT_MS_MAX, lookup: checkedLookup(rules, resolve) },
    })
  }

  /** Throws `SendFailure` when no answer comes. */
  async post({ url, headers, body, signal, bytesMax = ANSWER_BYTES_MAX }: Post): Promise<Answer> {
    // The connector resolves names only: an address in the URL is checked here.
    const fault = faultOfTarget(url, this.#rules)
    if (fault !== undefined) throw new SendFailure(`the target is not allowed: ${fault}`)
    const { origin, pathname, search } = new URL(url)
    try {
      const response = await this.#agent.request({
        origin,
        path: `${pathname}${search}`,
        method: 'POST',
        headers,
        body,
        signal,
      })
      return {
        statusCode: response.statusCode,
        headers: response.headers,
        ...(await beginningOf(response.body, bytesMax)),
      }
    } catch (error) {
      throw new SendFailure(explain(error), { cause: error })
    }
  }

  /** Closes all connections. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** A lookup for `net.connect`, which refuses a name as soon as one of its addresses is not allowed. */
function checkedLookup(rules: TargetRules, resolve: Resolve): LookupFunction {
  return (name, { all, family }, done) => {
    resolve(name, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const fault = found
        .map(({ address }) => faultOfAddress(address, rules))
        .find((one) => one !== undefined)
      if (fault !== undefined)
        return done(new SendFailure('the target is not allowed: the name has a private address'), '', 0)
      const wanted = found.filter((one) => (family !== 4 && family !== 6 ? true : one.family === family))
      const [first] = wanted
      if (first === undefined) return done(new SendFailure('the name has no address'), '', 0)
      if (all === true) return done(null, wanted)
      done(null, first.address, first.family)
    })
  }
}

/** Reads the beginning of a body. When the time is over or the connection breaks, what came until then counts. */
async function beginningOf(
  body: Dispatcher.ResponseData['body'],
  bytesMax: number,
): Promise<Pick<Answer, 'body' | 'isCut'>> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop destroys the body, which reports that as an error.
  body.on('error', () => undefined)
  try {
    for await (const chunk of body) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes > bytesMax) break
    }
  } catch {
    return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: true }
  }
  return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: bytes > bytesMax }
}

const EXPLANATIONS: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: `no connection within ${CONNECT_MS_MAX / 1000} s`,
  UND_ERR_ABORTED: `no answer within ${ATTEMPT_MS_MAX / 1000} s`,
  UND_ERR_HEADERS_TIMEOUT: `no answer within ${ATTEMPT_MS_MAX / 1000} s`,
  UND_ERR_BODY_TIMEOUT: `no answer within ${ATTEMPT_MS_MAX / 1000} s`,
  UND_ERR_SOCKET: 'the connection was closed before the answer',
  ECONNRESET: 'the connection was closed before the answer',
  EPIPE: 'the connection was closed before the answer',
  ECONNREFUSED: 'the connection was refused',
  ETIMEDOUT: `no connection within ${CONNECT_MS_MAX / 1000} s`,
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the host cannot be reached',
  ENOTFOUND: 'the name cannot be resolved',
  ENODATA: 'the name cannot be resolved',
  EAI_AGAIN: 'the name cannot be resolved',
  ESERVFAIL: 'the name cannot be resolved',
  EREFUSED: 'the name cannot be resolved',
  ETIMEOUT: 'the name cannot be resolved',
  ECANCELLED: 'the name cannot be resolved',
}

/** Explains a failure to the customer. The system's own messages name addresses, so that only their code is shown. */
function explain(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (first instanceof SendFailure) return first.message
  const { code = '', name } = first as { code?: string; name: string }
  if (name === 'AbortError' || name === 'TimeoutError') return EXPLANATIONS.UND_ERR_ABORTED!
  return EXPLANATIONS[code] ?? `the request failed (${code === '' ? name : code})`
}
