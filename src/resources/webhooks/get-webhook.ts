import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { requireWebhook, Webhook } from '../../money/records/webhook.ts'

/** Reads one of the customer's endpoints (API behaviour, Webhooks). */
export const getWebhook = operation({
  method: 'GET',
  url: '/v2/webhooks/:id',
  scope: 'webhooks:read_webhook',
  tag: 'Events and Webhooks',
  summary: 'Get Webhook',
  description: 'Secrets are never shown.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  example: { params: { id: EXAMPLE.webhook_id } },
  reply: Webhook,
  problems: ['not-found'],
  run: ({ params, customerId, db }) => requireWebhook(db, customerId, params.id),
})
