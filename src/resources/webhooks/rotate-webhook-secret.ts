import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, GRACE_SECONDS, GraceSeconds, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import { Webhook, WEBHOOK_COLUMNS, webhookToWire, type WebhookRow } from '../../money/records/webhook.ts'
import { newSigningSecret } from '../../money/records/webhook-secrets.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const rotateWebhookSecret = operation({
  method: 'POST',
  url: '/v2/webhooks/:id/rotate-secret',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  repeats: 'a second rotation retires the secret that the first one made',
  summary: 'Rotate Webhook Secret',
  description:
    'Answers a new signing secret, which is not shown again. Until `grace_seconds` have passed, deliveries are signed with the previous secret, too; a secret from before that one no longer signs.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  query: ApprovalQuery,
  body: Closed({ grace_seconds: GraceSeconds('How long the previous secret signs, too. 0: no longer.') }),
  example: {
    params: { id: EXAMPLE.webhook_id },
    bodies: { 'One hour for the change': { grace_seconds: 3600 } },
  },
  reply: Type.Object({
    webhook: Webhook,
    secret: Type.String({ description: 'The new signing secret. It is not shown again.' }),
  }),
  problems: ['not-found', 'approval-required', 'approval-ended'],
  run({ params: { id }, query: { approval_id }, body, customerId, origin, db, webhookSecrets, policies }) {
    const { grace_seconds = GRACE_SECONDS } = body
    const change = {
      subject: 'WEBHOOKS',
      operation: 'POST /v2/webhooks/{id}/rotate-secret',
      target: { type: 'webhook', id },
      values: body,
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    return withApprovedChange(db, policies, asked, async (tx) => {
      const { rows } = await tx.query<{ encrypted_secrets: string }>(
        'select encrypted_secrets from webhooks where customer_id = $1 and id = $2 for update',
        [customerId, id],
      )
      if (rows[0] === undefined) throw problem.notFound('webhook', id)
      const owner = { customer_id: customerId, id }
      const {
        signing: previous,
        previous: _older,
        ...others
      } = await webhookSecrets.open(owner, rows[0].encrypted_secrets)
      const secret = newSigningSecret()
      const kept = grace_seconds > 0 ? { previous } : {}
      const { rows: rotated } = await tx.query<WebhookRow>(
        `
        with changed as (
          update webhooks
          set encrypted_secrets = $3, updated_at = now,
              previous_secret_until = case when $4 > 0 then ends_at end
          from (select now, now + make_interval(secs => $4) as ends_at from clock_timestamp() now) clock
          where customer_id = $1 and id = $2
          returning *
        )
        select ${WEBHOOK_COLUMNS} from changed`,
        [
          customerId,
          id,
          await webhookSecrets.seal(owner, { ...others, ...kept, signing: secret }),
          grace_seconds,
        ],
      )
      const webhook = webhookToWire(rotated[0]!)
      const { previous_secret_until = null } = webhook
      await recordNow(
        tx,
        customerId,
        audited(origin, 'webhook.rotate_secret', id, { after: { previous_secret_until } }),
      )
      return { webhook, secret }
    })
  },
})
