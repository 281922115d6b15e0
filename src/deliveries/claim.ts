import { inOrder, transaction, type Database, type Queryable, type Transaction } from '../db/database.ts'
import { arrayLiteral } from '../db/array-literal.ts'
import { firstIn } from '../db/changes.ts'
import { firstIdAt, momentAt, type Moment } from '../db/ids.ts'
import type { WebhookAuth } from '../money/records/webhook.ts'
import {
  choose,
  EVENTS_READ,
  EVENTS_READ_MAX,
  IS_DUE,
  selectDue,
  selectNew,
  type Candidate,
  type Chosen,
  type EndpointKey,
} from './candidates.ts'
import { intervalOf, nextSlots } from './schedule.ts'

/** Which process makes which delivery: a claim locks the endpoint in a short transaction, and takes leases for after it. */

/** An attempt takes 15 s at most, and waits for its slot a part of a second. */
export const LEASE_SECONDS = 30
/** Most endpoints that one look for work finds. Those that were served least recently come first. */
const ENDPOINTS_MAX = 500
/** An endpoint is claimed again when its slots end within this time. */
const REFILL_SECONDS = 0.1

/**
 * A commit of the deliverer does not wait for the flush of the write-ahead log: payments would wait for that flush, too. When
 * PostgreSQL crashes, the last half second of claims and results may be lost, and these deliveries are made again.
 */
export const WITHOUT_FLUSH = 'set local synchronous_commit = off'

export interface Endpoint extends EndpointKey {
  url: string
  payload: 'THIN' | 'FULL'
  auth: WebhookAuth
  encrypted_secrets: string
  /** Whether the previous signing secret signs, too. */
  rotates: boolean
}

export interface ClaimedDelivery {
  event_id: string
  attempts_of_round: number
  /** When the attempt may start, as seconds after the claim. */
  startsIn: number
  /** For how long the event has waited for its first attempt; undefined for later ones. */
  waitedSeconds: number | undefined
}

export interface Claim {
  endpoint: Endpoint
  deliveries: ClaimedDelivery[]
  /** The end of the lease, which identifies it: an attempt is recorded only where the delivery still has this value. */
  leased_until: string
}

/**
 * Finds the endpoints that may have something to send now, except those in `full`, and only those in `admitted` if it is given.
 * Those that were claimed last come last, even where the claim found nothing to send.
 */
export async function endpointsWithWork(
  db: Queryable,
  full: readonly string[],
  admitted: readonly string[] | undefined,
): Promise<EndpointKey[]> {
  const { rows } = await db.query<EndpointKey>({
    name: 'endpoints with work',
    text: `
      select w.customer_id, w.id
      from webhooks w
      where w.status = 'ACTIVE' and w.next_at <= clock_timestamp() + make_interval(secs => ${REFILL_SECONDS})
        and w.id <> all ($1::uuid[]) and ($2::uuid[] is null or w.id = any ($2))
        and (exists (select 1 from events e where e.customer_id = w.customer_id and e.id > w.cursor_id)
             or exists (select 1 from webhook_deliveries d
                        where d.customer_id = w.customer_id and d.webhook_id = w.id
                          and ${IS_DUE('clock_timestamp()')}))
      order by w.next_at
      limit ${ENDPOINTS_MAX}`,
    values: [arrayLiteral(full), admitted && arrayLiteral(admitted)],
  })
  return rows
}

/** Milliseconds until the next attempt is due, as `firstIn` returns them. */
export const deliveryDueIn = (db: Queryable): Promise<number | undefined> =>
  firstIn(
    db,
    `
    select greatest(w.next_at, d.due_at, d.leased_until) as at
    from webhooks w
    join webhook_deliveries d on d.customer_id = w.customer_id and d.webhook_id = w.id and d.status = 'PENDING'
    where w.status = 'ACTIVE'`,
  )

/** How far this process has read an endpoint's events. The cursor stays behind while an older transaction is under way. */
export interface Position {
  id: string
  /**
   * When everything from the cursor on was last read, by `performance.now()`; undefined while a pass from the cursor has not
   * reached the newest event.
   */
  passedAt: number | undefined
  /** Whether the last claim found fewer events for the endpoint than it could send, and there were more to read. */
  isSparse: boolean
}

export const START: Position = { id: '', passedAt: -Infinity, isSparse: false }

/**
 * A transaction that is under way for longer than this keeps the cursor before it, and each reading from the cursor passes
 * everything that was sent since. A process then reads on from its own position. It begins a pass from the cursor once its last
 * pass ended longer ago than this. A pass takes as many claims as it needs, each of which looks at a bounded number of events.
 */
const FROZEN_SECONDS = 1

/** Where a claim reads events, and what follows from how far it read. */
interface Reading {
  from: string
  /** The new cursor, once all events up to `readTo` have their deliveries; undefined: all visible events have them. */
  cursorAt: (readTo: string | undefined) => string
  /** `passedAt` of the next position. */
  passedAt: (isAtEnd: boolean) => number | undefined
}

/** Reads from the cursor, which moves up to the horizon at most. */
const fromCursor = ({ cursor_id }: LockedRow, horizonId: string): Reading => ({
  from: cursor_id,
  cursorAt: (readTo = horizonId) => (readTo > horizonId ? horizonId : readTo),
  passedAt: (isAtEnd) => (isAtEnd ? performance.now() : undefined),
})

/** Reads on from the position of this process. It ends the pass that an earlier claim began at the cursor. */
const fromPosition = ({ cursor_id }: LockedRow, { id, passedAt }: Position): Reading => ({
  from: id,
  cursorAt: () => cursor_id,
  passedAt: (isAtEnd) => passedAt ?? (isAtEnd ? performance.now() : undefined),
})

function readingOf(row: LockedRow, now: Moment, horizon: Moment, position: Position): Reading {
  const isFrozen = now.micros - horizon.micros > FROZEN_SECONDS * 1e6
  const { id, passedAt = Infinity } = position
  const isPassDue = performance.now() - passedAt > FROZEN_SECONDS * 1000
  return !isFrozen || id < row.cursor_id || isPassDue
    ? fromCursor(row, firstIdAt(horizon.micros))
    : fromPosition(row, position)
}

interface LockedRow extends Omit<Endpoint, keyof EndpointKey> {
  cursor_id: string
  rate_limit: number
  next_in: number
  slow_for: number
  now: string
  leased_until: string
}

/**
 * Claims deliveries of an endpoint, up to `most` and to what its rate allows over all processes: retries that are due, and events
 * that have no delivery yet. The cursor moves up to the horizon at most, which was read before this transaction. Returns this
 * process's position and the claim, undefined when there is nothing to send or another process claims.
 */
export function claimDeliveries(
  db: Database,
  key: EndpointKey,
  { most, horizon, position }: { most: number; horizon: Moment; position: Position },
): Promise<{ claim: Claim | undefined; position: Position }> {
  return transaction(db, async (tx) => {
    const [row] = await inOrder([lockEndpoint(tx, key), tx.query(WITHOUT_FLUSH)])
    if (row === undefined) return { claim: undefined, position }
    const rate = { perSecond: row.rate_limit, nextIn: row.next_in, slowFor: row.slow_for }
    const slots = nextSlots(rate, most)
    if (slots.length === 0) return { claim: undefined, position }
    const now = momentAt(row.now)
    const reading = readingOf(row, now, horizon, position)
    const { from } = reading
    const [due, found] = await inOrder([
      selectDue(tx, key, row.now, slots.length),
      selectNew(tx, key, {
        from,
        limit: slots.length,
        readMax: position.isSparse ? EVENTS_READ_MAX : EVENTS_READ,
      }),
    ])
    const { sent, parked, readTo } = choose(due, found, from, slots.length)
    const [isLeased] = await inOrder([
      lease(tx, key, row, { sent, parked }),
      tx.query(
        `
        update webhooks
        set cursor_id = greatest(cursor_id, $3::uuid),
            next_at = greatest(next_at, $5::timestamptz + make_interval(secs => $4))
        where customer_id = $1 and id = $2`,
        [
          key.customer_id,
          key.id,
          reading.cursorAt(readTo),
          // A claim that sends nothing counts as service, too: `endpointsWithWork` finds the others first then.
          sent.length === 0 ? 0 : slots[sent.length - 1]! + intervalOf(rate),
          row.now,
        ],
      ),
    ])
    return {
      position: {
        id: readTo ?? found.lastRead ?? from,
        passedAt: reading.passedAt(readTo === undefined),
        isSparse: found.isCut && found.candidates.length < slots.length,
      },
      claim: claimOf(
        key,
        row,
        sent.flatMap((one, index) =>
          isLeased.has(one.event_id) ? { ...deliveryOf(one, now), startsIn: slots[index]! } : [],
        ),
      ),
    }
  })
}

const deliveryOf = ({ event_id, attempts_of_round, attempts, since }: Candidate, now: Moment) => ({
  event_id,
  attempts_of_round,
  waitedSeconds: attempts === 0 ? (now.micros - momentAt(since).micros) / 1e6 : undefined,
})

function claimOf(key: EndpointKey, row: LockedRow, deliveries: ClaimedDelivery[]): Claim | undefined {
  const { url, payload, auth, encrypted_secrets, rotates, leased_until } = row
  if (deliveries.length === 0) return undefined
  return { endpoint: { ...key, url, payload, auth, encrypted_secrets, rotates }, leased_until, deliveries }
}

async function lockEndpoint(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
): Promise<LockedRow | undefined> {
  const { rows } = await tx.query<LockedRow>({
    name: 'lock endpoint',
    text: `
      select url, payload, auth, encrypted_secrets, coalesce(previous_secret_until > now, false) as rotates, cursor_id,
             rate_limit, extract(epoch from next_at - now)::float8 as next_in,
             coalesce(extract(epoch from slow_until - now), 0)::float8 as slow_for,
             now, now + make_interval(secs => ${LEASE_SECONDS}) as leased_until
      from webhooks, clock_timestamp() now
      where customer_id = $1 and id = $2 and status = 'ACTIVE'
      for update of webhooks skip locked`,
    values: [customer_id, id],
  })
  return rows[0]
}

/** Leases the deliveries to send, and inserts those that have no row yet. Returns the ids of the leased ones. */
async function lease(
  tx: Transaction,
  { customer_id, id }: EndpointKey,
  { now, leased_until }: LockedRow,
  { sent, parked }: Pick<Chosen, 'sent' | 'parked'>,
): Promise<Set<string>> {
  const fresh = [...sent.filter(({ isNew }) => isNew), ...parked]
  const old = sent.filter(({ isNew }) => !isNew)
  const leasedNow = new Set(sent.map(({ event_id }) => event_id))
  const answers = await inOrder([
    ...(fresh.length === 0
      ? []
      : [
          tx.query<{ event_id: string; leased: boolean }>({
            name: 'insert deliveries',
            // A resend may have inserted one meanwhile: it is sent by the next claim.
            text: `
              insert into webhook_deliveries (customer_id, webhook_id, event_id, object_id, status, created_at, attempts,
                                              attempts_of_round, due_at, leased_until)
              select $1, $2, event_id, object_id, 'PENDING', $3, 0, 0, $3, case when leased then $4::timestamptz end
              from unnest($5::uuid[], $6::uuid[], $7::bool[]) as fresh (event_id, object_id, leased)
              on conflict do nothing
              returning event_id, leased_until is not null as leased`,
            values: [
              customer_id,
              id,
              now,
              leased_until,
              arrayLiteral(fresh.map(({ event_id }) => event_id)),
              arrayLiteral(fresh.map(({ object_id }) => object_id)),
              arrayLiteral(fresh.map(({ event_id }) => String(leasedNow.has(event_id)))),
            ],
          }),
        ]),
    ...(old.length === 0
      ? []
      : [
          tx.query<{ event_id: string; leased: boolean }>({
            name: 'lease deliveries',
            text: `
              update webhook_deliveries d
              set leased_until = $4
              where d.customer_id = $1 and d.webhook_id = $2 and d.event_id = any ($5::uuid[]) and ${IS_DUE('$3')}
              returning d.event_id, true as leased`,
            values: [customer_id, id, now, leased_until, arrayLiteral(old.map(({ event_id }) => event_id))],
          }),
        ]),
  ])
  return new Set(answers.flatMap(({ rows }) => rows.flatMap((row) => (row.leased ? row.event_id : []))))
}

/** Gives leases back whose attempts were not made, so that the next claim takes them at once. */
export async function releaseLeases(
  db: Queryable,
  { customer_id, id }: EndpointKey,
  leased_until: string,
  eventIds: readonly string[],
): Promise<void> {
  await db.query(
    `
    update webhook_deliveries set leased_until = null
    where customer_id = $1 and webhook_id = $2 and event_id = any ($3::uuid[]) and leased_until = $4
      and status = 'PENDING'`,
    [customer_id, id, arrayLiteral(eventIds), leased_until],
  )
}

export async function pauseEndpoint(
  db: Queryable,
  { customer_id, id }: EndpointKey,
  seconds: number,
): Promise<void> {
  await db.query(
    `
    update webhooks set next_at = greatest(next_at, (select clock_timestamp()) + make_interval(secs => $3))
    where customer_id = $1 and id = $2`,
    [customer_id, id, seconds],
  )
}
