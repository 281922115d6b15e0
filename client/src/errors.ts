/** The refusals that a program may want to tell apart (https://<server>/problems/<slug> explains the last eleven). */
export type ProblemSlug =
  | 'bad-request'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'payload-too-large'
  | 'unsupported-media-type'
  | 'request-header-fields-too-large'
  | 'too-many-requests'
  | 'internal-error'
  | 'unavailable'
  | 'exceed-precision'
  | 'below-min-withdraw-limit'
  | 'exceed-max-withdraw-limit'
  | 'unsupported-address'
  | 'unsupported-network'
  | 'insufficient-funds'
  | 'expired'
  | 'identity-verification-required'
  | 'disabled'
  | 'already-exists'
  | 'not-cancellable'

/** What `meta` holds, by slug, of the refusals that have facts beside their words. */
export interface ProblemMeta {
  'exceed-precision': { asset: string; decimals: number }
  'below-min-withdraw-limit': { asset: string; minimum: string }
  'exceed-max-withdraw-limit': { asset: string; maximum: string }
  'unsupported-address': { destination_address: string; crypto_network: string }
  'unsupported-network': { asset: string; crypto_network: string; supported: string[] }
  'insufficient-funds': { profile_id: string; asset: string; available: string; needed: string }
  expired: { fee_id: string }
  'identity-verification-required': {
    ref_path: 'identity_id' | 'account_id' | 'profile_id'
    identity_id: string
    current_status: string
  }
  disabled: { id: string; status: string }
  /** The record that has the `ref_id`, as it is now. */
  'already-exists': { existing: unknown }
  'not-cancellable': { id: string; status: string }
}

/** What this client throws of its own. Everything else that it throws is the reason of an aborted signal. */
export class BursarError extends Error {
  /** The `ref_id` that a refused or lost POST was sent with, given or made: what finds its record later. */
  readonly refId: string | undefined

  constructor(message: string, refId?: string, cause?: unknown) {
    super(message, { cause })
    this.refId = refId
  }
}

/** The service has answered, and refuses (RFC 9457; for the token endpoint, RFC 6749). */
export class BursarProblem extends BursarError {
  override readonly name = 'BursarProblem'
  readonly status: number
  /** Which refusal it is. One that is newer than this client, or is not Bursar's own, has another word. */
  readonly slug: ProblemSlug | (string & {})
  readonly title: string
  /** What is wrong: the field and the rule. */
  readonly detail: string
  /** Facts, by slug: `is` gives their types. */
  readonly meta: Readonly<Record<string, unknown>>
  /** The id of the request in the service's log, where the service has answered. */
  readonly requestId: string | undefined
  /** How long to wait before the same request again, where the service says. */
  readonly retryAfterMs: number | undefined

  constructor(response: Response, body: unknown, refId?: string) {
    const { status } = response
    const problem = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
    const text = (name: string) => (typeof problem[name] === 'string' ? problem[name] : undefined)
    // The token endpoint's errors are { error, error_description }. What comes from a proxy may be anything.
    const title = text('title') ?? text('error') ?? `HTTP ${status}`
    const detail = text('detail') ?? text('error_description') ?? title
    super(`${title}: ${detail}`, refId)
    this.status = status
    this.slug = slugOf(text('type'), title)
    this.title = title
    this.detail = detail
    this.meta = typeof problem.meta === 'object' && problem.meta !== null ? { ...problem.meta } : {}
    this.requestId = response.headers.get('x-request-id') ?? undefined
    this.retryAfterMs = retryAfterMs(response)
  }

  /** Whether it is this refusal: `if (error.is('insufficient-funds')) error.meta.available`. */
  is<S extends keyof ProblemMeta>(
    slug: S,
  ): this is this & { readonly slug: S; readonly meta: Readonly<ProblemMeta[S]> } {
    return this.slug === slug
  }
}

/** A typed problem has its slug at the end of its type; the plain ones are told by their title. */
function slugOf(type: string | undefined, title: string): string {
  if (type !== undefined && type !== 'about:blank') return type.slice(type.lastIndexOf('/') + 1)
  return title.toLowerCase().replaceAll(' ', '-')
}

/** `Retry-After`: seconds, or a date; in milliseconds from now. */
export function retryAfterMs(response: Response | undefined): number | undefined {
  const value = response?.headers.get('retry-after')
  if (value === null || value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}

/** A transfer is still PENDING after the time that `waitFor` was given. It goes on: wait again, or look later. */
export class BursarTimeout extends BursarError {
  override readonly name = 'BursarTimeout'
}

/**
 * There was no answer, as often as was allowed. What was asked may have been done all the same: the same request with
 * the same `ref_id` is safe, and tells.
 */
export class BursarUnreachable extends BursarError {
  override readonly name = 'BursarUnreachable'
}
