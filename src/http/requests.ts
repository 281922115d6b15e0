import type { Socket } from 'node:net'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preSerializationHookHandler,
  RouteOptions,
} from 'fastify'
import type { Logger } from 'pino'
import { addressGroup } from './address-group.ts'
import { endConnection, noSuchPath } from './errors.ts'
import { problem, type Problem } from '../contract/problems.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Which requests of the route count as under way. `operation`: those that arrived in full, with a good token.
     * `always answered`: none. The others need no access token, and count from their headers on: `token request`s among
     * themselves, so that nobody keeps them out with pages that he does not read.
     */
    counts?: 'operation' | 'always answered' | 'token request'
  }
  interface FastifyRequest {
    /** The record that a POST made, or found made already, for the request's line in the log. */
    recordId: string | undefined
  }
}

/** Is told of each request when it is over. `route` is the pattern, undefined for a path that is none of ours. */
export type RequestMeter = (
  method: string,
  route: string | undefined,
  status: number,
  milliseconds: number,
) => void

/** What a request ends with when its client has gone before the answer. */
const CLIENT_CLOSED_REQUEST = 499
/** A year: a browser that was here once does not ask over plain HTTP any more. */
const HSTS = 'max-age=31536000'
/** The share of requests that need no access token (tokens, pages, keys), of all that may be under way. */
const ANONYMOUS_SHARE = 0.1
const ANONYMOUS_MAX = 500
/** Of them, those of one address. A token takes some 3 ms. */
const ANONYMOUS_OF_ADDRESS_MAX = 100
/** How long the body of one of them may take to arrive: a form of 200 bytes. */
const ANONYMOUS_RECEIVE_MS_MAX = 5_000
/** How long one of them may take in all, until its client has read the answer. */
const ANONYMOUS_MS_MAX = 60_000

export interface RequestsOptions {
  /** Most operations that are under way at once; beyond it the answer is 503. */
  max: number
  /** Longest time that an operation may take; then the answer is 503. */
  timeoutMs: number
  meter?: RequestMeter | undefined
  /** Where each request is a line, if it is. */
  log?: Logger | undefined
  /** Where this service is reached, and whether a proxy says how it was reached. */
  secure?: { baseUrl: string; behindProxy: boolean }
  /** Is told which connections are in use. */
  connections?: { began(socket: Socket): void; ended(socket: Socket): void } | undefined
}

interface Unanswered {
  reply: FastifyReply
  /** Where it stands among the others. */
  place: number
}

/** The share of requests that need no access token: bounded in all, of one address, and in the time that they take. */
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
      if (!request.raw.complete) endConnection(request.raw.socket, problem.requestTimeout())
    }, ANONYMOUS_RECEIVE_MS_MAX)
    // Its client does not read the answer.
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

/** A record has an id of its own; a rule is a member of its answer. */
const noteRecord: preSerializationHookHandler<unknown> = (request, reply, payload, done) => {
  if (reply.statusCode === 200) {
    const { id, rule } = payload as { id?: string; rule?: { id: string } }
    request.recordId = id ?? rule?.id
  }
  done(null, payload)
}

const tooMany = () => problem.unavailable('too many requests are under way; nothing was done; try again')

const tooManyAnonymous = () =>
  problem.unavailable('too many requests without an access token are under way; nothing was done; try again')

const tooManyOfAddress = () =>
  problem.tooManyRequests(
    `this address has ${ANONYMOUS_OF_ADDRESS_MAX} requests without an access token under way`,
    1,
  )

/** The requests that this process has taken and not answered yet: bounded in number and time, and let end in order. */
export class Requests {
  readonly #options: RequestsOptions
  // No Set: what it no longer uses when it grows anew keeps its members from the garbage collector, with all that hangs
  // on them (measured: twice the time in it, 10 us a request).
  #unanswered: Unanswered[] = []
  #running = 0
  readonly #pages: Share
  readonly #tokens: Share
  #draining = false

  constructor(options: RequestsOptions) {
    this.#options = options
    this.#pages = new Share(options.max)
    this.#tokens = new Share(options.max)
  }

  /** How many are not answered. */
  get underWay(): number {
    return this.#unanswered.length
  }

  /** How many of them have been received in full: those are accepted. */
  get accepted(): number {
    return this.#unanswered.filter(({ reply }) => reply.request.raw.complete).length
  }

  /** Whether this process is about to stop. */
  get draining(): boolean {
    return this.#draining
  }

  /** From now on each answer ends its connection, so that no client sends another request on it. */
  drain(): void {
    this.#draining = true
    for (const { reply } of this.#unanswered) if (!reply.sent) reply.header('connection', 'close')
  }

  /** Watches over all requests of the app. Comes before its routes. */
  watch(app: FastifyInstance): void {
    const { connections, secure } = this.#options
    const always = secure?.baseUrl.startsWith('https:') === true
    const maybe = secure?.behindProxy === true && !always
    app.decorateRequest('recordId', undefined)
    app.addHook('onRequest', (request, reply, done) => {
      const unanswered = { reply, place: this.#unanswered.length }
      this.#unanswered.push(unanswered)
      connections?.began(request.raw.socket)
      reply.raw.once('close', () => this.#ended(request, unanswered))
      reply.header('x-request-id', request.id)
      // Balances and names do not belong into a cache; what may be kept says so itself.
      reply.header('cache-control', 'no-store')
      reply.header('x-content-type-options', 'nosniff')
      reply.header('referrer-policy', 'no-referrer')
      // RFC 6797, 7.2: not where the connection is not known to be secure.
      if (always || (maybe && request.protocol === 'https')) reply.header('strict-transport-security', HSTS)
      if (this.#draining) reply.header('connection', 'close')
      // Before a body is read: it is for nothing.
      done(request.is404 ? noSuchPath(request) : undefined)
    })
    app.addHook('onRoute', (route: RouteOptions) => {
      const { counts } = route.config ?? {}
      if (counts === 'operation' || counts === 'always answered') return
      const { admit } = counts === 'token request' ? this.#tokens : this.#pages
      const hooks = [route.onRequest ?? []].flat()
      // The framework makes a HEAD route out of a GET route that has the hook already.
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
    const { url } = request.routeOptions
    const status = reply.raw.writableEnded ? reply.statusCode : CLIENT_CLOSED_REQUEST
    const milliseconds = reply.elapsedTime
    meter?.(request.method, url, status, milliseconds)
    // The line costs more than to ask for it.
    if (log?.isLevelEnabled('info') !== true) return
    log.info(
      {
        reqId: request.id,
        client_id: (request.caller as typeof request.caller | undefined)?.clientId,
        method: request.method,
        route: url,
        status,
        record_id: request.recordId,
        ms: Math.round(milliseconds * 1000) / 1000,
      },
      'request',
    )
  }

  /**
   * Notes the record of an answer for the request's line: which client made a record is in no table. Undefined where requests
   * are no lines. A callback, since a promise for each request would cost more than the line says.
   */
  get noteRecord(): preSerializationHookHandler<unknown> | undefined {
    return this.#options.log === undefined ? undefined : noteRecord
  }

  /** Refuses an operation before its token and body are looked at, while there is no place for it. */
  readonly refuseWhenFull: onRequestHookHandler = (_request, _reply, done) =>
    done(this.#running >= this.#options.max ? tooMany() : undefined)

  /**
   * Does an operation's work, unless there is too much under way; or gives the refusal that comes when it takes too long:
   * the work may go on, and nobody waits for it. Work goes on for a while when its client has gone, so it is the work that
   * counts. A request whose body is on its way does not count: it could take all places and cost its client nothing.
   */
  run<T>(work: () => Promise<T>, late: () => Problem): Promise<T> {
    if (this.#running >= this.#options.max) throw tooMany()
    const doing = work()
    this.#running += 1
    let timer: NodeJS.Timeout | undefined
    const ended = () => {
      this.#running -= 1
      clearTimeout(timer)
    }
    return new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(late()), this.#options.timeoutMs)
      doing.then(
        (result) => {
          ended()
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
