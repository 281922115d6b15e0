import { Type } from 'typebox'
import { Filter } from '../contract/fields.ts'
import { listByCreation, listReply, orderByCreation, pageParameters, timeBounds } from '../http/lists.ts'
import { operation } from '../operation.ts'
import { Webhook, WEBHOOK_COLUMNS, webhookToWire, type WebhookRow } from '../records/webhook.ts'

/** Lists the customer's endpoints, by creation time (API behaviour, Webhooks). Secrets are never shown. */
export const listWebhooks = operation({
  method: 'GET',
  url: '/v2/webhooks',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'List Webhooks',
  description: "Lists the customer's webhooks, newest first. Secrets are never shown.",
  example: { query: { limit: 10 } },
  query: Type.Object(
    {
      statuses: Filter(Webhook.properties.status, 'Filter by statuses.'),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Webhook),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'webhooks',
      select: `select ${WEBHOOK_COLUMNS} from webhooks`,
      where: [['status = any (?)', query.statuses]],
      toWire: (row: WebhookRow) => webhookToWire(row),
    }),
})
