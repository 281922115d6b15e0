import type { FastifyReply } from 'fastify'
import { problem } from '../contract/problems.ts'

/** How many lists a client may have under way, from reading the records until it has read the answer: 1 MiB each. */
const TURNS_MAX = 16

interface Queue {
  underWay: number
  waiting: (() => void)[]
}

/**
 * Turns of a client's lists. Those beyond `TURNS_MAX` wait, so that a burst is answered, and who does not read the
 * answers fills no memory. What waits is bounded as requests are (`Requests.run`).
 */
export class Turns {
  readonly #queues = new Map<string, Queue>()

  /** Waits for a turn, which ends with the answer. Throws when the client went first. */
  async take(client: string, reply: FastifyReply): Promise<void> {
    let queue = this.#queues.get(client)
    if (queue === undefined) this.#queues.set(client, (queue = { underWay: 0, waiting: [] }))
    if (queue.underWay < TURNS_MAX) {
      queue.underWay += 1
      reply.raw.once('close', () => this.#end(client, queue))
      return
    }
    await new Promise<void>((resolve, reject) => {
      const gone = () => {
        queue.waiting.splice(queue.waiting.indexOf(begin), 1)
        reject(problem.unavailable('the client went before its turn'))
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

  /** Gives the turn to the next that waits. */
  #end(client: string, queue: Queue): void {
    const next = queue.waiting.shift()
    if (next !== undefined) return next()
    queue.underWay -= 1
    if (queue.underWay === 0) this.#queues.delete(client)
  }
}
