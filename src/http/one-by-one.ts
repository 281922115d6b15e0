import type { onRequestHookHandler } from 'fastify'
import { problem } from '../contract/problems.ts'

/** Longest body of a request that is answered item by item: a thousand withdrawals take some 300 KiB. */
export const ONE_BY_ONE_BODY_LIMIT = 1024 * 1024
/**
 * Most such requests of a customer at once. Four requests of a thousand items stay below the ledger's limit of waiting
 * movements for a customer.
 */
const OF_CUSTOMER_MAX = 4
/** Most such requests in this process at once. Each may take 1 MiB for its body and 1 MiB for its answer. */
const IN_ALL_MAX = 64

/**
 * Limits the concurrent requests that are answered item by item. A request counts from its headers until the client
 * has read the answer, because both bodies stay in memory until then.
 */
export class OneByOneLimit {
  #underWay = 0
  readonly #ofCustomer = new Map<string, number>()

  /** Counts a request until it is answered, or refuses it. Runs after the token is checked. */
  readonly admit: onRequestHookHandler = (request, reply, done) => {
    // The client left while its token was verified: no event would end the count.
    if (reply.raw.destroyed) return done(problem.unavailable('the client has disconnected'))
    const { customerId } = request.caller
    const count = this.#ofCustomer.get(customerId) ?? 0
    if (count >= OF_CUSTOMER_MAX)
      return done(
        problem.tooManyRequests(
          `this customer has ${OF_CUSTOMER_MAX} such requests under way; nothing was changed`,
          1,
        ),
      )
    if (this.#underWay >= IN_ALL_MAX)
      return done(problem.unavailable('too many such requests are under way; nothing was changed; try again'))
    this.#underWay += 1
    this.#ofCustomer.set(customerId, count + 1)
    reply.raw.once('close', () => {
      this.#underWay -= 1
      const left = this.#ofCustomer.get(customerId)! - 1
      if (left === 0) this.#ofCustomer.delete(customerId)
      else this.#ofCustomer.set(customerId, left)
    })
    done()
  }
}
