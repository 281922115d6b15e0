import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { newestFirst } from '../../http/lists.ts'
import { requireWebhook } from '../../money/records/webhook.ts'
import { ATTEMPT_COLUMNS, attemptToWire, WebhookAttempt } from '../../money/records/webhook-delivery.ts'
import { listOperation } from '../list-operation.ts'

export const listDeliveryAttempts = listOperation({
  url: '/v2/webhooks/:id/deliveries/:delivery_id/attempts',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'List Delivery Attempts',
  description:
    'Lists the attempts to deliver an event to a webhook, newest first: none while the event waits for its first attempt.',
  params: Type.Object({
    id: Uuid('Id of the webhook.'),
    delivery_id: Uuid('Id of the delivery: that of its event.'),
  }),
  example: { params: { id: EXAMPLE.webhook_id, delivery_id: EXAMPLE.event_id }, query: { limit: 10 } },
  list: 'webhook-attempts',
  item: WebhookAttempt,
  bounded: false,
  page: newestFirst,
  problems: ['not-found'],
  async check({ params: { id, delivery_id }, customerId, db }) {
    await requireWebhook(db, customerId, id)
    const { rowCount } = await db.query(
      `
      select 1 from events where customer_id = $1 and id = $3
      union all
      select 1 from webhook_deliveries where customer_id = $1 and webhook_id = $2 and event_id = $3
      limit 1`,
      [customerId, id, delivery_id],
    )
    if (rowCount === 0) throw problem.notFound('delivery', delivery_id)
  },
  select: `select ${ATTEMPT_COLUMNS} from webhook_attempts`,
  where: ({ params }) => [
    ['webhook_id = ?', params.id],
    ['event_id = ?', params.delivery_id],
  ],
  toWire: attemptToWire,
})
