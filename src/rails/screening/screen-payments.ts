import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import type { Origin } from '../../contract/actor.ts'
import { Refusal } from '../../contract/refusal.ts'
import type { Rest } from '../../db/changes.ts'
import type { Database, Queryable } from '../../db/database.ts'
import { ownCustomers } from '../../db/parts.ts'
import {
  endQuestion,
  makeDue,
  questionDueIn,
  selectDueQuestions,
  type DueQuestion,
  type PaymentToScreen,
  type Screening,
  SCREENING,
} from './screening.ts'
import { wakeDeposit } from '../deposits/incoming-transfers.ts'
import { eachAlone } from '../../db/each-alone.ts'
import { byCustomer } from '../../db/rows.ts'
import { selectScreenedDeposit, selectScreenedWithdrawals } from './screened-payments.ts'
import { wake } from '../../networks/outgoing-transfers.ts'

/** Most questions under way in this process, and of one customer. */
const PLACES_MAX = 32
const CUSTOMER_PLACES_MAX = 16
/** Rest between two looks for questions. */
const POLL_MS = 100

interface Asked {
  question: DueQuestion
  payment: PaymentToScreen
  /** Makes the payment due. */
  wake: (db: Queryable) => Promise<void>
}

/**
 * Asks the screening endpoint about the payments that wait for it, with no transaction open, and records the answers. The
 * requests go on between the rounds. Any number of processes share the questions: leases divide them.
 */
export class Screener {
  readonly #db: Database
  readonly #screening: Screening
  readonly #log: Logger
  readonly #underWay = new Map<Promise<void>, string>()
  readonly #stopping = new AbortController()

  constructor(options: { db: Database; screening: Screening; log: Logger }) {
    this.#db = options.db
    this.#screening = options.screening
    this.#log = options.log
    // Each question listens, and places bound their number.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Leases the questions that are due and begins to ask them. Returns how long to rest. */
  async round(): Promise<Rest> {
    const free = PLACES_MAX - this.#underWay.size
    if (free === 0) return POLL_MS
    const due = (await selectDueQuestions(ownCustomers(this.#db), free)).slice(0, free)
    await eachAlone(
      byCustomer(due),
      ([customerId]) => `customer ${customerId}`,
      async ([customerId, own]) => {
        const busy = [...this.#underWay.values()].filter((id) => id === customerId).length
        const taken = own.slice(0, Math.max(0, CUSTOMER_PLACES_MAX - busy))
        if (taken.length === 0) return
        await this.#beginAll(customerId, await this.#screening.lease(this.#db, customerId, taken))
      },
    )
    return due.length > 0 ? POLL_MS : { usualMs: POLL_MS, dueIn: () => questionDueIn(ownCustomers(this.#db)) }
  }

  /** Ends the requests under way: their questions are asked again. Call it when no round runs. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.answered()
  }

  /** Waits until the questions under way are answered and recorded. */
  async answered(): Promise<void> {
    await Promise.all(this.#underWay.keys())
  }

  /** Begins a customer's questions, and ends those whose payments have ended. */
  async #beginAll(customerId: string, leased: readonly DueQuestion[]): Promise<void> {
    const ids = leased.flatMap(({ kind, subject }) => (kind === 'WITHDRAWAL' ? subject : []))
    const withdrawals =
      ids.length === 0 ? undefined : await selectScreenedWithdrawals(this.#db, customerId, ids)
    await eachAlone(
      leased,
      ({ kind, subject }) => `screening of ${kind} ${subject}`,
      async (question) => {
        const { kind, subject } = question
        const withdrawal = withdrawals?.get(subject)
        const deposit =
          kind === 'DEPOSIT' ? await selectScreenedDeposit(this.#db, customerId, subject) : undefined
        if (withdrawal !== undefined)
          this.#begin({
            question,
            payment: withdrawal.payment,
            wake: (db) => wake(db, [customerId, subject], SCREENING),
          })
        else if (deposit !== undefined)
          this.#begin({
            question,
            payment: deposit.payment,
            wake: (db) => wakeDeposit(db, deposit.incoming),
          })
        else await endQuestion(this.#db, question)
      },
    )
  }

  #begin(asked: Asked): void {
    const asking = this.#ask(asked)
      .catch((err: unknown) => {
        // The lease ends by itself, and the question is asked again.
        this.#log.error({ err, ...idsOf(asked) }, 'an answer of the screening endpoint was not recorded')
      })
      .finally(() => this.#underWay.delete(asking))
    this.#underWay.set(asking, asked.question.customer_id)
  }

  async #ask(asked: Asked): Promise<void> {
    const { question, payment, wake } = asked
    const { kind, customer_id, details } = payment
    const verdict = await this.#screening.endpoint.ask(
      { id: question.id, kind, customer_id, details },
      this.#stopping.signal,
    )
    if (this.#stopping.signal.aborted && verdict.outcome === 'HOLD') return
    const recorded = await this.#screening.record(this.#db, question, payment, verdict)
    if (!recorded) return
    if (verdict.outcome === 'ALLOW') await wake(this.#db)
    if (verdict.outcome === 'REJECT')
      this.#log.warn(idsOf(asked), 'the screening endpoint rejected a payment: bursar screening list')
  }
}

const idsOf = ({ question: { customer_id, kind, subject } }: Asked) => ({ customer_id, kind, subject })

// ---------------------------------------------------------------------------------------------- for operators

export interface ScreenedPayment {
  customer_id: string
  kind: 'WITHDRAWAL' | 'DEPOSIT'
  /** Of a withdrawal the transfer's id; of a deposit <network>/<hash>/<index>. */
  subject: string
  state: 'WAITING' | 'REJECTED'
  attempts: number
  detail: string | null
  created_at: string
  /** When the endpoint is asked next; null for a rejected payment. */
  due_at: string | null
}

export const SCREENED_MAX = 1_000

/** The payments that screening holds, oldest first; of these subjects if they are given. */
export async function listScreened(
  db: Queryable,
  subjects: readonly string[] | null = null,
): Promise<ScreenedPayment[]> {
  const { rows } = await db.query<ScreenedPayment>(
    `
    select s.customer_id, s.kind, s.subject, s.state, s.attempts, s.detail, s.created_at, s.due_at
    from (
      select * from screenings where state = 'WAITING' union all select * from screenings where state = 'REJECTED'
    ) s
    where ($1::text[] is null or s.subject = any ($1)) and case s.kind
      when 'WITHDRAWAL' then exists (
        select 1 from transfers t
        where t.customer_id = s.customer_id and t.id = s.subject::uuid and t.status = 'PENDING')
      else exists (
        select 1 from incoming_transfers i
        where i.customer_id = s.customer_id and i.network = split_part(s.subject, '/', 1)
          and i.crypto_tx_hash = split_part(s.subject, '/', 2) and i.crypto_tx_index = split_part(s.subject, '/', 3)
          and i.state = 'WAITING')
      end
    order by s.created_at
    limit ${SCREENED_MAX}`,
    [subjects],
  )
  return rows
}

/** Asks about held payments at once, also about rejected ones. Throws a Refusal for one that screening does not hold. */
export async function askAgain(
  db: Database,
  subjects: readonly string[],
  origin: Origin,
): Promise<ScreenedPayment[]> {
  const held = await listScreened(db, subjects)
  const missing = subjects.find((id) => !held.some(({ subject }) => subject === id))
  if (missing !== undefined) throw new Refusal(`screening holds no payment ${missing}: bursar screening list`)
  const due: ScreenedPayment[] = []
  for (const payment of held) if (await makeDue(db, payment, origin)) due.push(payment)
  return due
}
