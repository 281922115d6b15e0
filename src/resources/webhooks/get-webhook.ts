import { EXAMPLE } from '../../contract/example-records.ts'
import { readOperation } from '../operation.ts'
import { requireWebhook, Webhook } from '../../money/records/webhook.ts'

export const getWebhook = readOperation({
  url: '/v2/webhooks/:id',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'Get Webhook',
  description: 'Secrets are never shown.',
  id: 'Id of the webhook.',
  example: EXAMPLE.webhook_id,
  reply: Webhook,
  run: ({ params, customerId, db }) => requireWebhook(db, customerId, params.id),
})
