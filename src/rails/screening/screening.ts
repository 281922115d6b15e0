import { Refusal } from '../../contract/refusal.ts'
import { randomUUID } from 'node:crypto'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { firstIn } from '../../db/changes.ts'
import { transaction, type Database, type Queryable } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { Macs } from '../../keys/macs.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { recordChanges } from '../../audit/audit.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import type { Question, ScreeningEndpoint, ScreeningVerdict } from './endpoint.ts'
import { arraysOf } from '../../db/rows.ts'

/**
 * Every statement on `screenings`: the questions about payments and their answers. A payment goes on only with an ALLOW
 * whose MAC covers its details, made by a key that is not in the database. So an ALLOW that is written with SQL, or of
 * other details, pays nothing.
 */

export interface PaymentToScreen {
  kind: Question['kind']
  customer_id: string
  /** Names the payment among the customer's: of a withdrawal the transfer's id, of a deposit <network>/<hash>/<index>. */
  subject: string
  details: object
}

/** Whether a payment may go on. `detail` is for operators. */
export type ScreeningStanding = { allowed: true } | { allowed: false; detail: string }

/** An ALLOW counts this long. A payment that waits longer, for a freeze perhaps, is screened again. */
const ALLOWED_HOURS = 24
/** Pauses between two questions about a payment double, beginning with a second. */
const PAUSE_SECONDS_MAX = 300
/** How long after its time limit an answer may be recorded, before another process asks the question. */
const RECORDING_SECONDS = 30

const LOOP = originOfLoop('screenings')

/** The waiting code and reason of payments that screening holds. */
export const SCREENING = 'SCREENING'

/** A held payment is looked at this often. An ALLOW makes it due at once. */
export const RECHECK_MS = 60_000

export interface DueQuestion {
  customer_id: string
  kind: Question['kind']
  subject: string
  id: string
  attempts: number
  due_at: string
}

/** Called for an ALLOW that Bursar did not make, or not of these details. */
export type OnForgedVerdict = (payment: PaymentToScreen, objection: string) => void

/** The endpoint did not allow a payment that it was asked about once. */
export class NotAllowed extends Refusal {
  /** The endpoint's answer, for operators. */
  readonly detail: string

  constructor(detail: string) {
    super(`${detail}: nothing was recorded; say it again when it allows the payment`)
    this.detail = detail
  }
}

export class Screening {
  readonly endpoint: ScreeningEndpoint
  readonly #macs: Macs
  onForged: OnForgedVerdict = () => undefined

  constructor(endpoint: ScreeningEndpoint, masterKeys: MasterKeys) {
    this.endpoint = endpoint
    this.#macs = new Macs(masterKeys, 'screenings')
  }

  /**
   * Returns whether each of a customer's payments may go on, by subject. Makes the questions that are missing: about new
   * payments, and about those whose ALLOW is too old or is not of these details.
   */
  async standingsOf(
    db: Queryable,
    payments: readonly PaymentToScreen[],
  ): Promise<Map<string, ScreeningStanding>> {
    const standings = new Map<string, ScreeningStanding>()
    const [first] = payments
    if (first === undefined) return standings
    const { customer_id, kind } = first
    const { rows } = await db.query<Answered>(
      `
      select subject, state, detail, decided_at, mac,
             coalesce(decided_at > clock_timestamp() - make_interval(hours => $4), false) as is_fresh
      from screenings
      where customer_id = $1 and kind = $2 and subject = any ($3)`,
      [customer_id, kind, payments.map(({ subject }) => subject), ALLOWED_HOURS],
    )
    const answers = new Map(rows.map((row) => [row.subject, row]))
    const toAsk: string[] = []
    for (const payment of payments) {
      const standing = this.#standingOf(payment, answers.get(payment.subject))
      if (standing === undefined) toAsk.push(payment.subject)
      standings.set(payment.subject, standing ?? NOT_ANSWERED)
    }
    if (toAsk.length > 0) await makeQuestions(db, first, toAsk)
    return standings
  }

  /** Returns undefined where a question must be made. */
  #standingOf(payment: PaymentToScreen, answer: Answered | undefined): ScreeningStanding | undefined {
    if (answer === undefined || answer.state === 'ENDED') return undefined
    if (answer.state === 'WAITING') return answer.detail === null ? NOT_ANSWERED : heldFor(answer.detail)
    if (answer.state === 'REJECTED')
      return heldFor(`${answer.detail ?? 'rejected'}: cancel it, or ask again with bursar screening ask`)
    const objection = this.#macs.objectionTo(
      textOfQuestion(payment, answer.decided_at ?? ''),
      answer.mac ?? '',
      'the payment was changed after it was allowed, or was never allowed',
    )
    if (objection === undefined) return answer.is_fresh ? { allowed: true } : undefined
    this.onForged(payment, objection)
    return undefined
  }

  /**
   * Asks once about a payment that a command records, and keeps nothing: the caller pays at once or not at all. Throws
   * NotAllowed where the endpoint does not allow it.
   */
  async requireAllowed({ kind, customer_id, details }: Omit<PaymentToScreen, 'subject'>): Promise<void> {
    const verdict = await this.endpoint.ask({ id: randomUUID(), kind, customer_id, details })
    if (verdict.outcome !== 'ALLOW') throw new NotAllowed(verdict.detail)
  }

  /** Records the answer to a leased question. Returns false where another process has answered it meanwhile. */
  async record(
    db: Database,
    leased: DueQuestion,
    payment: PaymentToScreen,
    verdict: ScreeningVerdict,
  ): Promise<boolean> {
    const key = [leased.customer_id, leased.kind, leased.subject, leased.due_at]
    if (verdict.outcome === 'HOLD') {
      const { rowCount } = await db.query(
        `
        update screenings
        set attempts = attempts + 1, detail = $5, due_at = (select clock_timestamp()) + make_interval(secs => $6)
        where customer_id = $1 and kind = $2 and subject = $3 and state = 'WAITING' and due_at = $4`,
        [...key, verdict.detail, Math.min(2 ** Math.min(leased.attempts, 16), PAUSE_SECONDS_MAX)],
      )
      return rowCount === 1
    }
    return transaction(db, async (tx) => {
      const now = await readClock(tx)
      const [state, detail, mac] =
        verdict.outcome === 'ALLOW'
          ? ['ALLOWED', null, this.#macs.make(textOfQuestion(payment, now.text))]
          : ['REJECTED', verdict.detail, null]
      const { rowCount } = await tx.query(
        `
        update screenings
        set attempts = attempts + 1, state = $5, detail = $6, mac = $7, decided_at = $8, due_at = null
        where customer_id = $1 and kind = $2 and subject = $3 and state = 'WAITING' and due_at = $4`,
        [...key, state, detail, mac, now.text],
      )
      // An ALLOW changes nothing that people have to know: the payment that follows has its own record.
      if (rowCount === 1 && verdict.outcome === 'REJECT')
        recordChanges(tx, leased.customer_id, now, [audited(LOOP, 'screening.reject', leased.subject)])
      return rowCount === 1
    })
  }

  /** Leases a customer's questions, so that no other process asks them. Returns those that were still due. */
  async lease(db: Database, customerId: string, questions: readonly DueQuestion[]): Promise<DueQuestion[]> {
    // In one order, so that two processes cannot deadlock.
    const inOrder = [...questions].sort((a, b) => (a.subject < b.subject ? -1 : 1))
    const { rows } = await db.query<DueQuestion>(
      `
      update screenings s
      set due_at = (select clock_timestamp()) + make_interval(secs => $5)
      from unnest($2::text[], $3::text[], $4::timestamptz[]) as q (kind, subject, due_at)
      where s.customer_id = $1 and s.kind = q.kind and s.subject = q.subject and s.state = 'WAITING'
        and s.due_at = q.due_at
      returning s.customer_id, s.kind, s.subject, s.id, s.attempts, s.due_at`,
      [
        customerId,
        ...arraysOf(inOrder, 'kind', 'subject', 'due_at'),
        this.endpoint.timeoutMs / 1000 + RECORDING_SECONDS,
      ],
    )
    return rows
  }
}

interface Answered {
  subject: string
  state: 'WAITING' | 'ALLOWED' | 'REJECTED' | 'ENDED'
  detail: string | null
  decided_at: string | null
  mac: string | null
  is_fresh: boolean
}

const heldFor = (detail: string): ScreeningStanding => ({ allowed: false, detail })
const NOT_ANSWERED = heldFor('the screening endpoint has not answered yet')

/** The text that the MAC of an ALLOW covers. JSON delimits the members, so no two payments have the same text. */
const textOfQuestion = (
  { kind, customer_id, subject, details }: PaymentToScreen,
  allowedAt: string,
): string => JSON.stringify([kind, customer_id, subject, details, allowedAt])

/** Makes questions, and makes those again whose answer does not count any more. */
async function makeQuestions(
  db: Queryable,
  { customer_id, kind }: PaymentToScreen,
  subjects: readonly string[],
): Promise<void> {
  await db.query(
    `
    insert into screenings (customer_id, kind, subject, id, created_at, state, attempts, due_at)
    select $1, $2, q.subject, q.id, clock_timestamp(), 'WAITING', 0, clock_timestamp()
    from unnest($3::text[], $4::uuid[]) as q (subject, id)
    order by q.subject
    on conflict (customer_id, kind, subject) do update
      set id = excluded.id, state = 'WAITING', attempts = 0, due_at = excluded.due_at, detail = null,
          decided_at = null, mac = null
      where screenings.state in ('ALLOWED', 'ENDED')`,
    [customer_id, kind, subjects, subjects.map(() => randomUUID())],
  )
}

/**
 * The questions that are due, the first of each customer before the second of any: many payments of one customer delay
 * no other customer's. Of a customer, new ones come before repeated ones.
 */
export async function selectDueQuestions(db: Queryable, limit: number): Promise<DueQuestion[]> {
  const { rows } = await db.query<DueQuestion>(
    `
    select customer_id, kind, subject, id, attempts, due_at
    from (
      select *, row_number() over (partition by customer_id order by attempts, due_at) as place
      from screenings
      where state = 'WAITING' and due_at <= clock_timestamp()
    ) due
    order by place, attempts, due_at
    limit $1`,
    [limit],
  )
  return rows
}

/** The milliseconds until the next question is due (`firstIn`). */
export const questionDueIn = (db: Queryable): Promise<number | undefined> =>
  firstIn(db, `select due_at as at from screenings where state = 'WAITING'`)

/** Ends a leased question whose payment needs no answer any more. */
export async function endQuestion(
  db: Queryable,
  { customer_id, kind, subject, due_at }: DueQuestion,
): Promise<void> {
  await db.query(
    `
    update screenings set state = 'ENDED', due_at = null
    where customer_id = $1 and kind = $2 and subject = $3 and state = 'WAITING' and due_at = $4`,
    [customer_id, kind, subject, due_at],
  )
}

/** Makes a question due at once, also a rejected one. Returns false where it was answered meanwhile. */
export const makeDue = (
  db: Database,
  { customer_id, kind, subject }: Pick<DueQuestion, 'customer_id' | 'kind' | 'subject'>,
  origin: Origin,
): Promise<boolean> =>
  transaction(db, async (tx) => {
    const { rowCount } = await tx.query(
      `
      update screenings
      set state = 'WAITING', due_at = (select clock_timestamp()), attempts = 0, decided_at = null
      where customer_id = $1 and kind = $2 and subject = $3 and state in ('WAITING', 'REJECTED')`,
      [customer_id, kind, subject],
    )
    if (rowCount === 1) await recordNow(tx, customer_id, audited(origin, 'screening.ask', subject))
    return rowCount === 1
  })
