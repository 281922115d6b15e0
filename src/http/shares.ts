import type { ServerResponse } from 'node:http'
import { problem } from '../contract/problems.ts'
import type { Asker } from '../db/customer-pool.ts'

interface Waiting {
  asker: Asker
  begin: () => void
  leave: () => void
}

interface Queue {
  underWay: number
  waiting: Waiting[]
}

/**
 * Limits how many places each customer takes at once in something that all customers share. Further requests wait in the
 * order of their arrival, so a burst is still answered. A waiting request whose client has left is dropped at its turn.
 * `Requests` limits how many wait.
 */
export class Shares {
  readonly #max: number
  readonly #queues = new Map<string, Queue>()

  constructor(max: number) {
    this.#max = max
  }

  /** Runs the work in a place of the customer. Throws unavailable when the asker leaves before its turn. */
  async run<T>(customerId: string, asker: Asker, work: () => Promise<T>): Promise<T> {
    await this.take(customerId, asker)
    try {
      return await work()
    } finally {
      this.giveBack(customerId)
    }
  }

  /** Waits for a place, which the caller gives back. Throws unavailable when the asker leaves before its turn. */
  async take(customerId: string, asker: Asker): Promise<void> {
    if (asker.destroyed) throw gone()
    const queue = this.#queues.get(customerId)
    if (queue === undefined) return void this.#queues.set(customerId, { underWay: 1, waiting: [] })
    if (queue.underWay < this.#max) return void (queue.underWay += 1)
    await new Promise<void>((resolve, reject) => {
      queue.waiting.push({ asker, begin: resolve, leave: () => reject(gone()) })
    })
  }

  /** Waits for a place, and gives it back when the client has read the answer or leaves. */
  async takeUntilAnswered(customerId: string, response: ServerResponse): Promise<void> {
    await this.take(customerId, response)
    // No event would end the place of a client that left meanwhile.
    if (response.destroyed) this.giveBack(customerId)
    else response.once('close', () => this.giveBack(customerId))
  }

  /** Passes the place to the next one that still waits for an answer. */
  giveBack(customerId: string): void {
    const queue = this.#queues.get(customerId)!
    for (let next = queue.waiting.shift(); next !== undefined; next = queue.waiting.shift()) {
      if (!next.asker.destroyed) return next.begin()
      next.leave()
    }
    queue.underWay -= 1
    if (queue.underWay === 0) this.#queues.delete(customerId)
  }
}

const gone = () => problem.unavailable('the client disconnected before its turn')
