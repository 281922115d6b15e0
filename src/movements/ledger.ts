import { strict as assert } from 'node:assert'
import { setImmediate as turn } from 'node:timers/promises'
import { formatAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import {
  connectionLost,
  inOrder,
  tookTooLong,
  violatedConstraint,
  type Database,
  type Transaction,
} from '../db/database.ts'
import { idsAt, type Moment } from '../db/ids.ts'
import { problem } from '../contract/problems.ts'
import type { BalanceKey } from '../ledger/balances.ts'
import type { Entry, Posting } from '../ledger/entries.ts'
import { consumeQuotes, lockQuotes, type FeeQuote } from '../records/fee-quotes.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { insertBankWires, type NewBankWire } from '../records/bank-wires.ts'
import { Holders, type Holder } from '../records/holders.ts'
import { matchingRule, selectActiveRules, type OrchestrationRule } from '../records/orchestration-rule.ts'
import {
  insertOrchestrations,
  selectOrchestrationsByRefId,
  type NewOrchestration,
  type Orchestration,
} from '../records/orchestration.ts'
import { selectTransfersByRefId, type NewTransfer, type Transfer } from '../ledger/transfer.ts'
import { sealed, type Payee, type WithdrawalMacs } from './withdrawal-macs.ts'

/** What a movement may ask while it decides: plain values, read before. */
export interface View {
  now: Moment
  newId: () => string
  profileExists: (profileId: string) => boolean
  /** Throws unless the profile, account and identity exist (not-found) and may take money out (disabled). */
  requireHolder: (holder: Holder) => void
  /** The quote, unless there is none with this id, or undefined. A used one has its transfer_id. */
  quote: (feeId: string) => FeeQuote | undefined
  /** The active rule for what comes in at one of these places, the first that has one. */
  rule: (sourceIds: string[], asset: string) => OrchestrationRule | undefined
}

/** A record to keep and the entries to post. */
interface Posted extends NewTransfer {
  entries: Entry[]
  /** The bank account that a wire pays, which its MAC is over. */
  payee?: Payee | undefined
}

/** What a movement comes to. */
export interface Decision extends Posted {
  /** The other side of an internal transfer. */
  counterpart?: Posted | undefined
  /** What it sets off, or is a part of. */
  orchestration?: NewOrchestration | undefined
  /** The wire that an operator records with its transfer. */
  bankWire?: NewBankWire
}

/** One request to move money. */
export interface Movement {
  ref_id?: string | undefined
  /** The profile balances its entries may touch. */
  balances: BalanceKey[]
  /** A guaranteed fee it uses up. */
  fee_id?: string | undefined
  /** Whose money it takes, where it takes any. */
  holder?: Holder
  /** Throws the refusal of a caller that may no longer move money: it may have been disabled while the movement waited. */
  requireCaller?: () => void
  /** The places that its money comes in at, where an orchestration rule may wait for it. */
  source_ids?: string[]
  /** The ref_id of the orchestration that it starts. */
  orchestration_ref_id?: string
  /** Pure: gives the decision, or throws the `Problem` that refuses it. Funds are the ledger's to check. */
  decide: (view: View) => Decision
}

type Outcome = { transfer: Transfer } | { refusal: unknown }

interface Waiting {
  movement: Movement
  resolve: (transfer: Transfer) => void
  reject: (reason: unknown) => void
  since: number
}

/** Is told what the ledger does. */
export interface LedgerMeter {
  /** A batch of so many movements was executed. */
  batch(movements: number): void
  /** A movement was refused, because as many as may were waiting. */
  refused(): void
}

export interface LedgerOptions {
  meter?: LedgerMeter
  /** Makes the MACs of withdrawals. Without it those that are accepted here are never signed. */
  macs?: WithdrawalMacs
  /** A movement that has waited longer for its batch is refused: whoever asked for it has been answered by then. */
  waitMsMax?: number
}

/** Most movements of one batch: more gain nothing measurable and lengthen every wait. */
export const BATCH_MAX = 512
/** Most movements of one customer that may wait in this process; beyond it the answer is 503. */
export const WAITING_MAX = 5_000
/** The same over all customers. One that waits takes 10 kB with its request (measured with 5,000). */
export const WAITING_TOTAL_MAX = 10_000
/** How often a batch is decided anew when another process was first. */
export const ATTEMPTS_MAX = 20

const RACES = new Set(['transfers_ref_id', 'orchestrations_ref_id', 'balances_pkey'])
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK_DETECTED = '40P01'

/**
 * Posts money movements in groups (design section 3): those of a customer that arrive while a database
 * transaction is under way are executed together in the next. There is no timer: an idle ledger starts at once,
 * a busy one fills its next batch.
 */
export class Ledger {
  #db: Database
  #waiting = new Map<string, Waiting[]>()
  #running = new Set<Promise<void>>()
  #count = 0
  #meter: LedgerMeter | undefined
  #waitMsMax: number
  readonly macs: WithdrawalMacs | undefined

  constructor(db: Database, { meter, macs, waitMsMax = Infinity }: LedgerOptions = {}) {
    this.#db = db
    this.#meter = meter
    this.macs = macs
    this.#waitMsMax = waitMsMax
  }

  /** How many movements wait for a batch. */
  get waiting(): number {
    return this.#count
  }

  /**
   * Moves money for one customer; gives the transfer once it is durable.
   * Throws the movement's own `Problem`, `insufficient-funds`, `already-exists`, or `unavailable`.
   */
  submit(customerId: string, movement: Movement): Promise<Transfer> {
    return new Promise((resolve, reject) => {
      const queue = this.#waiting.get(customerId)
      if (this.#count >= WAITING_TOTAL_MAX || (queue?.length ?? 0) >= WAITING_MAX) {
        this.#meter?.refused()
        const whose = this.#count >= WAITING_TOTAL_MAX ? '' : ' of this customer'
        return reject(
          problem.unavailable(`too many movements${whose} are waiting; nothing was moved; try again`),
        )
      }
      this.#count += 1
      const waiting = { movement, resolve, reject, since: performance.now() }
      if (queue !== undefined) return void queue.push(waiting)
      this.#waiting.set(customerId, [waiting])
      const run = this.#run(customerId).finally(() => this.#running.delete(run))
      this.#running.add(run)
    })
  }

  /** Waits until everything submitted so far is answered. */
  async drain(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #run(customerId: string): Promise<void> {
    const queue = this.#waiting.get(customerId)!
    // What arrives in the same turn of the event loop goes together.
    await turn()
    let answer = (): void => undefined
    while (queue.length > 0) {
      const batch = this.#take(queue)
      if (batch.length === 0) continue
      const posted = post(this.#db, customerId, batch, this.macs)
      // The next batch is with the database before the last is answered: both have work at the same time
      // (measured over HTTP: 15,600 a second, not 11,500).
      await turn()
      answer()
      answer = await posted
    }
    this.#waiting.delete(customerId)
    answer()
  }

  /** The next batch: those that have not waited too long. */
  #take(queue: Waiting[]): Waiting[] {
    const taken = queue.splice(0, BATCH_MAX)
    this.#count -= taken.length
    const oldest = performance.now() - this.#waitMsMax
    // They stand in the order that they came in.
    const late = taken.findIndex(({ since }) => since >= oldest)
    for (const { reject } of taken.splice(0, late === -1 ? taken.length : late))
      reject(problem.unavailable('it waited too long for the database; nothing was moved; try again'))
    if (taken.length > 0) this.#meter?.batch(taken.length)
    return taken
  }
}

/** Executes a batch; gives what answers those who wait for it. */
async function post(
  db: Database,
  customerId: string,
  batch: Waiting[],
  macs: WithdrawalMacs | undefined,
): Promise<() => void> {
  const movements = batch.map((waiting) => waiting.movement)
  const refuse = (refusal: unknown) => movements.map((): Outcome => ({ refusal }))
  const outcomes = await postBatch(db, customerId, movements, macs).catch(refuse)
  return () =>
    outcomes.forEach((outcome, index) => {
      const { resolve, reject } = batch[index]!
      if ('transfer' in outcome) resolve(outcome.transfer)
      else reject(outcome.refusal)
    })
}

/** Executes a batch: read, decide, write. Gives one outcome per movement, in order. */
async function postBatch(
  db: Database,
  customerId: string,
  movements: Movement[],
  macs: WithdrawalMacs | undefined,
): Promise<Outcome[]> {
  // Nearly all movements are new, so the first attempt does not look for existing ref_ids:
  // the unique key tells when it should have.
  let lookUpRefIds = false
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const tx = await db
      .connect()
      .catch((error: unknown) => unavailable(error, 'the database does not answer; nothing was moved'))
    let broken: Error | undefined
    try {
      return await attemptBatch(tx, customerId, movements, lookUpRefIds, macs)
    } catch (error) {
      await tx.query('rollback').catch((failure: Error) => (broken = failure))
      if (isOfOneMovement(error) && movements.length > 1) return postHalves(db, customerId, movements, macs)
      if (!wasRaced(error)) unavailable(error)
      lookUpRefIds = true
    } finally {
      tx.release(broken)
    }
  }
  throw problem.unavailable('other processes were first too many times; try again')
}

/** What the database refuses for one movement's sake, it refuses to the whole batch: by halves, only to that one. */
async function postHalves(
  db: Database,
  customerId: string,
  movements: Movement[],
  macs: WithdrawalMacs | undefined,
): Promise<Outcome[]> {
  const half = Math.ceil(movements.length / 2)
  const outcomes: Outcome[] = []
  for (const part of [movements.slice(0, half), movements.slice(half)]) {
    const refuse = (refusal: unknown) => part.map((): Outcome => ({ refusal }))
    outcomes.push(...(await postBatch(db, customerId, part, macs).catch(refuse)))
  }
  return outcomes
}

// The two statements of every batch have one sensible plan each; making it anew took 0.35 ms of a lone movement's 0.8.
// Those that look something up have no name, so that they are planned when they are needed, for the tables as they are.
const BEGIN = 'begin; set local plan_cache_mode = force_generic_plan'

async function attemptBatch(
  tx: Transaction,
  customerId: string,
  movements: Movement[],
  lookUpRefIds: boolean,
  macs: WithdrawalMacs | undefined,
): Promise<Outcome[]> {
  // Read.
  const keys = movements.flatMap((movement) => movement.balances)
  const [, ledger, quotes, rules, started, existing] = await inOrder([
    tx.query(BEGIN),
    LedgerTransaction.open(tx, customerId, keys),
    lockQuotes(tx, customerId, movements),
    selectActiveRules(tx, customerId, movements),
    selectOrchestrationsByRefId(tx, customerId, movements),
    selectTransfersByRefId(tx, customerId, lookUpRefIds ? refIdsOf(movements) : []),
  ])
  const holders = await Holders.read(
    tx,
    customerId,
    ledger.balances,
    keys.map((key) => key.profile_id),
    movements.flatMap(({ holder }) => holder ?? []),
  )

  // Decide, each in turn: what one takes, the next has not. A refusal touches nothing.
  const view: View = {
    now: ledger.now,
    newId: idsAt(ledger.now),
    profileExists: (id) => holders.profileExists(id),
    requireHolder: (holder) => holders.require(holder),
    quote: (id) => quotes.get(id),
    rule: (sourceIds, asset) => matchingRule(rules, sourceIds, asset),
  }
  const posted: Posted[] = []
  const orchestrations: NewOrchestration[] = []
  const bankWires: NewBankWire[] = []
  const outcomes = movements.map((movement): Outcome => {
    try {
      movement.requireCaller?.()
      requireNew(movement.ref_id, existing)
      requireNew(movement.orchestration_ref_id, started)
      const decision = movement.decide(view)
      const { transfer, orchestration, bankWire } = decision
      const quote = movement.fee_id === undefined ? undefined : quotes.get(movement.fee_id)
      assert(
        (movement.fee_id === undefined) === (quote === undefined),
        'a movement must refuse a quote that is not there',
      )
      applyDecision(ledger, movement.balances, decision)
      posted.push(...sidesOf(decision))
      if (movement.ref_id !== undefined) existing.set(movement.ref_id, transfer)
      if (quote !== undefined) quote.transfer_id = transfer.id
      if (bankWire !== undefined) bankWires.push(bankWire)
      if (orchestration !== undefined) {
        orchestrations.push(orchestration)
        if (orchestration.ref_id !== undefined) started.set(orchestration.ref_id, orchestration)
      }
      return { transfer }
    } catch (refusal) {
      return { refusal }
    }
  })
  if (!lookUpRefIds) await preferExisting(tx, customerId, movements, outcomes)

  // Write. Sent together: if one statement fails, the commit behind them is a rollback.
  if (posted.length === 0) {
    await tx.query('rollback')
  } else {
    await inOrder([
      ledger.write(sealed(posted, macs)),
      consumeQuotes(tx, customerId, quotes),
      insertOrchestrations(tx, customerId, orchestrations),
      insertBankWires(tx, bankWires),
      tx.query('commit'),
    ])
  }
  return outcomes
}

const refIdsOf = (movements: Movement[]) => movements.flatMap(({ ref_id }) => ref_id ?? [])

function requireNew(refId: string | undefined, existing: Map<string, Transfer | Orchestration>): void {
  const known = refId === undefined ? undefined : existing.get(refId)
  if (known !== undefined) throw problem.alreadyExists('ref_id', known)
}

/** The records that a decision makes: one, or the two of an internal transfer. */
export const sidesOf = (decision: Decision): Posted[] =>
  decision.counterpart === undefined ? [decision] : [decision, decision.counterpart]

/**
 * Posts a decision: both sides or nothing. Throws insufficient-funds for the first balance that it would take below
 * zero, and an assertion when it moves a balance that is not among those named, which alone are locked.
 */
export function applyDecision(ledger: LedgerTransaction, named: BalanceKey[], decision: Decision): void {
  const isNamed = ({ profile_id, asset }: Entry) =>
    profile_id === null || named.some((key) => key.profile_id === profile_id && key.asset === asset)
  const postings = sidesOf(decision).map(({ transfer: { id }, entries }): Posting => {
    assert(entries.every(isNamed), 'a movement must name the balances it moves: only those are locked')
    return { transfer_id: id, event: 'CREATED', entries }
  })
  requireFunds(ledger, decision.entries)
  ledger.post(...postings)
}

function requireFunds(ledger: LedgerTransaction, entries: Entry[]): void {
  const short = ledger.shortOf(entries)
  if (short === undefined) return
  const { profile_id, asset, available, needed } = short
  throw problem.insufficientFunds({
    profile_id,
    asset,
    available: formatAmount(available, decimalsOf(asset)),
    needed: formatAmount(needed, decimalsOf(asset)),
  })
}

/** A repeated ref_id is answered with its record before any other refusal, which a first attempt cannot know. */
async function preferExisting(
  tx: Transaction,
  customerId: string,
  movements: Movement[],
  outcomes: Outcome[],
): Promise<void> {
  const refused = movements.filter((_, index) => 'refusal' in outcomes[index]!)
  const existing = await selectTransfersByRefId(tx, customerId, refIdsOf(refused))
  movements.forEach(({ ref_id }, index) => {
    const known = ref_id === undefined ? undefined : existing.get(ref_id)
    if (known !== undefined) outcomes[index] = { refusal: problem.alreadyExists('ref_id', known) }
  })
}

/** Whether another process was first, so that all must be decided anew. */
export function wasRaced(error: unknown): boolean {
  const { code } = error as { code?: string }
  return (
    code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED || RACES.has(violatedConstraint(error) ?? '')
  )
}

/** Whether it is about a value (data exception, constraint, size of an index row): nobody else's fault, then. */
function isOfOneMovement(error: unknown): boolean {
  const { code = '' } = error as { code?: string }
  return /^(22|23|54)/.test(code) && !wasRaced(error)
}

const OUTCOME_UNKNOWN =
  'the database went away; whether the movement was made is not known: repeat it with the same ref_id'

function unavailable(error: unknown, detail = OUTCOME_UNKNOWN): never {
  if (tookTooLong(error))
    throw problem.unavailable('the database took too long; nothing was moved; try again', error)
  if (!connectionLost(error)) throw error
  throw problem.unavailable(detail, error)
}
