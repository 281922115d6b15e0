import type { FastifyReply } from 'fastify'
import { problem } from '../contract/problems.ts'

/** Maximum concurrent lists of a client, counted until it has read the answer. Each may take 1 MiB. */
export const LISTS_MAX = 16
/**
 * Maximum concurrent pages of a customer whose records are large and which have them under two names. Each may take 8 MiB:
 * 1,000 orchestrations with the longest metadata.
 */
export const COPIED_MAX = 1

interface Queue {
  underWay: number
  waiting: (() => void)[]
}

/**
 * Limits the concurrent lists of each client. Lists beyond `max` wait: a burst is still answered, and a client that
 * does not read its answers cannot fill the memory. `Requests.run` limits the number of waiting lists.
 */
export class Turns {
  readonly #max: number
  readonly #queues = new Map<string, Queue>()

  constructor(max: number) {
    this.#max = max
  }

  /** Waits for a turn, which ends with the answer. Throws when the client disconnects first. */
  async take(client: string, reply: FastifyReply): Promise<void> {
    // The client left while its token was verified: no event would end the turn.
    if (reply.raw.destroyed) throw problem.unavailable('the client disconnected before its turn')
    let queue = this.#queues.get(client)
    if (queue === undefined) this.#queues.set(client, (queue = { underWay: 0, waiting: [] }))
    if (queue.underWay < this.#max) {
      queue.underWay += 1
      reply.raw.once('close', () => this.#end(client, queue))
      return
    }
    await new Promise<void>((resolve, reject) => {
      const gone = () => {
        queue.waiting.splice(queue.waiting.indexOf(begin), 1)
        reject(problem.unavailable('the client disconnected before its turn'))
      }
      const begin = () => {
        reply.raw.off('close', gone)
        reply.raw.once('close', () => this.#end(client, queue))
        resolve()
      }
      queue.waiting.push(begin)
      reply.raw.once('close', gone)
    })
  }

  /** Passes the turn to the next waiting list. */
  #end(client: string, queue: Queue): void {
    const next = queue.waiting.shift()
    if (next !== undefined) return next()
    queue.underWay -= 1
    if (queue.underWay === 0) this.#queues.delete(client)
  }
}
