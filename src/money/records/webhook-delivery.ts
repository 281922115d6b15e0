import { Type, type Static } from 'typebox'
import { NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { presentOf } from '../../db/rows.ts'

/** The delivery of an event to an endpoint (API behaviour, Webhooks). It has the id of its event. */
export const WebhookDelivery = NamedObject('WebhookDelivery', {
  id: Uuid('Id of the delivery: that of its event.'),
  webhook_id: Uuid('The webhook.'),
  event_type: Type.Optional(
    Type.String({ description: 'Type of the event.', examples: ['transfer.crypto_withdrawal.completed'] }),
  ),
  object_id: Uuid('The record whose status changed.'),
  status: OneOf(
    ['PENDING', 'DELIVERED', 'FAILED'],
    'FAILED: no attempt succeeded, and none is left. Recover or resend starts again.',
  ),
  attempts: Type.Integer({ minimum: 0, description: 'Attempts made in all.' }),
  next_attempt_at: Type.Optional(Timestamp('When the next attempt is due.')),
  created_at: Timestamp('Time of the event.'),
  ended_at: Type.Optional(Timestamp('When it was DELIVERED or FAILED.')),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

type Absent = 'event_type' | 'next_attempt_at' | 'ended_at'
export type WebhookDeliveryRow = Omit<WebhookDelivery, Absent> & { [K in Absent]: string | null }

/**
 * Reads deliveries; the caller appends `where d.customer_id = ...`. The inner select gives the list its `id`, so that the
 * primary key serves bounds and cursors. Retention may drop an event before its delivery.
 */
export const SELECT_DELIVERIES = `
  select d.id, d.webhook_id, e.type as event_type, d.object_id, d.status, d.attempts, d.due_at as next_attempt_at,
         coalesce(e.created_at, d.created_at) as created_at, d.ended_at
  from (select customer_id, webhook_id, event_id as id, object_id, status, attempts, due_at, created_at, ended_at
        from webhook_deliveries) d
  left join events e on e.customer_id = d.customer_id and e.id = d.id`

export const deliveryToWire = (row: WebhookDeliveryRow): WebhookDelivery => presentOf(row)

/**
 * The statement that makes deliveries due now. `select` gives customer_id, webhook_id, event_id, object_id and the time, in
 * the order of their keys. An existing delivery starts a new round of attempts if `restarts` holds for it, unless a worker
 * is making an attempt. The caller has locked the endpoints' rows, so that the deliverer does not insert the same
 * deliveries.
 */
export const startDeliveries = (select: string, restarts = 'true'): string => `
  insert into webhook_deliveries (customer_id, webhook_id, event_id, object_id, created_at, due_at, status, attempts,
                                  attempts_of_round)
  select customer_id, webhook_id, event_id, object_id, now, now, 'PENDING', 0, 0
  from (${select}) started (customer_id, webhook_id, event_id, object_id, now)
  on conflict (customer_id, webhook_id, event_id) do update
  set status = 'PENDING', attempts_of_round = 0, due_at = excluded.due_at, leased_until = null, ended_at = null
  where (webhook_deliveries.leased_until is null or webhook_deliveries.leased_until < excluded.due_at)
    and (${restarts})`

/** An attempt of a delivery (API behaviour, Webhooks). It holds no secret. */
export const WebhookAttempt = NamedObject('WebhookAttempt', {
  id: Uuid('Id of the attempt.'),
  attempt: Type.Integer({ minimum: 1, description: 'Its number.' }),
  status_code: Type.Optional(Type.Integer({ description: 'Status of the answer. Absent: no answer came.' })),
  error: Type.Optional(Type.String({ description: 'Why the attempt failed.' })),
  duration_ms: Type.Integer({ minimum: 0, description: 'How long it took, in milliseconds.' }),
  response: Type.Optional(Type.String({ description: 'The first bytes of the answer, 1 KiB at most.' })),
  created_at: Timestamp('When it was made.'),
})
export type WebhookAttempt = Static<typeof WebhookAttempt>

export const ATTEMPT_COLUMNS = 'id, attempt, status_code, error, duration_ms, response, created_at'

type AbsentOfAttempt = 'status_code' | 'error' | 'response'
export type WebhookAttemptRow = Omit<WebhookAttempt, AbsentOfAttempt> & {
  [K in AbsentOfAttempt]: Exclude<WebhookAttempt[K], undefined> | null
}

export const attemptToWire = (row: WebhookAttemptRow): WebhookAttempt => presentOf(row)
