import type { LookupFunction } from 'node:net'
import { Agent } from 'undici'
import { sendPost, SendFailure, type HttpAnswer, type Post } from '../http/outbound/post.ts'
import { resolverFor, type Resolve } from './resolve.ts'
import { faultOfAddress, faultOfTarget, type TargetRules } from './targets.ts'

const CONNECT_MS_MAX = 5_000
/** Time limit of a whole attempt, including a token that it may have to fetch. */
export const ATTEMPT_MS_MAX = 15_000
/** How much of an answer is read before the connection is closed. */
const ANSWER_BYTES_MAX = 4 * 1024
/** Idle connections are kept this long. Receivers often close theirs after 5 s. */
const KEEP_ALIVE_MS = 4_000

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

  /** Throws `SendFailure` when no answer comes, with a message for the customer. */
  async post(
    request: Omit<Post, 'bytesMax' | 'connectMsMax' | 'answerMsMax'> & Partial<Pick<Post, 'bytesMax'>>,
  ): Promise<HttpAnswer> {
    // The connector resolves names only: an address in the URL is checked here.
    const fault = faultOfTarget(request.url, this.#rules)
    if (fault !== undefined) throw new SendFailure(`the target is not allowed: ${fault}`)
    return sendPost(this.#agent, {
      bytesMax: ANSWER_BYTES_MAX,
      ...request,
      connectMsMax: CONNECT_MS_MAX,
      answerMsMax: ATTEMPT_MS_MAX,
    })
  }

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
        .find((fault) => fault !== undefined)
      if (fault !== undefined)
        return done(new SendFailure('the target is not allowed: the name has a private address'), '', 0)
      const wanted = found.filter((host) => (family !== 4 && family !== 6 ? true : host.family === family))
      const [first] = wanted
      if (first === undefined) return done(new SendFailure('the name has no address'), '', 0)
      if (all === true) return done(null, wanted)
      done(null, first.address, first.family)
    })
  }
}
