import { filterBy, listOperation } from '../list-operation.ts'
import { Webhook, WEBHOOK_COLUMNS, webhookToWire, type WebhookRow } from '../../money/records/webhook.ts'

export const listWebhooks = listOperation({
  url: '/v2/webhooks',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'List Webhooks',
  description: "Lists the customer's webhooks, newest first. Secrets are never shown.",
  example: { query: { limit: 10 } },
  list: 'webhooks',
  item: Webhook,
  select: `select ${WEBHOOK_COLUMNS} from webhooks`,
  filters: { statuses: filterBy.values('status', 'Filter by statuses.', Webhook.properties.status) },
  toWire: (row: WebhookRow) => webhookToWire(row),
})
