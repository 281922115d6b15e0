import { problem } from '../../contract/problems.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { firstIdAt } from '../../db/ids.ts'
import { faultOfTarget, targetRules } from '../../deliveries/targets.ts'
import { requireHorizon } from '../../http/require-horizon.ts'
import { requireKnownTypes } from '../../money/records/event-type-patterns.ts'
import type { WebhookAuth, WebhookAuthBody } from '../../money/records/webhook.ts'
import type { Settings } from '../../settings.ts'

/** The checks that creating and updating an endpoint share (API behaviour, Webhooks). */

const ACTIVE_MAX = 10

interface GivenWebhook {
  url?: string
  event_types?: string[]
  auth?: WebhookAuthBody
}

/** Checks what needs no record. Throws bad-request. */
export function requireValid({ url, event_types, auth }: GivenWebhook, settings: Settings): void {
  if (url !== undefined) requireTarget(url, 'url', settings)
  if (event_types !== undefined) requireKnownTypes(event_types, 'event_types')
  if (auth !== undefined) requireAuth(auth, settings)
}

function requireTarget(url: string, field: string, settings: Settings): void {
  const fault = faultOfTarget(url, targetRules(settings))
  if (fault !== undefined) throw problem.badRequest(`${field} ${fault}`, field)
}

const MEMBERS: Record<WebhookAuth['type'], { needs: Member[]; allows: Member[] }> = {
  NONE: { needs: [], allows: [] },
  API_KEY: { needs: ['header', 'key'], allows: [] },
  OAUTH2_CLIENT_CREDENTIALS: { needs: ['token_url', 'client_id', 'client_secret'], allows: ['scope'] },
}
type Member = Exclude<keyof WebhookAuthBody, 'type'>

/** Headers that a delivery sets itself, and headers by which HTTP controls the connection or the body. */
const RESERVED_HEADER =
  /^(webhook-.*|content-.*|proxy-.*|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|user-agent|traceparent|tracestate|http2-settings)$/

function requireAuth(auth: WebhookAuthBody, settings: Settings): void {
  const { type, ...members } = auth
  const { needs, allows } = MEMBERS[type]
  for (const member of needs)
    if (members[member] === undefined)
      throw problem.badRequest(`auth.${member} is required with type ${type}`, `auth.${member}`)
  for (const member of Object.keys(members) as Member[])
    if (!needs.includes(member) && !allows.includes(member))
      throw problem.badRequest(`auth.${member} cannot be given with type ${type}`, `auth.${member}`)
  if (auth.header !== undefined && RESERVED_HEADER.test(auth.header.toLowerCase()))
    throw problem.badRequest(
      `auth.header ${auth.header} is set by each delivery: use another header`,
      'auth.header',
    )
  if (auth.token_url !== undefined) requireTarget(auth.token_url, 'auth.token_url', settings)
}

/** A checked URL as requests use it: the parser drops line ends and tabs, which must not be kept and shown. */
export const parsedUrl = (url: string): string => new URL(url).href

/** Splits the authentication of a request: its secret is kept encrypted, everything else is answered. */
export function withoutSecret({ key, client_secret, ...auth }: WebhookAuthBody): {
  auth: WebhookAuth
  secret: string | undefined
} {
  const { token_url } = auth
  return {
    auth: { ...auth, ...(token_url !== undefined && { token_url: parsedUrl(token_url) }) },
    secret: key ?? client_secret,
  }
}

/** Throws not-found for a profile that the customer does not have. */
export async function requireProfiles(
  db: Queryable,
  customerId: string,
  profileIds: readonly string[] = [],
): Promise<void> {
  if (profileIds.length === 0) return
  const { rows } = await db.query<{ id: string }>(
    'select id from profiles where customer_id = $1 and id = any ($2::uuid[])',
    [customerId, profileIds],
  )
  const unknown = profileIds.find((id) => !rows.some((row) => row.id === id))
  if (unknown !== undefined) throw problem.notFound('profile', unknown)
}

/** Requires room for another ACTIVE endpoint, under the lock `activeEndpoints`. Throws bad-request. */
export async function requireRoomForWebhook(tx: Transaction, customerId: string): Promise<void> {
  const { rows } = await tx.query<{ active: number }>(
    "select count(*)::int as active from webhooks where customer_id = $1 and status = 'ACTIVE'",
    [customerId],
  )
  if (rows[0]!.active >= ACTIVE_MAX)
    throw problem.badRequest(
      `the customer has ${ACTIVE_MAX} ACTIVE webhooks, the most allowed: disable or delete one first`,
    )
}

/**
 * Returns the cursor of an endpoint that gets events from now on. It is below the ids of all events that are not committed
 * yet, including those of transactions that have begun. Throws unavailable where the horizon is unknown.
 */
export async function cursorFromNow(db: Queryable): Promise<string> {
  const refusal = (reason: string) => `no webhook can begin to get events: ${reason}; nothing was changed`
  return firstIdAt((await requireHorizon(db, refusal)).micros)
}
