import { BursarProblem } from './errors.ts'
import { orAborted, sendAgain, type Retries } from './send-again.ts'

/** A new token is fetched this long before the old one ends, or when a fifth of its life is left, if that is later. */
const REFRESH_BEFORE_MS = 60_000
const LIFE_USED = 0.8

export interface TokenSource {
  /** A token that is good for a while. Callers at the same time share one request. */
  get(signal: AbortSignal | null | undefined): Promise<string>
  /** Says that the service refuses this token, so that the next call fetches another. */
  refused(token: string): void
}

/** Fetches access tokens by client credentials (RFC 6749, 4.4) and keeps them until shortly before they end. */
export function tokenSource(options: {
  tokenUrl: string
  clientId: string
  clientSecret: string
  scopes: readonly string[] | undefined
  fetch: typeof globalThis.fetch
  retries: Retries
}): TokenSource {
  const { tokenUrl, clientId, clientSecret, scopes, fetch, retries } = options
  const credentials = btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`)
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scopes && { scope: scopes.join(' ') }),
  })
  let held: { token: string; refreshAt: number } | undefined
  let fetching: Promise<string> | undefined

  async function fetchToken(): Promise<string> {
    const askedAt = performance.now()
    const { response } = await sendAgain(
      (signal) =>
        fetch(tokenUrl, {
          method: 'POST',
          headers: {
            authorization: `Basic ${credentials}`,
            'content-type': 'application/x-www-form-urlencoded',
          },
          body: form.toString(),
          signal,
        }),
      { retries, repeatable: true },
    )
    const body = (await response.json().catch(() => undefined)) as
      { access_token?: unknown; expires_in?: unknown } | undefined
    if (!response.ok || typeof body?.access_token !== 'string') throw new BursarProblem(response, body)
    const lifeMs = Number(body.expires_in) * 1000
    held = {
      token: body.access_token,
      // Without a life, until it is refused.
      refreshAt: lifeMs > 0 ? askedAt + Math.max(lifeMs - REFRESH_BEFORE_MS, lifeMs * LIFE_USED) : Infinity,
    }
    return held.token
  }

  return {
    async get(signal) {
      if (held !== undefined && performance.now() < held.refreshAt) return held.token
      fetching ??= fetchToken().finally(() => (fetching = undefined))
      return orAborted(fetching, signal)
    },
    refused(token) {
      if (held?.token === token) held = undefined
    },
  }
}
