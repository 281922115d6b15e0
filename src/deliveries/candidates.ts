import type { Transaction } from '../db/database.ts'
import { eventMatches } from '../money/records/webhook.ts'

/** Which deliveries of an endpoint a claim finds, and which of them it sends. */

/**
 * Events that one claim reads to find those that match an endpoint, and how many after a claim that found too few. At 10 claims a
 * second, an endpoint of rare event types keeps up with a customer's 20,000 events a second.
 */
export const EVENTS_READ = 64
export const EVENTS_READ_MAX = 2_000
/**
 * Most events that one claim looks at, including those that have a delivery already. Tests and resends make deliveries after the
 * cursor without limit. A claim that passed a million of them would take seconds, and other endpoints would wait.
 */
export const EVENTS_LOOKED_AT_MAX = 10_000

export interface EndpointKey {
  customer_id: string
  id: string
}

/** In SQL: whether a delivery `d` is due, and nobody has it leased. */
export const IS_DUE = (now: string) =>
  `d.status = 'PENDING' and d.due_at <= ${now} and (d.leased_until is null or d.leased_until <= ${now})`

/** Whether an earlier event of the record waits for its first attempt at the endpoint. */
const isBehind = (object_id: string, event_id: string) => `exists (
          select 1 from webhook_deliveries b
          where b.customer_id = $1 and b.webhook_id = $2 and b.object_id = ${object_id} and b.event_id < ${event_id}
            and b.status = 'PENDING' and b.attempts = 0)`

export interface Candidate {
  event_id: string
  object_id: string
  attempts: number
  attempts_of_round: number
  /** Since when: the event's creation, or when the next attempt was due. */
  since: string
  isNew: boolean
  /** Whether an earlier event of the record waits for its first attempt. */
  is_behind: boolean
}

/** Reads the retries that are due, the oldest first. */
export async function selectDue(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
  now: string,
  limit: number,
): Promise<Candidate[]> {
  const { rows } = await tx.query<Omit<Candidate, 'isNew' | 'is_behind'>>({
    name: 'due deliveries',
    text: `
      select d.event_id, d.object_id, d.attempts, d.attempts_of_round, d.due_at as since
      from webhook_deliveries d
      where d.customer_id = $1 and d.webhook_id = $2 and ${IS_DUE('$3')}
        and not ${isBehind('d.object_id', 'd.event_id')}
      order by d.due_at
      limit $4`,
    values: [customer_id, id, now, limit],
  })
  return rows.map((row) => ({ ...row, isNew: false, is_behind: false }))
}

interface Found {
  candidates: Candidate[]
  /** The last event up to which all were read. */
  lastRead: string | undefined
  isCut: boolean
}

/**
 * Reads the events after an id that have no delivery to this endpoint, and returns those that it gets. It looks at
 * `EVENTS_LOOKED_AT_MAX` events at most.
 */
export async function selectNew(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
  { from, limit, readMax }: { from: string; limit: number; readMax: number },
): Promise<Found> {
  const { rows } = await tx.query<{
    looked_to: string | null
    read: number
    last_read: string | null
    event_id: string | null
    object_id: string | null
    created_at: string | null
    is_behind: boolean | null
  }>({
    name: 'new events',
    text: `
      with read as materialized (
        select e.*
        from (select customer_id, id, type, object_id, created_at, is_test
              from events where customer_id = $1 and id > $3 order by id limit $5) e
        -- Without the second bound, PostgreSQL may read all deliveries of the endpoint (measured: 45,000, in 11 ms).
        where not exists (select 1 from webhook_deliveries d
                          where d.customer_id = $1 and d.webhook_id = $2 and d.event_id = e.id and d.event_id > $3)
        order by e.id
        limit $6
      ), matching as (
        select r.id as event_id, r.object_id, r.created_at, ${isBehind('r.object_id', 'r.id')} as is_behind
        from read r, webhooks w
        where w.customer_id = $1 and w.id = $2 and ${eventMatches('r', 'w')}
        order by r.id
        limit $4
      )
      select all_read.*, matching.*,
             -- Where it stopped to look, if it read fewer than it could.
             case when all_read.read < $6 then (
               select e.id from events e where e.customer_id = $1 and e.id > $3 order by e.id offset $5::int - 1 limit 1
             ) end as looked_to
      from (select count(*)::int as read, (array_agg(id order by id desc))[1] as last_read from read) all_read
      left join matching on true
      order by event_id`,
    values: [customer_id, id, from, limit, EVENTS_LOOKED_AT_MAX, readMax],
  })
  const { read, last_read, looked_to } = rows[0]!
  const candidates = rows.flatMap(({ event_id, object_id, created_at, is_behind }) =>
    event_id === null
      ? []
      : {
          event_id,
          object_id: object_id!,
          attempts: 0,
          attempts_of_round: 0,
          since: created_at!,
          isNew: true,
          is_behind: is_behind!,
        },
  )
  return {
    candidates,
    lastRead: looked_to ?? last_read ?? undefined,
    isCut: candidates.length === limit || read === readMax || looked_to !== null,
  }
}

export interface Chosen {
  sent: Candidate[]
  /** New deliveries that wait until an earlier event of their record had its first attempt. */
  parked: Candidate[]
  /** Everything visible up to this event has its delivery; undefined: everything visible has. */
  readTo: string | undefined
}

/**
 * Chooses the deliveries that have waited longest, retries and new ones alike. A delivery waits while an earlier event of its
 * record waits for its first attempt. New deliveries are taken from the front of those found, in the order of their ids.
 */
export function choose(due: Candidate[], found: Found, from: string, most: number): Chosen {
  const sent: Candidate[] = []
  const parked: Candidate[] = []
  const firstOf = new Map<string, string>()
  let readTo = from
  for (const next of [...found.candidates, ...due].sort(byAge)) {
    if (sent.length === most) break
    if (next.isNew) readTo = next.event_id
    const earlier = firstOf.get(next.object_id)
    if (next.is_behind || (earlier !== undefined && earlier < next.event_id)) {
      if (next.isNew) parked.push(next)
      continue
    }
    sent.push(next)
    if (next.attempts === 0) firstOf.set(next.object_id, earlier ?? next.event_id)
  }
  const lastFound = found.candidates.at(-1)?.event_id
  if (lastFound !== undefined && readTo !== lastFound) return { sent, parked, readTo }
  if (!found.isCut) return { sent, parked, readTo: undefined }
  return { sent, parked, readTo: found.candidates.length >= most ? readTo : (found.lastRead ?? from) }
}

/** Those that have waited longest come first. New events keep the order of their ids, which are made from their times. */
const byAge = (a: Candidate, b: Candidate) => (a.since < b.since ? -1 : Number(a.since > b.since))
