import { Type } from 'typebox'
import { EVENT_TYPES, isEventType, type EventType } from '../../contract/event-types.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { idsAt, readClock } from '../../db/ids.ts'
import { operation } from '../operation.ts'
import { exampleObject } from './example-events.ts'
import { lockActiveWebhook } from '../../money/records/webhook.ts'
import {
  deliveryToWire,
  SELECT_DELIVERIES,
  startDeliveries,
  WebhookDelivery,
  type WebhookDeliveryRow,
} from '../../money/records/webhook-delivery.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const testWebhook = operation({
  method: 'POST',
  url: '/v2/webhooks/:id/test',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  repeats: 'HARMLESS',
  summary: 'Test Webhook',
  description:
    'Delivers an example event with `is_test: true` to this webhook only, of any type. The records that it names do not exist. The answer is its delivery, whose attempts show the outcome.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  body: Closed({
    type: Type.String({
      maxLength: 100,
      description: 'Type of the event.',
      examples: ['transfer.crypto_withdrawal.completed'],
    }),
  }),
  example: {
    params: { id: EXAMPLE.webhook_id },
    bodies: { 'A withdrawal is paid': { type: 'transfer.crypto_withdrawal.completed' } },
  },
  reply: WebhookDelivery,
  problems: ['not-found'],
  run({ params: { id }, body: { type }, customerId, origin, db }) {
    if (!isEventType(type))
      throw problem.badRequest(`type must be one of ${Object.keys(EVENT_TYPES).join(', ')}`, 'type')
    return transaction(db, async (tx) => {
      await lockActiveWebhook(tx, customerId, id)
      const delivery = await insertTest(tx, customerId, id, type)
      await recordNow(tx, customerId, audited(origin, 'webhook.test', id))
      return delivery
    })
  },
})

async function insertTest(
  tx: Transaction,
  customerId: string,
  webhookId: string,
  type: EventType,
): Promise<WebhookDelivery> {
  const now = await readClock(tx)
  const newId = idsAt(now)
  const [eventId, objectId] = [newId(), newId()]
  await tx.query(
    `
    insert into events (customer_id, id, created_at, type, object_id, object, is_test)
    values ($1, $2, $3, $4, $5, $6, true)`,
    [
      customerId,
      eventId,
      now.text,
      type,
      objectId,
      exampleObject(type, { newId, customerId, time: now.text }),
    ],
  )
  await tx.query(startDeliveries('select $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::timestamptz'), [
    customerId,
    webhookId,
    eventId,
    objectId,
    now.text,
  ])
  const { rows } = await tx.query<WebhookDeliveryRow>(
    `${SELECT_DELIVERIES} where d.customer_id = $1 and d.webhook_id = $2 and d.id = $3`,
    [customerId, webhookId, eventId],
  )
  return deliveryToWire(rows[0]!)
}
