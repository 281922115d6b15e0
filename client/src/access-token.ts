import { BursarProblem } from './errors.ts'
import { orAborted, sendAgain, type Retries } from './send-again.ts'

/** A token is replaced this long before it expires, or after this share of its lifetime, whichever is later. */
const REFRESH_BEFORE_MS = 60_000
const LIFETIME_SHARE = 0.8

export interface TokenSource {
  /** Returns a token that is still valid for a while. Concurrent callers share one request. */
  get(signal: AbortSignal | null | undefined): Promise<string>
  /** Reports that the service refused this token, so that the next call fetches another. */
  refused(token: string): void
}

/** Fetches access tokens by client credentials (RFC 6749, 4.4) and caches each until shortly before it expires. */
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
  let cached: { token: string; refreshAt: number } | undefined
  let fetching: Promise<string> | undefined

  async function fetchToken(): Promise<string> {
    const requestedAt = performance.now()
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
      | { access_token?: unknown; expires_in?: unknown }
      | undefined
    if (!response.ok || typeof body?.access_token !== 'string') throw new BursarProblem(response, body)
    const lifetimeMs = Number(body.expires_in) * 1000
    cached = {
      token: body.access_token,
      // Without a lifetime, the token is used until it is refused.
      refreshAt:
        lifetimeMs > 0
          ? requestedAt + Math.max(lifetimeMs - REFRESH_BEFORE_MS, lifetimeMs * LIFETIME_SHARE)
          : Infinity,
    }
    return cached.token
  }

  return {
    async get(signal) {
      if (cached !== undefined && performance.now() < cached.refreshAt) return cached.token
      fetching ??= fetchToken().finally(() => (fetching = undefined))
      return orAborted(fetching, signal)
    },
    refused(token) {
      if (cached?.token === token) cached = undefined
    },
  }
}
