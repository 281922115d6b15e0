import { strict as assert } from 'node:assert'
import { Type, type Static, type TObject } from 'typebox'
import { EVENT_TYPES, isEventType, type EventObjectType } from '../../contract/event-types.ts'
import { NamedObject, Network, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import type { Queryable } from '../../db/database.ts'
import { firstIdAt, momentAt } from '../../db/ids.ts'
import { TransferStatus, TransferType } from '../ledger/transfer.ts'
import { Approval } from '../../contract/approval.ts'
import { DestinationAddress } from './destination-address.ts'
import { FiatAccount } from './fiat-account.ts'
import { STATUSES } from './holders.ts'
import { OrchestrationStatus, REF_ID_SHOWN } from './orchestration.ts'
import { eventMatches } from './webhook.ts'

const Status = (description: string) => OneOf(STATUSES, description)
const RefIdOfRecord = Type.String({ description: 'The `ref_id` of the record.' })

const summaryStatusChange = (record: 'identity' | 'account') =>
  Type.Object({
    id: Uuid('Id of the change: that of the event.'),
    [`${record}_id`]: Uuid(`The ${record}.`),
    old_summary_status: Status('summary_status before the change.'),
    new_summary_status: Status('summary_status after the change.'),
  })

/** The name of the schema of an event's object: that of `transfer_status_change` is TransferStatusChange. */
export const schemaName = (objectType: string): string =>
  objectType.replaceAll(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())

/** The object of each type of event (API behaviour, Events). Members that a record does not have are absent. */
const OBJECTS = {
  transfer_status_change: Type.Object({
    id: Uuid('The transfer.'),
    type: TransferType,
    status: TransferStatus,
    profile_id: Uuid('Profile whose balance the transfer changes.'),
    ref_id: Type.Optional(RefIdOfRecord),
    crypto_network: Type.Optional(Network),
    crypto_tx_hash: Type.Optional(
      Type.String({ description: 'On-chain transaction hash. Absent while a withdrawal is PENDING.' }),
    ),
    crypto_tx_index: Type.Optional(Type.String({ description: 'Output index or output address.' })),
    memo: Type.Optional(Type.String({ description: 'Memo of the transfer.' })),
  }),
  orchestration_status_change: Type.Object({
    id: Uuid('The orchestration.'),
    ref_id: Type.Optional(RefIdOfRecord),
    status: OrchestrationStatus,
    orchestration_rule_id: Type.Optional(Uuid('Rule that initiated it.')),
  }),
  identity_summary_status_change: summaryStatusChange('identity'),
  account_summary_status_change: summaryStatusChange('account'),
  statement_status_change: Type.Object({
    id: Uuid('The statement.'),
    ref_id: RefIdOfRecord,
    customer_id: Uuid('Customer.'),
    status: OneOf(['STATEMENT_STATUS_GENERATED', 'STATEMENT_STATUS_PAID'], 'Status.'),
    period_start: Timestamp('Start of the period covered.'),
    period_end: Timestamp('End of the period covered: its last microsecond.'),
  }),
  fiat_account_status_change: Type.Object({
    id: Uuid('The fiat account.'),
    status: FiatAccount.properties.status,
  }),
  crypto_destination_address_status_change: Type.Object({
    id: Uuid('The address of the address book.'),
    crypto_network: Network,
    address: Type.String({ description: 'The address, as it was sent.' }),
    status: DestinationAddress.properties.status,
  }),
  webhook_status_change: Type.Object({
    id: Uuid('The webhook.'),
    name: Type.String({ description: 'Its name.' }),
    failing_since: Timestamp('The first failure after the last success.'),
  }),
  approval_status_change: Type.Object({
    id: Uuid('The approval.'),
    subject: Approval.properties.subject,
    status: Approval.properties.status,
    approvals: Approval.properties.approvals,
    required: Approval.properties.required,
  }),
} satisfies Record<EventObjectType, TObject>

const typesOf = (objectType: EventObjectType) =>
  Object.entries(EVENT_TYPES)
    .filter(([, its]) => its === objectType)
    .map(([type]) => type)

/** Each kind of event has a named schema: code generators give unnamed schemas inside a union colliding names. */
const eventWith = <T extends EventObjectType, O extends TObject>(objectType: T, object: O) =>
  NamedObject(`${schemaName(objectType)}Event`, {
    id: Uuid('Event id.'),
    type: OneOf(typesOf(objectType), 'What happened.'),
    object_type: OneOf([objectType], 'Type of the object.'),
    object: { ...object, $id: schemaName(objectType) },
    created_at: Timestamp('When the status changed.'),
    undelivered_webhooks: Type.Integer({
      minimum: 0,
      description: 'Number of webhooks that get the event and to which no delivery has succeeded yet.',
    }),
  })

/** The change of a record's status (API behaviour, Events). The `object_type` says which object it has. */
export const Event = Type.Union(
  [
    eventWith('transfer_status_change', OBJECTS.transfer_status_change),
    eventWith('orchestration_status_change', OBJECTS.orchestration_status_change),
    eventWith('identity_summary_status_change', OBJECTS.identity_summary_status_change),
    eventWith('account_summary_status_change', OBJECTS.account_summary_status_change),
    eventWith('statement_status_change', OBJECTS.statement_status_change),
    eventWith('fiat_account_status_change', OBJECTS.fiat_account_status_change),
    eventWith('crypto_destination_address_status_change', OBJECTS.crypto_destination_address_status_change),
    eventWith('webhook_status_change', OBJECTS.webhook_status_change),
    eventWith('approval_status_change', OBJECTS.approval_status_change),
  ],
  { $id: 'Event' },
)
export type Event = Static<typeof Event>

export interface EventRow {
  id: string
  type: string
  object_id: string
  /** The members that are stored with the event, or read from its transfer or orchestration. */
  object: Record<string, unknown> | null
  created_at: string
  is_test: boolean
  undelivered_webhooks: number
}

/**
 * In SQL: the columns of an event `e` with its object. The objects of transfers and orchestrations are read from their
 * records, by key, for the events of the page only: a scalar subquery cannot become a join that reads the whole table.
 */
export const EVENT_COLUMNS = `
  e.id, e.type, e.object_id, e.created_at, e.is_test,
         case
           when e.object is not null then e.object
           when e.type like 'transfer.%' then (
             select jsonb_build_object('type', t.type, 'profile_id', t.profile_id, 'ref_id', t.ref_id,
                                       'crypto_network', t.crypto_network, 'crypto_tx_hash', t.crypto_tx_hash,
                                       'crypto_tx_index', t.crypto_tx_index, 'memo', t.memo)
             from transfers t
             where t.customer_id = $1 and t.id = e.object_id
           )
           else (
             select jsonb_build_object('ref_id', ${REF_ID_SHOWN}, 'orchestration_rule_id', o.orchestration_rule_id)
             from orchestrations o
             where o.customer_id = $1 and o.id = e.object_id
           )
         end as object,
         (
           select count(*)::int
           from webhook_deliveries d
           where d.customer_id = $1 and d.event_id = e.id and d.status <> 'DELIVERED'
             -- The deliveries of a deleted webhook stay until they are dropped by age.
             and exists (select 1 from webhooks w where w.customer_id = $1 and w.id = d.webhook_id)
         ) + (
           -- Endpoints that get the event, and whose first attempt has not begun.
           select count(*)::int
           from webhooks w
           where w.customer_id = $1 and w.status = 'ACTIVE' and w.cursor_id < e.id
             and not exists (select 1 from webhook_deliveries d
                             where d.customer_id = $1 and d.webhook_id = w.id and d.event_id = e.id)
             and ${eventMatches('e', 'w')}
         ) as undelivered_webhooks`

/** Returns the event as clients see it. Its object has exactly the members of its type, in their order. */
export function eventToWire({
  id,
  type,
  object_id,
  object,
  created_at,
  undelivered_webhooks,
}: EventRow): Event {
  assert(isEventType(type), `event ${id} has the type ${type}, which this version does not know`)
  const object_type = EVENT_TYPES[type]
  const known: Record<string, unknown> = { ...object, id: object_id }
  if (object_type === 'transfer_status_change' || object_type === 'orchestration_status_change')
    known.status = type.slice(type.lastIndexOf('.') + 1).toUpperCase()
  // The hash is read from the transfer, and is that of the transaction that ended it. A withdrawal has none at its start.
  if (type === 'transfer.crypto_withdrawal.pending') known.crypto_tx_hash = known.crypto_tx_index = null
  if (object_type === 'identity_summary_status_change' || object_type === 'account_summary_status_change')
    known.id = id
  const members = Object.keys(OBJECTS[object_type].properties)
    .map((name) => [name, known[name] ?? null])
    .filter(([, value]) => value !== null)
  return {
    id,
    type,
    object_type,
    object: Object.fromEntries(members) as object,
    created_at,
    undelivered_webhooks,
  } as Event
}

/** A span of ids: `from` <= id < `to`. */
export interface IdRange {
  from: string
  to: string
}

/**
 * Returns where the events of a transfer or an orchestration are: an event's id begins with the time of its change,
 * which is when the record was created or last updated. Empty for other records, whose events have an index.
 */
export async function eventsOfRecord(db: Queryable, customerId: string, id: string): Promise<IdRange[]> {
  const { rows } = await db.query<{ created_at: string; updated_at: string }>(
    `
    select created_at, updated_at from transfers where customer_id = $1 and id = $2
    union all
    select created_at, updated_at from orchestrations where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  const moments = rows.flatMap((row) => [momentAt(row.created_at).micros, momentAt(row.updated_at).micros])
  return [...new Set(moments)].map((micros) => ({ from: firstIdAt(micros), to: firstIdAt(micros + 1) }))
}

/** An event as it is read, with the facts that only a delivery tells. */
export interface ReadEvent {
  event: Event
  /** The record whose status changed. */
  object_id: string
  is_test: boolean
}

/**
 * Reads the customer's events with these ids, in the order of their ids. Events of types that this version does not know
 * are left out: while versions are mixed, a process of the newer version delivers them.
 */
export async function readEvents(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
): Promise<ReadEvent[]> {
  const { rows } = await db.query<EventRow>({
    name: 'read events',
    text: `select ${EVENT_COLUMNS} from events e where e.customer_id = $1 and e.id = any ($2::uuid[]) order by e.id`,
    values: [customerId, ids],
  })
  return rows
    .filter(({ type }) => isEventType(type))
    .map((row) => ({ event: eventToWire(row), object_id: row.object_id, is_test: row.is_test }))
}
