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
import { forCustomer } from '../../db/parts.ts'
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

/** A movement with its outcome, which it gets once the next batch is sent. */
export interface Answer {
  waiting: Waiting
  outcome: Outcome
}

/**
 * Executes the batches of several queues in one transaction. Returns their answers, and the batches that must be posted apart: those
 * that failed by themselves or wait for a lock, and all of them where the transaction failed.
 */
export async function postTaken(
  db: Database,
  taken: readonly Taken[],
  keys: Keys,
): Promise<{ answers: Answer[]; apart: ReadonlySet<Waiting[]> }> {
  const startMs = performance.now()
  const batches = [...grouped(taken, ({ queue }) => queue.customerId)]
    .map(([customerId, own]): Batch => {
      const waiting = own.flatMap(({ batch }) => batch)
      return { customerId, own, waiting, movements: waiting.map(({ movement }) => movement) }
    })
    .sort((a, b) => (a.customerId < b.customerId ? -1 : 1))
  const refuse = (refusal: unknown) => batches.map(({ waiting }) => waiting.map((): Outcome => ({ refusal })))
  const context = { db: taken.length > 1 ? db : forCustomer(db, taken[0]!.queue.customerId), keys }
  // Several batches of one customer, which locks its balances in one order, are posted like those of several.
  const posted =
    taken.length > 1
      ? postShared(context, batches)
      : postBatch(context, batches[0]!).then((outcomes) => [outcomes])
  const outcomesOf = await posted.catch(refuse)
  const answers: Answer[] = []
  const apart = new Set<Waiting[]>()
  for (const [index, { own, waiting }] of batches.entries()) {
    const outcomes = outcomesOf[index]
    if (outcomes === undefined) {
      for (const { batch } of own) apart.add(batch)
      continue
    }
    // A posted movement is answered, whatever a library does.
    try {
      if (keys.tracing !== undefined) traceBatch(keys.tracing, waiting, outcomes, startMs)
    } catch {
      // The batch is missing in its traces.
    }
    for (const [place, each] of waiting.entries()) answers.push({ waiting: each, outcome: outcomes[place]! })
  }
  return { answers, apart }
}

/** The movements of a customer. */
interface Own {
  customerId: string
  movements: Movement[]
}
interface Batch extends Own {
  own: Taken[]
  waiting: Waiting[]
}
interface Context {
  db: Database
  keys: Keys
}

/**
 * Posts the batches of several customers, which are in the order of their ids, in one transaction. Returns the outcomes of each,
 * undefined where its batch must be posted apart. Throws unavailable when the outcome is unknown.
 */
async function postShared(context: Context, batches: readonly Own[]): Promise<(Outcome[] | undefined)[]> {
  const apart = batches.map(() => undefined)
  const post = (tx: Transaction, lookUpRefIds: boolean) => {
    const works = batches.map(
      (own) => (member: Transaction) => postIn(member, own, lookUpRefIds, context.keys),
    )
    return shareTransaction(tx, works, LOCK_WAIT_MS_MAX)
  }
  const posted = await inAttempts<(Outcome[] | undefined)[]>(context.db, 2, post, (error) => {
    if (connectionLost(error) || lacksResources(error)) unavailable(error)
    return isRetryable(error) ? undefined : Promise.resolve(apart)
  })
  return posted ?? apart
}

/** Posts a batch in a transaction of its own. Returns one outcome per movement, in order. */
async function postBatch(context: Context, own: Own): Promise<Outcome[]> {
  const post = async (tx: Transaction, lookUpRefIds: boolean) => {
    // Planning the statements of a batch each time took 0.35 ms of a lone movement's 0.8.
    const [, outcomes] = await inOrder([beginPlanned(tx), postIn(tx, own, lookUpRefIds, context.keys)])
    return outcomes
  }
  const posted = await inAttempts(context.db, ATTEMPTS_MAX, post, (error) => {
    context.keys.onRefused(own.customerId)
    if (isOfOneMovement(error) && own.movements.length > 1) return postHalves(context, own)
    return isRetryable(error) ? undefined : unavailable(error)
  })
  if (posted !== undefined) return posted
  throw problem.unavailable('too much contention with other processes; nothing was moved; try again')
}

/** When the database refuses a batch because of one movement, halving the batch isolates that movement. */
async function postHalves(context: Context, { customerId, movements }: Own): Promise<Outcome[]> {
  const half = Math.ceil(movements.length / 2)
  const outcomes: Outcome[] = []
  for (const part of [movements.slice(0, half), movements.slice(half)]) {
    const refuse = (refusal: unknown) => part.map((): Outcome => ({ refusal }))
    outcomes.push(...(await postBatch(context, { customerId, movements: part }).catch(refuse)))
  }
  return outcomes
}

/**
 * Posts in a transaction, and again where `failed` returns undefined for its error. Nearly all movements are new, so the first
 * attempt does not look up existing ref_ids. A violation of the unique key shows that it should have. Undefined when all attempts
 * have failed. Throws unavailable when the outcome of a commit is unknown.
 */
async function inAttempts<T>(
  db: Database,
  attempts: number,
  post: (tx: Transaction, lookUpRefIds: boolean) => Promise<T>,
  failed: (error: unknown) => Promise<T> | undefined,
): Promise<T | undefined> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const tx: Transaction = await db
      .connect()
      .catch((error: unknown) => unavailable(error, 'the database does not answer; nothing was moved'))
    let broken: Error | undefined
    try {
      return await post(tx, attempt > 1)
    } catch (error) {
      await tx.query('rollback').catch((failure: Error) => (broken = failure))
      if (tx.isEnded === true && !changedNothing(error, broken))
        throw problem.unavailable(OUTCOME_UNKNOWN, error)
      const outcome = failed(error)
      if (outcome !== undefined) return outcome
    } finally {
      tx.release(broken)
    }
  }
  return undefined
}

/** Errors that end the session or that a panic may have. The severity of an error is in the server's language. */
const MAY_END_SERVER = /^(57P0|58|XX)/

/**
 * Whether PostgreSQL has said that a commit changed nothing: by an error that its session has survived, or by places that changed.
 * Only then may movements be posted again.
 */
const changedNothing = (error: unknown, broken: Error | undefined): boolean =>
  broken === undefined &&
  (notSerializable(error) || (error instanceof DatabaseError && !MAY_END_SERVER.test(error.code ?? '')))

async function postIn(
  tx: Transaction,
  { customerId, movements }: Own,
  lookUpRefIds: boolean,
  { macs, govern }: Keys,
): Promise<Outcome[]> {
  const end = (moved: boolean) => (moved ? commit(tx) : tx.query('rollback'))
  return (await post(tx, customerId, movements, { macs, govern, lookUpRefIds, end })).outcomes
}

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
