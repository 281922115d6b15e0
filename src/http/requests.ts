import type { Comparable } from './differing-members.ts'
import type { Socket } from 'node:net'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  RouteOptions,
} from 'fastify'
import type { Logger } from 'pino'
import { addressGroup } from './address-group.ts'
import { endConnection } from './errors.ts'
import { problem, type Problem } from '../contract/problems.ts'
import { traceIdOf, type Span, type Tracing } from '../contract/tracing.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * How the route's requests count against the limits. `operation`: once received in full, with a valid token.
     * `always answered`: never. All others need no access token and count from their headers on. A `token request` has
     * a limit of its own, so that a client which does not read its pages cannot block token requests.
     */
    counts?: 'operation' | 'always answered' | 'token request'
    /** For already-exists: the members of the body that the record keeps. */
    comparable?: Comparable
  }
  interface FastifyRequest {
    /** The record that a POST created or found, for the log line of the request. */
    recordId: string | undefined
    /** The records of a request that is answered item by item. */
    recordIds: string[] | undefined
    /** Why it was refused, where the answer does not say it: for the log line. */
    refusedFor: string | undefined
    /** Of a request for an operation that is sampled. */
    span: Span | undefined
  }
}

/** Called when a request ends. `route` is the pattern of the path; undefined for an unknown path. `traceId`: where it is traced. */
export type RequestMeter = (
  method: string,
  route: string | undefined,
  status: number,
  milliseconds: number,
  traceId?: string,
) => void

/** Logged status of a request whose client disconnected before the answer. */
const CLIENT_CLOSED_REQUEST = 499
/** Strict-Transport-Security for one year: a browser then never uses plain HTTP. */
const HSTS = 'max-age=31536000'
/** Limit of requests without an access token (tokens, pages, keys), as a share of all concurrent requests. */
const ANONYMOUS_SHARE = 0.1
const ANONYMOUS_MAX = 500
/** Limit of such requests for one address. Issuing a token takes about 3 ms. */
const ANONYMOUS_OF_ADDRESS_MAX = 100
/** How long the body of such a request may take to arrive: a form of 200 bytes. */
const ANONYMOUS_RECEIVE_MS_MAX = 5_000
/** How long such a request may take in total, until its client has read the answer. */
const ANONYMOUS_MS_MAX = 60_000

export interface RequestsOptions {
  /** Maximum concurrent operations; more are answered with 503. */
  max: number
  /** Time limit of an operation; then the answer is 503. */
  timeoutMs: number
  meter?: RequestMeter | undefined
  tracing?: Tracing | undefined
  /** Log for one line per request; undefined if requests are not logged. */
  log?: Logger | undefined
  /** The public URL, and whether a trusted proxy reports the client's protocol. */
  secure?: { baseUrl: string; behindProxy: boolean }
  /** Notified when a request begins and ends on a connection. */
  connections?: { began(socket: Socket): void; ended(socket: Socket): void } | undefined
}

interface Unanswered {
  reply: FastifyReply
  /** Its index in the array of unanswered requests. */
  place: number
}

/** Limits requests without an access token: their number, in total and for each address, and their time. */
class Share {
  readonly #max: number
  #underWay = 0
  readonly #ofAddress = new Map<string, number>()

  constructor(requestsMax: number) {
    this.#max = Math.max(1, Math.min(ANONYMOUS_MAX, Math.floor(requestsMax * ANONYMOUS_SHARE)))
  }

  /** Counts a request until it is answered, or refuses it. */
  readonly admit: onRequestHookHandler = (request, reply, done) => {
    const address = addressGroup(request.ip)
    const count = this.#ofAddress.get(address) ?? 0
    if (count >= ANONYMOUS_OF_ADDRESS_MAX) return done(tooManyOfAddress())
    if (this.#underWay >= this.#max) return done(tooManyAnonymous())
    this.#underWay += 1
    this.#ofAddress.set(address, count + 1)
    const tooSlow = setTimeout(() => {
      if (request.raw.complete === false) endConnection(request.raw.socket, problem.requestTimeout())
    }, ANONYMOUS_RECEIVE_MS_MAX)
    // A client that does not read its answer would keep the place.
    const unread = setTimeout(() => request.raw.socket.destroy(), ANONYMOUS_MS_MAX)
    reply.raw.once('close', () => {
      clearTimeout(tooSlow)
      clearTimeout(unread)
      this.#underWay -= 1
      if (this.#ofAddress.get(address) === 1) this.#ofAddress.delete(address)
      else this.#ofAddress.set(address, this.#ofAddress.get(address)! - 1)
    })
    done()
  }
}

/** The members of an answer that name its records. */
interface Noted {
  id?: string
  rule?: { id: string }
  items?: { transfer?: { id: string } }[]
}

/** Notes the id of the answered record. A rule is a member of its answer; other records are the answer itself. */
function noteRecord(request: FastifyRequest, answer: unknown): void {
  const { id, rule, items } = answer as Noted
  request.recordId = id ?? rule?.id
  request.recordIds = items?.flatMap(({ transfer }) => transfer?.id ?? [])
}

const tooMany = () => problem.unavailable('too many concurrent requests; nothing was changed; try again')

const tooManyOfCustomer = (count: number) =>
  problem.tooManyRequests(`${count} requests of this customer are under way; nothing was changed`, 1)

const tooManyAnonymous = () =>
  problem.unavailable('too many concurrent requests without an access token; nothing was changed; try again')

const tooManyOfAddress = () =>
  problem.tooManyRequests(
    `this address has ${ANONYMOUS_OF_ADDRESS_MAX} concurrent requests without an access token`,
    1,
  )

/** The unanswered requests of this process: limited in number and time, and drained at the stop. */
export class Requests {
  readonly #options: RequestsOptions
  // An array with swap-remove: a Set's discarded table keeps finished requests alive until it is collected (measured:
  // GC time doubled, 10 us a request).
  #unanswered: Unanswered[] = []
  #running = 0
  readonly #ofCustomer = new Map<string, number>()
  readonly #pages: Share
  readonly #tokens: Share
  /** The last status of each health check. */
  readonly #health = new Map<string | undefined, number>()
  #draining = false
  /** Whether the service makes its first records yet. */
  starting = false

  constructor(options: RequestsOptions) {
    this.#options = options
    this.#pages = new Share(options.max)
    this.#tokens = new Share(options.max)
  }

  get underWay(): number {
    return this.#unanswered.length
  }

  /** Number of accepted requests: unanswered and received in full. */
  get accepted(): number {
    return this.#unanswered.filter(({ reply }) => reply.request.raw.complete).length
  }

  get draining(): boolean {
    return this.#draining
  }

  /** From now on each answer closes its connection, so that no client sends another request on it. */
  drain(): void {
    this.#draining = true
    for (const { reply } of this.#unanswered) if (!reply.sent) reply.header('connection', 'close')
  }

  /** Adds the hooks that count and limit the app's requests. Call it before routes are added. */
  watch(app: FastifyInstance): void {
    const { connections, secure } = this.#options
    const always = secure?.baseUrl.startsWith('https:') === true
    const maybe = secure?.behindProxy === true && !always
    app.decorateRequest('recordId', undefined)
    app.decorateRequest('recordIds', undefined)
    app.decorateRequest('refusedFor', undefined)
    app.decorateRequest('span', undefined)
    app.addHook('onRequest', (request, reply, done) => {
      const unanswered = { reply, place: this.#unanswered.length }
      this.#unanswered.push(unanswered)
      connections?.began(request.raw.socket)
      reply.raw.once('close', () => this.#ended(request, unanswered))
      reply.header('x-request-id', request.id)
      // Balances and names must not be cached. Answers that may be cached set their own header.
      reply.header('cache-control', 'no-store')
      reply.header('x-content-type-options', 'nosniff')
      reply.header('referrer-policy', 'no-referrer')
      // RFC 6797, 7.2: only on a connection that is known to be secure.
      if (always || (maybe && request.protocol === 'https')) reply.header('strict-transport-security', HSTS)
      if (this.#draining) reply.header('connection', 'close')
      done()
    })
    app.addHook('onRoute', (route: RouteOptions) => {
      const { counts } = route.config ?? {}
      if (counts === 'operation' || counts === 'always answered') return
      const { admit } = counts === 'token request' ? this.#tokens : this.#pages
      const hooks = [route.onRequest ?? []].flat()
      // Fastify derives a HEAD route from a GET route, which already has the hook.
      if (!hooks.includes(admit)) route.onRequest = [admit, ...hooks]
    })
  }

  #ended(request: FastifyRequest, unanswered: Unanswered): void {
    const { reply, place } = unanswered
    const last = this.#unanswered.pop()!
    if (last !== unanswered) {
      this.#unanswered[place] = last
      last.place = place
    }
    const { meter, log, connections } = this.#options
    connections?.ended(request.raw.socket)
    const { url } = request.knownPath ?? request.routeOptions
    const status = reply.raw.writableEnded ? reply.statusCode : CLIENT_CLOSED_REQUEST
    const milliseconds = reply.elapsedTime
    const traceId = request.span && traceIdOf(request.span.traceparent)
    meter?.(request.method, url, status, milliseconds, traceId)
    request.span?.end({
      name: `${request.method} ${url}`,
      attributes: {
        'http.request.method': request.method,
        'http.route': url ?? '',
        'http.response.status_code': status,
        'bursar.request_id': request.id,
      },
      failed: status >= 500,
    })
    // Building the line costs more than this check.
    if (log?.isLevelEnabled('info') !== true) return
    if (request.routeOptions.config.counts === 'always answered') {
      // A load balancer asks each second: only changes are worth a line.
      if (this.#health.get(url) === status) return
      this.#health.set(url, status)
    }
    log.info(
      {
        reqId: request.id,
        trace_id: traceId,
        client_id: (request.caller as typeof request.caller | undefined)?.clientId,
        method: request.method,
        route: url,
        status,
        record_id: request.recordId,
        record_ids: request.recordIds,
        refused_for: request.refusedFor,
        ms: Math.round(milliseconds * 1000) / 1000,
      },
      'request',
    )
  }

  /** Refuses an operation before its token and body are read, while the limit is reached. */
  readonly refuseWhenFull: onRequestHookHandler = (_request, _reply, done) =>
    done(this.#running >= this.#options.max ? tooMany() : undefined)

  /**
   * Runs an operation unless the limit is reached. A customer never has more operations under way than there are places
   * left, so a customer that asks faster than it is answered leaves places to the others. Rejects with `late()` at the time
   * limit; the work may continue unawaited. The limit counts running work, because work continues after its client
   * disconnects. A request whose body is still arriving does not count: slow senders could otherwise take all places at no
   * cost. Where requests are logged, notes the record that a POST returned, because no table says which client created a
   * record.
   */
  run<T>(request: FastifyRequest, work: () => Promise<T>, late: () => Problem): Promise<T> {
    // A public operation has no caller.
    const customerId = (request.caller as typeof request.caller | undefined)?.customerId ?? ''
    const { max, log, timeoutMs, tracing } = this.#options
    const left = max - this.#running
    if (left <= 0) throw tooMany()
    const own = this.#ofCustomer.get(customerId) ?? 0
    if (own >= left) throw tooManyOfCustomer(own)
    // Nobody without an access token has anything traced.
    if (tracing !== undefined && customerId !== '')
      request.span ??= tracing.request(request.headers.traceparent as string | undefined)
    const doing = work()
    this.#running += 1
    this.#ofCustomer.set(customerId, own + 1)
    let timer: NodeJS.Timeout | undefined
    const ended = () => {
      this.#running -= 1
      const others = this.#ofCustomer.get(customerId)! - 1
      if (others === 0) this.#ofCustomer.delete(customerId)
      else this.#ofCustomer.set(customerId, others)
      clearTimeout(timer)
    }
    return new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(late()), timeoutMs)
      doing.then(
        (result) => {
          ended()
          if (log !== undefined && request.method === 'POST') noteRecord(request, result)
          resolve(result)
        },
        (error: Error) => {
          ended()
          reject(error)
        },
      )
    })
  }
}
