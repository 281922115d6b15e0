import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import {
  configurationOf,
  Webhook,
  WEBHOOK_COLUMNS,
  type WebhookRow,
  webhookToWire,
} from '../../money/records/webhook.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { transaction } from '../../db/database.ts'

/**
 * Deletes an endpoint with its secrets (API behaviour, Webhooks). Its deliveries cannot be read any more. Retention drops
 * them with their partitions, because deleting them here could take minutes.
 */
export const deleteWebhook = operation({
  method: 'DELETE',
  url: '/v2/webhooks/:id',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  summary: 'Delete Webhook',
  description:
    'Nothing more is delivered, except attempts under way. Its secrets are deleted, its deliveries cannot be read any more, and its name is free. A repeat is answered 404.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  example: { params: { id: EXAMPLE.unused_webhook_id } },
  reply: Webhook,
  problems: ['not-found'],
  run: ({ params, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      const { rows } = await tx.query<WebhookRow>(
        `select ${WEBHOOK_COLUMNS} from webhooks where customer_id = $1 and id = $2 for update`,
        [customerId, params.id],
      )
      if (rows[0] === undefined) throw problem.notFound('webhook', params.id)
      await tx.query('delete from webhooks where customer_id = $1 and id = $2', [customerId, params.id])
      const deleted = webhookToWire(rows[0])
      const before = configurationOf(deleted)
      await recordNow(tx, customerId, audited(origin, 'webhook.delete', params.id, { before }))
      return deleted
    }),
})
