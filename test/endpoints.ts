import { randomUUID } from 'node:crypto'
import { transaction, type Database, type Transaction } from '../src/db/database.ts'
import { idsAt, newId, readClock } from '../src/db/ids.ts'
import { insertEvents } from '../src/money/ledger/events.ts'
import { newSigningSecret, type SecretsOfWebhook } from '../src/money/records/webhook-secrets.ts'
import type { Webhook, WebhookAuth } from '../src/money/records/webhook.ts'
import { WEBHOOK_SECRETS, type TestCustomer, type TestDatabase } from './support.ts'

// Endpoints of webhooks, and events for them.

export interface EndpointOptions {
  url: string
  event_types?: string[]
  payload?: 'THIN' | 'FULL'
  auth?: WebhookAuth
  rate_limit?: number
  profile_ids?: string[] | null
  previous_secret_until?: string | null
  secrets?: SecretsOfWebhook
}

/** Inserts an endpoint that gets the events from now on. */
export async function insertEndpoint(
  database: Pick<TestDatabase, 'owner'>,
  customer_id: string,
  options: EndpointOptions,
) {
  const kept = options.secrets ?? { signing: newSigningSecret() }
  return transaction(database.owner, async (tx) => {
    const now = await readClock(tx)
    const id = newId(now)
    await tx.query(
      `
      insert into webhooks (customer_id, id, created_at, updated_at, name, url, event_types, payload, auth, profile_ids,
                            rate_limit, status, encrypted_secrets, previous_secret_until, cursor_id, next_at)
      values ($1, $2, $3, $3, $2::uuid::text, $4, $5, $6, $7, $8, $9, 'ACTIVE', $10, $11, $12, $3)`,
      [
        customer_id,
        id,
        now.text,
        options.url,
        options.event_types ?? ['*'],
        options.payload ?? 'THIN',
        JSON.stringify(options.auth ?? { type: 'NONE' }),
        options.profile_ids ?? null,
        options.rate_limit ?? 100,
        await WEBHOOK_SECRETS.seal({ customer_id, id }, kept),
        options.previous_secret_until ?? null,
        newId(now),
      ],
    )
    return { id, customer_id, secrets: kept }
  })
}

/** Creates a webhook through the API, of all events of transfers. */
export async function createWebhook(
  { call }: Pick<TestCustomer, 'call'>,
  changes: object = {},
): Promise<Webhook> {
  const body = { name: randomUUID(), url: 'http://127.0.0.1:9/', event_types: ['transfer.*'], ...changes }
  const { status, body: made } = await call<{ webhook: Webhook }>('POST', '/v2/webhooks', body)
  if (status !== 200) throw new Error(`no webhook: ${JSON.stringify(made)}`)
  return made.webhook
}

/** Writes events of changes of one fiat account each, or of the given record. Returns their ids, in their order. */
export const writeEvents = (
  db: Database,
  customer_id: string,
  count = 1,
  object_id?: string,
): Promise<string[]> => transaction(db, (tx) => writeEventsIn(tx, customer_id, count, object_id))

export async function writeEventsIn(tx: Transaction, customer_id: string, count = 1, object_id?: string) {
  const now = await readClock(tx)
  const newId = idsAt(now)
  const objects = Array.from({ length: count }, () => object_id ?? newId())
  await insertEvents(
    tx,
    customer_id,
    now,
    objects.map((id) => ({
      type: 'fiat_account.approved',
      object_id: id,
      object: { id, status: 'APPROVED' },
    })),
  )
  const { rows } = await tx.query<{ id: string }>(
    'select id from events where customer_id = $1 and created_at = $2 order by id',
    [customer_id, now.text],
  )
  return rows.map(({ id }) => id)
}
