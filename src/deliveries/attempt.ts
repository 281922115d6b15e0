import { randomBytes } from 'node:crypto'
import type { Span } from '../contract/tracing.ts'
import type { ReadEvent } from '../money/records/event.ts'
import { SendFailure, type HttpAnswer } from '../http/outbound/post.ts'
import { signatureHeaders } from '../http/outbound/signature.ts'
import type { SecretsOfWebhook } from '../money/records/webhook-secrets.ts'
import type { DeliveryTokens, OAuthClient } from './access-tokens.ts'
import { bodyOf } from './body.ts'
import type { Endpoint } from './claim.ts'
import { readRetryAfter } from './schedule.ts'
import { ATTEMPT_MS_MAX, type Sender } from './send.ts'
import { version } from '../package.ts'

/** How much of an answer is kept, in UTF-8. */
const KEPT_BYTES_MAX = 1024

const USER_AGENT = `Bursar-Webhooks/${version}`

export interface AttemptOutcome {
  succeeded: boolean
  status_code?: number
  error?: string
  duration_ms: number
  response?: string
  retryAfterSeconds?: number | undefined
}

export interface Means {
  sender: Sender
  tokens: DeliveryTokens
  source: string
}

/**
 * Makes one attempt to deliver an event, in `ATTEMPT_MS_MAX` at most. Never throws for anything that the endpoint does;
 * undefined when `stopping` ended it. With a
 * `span`, the endpoint gets that trace.
 */
export async function attemptDelivery(
  { sender, tokens, source }: Means,
  endpoint: Endpoint,
  secrets: SecretsOfWebhook,
  read: ReadEvent,
  { stopping, span }: { stopping: AbortSignal; span?: Span | undefined },
): Promise<AttemptOutcome | undefined> {
  const ending = new AbortController()
  const end = () => ending.abort()
  const limit = setTimeout(end, ATTEMPT_MS_MAX)
  stopping.addEventListener('abort', end)
  const start = performance.now()
  const duration_ms = () => Math.round(performance.now() - start)
  try {
    const auth = await untilAborted(authHeader(tokens, endpoint, secrets), ending.signal)
    const { text, contentType } = bodyOf(read, endpoint.payload, source)
    const answer = await sender.post({
      url: endpoint.url,
      headers: {
        ...auth,
        'content-type': contentType,
        'user-agent': USER_AGENT,
        traceparent: span?.traceparent ?? traceParent(read.event.id),
        ...signatureHeaders(
          endpoint.rotates && secrets.previous !== undefined
            ? [secrets.signing, secrets.previous]
            : [secrets.signing],
          { id: read.event.id, timestampSeconds: Math.floor(Date.now() / 1000), body: text },
        ),
      },
      body: text,
      signal: ending.signal,
    })
    const client = oauthClientOf(endpoint, secrets)
    if (answer.statusCode === 401 && client !== undefined) tokens.refused(client)
    return { ...outcomeOf(answer, Object.values(auth)), duration_ms: duration_ms() }
  } catch (error) {
    if (stopping.aborted) return undefined
    if (!(error instanceof SendFailure)) throw error
    return { succeeded: false, error: error.message, duration_ms: duration_ms() }
  } finally {
    clearTimeout(limit)
    stopping.removeEventListener('abort', end)
  }
}

function outcomeOf(answer: HttpAnswer, sent: readonly string[]): Omit<AttemptOutcome, 'duration_ms'> {
  const { statusCode, headers } = answer
  const succeeded = statusCode >= 200 && statusCode < 300
  const retryAfter = headers['retry-after']
  const response = keptText(answer, sent)
  return {
    succeeded,
    status_code: statusCode,
    ...(response !== '' && { response }),
    ...(!succeeded && {
      retryAfterSeconds: readRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, Date.now()),
    }),
  }
}

/**
 * Returns the beginning of an answer as printable text, for the delivery's log. The API key or token is replaced: a receiver that
 * echoes its request would put it there.
 */
function keptText({ headers, body, isCut }: HttpAnswer, sent: readonly string[]): string {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return `(${body.length} bytes, compressed)`
  const secrets = sent.map((value) => value.replace(/^Bearer /, ''))
  const longest = Math.max(0, ...secrets.map((secret) => secret.length))
  let text = body.toString('utf8')
  // The end may hold the beginning of a secret.
  if (isCut) text = text.slice(0, Math.max(0, text.length - longest))
  for (const secret of secrets)
    for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) text = text.replaceAll(form, '***')
  const printable = text.replaceAll(/[^\P{C}\n\t]/gu, '')
  const kept = Buffer.from(printable).subarray(0, KEPT_BYTES_MAX)
  // A character that the limit cuts in half becomes U+FFFD.
  return kept.length < KEPT_BYTES_MAX ? printable : kept.toString('utf8').replace(/\uFFFD$/, '')
}

/** W3C Trace Context: all attempts at an event's delivery are one trace, whose id is the event's. */
const traceParent = (eventId: string): string =>
  `00-${eventId.replaceAll('-', '')}-${randomBytes(8).toString('hex')}-01`

async function authHeader(
  tokens: DeliveryTokens,
  endpoint: Endpoint,
  secrets: SecretsOfWebhook,
): Promise<Record<string, string>> {
  const { type, header } = endpoint.auth
  if (type === 'API_KEY') return { [header!.toLowerCase()]: secrets.auth! }
  const client = oauthClientOf(endpoint, secrets)
  return client === undefined ? {} : { authorization: `Bearer ${await tokens.tokenOf(client)}` }
}

function oauthClientOf({ auth }: Endpoint, secrets: SecretsOfWebhook): OAuthClient | undefined {
  if (auth.type !== 'OAUTH2_CLIENT_CREDENTIALS') return undefined
  return {
    token_url: auth.token_url!,
    client_id: auth.client_id!,
    client_secret: secrets.auth!,
    scope: auth.scope,
  }
}

/** Waits for work that several attempts share: the work goes on when one of them ends. Throws `SendFailure` when aborted. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: () => void
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new SendFailure(`token endpoint: no answer within ${ATTEMPT_MS_MAX / 1000} s`))
    signal.addEventListener('abort', onAbort)
  })
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', onAbort))
}
