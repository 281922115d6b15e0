import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { listByCreation, listReply, newestFirst, timeBounds } from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { EventTypePattern, requireKnownTypes, typeMatches } from '../../money/records/event-type-patterns.ts'
import { requireWebhook } from '../../money/records/webhook.ts'
import { deliveryToWire, SELECT_DELIVERIES, WebhookDelivery } from '../../money/records/webhook-delivery.ts'

/**
 * Lists the deliveries of an endpoint by the time of their events (API behaviour, Webhooks). The order is always newest
 * first: a delivery may begin after deliveries of later events, so paging towards newer events would miss some.
 */
export const listWebhookDeliveries = operation({
  method: 'GET',
  url: '/v2/webhooks/:id/deliveries',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'List Webhook Deliveries',
  description:
    'Lists the deliveries of a webhook, newest event first. A delivery exists from its first attempt on.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  query: Closed({
    status: Type.Optional(WebhookDelivery.properties.status),
    type: Type.Optional({
      ...EventTypePattern,
      description: 'Filter by the type of the event, or by its beginning such as transfer.*.',
    }),
    ...timeBounds('created_at'),
    ...newestFirst,
  }),
  example: { params: { id: EXAMPLE.webhook_id }, query: { limit: 10 } },
  reply: listReply(WebhookDelivery),
  problems: ['not-found'],
  async run({ params: { id }, query, customerId, db }) {
    if (query.type !== undefined) requireKnownTypes([query.type], 'type')
    await requireWebhook(db, customerId, id)
    const undelivered = "d.status <> 'DELIVERED' and d.status = ?" // The index of undelivered ones needs the constant.
    return listByCreation(db, customerId, query, {
      list: `webhook-deliveries ${id}`,
      select: SELECT_DELIVERIES,
      alias: 'd',
      where: [
        ['d.webhook_id = ?', id],
        [query.status === 'DELIVERED' ? 'd.status = ?' : undelivered, query.status],
        [typeMatches('e.type', 'array[?::text]'), query.type],
      ],
      toWire: deliveryToWire,
    })
  },
})
