import { isDeepStrictEqual } from 'node:util'
import { Type, type Static } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, violatedConstraint, type Transaction } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import {
  configurationOf,
  Webhook,
  WEBHOOK_COLUMNS,
  WebhookAuthBody,
  WebhookFields,
  type WebhookRow,
  webhookToWire,
} from '../../money/records/webhook.ts'
import type { WebhookSecrets } from '../../money/records/webhook-secrets.ts'
import {
  cursorFromNow,
  requireProfiles,
  requireRoomForWebhook,
  requireValid,
  withoutSecret,
  parsedUrl,
} from './check-webhook.ts'
import { findByName, withSecretDigest } from './create-webhook.ts'
import { audited, changedMembers, recordNow } from '../../audit/audited.ts'
import type { Origin } from '../../contract/actor.ts'
import { takeLock } from '../../db/locks.ts'

const UpdateWebhookBody = Closed(
  {
    name: Type.Optional(WebhookFields.name),
    url: Type.Optional(WebhookFields.url),
    event_types: Type.Optional(WebhookFields.event_types),
    payload: Type.Optional(WebhookFields.payload),
    auth: Type.Optional(WebhookAuthBody),
    profile_ids: Type.Optional(WebhookFields.profile_ids),
    rate_limit: Type.Optional(WebhookFields.rate_limit),
    status: Type.Optional(WebhookFields.status),
  },
  { minProperties: 1 },
)
type UpdateWebhookBody = Static<typeof UpdateWebhookBody>

export const updateWebhook = operation({
  method: 'PUT',
  url: '/v2/webhooks/:id',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  summary: 'Update Webhook',
  description:
    'Replaces the given members; `auth` as a whole, with its secret. A webhook that becomes ACTIVE again gets events from now on and those whose delivery was under way; Recover Webhook sends the others.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  query: ApprovalQuery,
  body: UpdateWebhookBody,
  example: {
    params: { id: EXAMPLE.webhook_id },
    bodies: { 'Half as fast': { rate_limit: 5 }, 'Fewer events': { event_types: ['webhook.disabled'] } },
  },
  reply: Webhook,
  problems: ['not-found', 'already-exists', 'approval-required', 'approval-ended'],
  async run({
    params: { id },
    query: { approval_id },
    body,
    customerId,
    origin,
    db,
    settings,
    webhookSecrets,
    policies,
  }) {
    requireValid(body, settings)
    const work = (tx: Transaction) => update(tx, webhookSecrets, { customerId, id, origin }, body)
    // Only a change of the URL, or of the authentication with its secret, can need approvers.
    const isRetargeted = (body.url ?? body.auth) !== undefined
    const change = {
      subject: 'WEBHOOKS',
      operation: 'PUT /v2/webhooks/{id}',
      target: { type: 'webhook', id },
      values: withSecretDigest(body),
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    try {
      return isRetargeted || approval_id !== undefined
        ? await withApprovedChange(db, policies, asked, work)
        : await transaction(db, work)
    } catch (error) {
      if (violatedConstraint(error) !== 'webhooks_name') throw error
      throw problem.alreadyExists('name', await findByName(db, customerId, body.name!))
    }
  },
})

async function update(
  tx: Transaction,
  secrets: WebhookSecrets,
  { customerId, id, origin }: { customerId: string; id: string; origin: Origin },
  { auth, ...changes }: UpdateWebhookBody,
): Promise<Webhook> {
  // Taken before the endpoint's row is locked: requests that wait here must not block the deliverer.
  await takeLock(tx, 'activeEndpoints', customerId)
  const { rows } = await tx.query<WebhookRow & { encrypted_secrets: string }>(
    `select ${WEBHOOK_COLUMNS}, encrypted_secrets from webhooks where customer_id = $1 and id = $2 for update`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('webhook', id)
  const { encrypted_secrets, ...before } = rows[0]
  await requireProfiles(tx, customerId, changes.profile_ids)
  const after = {
    ...before,
    ...changes,
    ...(changes.url !== undefined && { url: parsedUrl(changes.url) }),
  }
  if (changes.profile_ids?.length === 0) after.profile_ids = null
  if (auth === undefined && isDeepStrictEqual(after, before)) return webhookToWire(before)

  const wakes = before.status === 'DISABLED' && after.status === 'ACTIVE'
  if (wakes) await requireRoomForWebhook(tx, customerId)
  let sealed = encrypted_secrets
  if (auth !== undefined) {
    const owner = { customer_id: customerId, id }
    const { auth: _replaced, ...signing } = await secrets.open(owner, encrypted_secrets)
    const { auth: shown, secret } = withoutSecret(auth)
    sealed = await secrets.seal(owner, { ...signing, ...(secret !== undefined && { auth: secret }) })
    after.auth = shown
  }
  // A new URL is another receiver, to which the failures of the old URL do not apply.
  const starts = wakes || after.url !== before.url
  const { rows: updated } = await tx.query<WebhookRow>(
    `
    with changed as (
      update webhooks w
      set updated_at = (select clock_timestamp()), name = n.name, url = n.url, event_types = n.event_types,
          payload = n.payload, auth = n.auth, profile_ids = n.profile_ids, rate_limit = n.rate_limit, status = n.status,
          encrypted_secrets = n.encrypted_secrets, cursor_id = coalesce($4, w.cursor_id),
          failing_since = case when $5 then null else w.failing_since end,
          slow_until = case when $5 then null else w.slow_until end,
          -- The old URL's Retry-After ends. A second keeps every rate limit.
          next_at = case when $5 then least(w.next_at, (select clock_timestamp() + interval '1 second')) else w.next_at end,
          disabled_reason = case when n.status = 'ACTIVE' then null else w.disabled_reason end
      from json_populate_record(null::webhooks, $3) n
      where w.customer_id = $1 and w.id = $2
      returning w.*
    )
    select ${WEBHOOK_COLUMNS} from changed`,
    [
      customerId,
      id,
      JSON.stringify({ ...after, encrypted_secrets: sealed }),
      wakes ? await cursorFromNow(tx) : null,
      starts,
    ],
  )
  const webhook = webhookToWire(updated[0]!)
  const changed = changedMembers(configurationOf(webhookToWire(before)), configurationOf(webhook))
  await recordNow(tx, customerId, audited(origin, 'webhook.update', id, changed))
  return webhook
}
