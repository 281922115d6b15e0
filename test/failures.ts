import { expect } from 'vitest'
import type { Database, Transaction } from '../src/db/database.ts'
import type { NetworkAdapter, Networks } from '../src/networks/network.ts'
import { partOf, placesOf, SEED } from './seed.ts'

/** Whether the worker dies before a step, or after the step and before its result arrives. */
export type Failure = 'BEFORE' | 'AFTER'
/** The failures for a walk over all steps: by day one of the two, drawn by the seed. */
export const FAILURES = partOf<Failure>(['BEFORE', 'AFTER'])

/**
 * Passes each statement of a pool's client through `around`, until the client is released. The client stays the same
 * object, because the program identifies a cluster's clients by their object.
 */
export function sendingBy(
  client: Transaction,
  around: (send: () => Promise<unknown>, query: unknown, values?: unknown) => Promise<unknown>,
): Transaction {
  const own = client as unknown as { query?: Send; release: (error?: Error) => void }
  const [send, release] = [client.query.bind(client) as Send, client.release.bind(client)]
  own.query = (...query) => around(() => send(...query), query[0], query[1])
  own.release = (error) => {
    // The method of the class applies again.
    delete own.query
    release(error)
  }
  return client
}

/**
 * Decides at each step of the worker whether it dies there: before the step, or after it and before its result
 * arrives. A step is a statement or a call to a network.
 */
export class Failures {
  steps = 0
  /** Whether the worker has died. */
  died = false
  #at: (step: number) => Failure | undefined

  constructor(at: (step: number) => Failure | undefined) {
    this.#at = at
  }

  async around<T>(work: () => Promise<T>, die: () => void): Promise<T> {
    const failure = this.#at(this.steps++)
    if (failure === undefined) return work()
    this.died = true
    if (failure === 'AFTER') await work()
    die()
    // On a cut connection, the work itself throws.
    if (failure === 'BEFORE') await work()
    throw new Error('the worker died here')
  }

  /** The database as the worker sees it. A failure is a cut connection, which rolls back uncommitted statements. */
  database(db: Database): Database {
    return {
      query: (...query: unknown[]) =>
        this.around(
          () => (db.query.bind(db) as Send)(...query),
          throwing('Connection terminated unexpectedly'),
        ),
      connect: async () => {
        const client = await db.connect()
        const cut = () => (client as unknown as Connected).connection.stream.destroy()
        return sendingBy(client, (send) => this.around(send, cut))
      },
    } as unknown as Database
  }

  networks(networks: Networks): Networks {
    const fail = throwing('the network does not answer')
    const failing = (adapter: NetworkAdapter): NetworkAdapter => ({
      pollMs: adapter.pollMs,
      review: (withdrawal) => adapter.review(withdrawal),
      sign: (tx, withdrawals) => this.around(() => adapter.sign(tx, withdrawals), fail),
      broadcast: (withdrawals) => this.around(() => adapter.broadcast(withdrawals), fail),
      checkStatus: (withdrawals) => this.around(() => adapter.checkStatus(withdrawals), fail),
    })
    return new Map([...networks].map(([network, adapter]) => [network, failing(adapter)]))
  }
}

const throwing = (why: string) => (): never => {
  throw new Error(why)
}

type Send = (...query: unknown[]) => Promise<unknown>
interface Connected {
  connection: { stream: { destroy: () => void } }
}

/**
 * Runs the worker once without a failure, which must take more steps than `fewest`. Then runs it once for each step
 * that `placesOf` selects, where the worker dies. `live` starts new work, runs the worker with these failures, lets a
 * healthy worker finish, and checks the result.
 */
export async function dieAtEachStep(
  failure: Failure,
  fewest: number,
  live: (failures: Failures) => Promise<void>,
): Promise<void> {
  const undisturbed = new Failures(() => undefined)
  await live(undisturbed)
  const { steps } = undisturbed
  expect(steps).toBeGreaterThan(fewest)
  for (const step of placesOf(steps)) {
    try {
      await live(new Failures((at) => (at === step ? failure : undefined)))
    } catch (error) {
      throw new Error(`death ${failure} step ${step} of ${steps} (TEST_SEED=${SEED})`, { cause: error })
    }
  }
}

/** The worker may die at each request to the node, too. */
export async function failing(failures: Failures, work: () => Promise<void>): Promise<void> {
  const real = globalThis.fetch
  // No spy: between two files, Vitest puts back what each spy replaced, and here that may be another test's function.
  let inside = true
  globalThis.fetch = (...request) => {
    const send = () => real(...request)
    return inside ? failures.around(send, throwing('the worker died here')) : send()
  }
  try {
    await work()
  } finally {
    inside = false
    globalThis.fetch = real
  }
}
