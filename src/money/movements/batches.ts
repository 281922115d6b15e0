import { DatabaseError } from 'pg'
import { problem } from '../../contract/problems.ts'
import type { Tracing } from '../../contract/tracing.ts'
import {
  beginPlanned,
  commit,
  connectionLost,
  inOrder,
  lacksResources,
  notSerializable,
  tookTooLong,
  violatedConstraint,
  type Database,
  type Transaction,
} from '../../db/database.ts'
import { grouped } from '../../db/rows.ts'
import { shareTransaction } from '../../db/shared-transaction.ts'
import type { Decision, Movement, Outcome } from './decision.ts'
import { post, type PostOptions } from './post.ts'

/** The batches of the queue, each posted in one transaction: of one customer, or of several that share it. */

export interface Waiting {
  movement: Movement
  resolve: (decision: Decision) => void
  reject: (reason: unknown) => void
  since: number
}

/** A batch of movements of one customer. */
export interface Taken {
  queue: { customerId: string }
  batch: Waiting[]
}

/** How long several customers wait for a lock that somebody else has. Then each is posted apart. */
const LOCK_WAIT_MS_MAX = 100
/** How often a batch is decided again after a conflict with another process. */
const ATTEMPTS_MAX = 20

const RACES = new Set(['transfers_ref_id', 'orchestrations_ref_id', 'balances_pkey', 'policy_windows_pkey'])
const DEADLOCK_DETECTED = '40P01'

/** What checks and authenticates payments with keys derived from the master key. */
type Keys = Pick<PostOptions, 'macs' | 'govern'> & {
  tracing?: Tracing | undefined
  /** Called when the database refuses a batch of this customer alone. */
  onRefused: (customerId: string) => void
}

type Answer = () => void

/** Executes a batch of one customer; returns the function that answers its movements. */
export async function postAlone(
  db: Database,
  customerId: string,
  batch: Waiting[],
  keys: Keys,
): Promise<Answer> {
  const movements = batch.map(({ movement }) => movement)
  const startMs = performance.now()
  const refuse = (refusal: unknown) => movements.map((): Outcome => ({ refusal }))
  const outcomes = await postBatch(db, customerId, movements, keys).catch(refuse)
  return answerOf(keys.tracing, batch, outcomes, startMs)
}

function answerOf(
  tracing: Tracing | undefined,
  batch: Waiting[],
  outcomes: Outcome[],
  startMs: number,
): Answer {
  // A posted movement is answered, whatever a library does.
  try {
    if (tracing !== undefined) traceBatch(tracing, batch, outcomes, startMs)
  } catch {
    // The batch is missing in its traces.
  }
  return () =>
    outcomes.forEach((outcome, index) => {
      const { resolve, reject } = batch[index]!
      if ('decision' in outcome) resolve(outcome.decision)
      else reject(outcome.refusal)
    })
}

/**
 * Executes the batches of several queues in one transaction. Returns the function that answers them, and the batches that must be
 * posted apart: those that failed by themselves or wait for a lock, and all of them where the transaction failed.
 */
export async function postTaken(
  db: Database,
  taken: readonly Taken[],
  keys: Keys,
): Promise<{ answer: Answer; apart: ReadonlySet<Waiting[]> }> {
  const batches = [...grouped(taken, ({ queue }) => queue.customerId)]
  const [[customerId, [first]]] = batches as [[string, [Taken]]]
  if (taken.length === 1) {
    const answer = await postAlone(db, customerId, first.batch, keys)
    return { answer, apart: new Set() }
  }
  const startMs = performance.now()
  const own = batches
    .map(([id, each]) => ({ customerId: id, taken: each, batch: each.flatMap(({ batch }) => batch) }))
    .sort((a, b) => (a.customerId < b.customerId ? -1 : 1))
  const refuse = (refusal: unknown) => own.map(({ batch }) => batch.map((): Outcome => ({ refusal })))
  const posted = await postShared(
    db,
    own.map(({ customerId: id, batch }) => [id, batch.map(({ movement }) => movement)] as const),
    keys,
  ).catch(refuse)
  const answers = own.flatMap(({ batch }, index) =>
    posted[index] === undefined ? [] : answerOf(keys.tracing, batch, posted[index], startMs),
  )
  const apart = own.flatMap((each, index) =>
    posted[index] === undefined ? each.taken.map(({ batch }) => batch) : [],
  )
  return { answer: () => answers.forEach((answer) => answer()), apart: new Set(apart) }
}

/**
 * Posts the batches of several customers, which are in the order of their ids, in one transaction. Returns the outcomes of each,
 * undefined where its batch must be posted apart. Throws unavailable when the outcome is unknown.
 */
async function postShared(
  db: Database,
  batches: readonly (readonly [customerId: string, movements: Movement[]])[],
  keys: Keys,
): Promise<(Outcome[] | undefined)[]> {
  for (const lookUpRefIds of [false, true]) {
    const tx: Transaction = await db
      .connect()
      .catch((error: unknown) => unavailable(error, 'the database does not answer; nothing was moved'))
    let broken: Error | undefined
    try {
      const works = batches.map(
        ([customerId, movements]) =>
          (own: Transaction) =>
            postIn(own, customerId, movements, lookUpRefIds, keys),
      )
      return await shareTransaction(tx, works, LOCK_WAIT_MS_MAX)
    } catch (error) {
      await tx.query('rollback').catch((failure: Error) => (broken = failure))
      if (tx.isEnded === true && !changedNothing(error, broken))
        throw problem.unavailable(OUTCOME_UNKNOWN, error)
      if (connectionLost(error) || lacksResources(error)) unavailable(error)
      if (!isRetryable(error)) break
    } finally {
      tx.release(broken)
    }
  }
  return batches.map(() => undefined)
}

/**
 * Whether PostgreSQL has said that a commit changed nothing: by an error that its session has survived. Only then may movements
 * be posted again.
 */
const changedNothing = (error: unknown, broken: Error | undefined): boolean =>
  error instanceof DatabaseError && error.severity === 'ERROR' && broken === undefined

/** Ends two spans for each movement of a sampled request: of its wait for the batch and the batch, and of the transaction. */
function traceBatch(tracing: Tracing, batch: Waiting[], outcomes: Outcome[], startMs: number): void {
  for (const [index, { movement, since }] of batch.entries()) {
    const { traceparent } = movement.origin
    if (traceparent === undefined) continue
    const span = tracing.part(traceparent, 'ledger batch', { startMs: since })
    const own = tracing.part(span.traceparent, 'ledger transaction', { isClient: true, startMs })
    own.end({ attributes: { 'db.system.name': 'postgresql' } })
    const outcome = 'decision' in outcomes[index]! ? 'posted' : 'refused'
    span.end({ attributes: { 'bursar.batch.movements': batch.length, 'bursar.outcome': outcome } })
  }
}

/** Posts a batch in a transaction of its own. Returns one outcome per movement, in order. */
async function postBatch(
  db: Database,
  customerId: string,
  movements: Movement[],
  keys: Keys,
): Promise<Outcome[]> {
  // Nearly all movements are new, so the first attempt does not look up existing ref_ids. A violation of the unique
  // key shows that it should have.
  let lookUpRefIds = false
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const tx = await db
      .connect()
      .catch((error: unknown) => unavailable(error, 'the database does not answer; nothing was moved'))
    let broken: Error | undefined
    try {
      return await attemptBatch(tx, customerId, movements, lookUpRefIds, keys)
    } catch (error) {
      await tx.query('rollback').catch((failure: Error) => (broken = failure))
      keys.onRefused(customerId)
      if (isOfOneMovement(error) && movements.length > 1) return postHalves(db, customerId, movements, keys)
      if (!isRetryable(error)) unavailable(error)
      lookUpRefIds = true
    } finally {
      tx.release(broken)
    }
  }
  throw problem.unavailable('too much contention with other processes; nothing was moved; try again')
}

/** When the database refuses a batch because of one movement, halving the batch isolates that movement. */
async function postHalves(
  db: Database,
  customerId: string,
  movements: Movement[],
  keys: Keys,
): Promise<Outcome[]> {
  const half = Math.ceil(movements.length / 2)
  const outcomes: Outcome[] = []
  for (const part of [movements.slice(0, half), movements.slice(half)]) {
    const refuse = (refusal: unknown) => part.map((): Outcome => ({ refusal }))
    outcomes.push(...(await postBatch(db, customerId, part, keys).catch(refuse)))
  }
  return outcomes
}

async function attemptBatch(
  tx: Transaction,
  customerId: string,
  movements: Movement[],
  lookUpRefIds: boolean,
  keys: Keys,
): Promise<Outcome[]> {
  // Planning the statements of a batch each time took 0.35 ms of a lone movement's 0.8.
  const [, outcomes] = await inOrder([
    beginPlanned(tx),
    postIn(tx, customerId, movements, lookUpRefIds, keys),
  ])
  return outcomes
}

async function postIn(
  tx: Transaction,
  customerId: string,
  movements: Movement[],
  lookUpRefIds: boolean,
  { macs, govern }: Keys,
): Promise<Outcome[]> {
  const end = (moved: boolean) => (moved ? commit(tx) : tx.query('rollback'))
  return (await post(tx, customerId, movements, { macs, govern, lookUpRefIds, end })).outcomes
}

/** Whether a conflict with another process failed the batch, so that everything must be decided again. */
export function isRetryable(error: unknown): boolean {
  const { code } = error as { code?: string }
  return notSerializable(error) || code === DEADLOCK_DETECTED || RACES.has(violatedConstraint(error) ?? '')
}

/**
 * Whether the error is about a value (data exception, constraint, size of an index row), and so about one movement
 * only.
 */
function isOfOneMovement(error: unknown): boolean {
  const { code = '' } = error as { code?: string }
  return /^(22|23|54)/.test(code) && !isRetryable(error)
}

const OUTCOME_UNKNOWN =
  'the connection to the database was lost and the outcome is unknown; retry with the same ref_id to find out'

function unavailable(error: unknown, detail = OUTCOME_UNKNOWN): never {
  if (tookTooLong(error))
    throw problem.unavailable('the database took too long; nothing was moved; try again', error)
  if (!connectionLost(error)) throw error
  throw problem.unavailable(detail, error)
}
