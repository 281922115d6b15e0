import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { LRUCache } from 'lru-cache'
import { problem } from '../contract/problems.ts'

/** The header of a request that asks for failures of the client's next requests (docs/guides/testing.md). Sandbox only. */
const HEADER = 'bursar-fail-next'
const FAILURES = ['503', '429', 'timeout', 'lost-answer'] as const
type Failure = (typeof FAILURES)[number]
const FAILURES_MAX = 20
/** Most clients with waiting failures. The one that asked first loses them. */
const CLIENTS_MAX = 1_000
/** How long a request without an answer is held, unless its client leaves before. */
const HELD_MS_MAX = 60_000
const RETRY_SECONDS = 1

/** The failures that tests of a sandbox ask for. Each API client has its own, in this process. */
export class FailNext {
  readonly #waiting = new LRUCache<string, Failure[]>({ max: CLIENTS_MAX })

  /** A request with the header is answered as usual, and the next ones fail. Throws bad-request for an unknown failure. */
  readonly onRequest: onRequestHookHandler = (request, reply, done) => {
    const { clientId } = request.caller
    const asked = request.headers[HEADER]
    if (asked !== undefined) {
      this.#waiting.set(clientId, readFailures(String(asked)))
      return done()
    }
    const failure = this.#waiting.get(clientId)?.shift()
    if (failure === undefined) return done()
    if (failure === '503') return done(problem.unavailable(`${HEADER} asked for this; nothing was changed`))
    if (failure === '429')
      return done(problem.tooManyRequests(`${HEADER} asked for this; nothing was changed`, RETRY_SECONDS))
    if (failure === 'timeout') return hold(request, reply)
    // The request is carried out, and its connection is closed instead of the answer.
    reply.send = () => {
      request.raw.socket.destroy()
      return reply
    }
    done()
  }
}

/** Reads the failures. Throws bad-request for an unknown one. */
function readFailures(text: string): Failure[] {
  const failures = text
    .split(',')
    .map((failure) => failure.trim().toLowerCase())
    .filter((failure) => failure !== '')
  if (
    failures.length > FAILURES_MAX ||
    !failures.every((failure) => (FAILURES as readonly string[]).includes(failure))
  )
    throw problem.badRequest(
      `the header Bursar-Fail-Next takes at most ${FAILURES_MAX} of these, separated by commas: ${FAILURES.join(', ')}`,
    )
  return failures as Failure[]
}

/** Neither carries the request out nor answers it. */
function hold({ raw: { socket } }: FastifyRequest, reply: FastifyReply): void {
  reply.hijack()
  const giveUp = setTimeout(() => socket.destroy(), HELD_MS_MAX)
  giveUp.unref()
  socket.once('close', () => clearTimeout(giveUp))
}
