import { isDeepStrictEqual } from 'node:util'
import type { Actor, Origin } from '../../contract/actor.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { millisOfId, newId, PLATFORM_ID, readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { thumbprintOf, type ApproverKey } from './approval-statement.ts'

/** Who may approve, and with which key. Only the schema's owner writes approvers (docs/decisions/governance.md). */
export interface Approver {
  id: string
  created_at: string
  name: string
  /** The same person as an operator, and as an API client: with an external issuer, the name that the issuer gives it. */
  operator_id: string | null
  client_id: string | null
  role: string
  key: ApproverKey
  status: 'ACTIVE' | 'REVOKED'
  revoked_at: string | null
}

/** Reads all approvers of the customer, including revoked ones. There are few: each was added by hand. */
export async function selectApprovers(db: Queryable, customerId: string): Promise<Approver[]> {
  const { rows } = await db.query<Approver>(
    `
    select id, created_at, name, operator_id, client_id, role, key, status, revoked_at
    from approvers
    where customer_id = $1
    order by id`,
    [customerId],
  )
  return rows
}

/** Whether an approver of `role` may decide where `required` is required. An ADMIN may decide everywhere. */
export const hasRole = (role: string, required: string): boolean => role === required || role === 'ADMIN'

/** Whether two entries are one person: the same operator, API client, name or key. */
const isSamePerson = (a: Approver, b: Approver): boolean =>
  (a.operator_id !== null && a.operator_id === b.operator_id) ||
  (a.client_id !== null && a.client_id === b.client_id) ||
  nameOf(a.name) === nameOf(b.name) ||
  isDeepStrictEqual([a.key.x, a.key.y], [b.key.x, b.key.y])

const nameOf = (name: string) => name.normalize('NFKC').trim().toLowerCase()

/** Whether an entry is the actor: the same operator or API client, or the name of an operating system's user. */
const isActor = ({ name, operator_id, client_id }: Approver, { type, id }: Actor): boolean =>
  (type === 'OPERATOR' && operator_id === id) ||
  (type === 'API_CLIENT' && client_id === id) ||
  (type === 'COMMAND_LINE' && nameOf(name) === nameOf(id))

/**
 * Groups entries by person. An entry that shares its operator with a second one and its name with a third makes all three
 * one person. Revoked entries count, too: a person who gets a new key is still the same person.
 */
export function personsOf(approvers: readonly Approver[]): Map<string, number> {
  const personOf = new Map<string, number>()
  let persons = 0
  const visit = (approver: Approver, person: number) => {
    if (personOf.has(approver.id)) return
    personOf.set(approver.id, person)
    for (const other of approvers) if (isSamePerson(approver, other)) visit(other, person)
  }
  for (const approver of approvers) if (!personOf.has(approver.id)) visit(approver, persons++)
  return personOf
}

export function personsWhoAre(
  approvers: readonly Approver[],
  personOf: ReadonlyMap<string, number>,
  actors: readonly Actor[],
): Set<number> {
  const are = approvers.filter((approver) => actors.some((actor) => isActor(approver, actor)))
  return new Set(are.map(({ id }) => personOf.get(id)!))
}

/** With these, an actor gets the credential of another. */
const HANDED_OUT: AuditAction[] = [
  'api_client.create',
  'api_client.rotate',
  'operator.create',
  'operator.link',
]
/** Most actors behind an order. */
const BEHIND_MAX = 1_000
/** How long tokens outlive the end of their secret, at most. */
const DAY_MS = 86_400_000

const tooMany = ({ id }: Actor) => new Error(`more than ${BEHIND_MAX} actors are behind ${id}`)

interface HandedOut extends Actor {
  /** Whose credential it was. */
  to: string
  /** When the last secret from this actor ended; null while it is in force. */
  ended_ms: number | null
}

/**
 * For each order, the actors who may have given it in the initiator's name: the initiator; who made its credential, if that
 * was in force when the order, whose id this is, was given, or a day before, in which its tokens end; and who may have acted
 * as those. Reads all of them together, in two statements for each step back. Throws an Error for too many.
 */
export async function actorsBehind(
  db: Queryable,
  customerId: string,
  orders: readonly { id: string; initiator: Actor }[],
): Promise<Actor[][]> {
  const handedOut = new Map<string, HandedOut[]>()
  const since = Math.min(...orders.map(({ id }) => millisOfId(id))) - DAY_MS
  let next: readonly Actor[] = orders.map(({ initiator }) => initiator)
  while (next.length > 0) {
    const unread = next.filter(
      ({ type, id }) => ['API_CLIENT', 'OPERATOR'].includes(type) && !handedOut.has(id),
    )
    const found: HandedOut[] = []
    for (const owner of unread.length === 0 ? [] : [customerId, PLATFORM_ID]) {
      const { rows } = await db.query<HandedOut>(
        `
        select subject_id as to, actor_type as type, actor_id as id,
               case when bool_and(ended_at is not null)
                    then (extract(epoch from max(ended_at::timestamptz)) * 1000)::float8 end as ended_ms
        from (
          select subject_id, actor_type, actor_id,
                 lag(changes -> 'after' ->> 'previous_secret_expires_at')
                   over (partition by subject_id order by id desc) as ended_at
          from audit_log
          where customer_id = $1 and subject_id = any ($2) and action = any ($3)
        ) as handed_out
        where ended_at is null or ended_at::timestamptz > to_timestamp($4::float8 / 1000)
        group by 1, 2, 3`,
        [owner, unread.map(({ id }) => id), HANDED_OUT, since],
      )
      found.push(...rows)
    }
    for (const { id } of unread)
      handedOut.set(
        id,
        found.filter(({ to }) => to === id),
      )
    if (handedOut.size > BEHIND_MAX * orders.length) throw tooMany(orders[0]!.initiator)
    next = found
  }
  return orders.map(({ id: orderId, initiator }) => {
    const behind = [initiator]
    for (const actor of behind)
      for (const { type, id, ended_ms } of handedOut.get(actor.id) ?? [])
        if (
          (ended_ms === null || ended_ms > millisOfId(orderId) - DAY_MS) &&
          !behind.some((known) => known.type === type && known.id === id)
        )
          behind.push({ type, id })
    if (behind.length > BEHIND_MAX) throw tooMany(initiator)
    return behind
  })
}

// ---------------------------------------------------------------------------------------------- by the schema's owner

export interface NewApprover {
  name: string
  role: string
  key: ApproverKey
  operator_id?: string | undefined
  client_id?: string | undefined
}

/**
 * Adds an approver, in a transaction of the role that owns the schema: no other role may. Throws an Error for a key that an
 * ACTIVE approver of the customer has.
 */
export async function addApprover(
  owner: Transaction,
  customerId: string,
  { name, role, key, operator_id, client_id }: NewApprover,
  origin: Origin,
): Promise<Approver> {
  const now = await readClock(owner)
  const { rows } = await owner.query<Approver>(
    `
    insert into approvers (customer_id, id, created_at, name, operator_id, client_id, role, key, thumbprint, status)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ACTIVE')
    on conflict do nothing
    returning id, created_at, name, operator_id, client_id, role, key, status, revoked_at`,
    [
      ...[customerId, newId(now), now.text, name, operator_id ?? null, client_id ?? null, role],
      ...[JSON.stringify(key), thumbprintOf(key)],
    ],
  )
  const [added] = rows
  if (added === undefined) throw new Error('an approver of the customer has this key already')
  recordChanges(owner, customerId, now, [
    { origin, action: 'approver.add', subject: { type: 'approver', id: added.id } },
  ])
  return added
}

/**
 * Revokes an approver, in a transaction of the role that owns the schema. The approver's signatures no longer count for
 * payments that are not signed yet and changes that are not made yet. A repeat changes nothing. Throws an Error when there
 * is no such approver.
 */
export async function revokeApprover(
  owner: Transaction,
  customerId: string,
  id: string,
  origin: Origin,
): Promise<{ revoked_at: string; changed: boolean }> {
  const now = await readClock(owner)
  const { rows } = await owner.query<{ revoked_at: string }>(
    `
    update approvers
    set status = 'REVOKED', revoked_at = coalesce(revoked_at, $3)
    where customer_id = $1 and id = $2
    returning revoked_at`,
    [customerId, id, now.text],
  )
  if (rows[0] === undefined) throw new Error(`customer ${customerId} has no approver ${id}`)
  const changed = rows[0].revoked_at === now.text
  if (changed)
    recordChanges(owner, customerId, now, [
      { origin, action: 'approver.revoke', subject: { type: 'approver', id } },
    ])
  return { revoked_at: rows[0].revoked_at, changed }
}
