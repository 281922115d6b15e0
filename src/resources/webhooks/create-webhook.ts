import { Type, type Static } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { type Queryable, type Transaction } from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { operation } from '../operation.ts'
import {
  ApprovalQuery,
  secretDigest,
  withApprovedChange,
} from '../../governance/approvals/approved-change.ts'
import { insertOnce } from '../../money/records/insert-once.ts'
import {
  configurationOf,
  RATE_LIMIT_DEFAULT,
  Webhook,
  NEW_WEBHOOK_COLUMNS,
  WEBHOOK_COLUMNS,
  WebhookAuthBody,
  WebhookFields,
  type WebhookRow,
  webhookToWire,
} from '../../money/records/webhook.ts'
import { newSigningSecret, type WebhookSecrets } from '../../money/records/webhook-secrets.ts'
import {
  cursorFromNow,
  parsedUrl,
  requireProfiles,
  requireRoomForWebhook,
  requireValid,
  withoutSecret,
} from './check-webhook.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { takeLock } from '../../db/locks.ts'
import { Closed } from '../../contract/fields.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

const CreateWebhookBody = Closed({
  name: WebhookFields.name,
  url: WebhookFields.url,
  event_types: WebhookFields.event_types,
  payload: Type.Optional({ ...WebhookFields.payload, default: 'THIN' }),
  auth: Type.Optional(WebhookAuthBody),
  profile_ids: Type.Optional(WebhookFields.profile_ids),
  rate_limit: Type.Optional({ ...WebhookFields.rate_limit, default: RATE_LIMIT_DEFAULT }),
  status: Type.Optional({ ...WebhookFields.status, default: 'ACTIVE' }),
})

export const createWebhook = operation({
  method: 'POST',
  url: '/v2/webhooks',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  repeats: 'HARMLESS',
  summary: 'Create Webhook',
  description:
    'Events from now on are delivered to the URL. The answer holds the secret that verifies deliveries (Standard Webhooks); it is not shown again. A customer has at most 10 ACTIVE webhooks.',
  query: ApprovalQuery,
  body: CreateWebhookBody,
  example: {
    bodies: {
      'Every transfer': {
        name: 'Payment updates',
        url: 'https://hooks.example.com/bursar',
        event_types: ['transfer.*'],
      },
      'With an API key': {
        name: 'Warehouse',
        url: 'https://warehouse.example.com/events',
        event_types: ['*'],
        payload: 'FULL',
        auth: { type: 'API_KEY', header: 'x-api-key', key: 'the-key-of-the-warehouse' },
        rate_limit: 50,
      },
      'Of one profile, with OAuth 2': {
        name: 'Payouts',
        url: 'https://payouts.example.com/hooks',
        event_types: ['transfer.crypto_withdrawal.completed', 'transfer.crypto_withdrawal.failed'],
        auth: {
          type: 'OAUTH2_CLIENT_CREDENTIALS',
          token_url: 'https://login.example.com/oauth2/token',
          client_id: 'bursar',
          client_secret: 'the-secret-of-the-client',
          scope: 'hooks:write',
        },
        profile_ids: [EXAMPLE.profile_id],
      },
    },
  },
  reply: Type.Object({
    webhook: Webhook,
    secret: Type.String({ description: 'The signing secret. It is not shown again.' }),
  }),
  problems: ['not-found', 'already-exists', 'approval-required', 'approval-ended'],
  async run({ query: { approval_id }, body, customerId, origin, db, settings, webhookSecrets, policies }) {
    requireValid(body, settings)
    const change = {
      subject: 'WEBHOOKS',
      operation: 'POST /v2/webhooks',
      target: { type: 'webhook', id: body.name },
      values: withSecretDigest(body),
    } as const
    const asked = { ...change, customer_id: customerId, origin, approval_id }
    return insertOnce({
      field: 'name',
      constraint: 'webhooks_name',
      find: () => findByName(db, customerId, body.name),
      insert: () =>
        withApprovedChange(db, policies, asked, async (tx) => {
          await takeLock(tx, 'activeEndpoints', customerId)
          await requireRoom(tx, customerId, 'webhooks')
          await requireProfiles(tx, customerId, body.profile_ids)
          if (body.status !== 'DISABLED') await requireRoomForWebhook(tx, customerId)
          const made = await insertWebhook(tx, webhookSecrets, customerId, body)
          const after = configurationOf(made.webhook)
          await recordNow(tx, customerId, audited(origin, 'webhook.create', made.webhook.id, { after }))
          return made
        }),
    })
  },
})

/** The body of a webhook as an approval shows it: with the SHA-256 of its secret. */
export function withSecretDigest(body: { auth?: Static<typeof WebhookAuthBody> }): object {
  if (body.auth === undefined) return body
  const { auth, secret } = withoutSecret(body.auth)
  return { ...body, auth, ...(secret !== undefined && { auth_secret: secretDigest(secret) }) }
}

export async function findByName(
  db: Queryable,
  customerId: string,
  name: string,
): Promise<Webhook | undefined> {
  const { rows } = await db.query<WebhookRow>(
    `select ${WEBHOOK_COLUMNS} from webhooks where customer_id = $1 and name = $2`,
    [customerId, name],
  )
  return rows[0] && webhookToWire(rows[0])
}

/** Inserts an endpoint with a new signing secret. A name that is taken violates `webhooks_name`. */
export async function insertWebhook(
  tx: Transaction,
  secrets: WebhookSecrets,
  customerId: string,
  body: Static<typeof CreateWebhookBody>,
): Promise<{ webhook: Webhook; secret: string }> {
  const cursor = await cursorFromNow(tx)
  const now = await readClock(tx)
  const id = newId(now)
  const signing = newSigningSecret()
  const { auth, secret } = withoutSecret(body.auth ?? { type: 'NONE' })
  const sealed = await secrets.seal(
    { customer_id: customerId, id },
    { signing, ...(secret !== undefined && { auth: secret }) },
  )
  const { rows } = await tx.query<WebhookRow>(
    `
    insert into webhooks (customer_id, id, created_at, updated_at, name, url, event_types, payload, auth, profile_ids,
                          rate_limit, status, encrypted_secrets, cursor_id, next_at)
    values ($1, $2, $3, $3, $4, $5, $6, $7, $8, nullif($9::uuid[], '{}'), $10, $11, $12, $13, $3)
    returning ${NEW_WEBHOOK_COLUMNS}`,
    [
      customerId,
      id,
      now.text,
      body.name,
      parsedUrl(body.url),
      body.event_types,
      body.payload ?? 'THIN',
      auth,
      body.profile_ids,
      body.rate_limit ?? RATE_LIMIT_DEFAULT,
      body.status ?? 'ACTIVE',
      sealed,
      cursor,
    ],
  )
  return { webhook: webhookToWire(rows[0]!), secret: signing }
}
