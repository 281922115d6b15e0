import { LRUCache } from 'lru-cache'
import { SendFailure } from '../http/outbound/post.ts'
import { ATTEMPT_MS_MAX, type Sender } from './send.ts'

/** An endpoint's OAuth 2 client at its own authorization server (RFC 6749, 4.4). */
export interface OAuthClient {
  token_url: string
  client_id: string
  client_secret: string
  scope?: string | undefined
}

/** Some servers issue JWTs of up to 8 KiB, so more is read of their answers than of a receiver's. */
const ANSWER_BYTES_MAX = 16 * 1024
const TOKENS_MAX = 10_000
/** A token without `expires_in` is used this long, and no token longer than an hour. */
const LIFETIME_SECONDS_DEFAULT = 300
const LIFETIME_SECONDS_MAX = 3_600
/** A token is renewed when a tenth of its lifetime is left. */
const SHARE_USED = 0.9

/** What a header can carry (RFC 6750, 2.1). */
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

/** The access tokens with which deliveries authenticate. Requests that need the same token share one exchange. */
export class DeliveryTokens {
  readonly #sender: Sender
  readonly #tokens = new LRUCache<string, Promise<string>>({ max: TOKENS_MAX })

  constructor(sender: Sender) {
    this.#sender = sender
  }

  /** Returns a valid token. Throws `SendFailure`. */
  tokenOf(client: OAuthClient): Promise<string> {
    const key = keyOfCredentials(client)
    const known = this.#tokens.get(key)
    if (known !== undefined) return known
    const token = this.#exchange(key, client)
    this.#tokens.set(key, token)
    // The next attempt asks again.
    token.catch(() => this.#forget(key, token))
    return token
  }

  /** The endpoint refused the token: the next attempt fetches another one. */
  refused(client: OAuthClient): void {
    this.#tokens.delete(keyOfCredentials(client))
  }

  #forget(key: string, token: Promise<string>): void {
    if (this.#tokens.peek(key) === token) this.#tokens.delete(key)
  }

  async #exchange(key: string, { token_url, client_id, client_secret, scope }: OAuthClient): Promise<string> {
    const credentials = [client_id, client_secret].map((text) => encodeURIComponent(text)).join(':')
    const { statusCode, body } = await this.#sender
      .post({
        url: token_url,
        headers: {
          authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
        },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          ...(scope !== undefined && { scope }),
        }).toString(),
        signal: AbortSignal.timeout(ATTEMPT_MS_MAX),
        bytesMax: ANSWER_BYTES_MAX,
      })
      .catch((error: Error) => {
        throw new SendFailure(`token endpoint: ${error.message}`, { cause: error })
      })
    if (statusCode !== 200) throw new SendFailure(`token endpoint: it answered ${statusCode}`)
    const { token, seconds } = readToken(body)
    const own = this.#tokens.peek(key)
    if (own !== undefined) this.#tokens.set(key, own, { ttl: Math.max(1, seconds * SHARE_USED * 1000) })
    return token
  }
}

const keyOfCredentials = ({ token_url, client_id, client_secret, scope }: OAuthClient): string =>
  JSON.stringify([token_url, client_id, client_secret, scope])

function readToken(body: Buffer): { token: string; seconds: number } {
  let answer: unknown
  try {
    answer = JSON.parse(body.toString('utf8'))
  } catch {
    throw new SendFailure('token endpoint: its answer is not JSON')
  }
  const { access_token, expires_in } = (answer ?? {}) as { access_token?: unknown; expires_in?: unknown }
  if (typeof access_token !== 'string' || !BEARER_TOKEN.test(access_token))
    throw new SendFailure('token endpoint: its answer has no access_token')
  const seconds = Number(expires_in ?? LIFETIME_SECONDS_DEFAULT)
  return {
    token: access_token,
    seconds: seconds > 0 ? Math.min(seconds, LIFETIME_SECONDS_MAX) : LIFETIME_SECONDS_DEFAULT,
  }
}
