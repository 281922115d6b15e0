import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { operation } from '../operation.ts'
import { eventMatches, lockActiveWebhook } from '../../money/records/webhook.ts'
import {
  deliveryToWire,
  SELECT_DELIVERIES,
  startDeliveries,
  WebhookDelivery,
  type WebhookDeliveryRow,
} from '../../money/records/webhook-delivery.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const resendEvent = operation({
  method: 'POST',
  url: '/v2/events/:id/resend',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  repeats: 'HARMLESS',
  summary: 'Resend Event',
  description:
    'Delivers the event again, also where it was delivered: to the given webhook, whatever its event_types, or to every ACTIVE one that gets it or that got it before. An attempt under way counts as the first of the new round.',
  params: Type.Object({ id: Uuid('Id of the event.') }),
  body: Closed({ webhook_id: Type.Optional(Uuid('The only webhook that gets it.')) }),
  example: {
    params: { id: EXAMPLE.event_id },
    bodies: { 'To one webhook': { webhook_id: EXAMPLE.webhook_id } },
  },
  reply: Type.Object({ deliveries: Type.Array(WebhookDelivery) }),
  problems: ['not-found'],
  run: ({ params: { id }, body: { webhook_id }, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      const { rowCount } = await tx.query('select 1 from events where customer_id = $1 and id = $2', [
        customerId,
        id,
      ])
      if (rowCount === 0) throw problem.notFound('event', id)
      if (webhook_id !== undefined) await lockActiveWebhook(tx, customerId, webhook_id)
      const webhookIds = webhook_id === undefined ? await lockReceivers(tx, customerId, id) : [webhook_id]
      const deliveries = await sendAgain(tx, customerId, id, webhookIds)
      await recordNow(tx, customerId, audited(origin, 'event.resend', id))
      return { deliveries }
    }),
})

/** Locks the ACTIVE endpoints that get the event, or got it before, and returns their ids. */
async function lockReceivers(tx: Transaction, customerId: string, eventId: string): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `
    select w.id
    from webhooks w, events e
    where w.customer_id = $1 and w.status = 'ACTIVE' and e.customer_id = $1 and e.id = $2
      and ((${eventMatches('e', 'w')})
           or exists (select 1 from webhook_deliveries d
                      where d.customer_id = $1 and d.webhook_id = w.id and d.event_id = $2))
    order by w.id
    for update of w`,
    [customerId, eventId],
  )
  return rows.map((row) => row.id)
}

/** Makes the event's deliveries to these endpoints due now, and returns them. */
async function sendAgain(
  tx: Transaction,
  customerId: string,
  eventId: string,
  webhookIds: string[],
): Promise<WebhookDelivery[]> {
  const now = await readClock(tx)
  await tx.query(
    startDeliveries(`
      select e.customer_id, webhook_id, e.id, e.object_id, $4::timestamptz
      from events e, unnest($3::uuid[]) webhook_id
      where e.customer_id = $1 and e.id = $2
      order by webhook_id`),
    [customerId, eventId, webhookIds, now.text],
  )
  const { rows } = await tx.query<WebhookDeliveryRow>(
    `${SELECT_DELIVERIES} where d.customer_id = $1 and d.webhook_id = any ($2::uuid[]) and d.id = $3 order by d.webhook_id`,
    [customerId, webhookIds, eventId],
  )
  return rows.map(deliveryToWire)
}
