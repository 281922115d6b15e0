import { setImmediate as turn } from 'node:timers/promises'
import { problem } from '../../contract/problems.ts'
import type { Tracing } from '../../contract/tracing.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { Database } from '../../db/database.ts'
import { partOf } from '../../db/parts.ts'
import { postTaken, type Answer, type Taken, type Waiting } from './batches.ts'
import type { Decision, Movement } from './decision.ts'
import type { Govern } from './governor.ts'

/** The movements of a customer, or of half of its profiles, that wait. */
interface Queue {
  key: string
  customerId: string
  waiting: Waiting[]
  /** A batch of it is being posted. */
  isTaken: boolean
  /** Its batches have no other customer's movements. */
  isApart: boolean
}

type OfQueue = Taken & { queue: Queue }

/** Receives the events of the ledger's queue, for metrics. */
export interface LedgerMeter {
  batch(movements: number): void
  refused(): void
}

export interface LedgerOptions {
  meter?: LedgerMeter
  /** Traces the movements of sampled requests. */
  tracing?: Tracing | undefined
  /** Makes the MACs of withdrawals. Withdrawals accepted without it are never signed. */
  macs?: RowMacs
  /** Judges payments by policies. Without it, payments of a customer with a policy are refused. */
  govern?: Govern
  /** A movement that has waited longer for its batch is refused: its request has been answered by then. */
  waitMsMax?: number
  /** With batches of so many movements, a customer has two transactions at a time, while no other customer has one. */
  halvesFrom?: number
}

/** Most movements of one batch: larger batches gain nothing measurable and lengthen every wait. */
export const BATCH_MAX = 512
/**
 * Most movements of one customer that may wait in this process, and never more than places are left; beyond this limit the
 * answer is 503.
 */
export const WAITING_MAX = 5_000
/** Most waiting movements of all customers. A waiting movement takes 10 kB with its request (measured with 5,000). */
export const WAITING_TOTAL_MAX = 10_000
const HALVES_FROM = 256
/** Most customers of one batch: what more of them keep in memory takes as much time as they save. */
const CUSTOMERS_MAX = 128
/** Fewer waiting movements are one batch. */
const FEW = 64
/** How many batches are posted at a time: while the database writes one, this process decides the other. */
const LANES = 2
/** How long a customer shares no transaction after the database refused some of its movements. */
const APART_MS = 5_000
/** The most movements that are answered before other events of the process. */
const ANSWERS_OF_TURN = 32
/** A batch that takes longer lets another one be posted beside it. */
const SLOW_MS = 250

/**
 * Posts money movements in groups (ARCHITECTURE, "Group posting"). While the transaction of a batch is open, new movements of its
 * customers wait, and the next transaction executes them together. There is no timer: an idle ledger starts at once, a busy one
 * fills its next batch. Customers share a transaction, except on a database with several parts, where each has its own.
 *
 * Two batches take turns: while the database writes one, this process decides the other. A single busy customer has one for each
 * half of its profiles (measured: 1.1 to 1.3 times as many movements a second).
 */
export class Ledger {
  #db: Database
  /** By customer and half of its profiles, with movements or taken. */
  #waiting = new Map<string, Queue>()
  #running = new Set<Promise<void>>()
  #count = 0
  #lanes = 0
  /** Customers of whose movements the database refused some, until when they share no transaction. */
  #apart = new Map<string, number>()
  /** The customer whose profiles are halved. */
  #halved: string | undefined
  #meter: LedgerMeter | undefined
  #waitMsMax: number
  #halvesFrom: number
  readonly macs: RowMacs | undefined
  readonly govern: Govern | undefined
  readonly tracing: Tracing | undefined

  constructor(
    db: Database,
    { meter, tracing, macs, govern, waitMsMax = Infinity, halvesFrom = HALVES_FROM }: LedgerOptions = {},
  ) {
    this.#db = db
    this.#meter = meter
    this.macs = macs
    this.govern = govern
    this.tracing = tracing
    this.#waitMsMax = waitMsMax
    this.#halvesFrom = halvesFrom
  }

  /** The number of movements that wait for a batch. */
  get waiting(): number {
    return this.#count
  }

  /**
   * Moves money for one customer; returns the whole decision once it is durable. Throws the movement's own `Problem`,
   * `insufficient-funds`, `already-exists`, or `unavailable`.
   */
  submit(customerId: string, movement: Movement): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const keys = [0, 1].map((half) => `${customerId} ${half}`)
      const own = keys.reduce((count, key) => count + (this.#waiting.get(key)?.waiting.length ?? 0), 0)
      const left = WAITING_TOTAL_MAX - this.#count
      if (own >= Math.min(WAITING_MAX, left)) {
        this.#meter?.refused()
        const whose = left <= 0 ? '' : ' of this customer'
        return reject(
          problem.unavailable(`too many movements${whose} are waiting; nothing was moved; try again`),
        )
      }
      this.#count += 1
      const waiting = { movement, resolve, reject, since: performance.now() }
      const key = keys[this.#halved === customerId ? halfOf(movement) : 0]!
      const queue = this.#waiting.get(key)
      if (queue !== undefined) return void queue.waiting.push(waiting)
      const isApart = partOf(this.#db, customerId).name !== ''
      const made = { key, customerId, waiting: [waiting], isTaken: false, isApart }
      this.#waiting.set(key, made)
      this.#next(made)
    })
  }

  /** Waits until everything submitted so far is answered. */
  async drain(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Has the movements of this queue posted. The other parts of a database share no transaction. */
  #next(queue: Queue): void {
    if (this.#isApart(queue)) this.#start(this.#runAlone(queue))
    else this.#startLane()
  }

  #start(work: Promise<void>): void {
    const run = work.finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  /** The customer's next movements share no transaction: they would fail those of other customers, too. */
  readonly onRefused = (customerId: string): void =>
    void this.#apart.set(customerId, performance.now() + APART_MS)

  #isApart({ customerId, isApart }: Queue): boolean {
    const until = this.#apart.get(customerId)
    if (until !== undefined && until < performance.now()) this.#apart.delete(customerId)
    return isApart || this.#apart.has(customerId)
  }

  /** Posts this batch of one customer, and batches for as long as the customer shares no transaction. */
  async #runAlone(queue: Queue, first: Waiting[] = []): Promise<void> {
    queue.isTaken = true
    let next = first.length > 0 ? this.#inTime(first) : undefined
    await this.#run(() => {
      const batch = next ?? (this.#isApart(queue) ? this.#take(queue) : [])
      next = undefined
      return this.#taken(queue, batch)
    })
    if (queue.waiting.length > 0 && !queue.isTaken) this.#next(queue)
  }

  /** Posts batches of all customers until nothing waits. */
  async #runLane(): Promise<void> {
    let isSlow = false
    const leave = () => {
      this.#lanes -= 1
      this.#startLane()
    }
    this.#lanes += 1
    await this.#run(
      () => (isSlow ? [] : this.#takeFromAll()),
      // A batch that waits for somebody's lock, or for the server, holds up nobody else.
      () => {
        isSlow = true
        leave()
      },
    )
    if (isSlow) this.#startLane()
    else leave()
  }

  /** Posts the batches that `take` returns until there is none. */
  async #run(take: () => OfQueue[], onSlow = (): void => undefined): Promise<void> {
    // Movements of the same turn of the event loop form one batch.
    await turn()
    let answers: Answer[] = []
    for (let taken = take(); taken.length > 0; taken = take()) {
      const slow = setTimeout(onSlow, SLOW_MS)
      const posted = postTaken(this.#db, taken, this)
      // The next batch is sent before the last one is answered, so that process and database work at the same time
      // (measured over HTTP: 15,600 a second, not 11,500).
      await turn()
      this.#start(answerAll(answers))
      const ended = await posted
      clearTimeout(slow)
      answers = ended.answers
      for (const { queue, batch } of taken)
        if (ended.apart.has(batch)) this.#start(this.#runAlone(queue, batch))
        else this.#free(queue)
    }
    this.#start(answerAll(answers))
  }

  #taken(queue: Queue, batch: Waiting[]): OfQueue[] {
    queue.isTaken = batch.length > 0
    if (queue.isTaken) return [{ queue, batch }]
    this.#free(queue)
    return []
  }

  /** Lets what waits in the queue by now be taken, behind what waits since before. */
  #free(queue: Queue): void {
    queue.isTaken = false
    this.#waiting.delete(queue.key)
    if (queue.waiting.length > 0) this.#waiting.set(queue.key, queue)
  }

  #startLane(): void {
    // What waits behind a taken queue is taken when that is free.
    if (this.#lanes < LANES && this.#freeQueues().length > 0) this.#start(this.#runLane())
  }

  #freeQueues = (): Queue[] => [...this.#waiting.values()].filter(({ isTaken }) => !isTaken)

  /** Takes the next batch, a fair part from each queue. While each lane posts a part of the queues, the last part gathers movements. */
  #takeFromAll(): OfQueue[] {
    for (const queue of this.#freeQueues()) if (this.#isApart(queue)) this.#start(this.#runAlone(queue))
    const queues = this.#freeQueues()
    const most = this.#count < FEW ? CUSTOMERS_MAX : Math.ceil(this.#waiting.size / (LANES + 1))
    const chosen = queues.slice(0, Math.min(most, CUSTOMERS_MAX))
    if (chosen.length < queues.length) this.#startLane()
    let left = BATCH_MAX
    return chosen.flatMap((queue, index) => {
      // Those that need less than their part leave more to those behind them.
      const batch = this.#take(queue, Math.ceil(left / (chosen.length - index)))
      left -= batch.length
      return this.#taken(queue, batch)
    })
  }

  /** Refuses those that have waited too long, and returns the others. */
  #inTime(batch: Waiting[]): Waiting[] {
    const oldest = performance.now() - this.#waitMsMax
    // Movements are in the order of their arrival.
    const first = batch.findIndex(({ since }) => since >= oldest)
    for (const { reject } of batch.splice(0, first === -1 ? batch.length : first))
      reject(
        problem.unavailable('the movement waited too long for the database; nothing was moved; try again'),
      )
    return batch
  }

  /** Takes movements of a queue that have not waited too long. */
  #take(queue: Queue, most = BATCH_MAX): Waiting[] {
    const { customerId, waiting } = queue
    this.#count -= waiting.length
    const taken = this.#inTime(waiting).splice(0, most)
    this.#count += waiting.length
    const isHalved = this.#halved === customerId
    const isBusy = taken.length >= this.#halvesFrom / (isHalved ? 4 : 1)
    // While both halves have a batch, a small one says little: one profile may take nearly all movements.
    if (this.#waiting.size === 1 || !isHalved)
      this.#halved = isBusy && this.#waiting.size === 1 ? customerId : undefined
    if (taken.length > 0) this.#meter?.batch(taken.length)
    return taken
  }
}

/** Answers some movements in each turn of the event loop, so that other requests wait for no whole batch. */
async function answerAll(answers: readonly Answer[]): Promise<void> {
  for (const [index, { waiting, outcome }] of answers.entries()) {
    if (index > 0 && index % ANSWERS_OF_TURN === 0) await turn()
    if ('decision' in outcome) waiting.resolve(outcome.decision)
    else waiting.reject(outcome.refusal)
  }
}

/** The half of a customer's profiles to which a movement belongs. Ids end at random. */
const halfOf = ({ balances: [first] }: Movement): number =>
  first === undefined ? 0 : Number.parseInt(first.profile_id.at(-1)!, 16) % 2
