import { Type, type Static } from 'typebox'
import { Closed, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { EventTypePatterns, typeMatches } from './event-type-patterns.ts'

const URL_LENGTH_MAX = 2_000
const PROFILES_MAX = 100
/** Deliveries a second, over all processes. */
export const RATE_LIMIT_DEFAULT = 10
const RATE_LIMIT_MAX = 100

/** The writable members of an endpoint. */
export const WebhookFields = {
  name: Type.String({
    minLength: 1,
    maxLength: 100,
    description: 'Name, unique for the customer.',
    examples: ['Payments'],
  }),
  url: Type.String({
    maxLength: URL_LENGTH_MAX,
    description: 'Where deliveries are sent. HTTPS; in sandbox mode also HTTP.',
    examples: ['https://hooks.example.com/bursar'],
  }),
  event_types: EventTypePatterns,
  payload: OneOf(['THIN', 'FULL'], 'THIN: the event without its object. FULL: a CloudEvent with the object.'),
  profile_ids: Type.Array(Uuid('Profile.'), {
    maxItems: PROFILES_MAX,
    description: 'Only events of transfers and orchestrations of these profiles. None: all events.',
  }),
  rate_limit: Type.Integer({
    minimum: 1,
    maximum: RATE_LIMIT_MAX,
    description: 'Most deliveries a second.',
    examples: [RATE_LIMIT_DEFAULT],
  }),
  status: OneOf(['ACTIVE', 'DISABLED'], 'DISABLED: nothing is delivered.'),
}

const AuthType = OneOf(
  ['NONE', 'API_KEY', 'OAUTH2_CLIENT_CREDENTIALS'],
  'NONE: only the signature. API_KEY: an API key in a header. OAUTH2_CLIENT_CREDENTIALS: a bearer token (RFC 6749, 4.4).',
)
const authFields = {
  type: AuthType,
  header: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '^[A-Za-z0-9_-]+$',
      inWords: 'must be the name of an HTTP header: letters, digits, - and _',
      description: 'API_KEY: the name of the header.',
      examples: ['x-api-key'],
    }),
  ),
  token_url: Type.Optional(
    Type.String({ maxLength: URL_LENGTH_MAX, description: 'OAuth 2: the token endpoint.' }),
  ),
  client_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'OAuth 2: the client.' }),
  ),
  scope: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_000, description: 'OAuth 2: the scope asked for.' }),
  ),
}
/** Words of visible ASCII: what a header can carry. */
const Secret = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 1_000,
    pattern: '^[!-~]+( [!-~]+)*$',
    inWords: 'must be visible ASCII characters, with single spaces between words',
    description: `${description} It is never answered.`,
  })

export const WebhookAuthBody = Closed(
  {
    ...authFields,
    key: Type.Optional(Secret('API_KEY: the key.')),
    client_secret: Type.Optional(Secret("OAuth 2: the client's secret.")),
  },
  { description: 'How deliveries authenticate, besides their signature.' },
)
export type WebhookAuthBody = Static<typeof WebhookAuthBody>

/** How a delivery authenticates, without its secret: as it is kept and answered. */
export const WebhookAuth = Type.Object(authFields, {
  description: 'How deliveries authenticate, besides their signature. Without the secret.',
})
export type WebhookAuth = Static<typeof WebhookAuth>

/** An endpoint that events are delivered to (API behaviour, Webhooks). No secret is in it. */
export const Webhook = NamedObject('Webhook', {
  id: Uuid('Id of the webhook.'),
  name: WebhookFields.name,
  url: WebhookFields.url,
  event_types: WebhookFields.event_types,
  payload: WebhookFields.payload,
  auth: WebhookAuth,
  profile_ids: Type.Optional(WebhookFields.profile_ids),
  rate_limit: WebhookFields.rate_limit,
  status: WebhookFields.status,
  disabled_reason: Type.Optional(
    Type.String({ description: 'Why it is DISABLED, if nobody disabled it by its status.' }),
  ),
  failing_since: Type.Optional(Timestamp('The first failed attempt after the last success.')),
  previous_secret_until: Type.Optional(
    Timestamp('After a rotation: until when the previous secret signs, too.'),
  ),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
})
export type Webhook = Static<typeof Webhook>

type Absent = 'profile_ids' | 'disabled_reason' | 'failing_since' | 'previous_secret_until'
export type WebhookRow = Omit<Webhook, Absent> & { [K in Absent]: Exclude<Webhook[K], undefined> | null }

const columnsWith = (previousSecretUntil: string) =>
  `id, name, url, event_types, payload, auth, profile_ids, rate_limit, status, disabled_reason, failing_since,
  ${previousSecretUntil} as previous_secret_until, created_at, updated_at`

export const WEBHOOK_COLUMNS = columnsWith(
  'case when previous_secret_until > clock_timestamp() then previous_secret_until end',
)
/** The columns of a webhook that is just made. It has no previous secret. */
export const NEW_WEBHOOK_COLUMNS = columnsWith('null::timestamptz')

export const webhookToWire = (row: WebhookRow): Webhook => presentOf(row)

/** Returns an endpoint's configuration for the audit log, without secrets: the query of a URL may hold one. */
export function configurationOf(webhook: Webhook) {
  const { url, event_types, payload, auth, profile_ids, rate_limit, status } = webhook
  const [target, query] = url.split('?')
  return {
    url: query === undefined ? target : `${target}?...`,
    ...{ event_types, payload, auth_type: auth.type, profile_ids, rate_limit, status },
  }
}

/** Reads the customer's endpoint with this id. Throws not-found. */
export async function requireWebhook(db: Queryable, customerId: string, id: string): Promise<Webhook> {
  const { rows } = await db.query<WebhookRow>(
    `select ${WEBHOOK_COLUMNS} from webhooks where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('webhook', id)
  return webhookToWire(rows[0])
}

/** Locks an ACTIVE endpoint until the transaction ends. Throws not-found, and bad-request for a DISABLED one. */
export async function lockActiveWebhook(tx: Transaction, customerId: string, id: string): Promise<void> {
  const { rows } = await tx.query<{ status: string }>(
    'select status from webhooks where customer_id = $1 and id = $2 for update',
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('webhook', id)
  if (rows[0].status === 'DISABLED')
    throw problem.badRequest(`webhook ${id} is DISABLED: set its status to ACTIVE first`)
}

/**
 * The SQL condition that an endpoint gets an event. `event` and `webhook` are aliases of rows of `events` and `webhooks`.
 * The condition is about the customer $1: on a distributed database, each table must name the customer. Test events match no
 * endpoint: each is written for one endpoint.
 */
export const eventMatches = (event: string, webhook: string): string => `
  not ${event}.is_test
  and ${typeMatches(`${event}.type`, `${webhook}.event_types`)}
  and (${webhook}.profile_ids is null
       or exists (select 1 from transfers t
                  where t.customer_id = $1 and t.id = ${event}.object_id
                    and t.profile_id = any (${webhook}.profile_ids))
       or exists (select 1 from orchestrations o
                  where o.customer_id = $1 and o.id = ${event}.object_id
                    and o.profile_id = any (${webhook}.profile_ids)))`
