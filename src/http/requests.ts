import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { problem, type Problem } from './problems.ts'

/** Is told of each request when it is over. `route` is the pattern, undefined for a path that is none of ours. */
export type RequestMeter = (
  method: string,
  route: string | undefined,
  status: number,
  milliseconds: number,
) => void

/** What a request ends with when its client has gone before the answer. */
const CLIENT_CLOSED_REQUEST = 499

export interface RequestsOptions {
  /** Most that are under way at once; beyond it the answer is 503. */
  max: number
  /** Longest time that an operation may take; then the answer is 503. */
  timeoutMs: number
  meter?: RequestMeter | undefined
  /** Where each request is a line, if it is. */
  log?: Logger | undefined
}

interface Unanswered {
  reply: FastifyReply
  /** Where it stands among the others. */
  place: number
}

/** The requests that this process has taken and not answered yet: bounded in number and time, and let end in order. */
export class Requests {
  readonly #options: RequestsOptions
  // No Set: what it no longer uses when it grows anew keeps its members from the garbage collector, with all that hangs
  // on them (measured: twice the time in it, 10 us a request).
  #unanswered: Unanswered[] = []
  #running = 0
  #draining = false

  constructor(options: RequestsOptions) {
    this.#options = options
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
    const { max } = this.#options
    app.addHook('onRequest', (request, reply, done) => {
      const unanswered = { reply, place: this.#unanswered.length }
      this.#unanswered.push(unanswered)
      reply.raw.once('close', () => this.#ended(request, unanswered))
      reply.header('x-request-id', request.id)
      if (this.#draining) reply.header('connection', 'close')
      // Work goes on for a while when its client has gone, so both are counted.
      if (this.#unanswered.length > max || this.#running >= max)
        done(problem.unavailable('too many requests are under way; nothing was done; try again'))
      else done()
    })
  }

  #ended(request: FastifyRequest, unanswered: Unanswered): void {
    const { reply, place } = unanswered
    const last = this.#unanswered.pop()!
    if (last !== unanswered) {
      this.#unanswered[place] = last
      last.place = place
    }
    const { meter, log } = this.#options
    const { url } = request.routeOptions
    const status = reply.raw.writableEnded ? reply.statusCode : CLIENT_CLOSED_REQUEST
    const milliseconds = reply.elapsedTime
    meter?.(request.method, url, status, milliseconds)
    log?.info(
      {
        reqId: request.id,
        client_id: (request.caller as typeof request.caller | undefined)?.clientId,
        method: request.method,
        route: url,
        status,
        ms: Math.round(milliseconds * 1000) / 1000,
      },
      'request',
    )
  }

  /** An operation's work, or the refusal that comes when it takes too long: the work may go on, and nobody waits for it. */
  run<T>(work: Promise<T>, late: () => Problem): Promise<T> {
    this.#running += 1
    let timer: NodeJS.Timeout | undefined
    const ended = () => {
      this.#running -= 1
      clearTimeout(timer)
    }
    return new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(late()), this.#options.timeoutMs)
      work.then(
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
