import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { newestFirst } from '../../http/lists.ts'
import { EventTypePattern, requireKnownTypes, typeMatches } from '../../money/records/event-type-patterns.ts'
import { requireWebhook } from '../../money/records/webhook.ts'
import { deliveryToWire, SELECT_DELIVERIES, WebhookDelivery } from '../../money/records/webhook-delivery.ts'
import { listOperation } from '../list-operation.ts'

/**
 * Lists the deliveries of an endpoint by the time of their events (API behaviour, Webhooks). The order is always newest
 * first: a delivery may begin after deliveries of later events, so paging towards newer events would miss some.
 */
export const listWebhookDeliveries = listOperation({
  url: '/v2/webhooks/:id/deliveries',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'List Webhook Deliveries',
  description:
    'Lists the deliveries of a webhook, newest event first. A delivery exists from its first attempt on.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  example: { params: { id: EXAMPLE.webhook_id }, query: { limit: 10 } },
  list: 'webhook-deliveries',
  item: WebhookDelivery,
  parameters: {
    status: Type.Optional(WebhookDelivery.properties.status),
    type: Type.Optional({
      ...EventTypePattern,
      description: 'Filter by the type of the event, or by its beginning such as transfer.*.',
    }),
  },
  page: newestFirst,
  problems: ['not-found'],
  check({ params, query, customerId, db }) {
    if (query.type !== undefined) requireKnownTypes([query.type], 'type')
    return requireWebhook(db, customerId, params.id)
  },
  select: SELECT_DELIVERIES,
  alias: 'd',
  where: ({ params, query: { status, type } }) => [
    ['d.webhook_id = ?', params.id],
    // The index of undelivered ones needs the constant.
    [status === 'DELIVERED' ? 'd.status = ?' : "d.status <> 'DELIVERED' and d.status = ?", status],
    [typeMatches('e.type', 'array[?::text]'), type],
  ],
  toWire: deliveryToWire,
})
