import { Type, type Static } from 'typebox'
import { ACTOR_TYPES, type ActorType } from '../../contract/actor.ts'
import { AUDIT_ACTIONS, subjectOfAction } from '../../contract/audit-actions.ts'
import { ActorName, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import type { Queryable } from '../../db/database.ts'
import { firstIdAt, momentAt, UUID } from '../../db/ids.ts'
import { AUDIT_OUTCOMES } from '../../audit/audit.ts'
import { nameActors, type NamedActors } from './actor-names.ts'

export const ActorTypeField = OneOf(
  ACTOR_TYPES,
  'API_CLIENT: a program of the customer. OPERATOR: a person who signed in. WORKER: a loop of Bursar. COMMAND_LINE: a user of the operating system.',
)
export const OutcomeField = OneOf(
  AUDIT_OUTCOMES,
  'DONE: the change was made. REFUSED: the actor may not make it, or a policy forbids it.',
)

export const AuditLogRecord = NamedObject('AuditLogRecord', {
  id: Uuid('Record id.'),
  at: Timestamp('When the change was made or refused.'),
  actor: Type.Object(
    {
      type: ActorTypeField,
      id: Type.String({
        description: 'Id of the API client or operator, name of the loop, or name of the user.',
      }),
      name: ActorName,
    },
    { description: 'Who made the change.' },
  ),
  action: Type.String({ description: 'What was done: the type of the subject, a dot and a verb.' }),
  subject: Type.Object(
    {
      type: Type.String({ description: 'Type of the record that was changed.' }),
      id: Type.String({ description: 'Its id.' }),
    },
    { description: 'The record that was changed.' },
  ),
  request_id: Type.Optional(
    Uuid('The request, as in `request_id` of problems. Absent where there was none.'),
  ),
  ip: Type.Optional(Type.String({ description: 'The address that the request came from.' })),
  outcome: OutcomeField,
  changes: Type.Optional(
    Type.Object(
      {
        before: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'Values before.' })),
        after: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'Values after.' })),
      },
      {
        description: 'Of configuration only: the values that were changed. Never secrets or personal values.',
      },
    ),
  ),
})
export type AuditLogRecord = Static<typeof AuditLogRecord>

/** The filters of a list. A record must pass each of them. */
export interface AuditFilters {
  actor_type?: string | undefined
  actor_ids?: string[] | undefined
  subject_type?: string | undefined
  subject_ids?: string[] | undefined
  actions?: string[] | undefined
  outcomes?: string[] | undefined
}

/** A part of a list, in its order. `after` is the id of the last record before it. */
export interface AuditPage {
  limit: number
  descending: boolean
  after?: string | undefined
  /** The range of times, in microseconds since 1970: `from` <= t < `to`. */
  from: number
  to: number
}

interface ListedRow {
  id: string
  created_at: string
  actor_type: string
  actor_id: string
  action: string
  subject_type: string
  subject_id: string
  /** Which of the row's subjects it is, from 0. */
  n: number
  request_id: string | null
  ip: string | null
  outcome: string
  changes: AuditLogRecord['changes'] | null
}

/** A part of an index in the order of the list: for each `s`, the rows `r` that meet the condition. */
interface Stream {
  each: string
  condition: string
}

/** Types of subjects of which a row may have many. Their actions, or the moments of their changes, find such rows. */
const MANY_SUBJECTS = ['orchestration', 'sweep', 'transfer']

/**
 * Selects records of a customer's audit log, or of the platform's. A stream holds rows that nearly all match, so the cost
 * depends on the page, and not on the log. Where several filters are given, the narrowest index is read, and the other
 * filters are compared.
 */
export async function selectAuditRecords(
  db: Queryable,
  customerId: string,
  filters: AuditFilters,
  { limit, descending, after, from, to }: AuditPage,
  allOperators = false,
): Promise<AuditLogRecord[]> {
  const uuids = filters.subject_ids?.filter((id) => UUID.test(id)).map((id) => id.toLowerCase())
  const moments = uuids === undefined || uuids.length === 0 ? [] : await momentsOf(db, customerId, uuids)
  const ofBatch = MANY_SUBJECTS.includes(filters.subject_type ?? '')
  const cursorRow = after === undefined ? undefined : `${after.slice(0, -4)}0000`
  const [direction, beyond] = descending ? ['desc', '<'] : ['asc', '>']
  const page = ({ each, condition }: Stream) => `
      select page.*
      from ${each} s
      cross join lateral (
        select r.*
        from audit_log r
        where r.customer_id = $1 and ${condition} and ${FILTERS}
          and r.id >= $2 and r.id < $3
          and ($4::uuid is null or r.id ${beyond}= $4)
        order by r.id ${direction}
        -- The row of the cursor may have no record after it.
        limit $6 + 1
      ) page`
  const { rows } = await db.query<ListedRow>(
    `
    with given as (
      select $14::uuid[] as range_from, $15::uuid[] as range_to, $16::text[] as actions_of_type
    ), found as (
      ${streamsFor(filters, ofBatch).map(page).join('\n      union all')}
    ), needed as (
      -- Of rows with many subjects, only those that the page needs.
      select *
      from (
        select f.*, coalesce(sum(case when $11::text[] is null and id is distinct from $4 then coalesce(cardinality(subject_ids), 1)
                                 when id = $4 then 0 else 1 end)
                             over (order by id ${direction} rows between unbounded preceding and 1 preceding), 0) as before
        from found f
      ) counted
      where before < $6
    )
    select r.id, r.created_at, r.actor_type, r.actor_id, r.action, r.subject_type, item.subject_id, item.n, item.request_id,
           item.ip, r.outcome, r.changes
    from needed r
    cross join lateral (
      select s.subject_id, s.n::int - 1 as n,
             r.request_ids[case cardinality(r.request_ids) when 1 then 1 else s.n end] as request_id,
             r.ips[case cardinality(r.ips) when 1 then 1 else s.n end] as ip
      from unnest(coalesce(r.subject_ids::text[], array[r.subject_id])) with ordinality as s (subject_id, n)
      where $11::text[] is null or s.subject_id = any ($11)
    ) item
    where $4::uuid is null or (r.id, item.n) ${beyond} ($4, $5)
    order by r.id ${direction}, item.n ${direction}
    limit $6`,
    [
      customerId,
      firstIdAt(from),
      firstIdAt(to),
      cursorRow,
      after === undefined ? null : parseInt(after.slice(-4), 16),
      limit,
      filters.actor_type,
      filters.actor_ids,
      filters.actions,
      filters.outcomes,
      filters.subject_ids?.flatMap((id) => (UUID.test(id) ? [id, id.toLowerCase()] : id)),
      filters.subject_type,
      uuids,
      moments.map((micros) => firstIdAt(micros)),
      moments.map((micros) => firstIdAt(micros + 1)),
      AUDIT_ACTIONS.filter((action) => ofBatch && subjectOfAction(action) === filters.subject_type),
    ],
  )
  const actors = rows.map(({ actor_type: type, actor_id: id }) => ({ type, id }))
  const named = await nameActors(db, customerId, actors, allOperators)
  return rows.map((row) => recordToWire(row, named))
}

/** In SQL: the filters on a row `r`. */
const FILTERS = `
          ($7::text is null or r.actor_type = $7) and ($8::text[] is null or r.actor_id = any ($8))
          and ($9::text[] is null or r.action = any ($9)) and ($10::text[] is null or r.outcome = any ($10))
          and ($12::text is null or r.subject_type = $12)
          and ($11::text[] is null or r.subject_id = any ($11) or r.subject_ids && $13::uuid[])`

/** Chooses the index streams for a list. Each is in the list's order, and no row is in two of them. */
function streamsFor(
  { actor_type, actor_ids, actions, outcomes, subject_ids, subject_type }: AuditFilters,
  ofBatch: boolean,
): Stream[] {
  const oneStream = (condition: string): Stream[] => [{ each: '(select)', condition }]
  if (subject_ids !== undefined)
    return [
      {
        each: '(select distinct subject from unnest($11::text[]) as subject)',
        condition: 'r.subject_id = s.subject and r.subject_id is not null',
      },
      {
        each: '(select * from unnest($14::uuid[], $15::uuid[]) as ranges (id_from, id_to))',
        condition: 'r.id >= s.id_from and r.id < s.id_to and r.subject_ids is not null',
      },
    ]
  const eachAction = '(select distinct action from unnest($9::text[]) as action)'
  const eachActor = '(select distinct actor from unnest($8::text[]) as actor)'
  if (actor_ids !== undefined && actions !== undefined)
    return [
      {
        each: `(select * from ${eachActor} actors, ${eachAction} actions)`,
        condition: 'r.actor_id = s.actor and r.action = s.action',
      },
    ]
  if (outcomes !== undefined && !outcomes.includes('DONE')) return oneStream(`r.outcome = 'REFUSED'`)
  if (actions !== undefined) return [{ each: eachAction, condition: 'r.action = s.action' }]
  if (actor_ids !== undefined) return [{ each: eachActor, condition: 'r.actor_id = s.actor' }]
  if (subject_type !== undefined)
    return [
      ...oneStream('r.subject_type = $12 and r.subject_id is not null'),
      ...(ofBatch
        ? [
            {
              each: '(select unnest($16::text[]) as action)',
              condition: 'r.action = s.action and r.subject_id is null',
            },
          ]
        : []),
    ]
  return oneStream(actor_type === undefined ? 'true' : 'r.actor_type = $7')
}

/** Returns the moments of changes of transfers, sweeps and orchestrations. Other records have an index. */
async function momentsOf(db: Queryable, customerId: string, ids: readonly string[]): Promise<number[]> {
  const { rows } = await db.query<{ moment: string }>(
    `
    select created_at as moment from entries where customer_id = $1 and transfer_id = any ($2::uuid[])
    union
    select created_at from orchestrations where customer_id = $1 and id = any ($2::uuid[])
    union
    select updated_at from orchestrations where customer_id = $1 and id = any ($2::uuid[])`,
    [customerId, ids],
  )
  return [...new Set(rows.map(({ moment }) => momentAt(moment).micros))]
}

/** Returns a record as clients see it. Each subject of a row has an id of its own: the row's, and its number. */
function recordToWire(row: ListedRow, named: NamedActors): AuditLogRecord {
  const { actor_type, actor_id, subject_type, subject_id, request_id, ip, changes } = row
  return {
    id: `${row.id.slice(0, -4)}${row.n.toString(16).padStart(4, '0')}`,
    at: row.created_at,
    actor: named({ type: actor_type as ActorType, id: actor_id }),
    action: row.action,
    subject: { type: subject_type, id: subject_id },
    ...(request_id !== null && { request_id }),
    ...(ip !== null && { ip }),
    outcome: row.outcome as AuditLogRecord['outcome'],
    ...(changes !== null && { changes }),
  }
}
