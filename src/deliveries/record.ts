import { Temporal } from 'temporal-polyfill'
import { inOrder, transaction, type Database, type Transaction } from '../db/database.ts'
import { arrayLiteral } from '../db/array-literal.ts'
import { idsAt, readClock, type Moment } from '../db/ids.ts'
import { insertEvents } from '../money/ledger/events.ts'
import { WITHOUT_FLUSH } from './claim.ts'
import { type EndpointKey } from './candidates.ts'
import { isOverloaded, secondsToNextAttempt, SLOW_SECONDS } from './schedule.ts'
import { audited } from '../audit/audited.ts'
import { recordChanges } from '../audit/audit.ts'
import { originOfLoop } from '../contract/actor.ts'

/** Records attempts in one transaction: the attempt, its delivery, and the standing of its endpoint. */

/** An endpoint without a success for this long is disabled. */
const DISABLED_AFTER_DAYS = 5
const GONE = 410
/** The largest count that the column can have. Resends have no limit: further attempts are recorded, but not counted. */
const ATTEMPTS_COUNTED_MAX = 32_767

export interface Attempt {
  event_id: string
  /** The lease under which it was made. */
  leased_until: string
  /** The attempts before it, since the delivery was sent or resent. */
  attempts_of_round: number
  succeeded: boolean
  status_code?: number | undefined
  error?: string | undefined
  duration_ms: number
  /** The first bytes of the answer, as printable text. */
  response?: string | undefined
  retryAfterSeconds?: number | undefined
}

export interface Disabled extends EndpointKey {
  name: string
  reason: string
}

/**
 * Records attempts at one endpoint, in the order of their ends. An attempt whose lease another process has taken over is
 * left out. Returns the endpoint if the attempts disabled it.
 */
export function recordAttempts(
  db: Database,
  key: EndpointKey,
  attempts: readonly Attempt[],
): Promise<Disabled | undefined> {
  return transaction(db, async (tx) => {
    const [now] = await inOrder([readClock(tx), tx.query(WITHOUT_FLUSH)])
    // The endpoint comes first, as claims lock it first.
    const disabled = await recordStanding(tx, key, now, attempts)
    await recordDeliveries(tx, key, now, attempts)
    return disabled
  })
}

async function recordDeliveries(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
  now: Moment,
  inOrderOfEnds: readonly Attempt[],
): Promise<void> {
  const newId = idsAt(now)
  // Locked in the order in which Recover Webhook locks them, so that the two cannot deadlock.
  const attempts = inOrderOfEnds.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))
  const delays = attempts.map(({ succeeded, attempts_of_round, retryAfterSeconds }) =>
    succeeded
      ? undefined
      : secondsToNextAttempt(attempts_of_round + 1, { retryAfterSeconds, random: Math.random() }),
  )
  const column = (of: (attempt: Attempt, index: number) => string | number | undefined) =>
    arrayLiteral(attempts.map(of))
  const values = [
    customer_id,
    id,
    now.text,
    column(({ event_id }) => event_id),
    column(({ leased_until }) => leased_until),
    column(({ succeeded }, index) =>
      succeeded ? 'DELIVERED' : delays[index] === undefined ? 'FAILED' : 'PENDING',
    ),
    column((_, index) => (delays[index] === undefined ? undefined : secondsAfter(now, delays[index]))),
  ]
  const ids = attempts.map(() => newId())
  const details = [
    arrayLiteral(ids),
    column(({ status_code }) => status_code),
    column(({ error }) => error),
    column(({ duration_ms }) => duration_ms),
    column(({ response }) => response),
  ]
  // Not with the UPDATE in a statement, and from a row of the customer (rules 2 and 4 of src/db/distribution.ts).
  const { rows } = await tx.query<{ event_id: string; attempts: number }>({
    name: 'end attempts',
    text: END_ATTEMPTS,
    values,
  })
  const counts = new Map(rows.map(({ event_id, attempts: count }) => [event_id, count]))
  await tx.query({
    name: 'insert attempts',
    text: `
      ${INSERT_ATTEMPTS}
      select h.customer_id, $2, a.event_id, a.id, $3, a.attempt, a.status_code, a.error, a.duration_ms, a.response
      from audit_heads h
      cross join unnest($4::uuid[], $5::uuid[], $6::smallint[], $7::text[], $8::int[], $9::text[], $10::int[])
        as a (event_id, id, status_code, error, duration_ms, response, attempt)
      where h.customer_id = $1 and a.attempt is not null`,
    values: [
      customer_id,
      id,
      now.text,
      column(({ event_id }) => event_id),
      ...details,
      column(({ event_id }) => counts.get(event_id)),
    ],
  })
}

/** The attempts whose lease is still this process's. */
const END_ATTEMPTS = `
  update webhook_deliveries d
  set status = r.status, attempts = least(d.attempts + 1, ${ATTEMPTS_COUNTED_MAX}), attempts_of_round = d.attempts_of_round + 1,
      due_at = r.due_at, leased_until = null, ended_at = case when r.status <> 'PENDING' then $3::timestamptz end
  from unnest($4::uuid[], $5::timestamptz[], $6::text[], $7::timestamptz[]) as r (event_id, leased_until, status, due_at)
  where d.customer_id = $1 and d.webhook_id = $2 and d.event_id = r.event_id
    and d.status = 'PENDING' and d.leased_until = r.leased_until
  returning d.event_id, d.attempts`

const INSERT_ATTEMPTS = `
  insert into webhook_attempts (customer_id, webhook_id, event_id, id, created_at, attempt, status_code, error,
                                duration_ms, response)`

/** The time some seconds after a moment, as the database reads it. */
const secondsAfter = ({ micros }: Moment, seconds: number): string =>
  Temporal.Instant.fromEpochNanoseconds(BigInt(micros + Math.round(seconds * 1e6)) * 1000n).toString()

/** Records since when an endpoint fails, its pauses, and that it is disabled. Successes of a healthy one change nothing. */
async function recordStanding(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
  now: Moment,
  attempts: readonly Attempt[],
): Promise<Disabled | undefined> {
  if (attempts.every((attempt) => attempt.succeeded)) {
    await tx.query({
      name: 'endpoint recovers',
      text: `
        update webhooks set failing_since = null
        where customer_id = $1 and id = $2 and failing_since is not null`,
      values: [customer_id, id],
    })
    return undefined
  }
  const pause = Math.max(...attempts.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0))
  const isSlow = attempts.some(({ status_code }) => isOverloaded(status_code))
  // The pause in seconds: rule 3 of src/db/distribution.ts.
  const { rows } = await tx.query<{
    name: string
    failing_since: string | null
    is_over: boolean
    status: string
  }>({
    name: 'endpoint fails',
    text: `
      update webhooks
      set failing_since = case when $4 then null when $5 then $3::timestamptz else coalesce(failing_since, $3) end,
          next_at = greatest(next_at, $6::timestamptz), slow_until = coalesce($7::timestamptz, slow_until)
      where customer_id = $1 and id = $2
      returning name, status, failing_since, coalesce(failing_since <= $8::timestamptz, false) as is_over`,
    values: [
      customer_id,
      id,
      now.text,
      attempts.at(-1)!.succeeded,
      attempts.some((attempt) => attempt.succeeded),
      secondsAfter(now, pause),
      isSlow ? secondsAfter(now, SLOW_SECONDS) : null,
      secondsAfter(now, -DISABLED_AFTER_DAYS * 86_400),
    ],
  })
  const [row] = rows
  const isGone = attempts.some(({ status_code }) => status_code === GONE)
  if (row === undefined || row.status !== 'ACTIVE' || !(isGone || row.is_over)) return undefined
  const reason = isGone ? 'it answered 410 Gone' : `no delivery has succeeded for ${DISABLED_AFTER_DAYS} days`
  const failing_since = row.failing_since ?? now.text
  await tx.query(
    `
    update webhooks
    set status = 'DISABLED', disabled_reason = $3, failing_since = $4, updated_at = $5
    where customer_id = $1 and id = $2`,
    [customer_id, id, reason, failing_since, now.text],
  )
  const { name } = row
  // Its event may be read at once, so it must not be lost.
  await tx.query('set local synchronous_commit = on')
  await insertEvents(tx, customer_id, now, [
    { type: 'webhook.disabled', object_id: id, object: { id, name, failing_since } },
  ])
  recordChanges(tx, customer_id, now, [audited(originOfLoop('deliveries'), 'webhook.disable', id)])
  return { customer_id, id, name, reason }
}
