/** The kinds of error responses. https://<server>/problems/<slug> explains the typed ones, from exceed-precision on. */
export type ProblemSlug =
  | 'bad-request'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'conflict'
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
  | 'approval-required'
  | 'approval-ended'
  | 'policy-refused'
  | 'not-cancellable'

/** The fields of `meta`, by slug, for the problems that have it. */
export interface ProblemMeta {
  'exceed-precision': { asset: string; decimals: number }
  'below-min-withdraw-limit': { asset: string; minimum: string; limit: string; amount: string }
  'exceed-max-withdraw-limit': { asset: string; maximum: string; limit: string; amount: string }
  'unsupported-address': {
    destination_address: string
    crypto_network: string
    address: string
    reason: string
  }
  'unsupported-network': { asset: string; crypto_network: string; supported: string[] }
  'insufficient-funds': { profile_id: string; asset: string; available: string; needed: string }
  expired: { fee_id: string; expired_at?: string }
  'identity-verification-required': {
    ref_path: 'identity_id' | 'account_id' | 'profile_id' | 'from_identity_id' | 'from_account_id'
    identity_id: string
    current_status: string
  }
  disabled: { id: string; status: string }
  /** The existing record with the `ref_id`, in its present state. */
  'already-exists': { existing: unknown; differs: string[] }
  'approval-required': { approval_id: string; status: string; approvals: number; required: number }
  'approval-ended': { id: string; status: string }
  'policy-refused': { rule_id: string; policy_version: number }
  'not-cancellable': { id: string; status: string }
}

/** A wrong field of a request. */
export interface FieldError {
  /** A JSON pointer as a URI fragment, such as `#/amount`. */
  pointer: string
  detail: string
}

/** Base class of the client's errors. The only other value that the client throws is the reason of an aborted signal. */
export class BursarError extends Error {
  /** The `ref_id` of the failed POST, given or generated. It finds the record of a POST whose outcome is unknown. */
  readonly refId: string | undefined

  constructor(message: string, refId?: string, cause?: unknown) {
    super(message, { cause })
    this.refId = refId
  }
}

/** The service answered with an error (RFC 9457; RFC 6749 for the token endpoint). */
export class BursarProblem extends BursarError {
  override readonly name = 'BursarProblem'
  readonly status: number
  /** The kind of problem. A newer service or a proxy may send other values. */
  readonly slug: ProblemSlug | (string & {})
  readonly title: string
  /** Explains the problem: the field and the rule. */
  readonly detail: string
  /** Facts about the problem. `is` narrows their type by slug. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Every wrong field of the request, with the JSON pointer to it. `detail` describes the first. */
  readonly errors: readonly FieldError[]
  /** The id of the request in the service's log; undefined when a proxy answered. */
  readonly requestId: string | undefined
  /** How long to wait before a retry, if the response has `Retry-After`. */
  readonly retryAfterMs: number | undefined

  constructor(response: Response, body: unknown, refId?: string) {
    const { status } = response
    const problem = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
    const text = (name: string) => (typeof problem[name] === 'string' ? problem[name] : undefined)
    // The token endpoint's errors are { error, error_description }. A proxy's answer may be anything.
    const title = text('title') ?? text('error') ?? `HTTP ${status}`
    const detail = text('detail') ?? text('error_description') ?? title
    super(`${title}: ${detail}`, refId)
    this.status = status
    this.slug = slugOf(text('type'), status, title)
    this.title = title
    this.detail = detail
    this.meta = typeof problem.meta === 'object' && problem.meta !== null ? { ...problem.meta } : {}
    this.errors = Array.isArray(problem.errors) ? (problem.errors as FieldError[]) : []
    this.requestId = response.headers.get('x-request-id') ?? undefined
    this.retryAfterMs = retryAfterMs(response)
  }

  /** Whether this is a problem of that kind: `if (error.is('insufficient-funds')) error.meta.available`. */
  is<S extends keyof ProblemMeta>(
    slug: S,
  ): this is this & { readonly slug: S; readonly meta: Readonly<ProblemMeta[S]> } {
    return this.slug === slug
  }
}

/** The plain refusals, by status. */
const PLAIN: Readonly<Record<number, ProblemSlug>> = {
  400: 'bad-request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'request-timeout',
  413: 'payload-too-large',
  415: 'unsupported-media-type',
  429: 'too-many-requests',
  431: 'request-header-fields-too-large',
  500: 'internal-error',
  503: 'unavailable',
}

/** The slug is the end of a typed problem's type. Plain problems are identified by their status, other answers by their title. */
function slugOf(type: string | undefined, status: number, title: string): string {
  if (type !== undefined && type !== 'about:blank') return type.slice(type.lastIndexOf('/') + 1)
  const plain = type === undefined ? undefined : PLAIN[status]
  return plain ?? title.toLowerCase().replaceAll(' ', '-')
}

/** Reads `Retry-After`, which is in seconds or a date, as milliseconds from now. */
export function retryAfterMs(response: Response | undefined): number | undefined {
  const value = response?.headers.get('retry-after')
  if (value === null || value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}

/** The transfer was still PENDING at the time limit of `waitFor`. It continues: wait again, or read it later. */
export class BursarTimeout extends BursarError {
  override readonly name = 'BursarTimeout'
}

/**
 * No attempt got an answer. The request may have been executed. Send it again with the same `ref_id` to find out: it
 * cannot execute twice.
 */
export class BursarUnreachable extends BursarError {
  override readonly name = 'BursarUnreachable'
}

/** Why a webhook's request was refused. */
export type SignatureFault = 'HEADERS' | 'TIMESTAMP' | 'SIGNATURE' | 'BODY'

/** `unwrap` refuses a request: it is not from Bursar, it is too old, or its body is no event. Answer it with 400. */
export class BursarSignatureError extends BursarError {
  override readonly name = 'BursarSignatureError'
  readonly reason: SignatureFault

  constructor(reason: SignatureFault, message: string, cause?: unknown) {
    super(message, undefined, cause)
    this.reason = reason
  }
}

/** `verifyLiability` refuses a proof: the message says what is wrong with it. */
export class BursarProofError extends BursarError {
  override readonly name = 'BursarProofError'
}
