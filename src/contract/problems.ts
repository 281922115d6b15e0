import type { ProblemBody } from './problem-body.ts'

/**
 * The catalogue of problems (RFC 9457; API behaviour, Errors). The slug of a typed problem is the last part of its `type`
 * URI, which is the address of the page that explains it. The title of an untyped one is its status phrase (RFC 9110).
 */
export interface ProblemKind {
  status: number
  title: string
  /** For the page at /problems/<slug>: when it happens and what to do. Untyped problems have none. */
  explanation?: string
  /** The same of an untyped problem, for the list at /problems. */
  hint?: string
}

const kinds = {
  'bad-request': {
    status: 400,
    title: 'Bad Request',
    hint: 'The request is malformed: `detail` names the first fault, and `errors` all of them with their places. Correct it; a repeat gets the same answer.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    hint: 'There is no access token, or it has expired or was revoked. Take a new one from `/oauth2/token`.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    hint: 'The access token lacks the scope that the operation needs, or the caller may not do this with the record. `detail` says which.',
  },
  'not-found': {
    status: 404,
    title: 'Not Found',
    hint: 'There is no such operation, or the customer has no record with this id. Records of other customers are not found.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method Not Allowed',
    hint: 'The path exists with other methods, which the header `Allow` lists.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request Timeout',
    hint: 'The request did not arrive in time. Send it again.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    hint: 'Something else uses what the request would change. `detail` says what to end first. Nothing was changed.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Content Too Large',
    hint: 'The body is larger than this operation takes; `detail` says how much that is.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported Media Type',
    hint: 'Send the body as `application/json`.',
  },
  'request-header-fields-too-large': {
    status: 431,
    title: 'Request Header Fields Too Large',
    hint: 'The request line and the headers together are too long. Use fewer values in filters.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too Many Requests',
    hint: 'More requests than the limits of the address, client or customer allow. Wait for `Retry-After` seconds.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal Server Error',
    hint: 'A fault of the service, which its log has under the `x-request-id` of the answer. Whether the request took effect is unknown: look up its `ref_id`, or repeat it with the same.',
  },
  unavailable: {
    status: 503,
    title: 'Service Unavailable',
    hint: 'The service, its database or a network cannot answer now; `detail` says which. Repeat the request with the same `ref_id`, after `Retry-After` seconds where it is there.',
  },
  'exceed-precision': {
    status: 400,
    title: 'Exceeds Maximum Precision Allowed',
    explanation:
      'The amount has more decimals than the asset has, in the ledger or on the network chosen. Send fewer decimals; trailing zeros do not count.',
  },
  'below-min-withdraw-limit': {
    status: 400,
    title: 'Withdrawal Amount Too Small',
    explanation:
      'The amount is below the smallest withdrawal of this asset on this network. `meta.limit` holds it, and `meta.amount` the amount that would have been sent.',
  },
  'exceed-max-withdraw-limit': {
    status: 400,
    title: 'Withdrawal Amount Too Large',
    explanation:
      'The amount is above the largest withdrawal of this asset on this network. `meta.limit` holds it, and `meta.amount` the amount that would have been sent.',
  },
  'unsupported-address': {
    status: 400,
    title: 'Unsupported Address',
    explanation:
      'The destination is not an address of this network: wrong network, wrong checksum, or a kind of address that Bursar does not pay. Test-network addresses are accepted in sandbox mode only.',
  },
  'unsupported-network': {
    status: 400,
    title: 'Unsupported Network',
    explanation: 'The network does not support the asset. `meta.supported` lists the networks that do.',
  },
  'insufficient-funds': {
    status: 403,
    title: 'Insufficient Funds',
    explanation:
      'The profile holds less of the asset than the movement takes. `meta` holds the available and the needed amount. In a sandbox with a real network, a customer can withdraw over that network at most what it deposited over it, because all other sandbox money is invented; `detail` then says so.',
  },
  expired: {
    status: 403,
    title: 'Expired',
    explanation:
      'The guaranteed fee named by `fee_id` has expired or was used by another withdrawal. Ask for a new one. `meta.expired_at` is the time at which an expired quote ended.',
  },
  'identity-verification-required': {
    status: 403,
    title: 'Identity Verification Required',
    explanation:
      'The identity, or the identity of the account, is not APPROVED: it is PENDING, ERROR or DENIED. It cannot withdraw and gets no deposit address. `meta` holds its id, its status, and the request field that leads to it.',
  },
  disabled: {
    status: 403,
    title: 'Disabled',
    explanation:
      'The account or identity is disabled (a bank account: rejected), or the operator froze the profile or the customer. It cannot withdraw. `meta` holds its id and status.',
  },
  'policy-refused': {
    status: 403,
    title: 'Policy Refused',
    explanation:
      "A rule of the customer's policy does not let this payment pass, or its limit is used up. `meta.rule_id` names the rule. Nothing was recorded.",
  },
  'already-exists': {
    status: 409,
    title: 'Already Exists',
    explanation:
      'A record with this `ref_id` (or another value that must be unique) exists. `meta.existing` holds its current state. After a lost answer, this confirms that the first request succeeded.',
  },
  'approval-required': {
    status: 403,
    title: 'Approval Required',
    explanation:
      'The policy of the customer requires approvers for this change, and nothing was changed. `meta.approval_id` is the approval that waits for them. After enough of them have approved it, send the same request with `approval_id` in its query: the change is made once.',
  },
  'approval-ended': {
    status: 409,
    title: 'Approval Ended',
    explanation:
      'The approval takes no more decisions: it is REJECTED, EXPIRED, CANCELLED or USED, or its transfer is signed. `meta` holds its id and status.',
  },
  'not-cancellable': {
    status: 409,
    title: 'Not Cancellable',
    explanation:
      'The transfer is not a withdrawal, has ended, or is signed. A signed withdrawal may already be paid, even while it is PENDING. Nothing was changed. `meta` holds its id and status.',
  },
} as const satisfies Record<string, ProblemKind>

export const PROBLEMS: Record<ProblemSlug, ProblemKind> = kinds
export type ProblemSlug = keyof typeof kinds

/** The problems with which any request that takes money from a profile can be refused. */
export const PAYMENT_PROBLEMS = [
  'exceed-precision',
  'not-found',
  'identity-verification-required',
  'disabled',
  'policy-refused',
  'insufficient-funds',
  'already-exists',
] as const satisfies ProblemSlug[]

/** The error of a field, and the JSON pointer to the field (RFC 9457, 3). */
export interface FieldError {
  pointer: string
  detail: string
}

/** The JSON pointer of a field, as a URI fragment (RFC 6901, 6), cut to a readable length. */
export const pointerTo = (path: readonly string[]): string =>
  `#${path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')}`.slice(0, 200)

/**
 * A field of a request: a member of the body, such as `destination.crypto.address`, or a parameter. A list gives the names
 * of the path one by one, for names with a dot; an empty list is the whole body.
 */
type Field = string | readonly string[]

/** A refusal, thrown anywhere and answered to the client. `detail` names the field and the rule. */
export class Problem extends Error {
  readonly slug: ProblemSlug
  readonly detail: string
  readonly meta: Record<string, unknown> | undefined
  readonly headers: Record<string, string>
  errors: FieldError[] | undefined
  /** Of not-found: the id of the record that the request names. */
  missing: string | undefined

  constructor(
    slug: ProblemSlug,
    detail: string,
    meta?: Record<string, unknown>,
    headers: Record<string, string> = {},
  ) {
    super(`${slug}: ${detail}`)
    this.slug = slug
    this.detail = detail
    this.meta = meta
    this.headers = headers
  }

  get status(): number {
    return PROBLEMS[this.slug].status
  }

  /** Names the fields that `detail` is about. */
  at(...fields: Field[]): this {
    this.errors = fields.map((field) => ({
      pointer: pointerTo(typeof field === 'string' ? field.split('.') : field),
      detail: this.detail,
    }))
    return this
  }

  /** The RFC 9457 body. The type of a typed problem is the URL of its page. A 5xx problem carries the request's id. */
  body(baseUrl: string, request_id?: string): ProblemBody {
    const { title, status, explanation } = PROBLEMS[this.slug]
    const type = explanation === undefined ? 'about:blank' : `${baseUrl}/problems/${this.slug}`
    const meta = request_id === undefined ? this.meta : { ...this.meta, request_id }
    return {
      type,
      title,
      status,
      detail: this.detail,
      ...(meta && { meta }),
      ...(this.errors && { errors: this.errors }),
    }
  }
}

/** One constructor for each problem, so that the shape of its `meta` is defined once. */
export const problem = {
  /** `fields` are those that `detail` is about. */
  badRequest: (detail: string, ...fields: Field[]) => {
    const refusal = new Problem('bad-request', detail)
    return fields.length === 0 ? refusal : refusal.at(...fields)
  },
  unauthorized: (detail: string, wwwAuthenticate: string) =>
    new Problem('unauthorized', detail, undefined, { 'www-authenticate': wwwAuthenticate }),
  forbidden: (detail: string) => new Problem('forbidden', detail),
  /** Any scope of `required` is sufficient. `meta` and the challenge name the first. */
  missingScope: (required: readonly string[], found: readonly string[]) =>
    new Problem(
      'forbidden',
      `the access token lacks a scope: required ${required.join(' or ')}, found ${found.length === 0 ? 'none' : found.join(' ')}`,
      { required_scope: required[0], found_scopes: [...found] },
      { 'www-authenticate': `Bearer realm="bursar", error="insufficient_scope", scope="${required[0]}"` },
    ),
  notFound: (what: string, id?: string) =>
    Object.assign(
      new Problem('not-found', id === undefined ? `${what} not found` : `${what} ${id} not found`),
      {
        missing: id,
      },
    ),
  methodNotAllowed: (method: string, allow: string) =>
    new Problem('method-not-allowed', `${method} is not allowed here; allowed: ${allow}`, undefined, {
      allow,
    }),
  requestTimeout: () =>
    new Problem('request-timeout', 'the request took too long to arrive; nothing was changed'),
  headersTooLarge: (limit: number) =>
    new Problem(
      'request-header-fields-too-large',
      `the request line and headers are larger than ${limit} bytes`,
    ),
  conflict: (detail: string) => new Problem('conflict', detail),
  payloadTooLarge: (limit: number) =>
    new Problem('payload-too-large', `the body is larger than ${limit} bytes`),
  unsupportedMediaType: (accepted: string) =>
    new Problem('unsupported-media-type', `the body needs the header Content-Type: ${accepted}`),
  encodedBody: () => new Problem('unsupported-media-type', 'the body must have no Content-Encoding'),
  tooManyRequests: (detail: string, waitSeconds: number) =>
    new Problem('too-many-requests', detail, undefined, { 'retry-after': String(Math.ceil(waitSeconds)) }),
  internalError: () =>
    new Problem('internal-error', 'an internal error occurred; the log has it under the request id'),
  unavailable: (detail: string, cause?: unknown) =>
    Object.assign(new Problem('unavailable', detail, undefined, { 'retry-after': '1' }), { cause }),

  exceedPrecision: (field: string, meta: { asset: string; decimals: number }) =>
    new Problem(
      'exceed-precision',
      `${field} has more than ${meta.decimals} decimals, the maximum for ${meta.asset}`,
      meta,
    ).at(field),
  /** `amount` is the amount that would have been sent. `what` names it in the message, where `field` does not suffice. */
  belowMinimum: (field: string, meta: { asset: string; minimum: string; amount: string }, what = field) =>
    new Problem('below-min-withdraw-limit', `${what} is below the minimum of ${meta.minimum} ${meta.asset}`, {
      ...meta,
      limit: meta.minimum,
    }).at(field),
  aboveMaximum: (field: string, meta: { asset: string; maximum: string; amount: string }, what = field) =>
    new Problem(
      'exceed-max-withdraw-limit',
      `${what} is above the maximum of ${meta.maximum} ${meta.asset}`,
      {
        ...meta,
        limit: meta.maximum,
      },
    ).at(field),
  /** `fault` describes the error in the text; `refused` is the reason not to pay a valid address of the network. */
  unsupportedAddress: (
    field: string,
    meta: { destination_address: string; crypto_network: string },
    why: { fault: string } | { refused: string },
  ) =>
    new Problem(
      'unsupported-address',
      'fault' in why
        ? `${field} is not an address of ${meta.crypto_network}: ${why.fault}`
        : `${field} cannot be paid: ${why.refused}`,
      { ...meta, address: meta.destination_address, reason: 'fault' in why ? why.fault : why.refused },
    ).at(field),
  unsupportedNetwork: (field: string, meta: { asset: string; crypto_network: string; supported: string[] }) =>
    new Problem(
      'unsupported-network',
      `${field} ${meta.crypto_network} does not support ${meta.asset}`,
      meta,
    ).at(field),
  insufficientFunds: (meta: { profile_id: string; asset: string; available: string; needed: string }) =>
    new Problem(
      'insufficient-funds',
      `the profile has ${meta.available} ${meta.asset} available and ${meta.needed} are needed`,
      meta,
    ),
  notPaidIn: (
    network: string,
    meta: { profile_id: string; asset: string; available: string; needed: string },
  ) =>
    new Problem(
      'insufficient-funds',
      `${network} is a real network, and a sandbox pays no more over it than has come in over it for the customer: ${meta.available} ${meta.asset} are left and ${meta.needed} are needed`,
      meta,
    ),
  /** `expired_at` is given for a quote that was not used. */
  expired: (detail: string, meta: { fee_id: string; expired_at?: string }) =>
    new Problem('expired', detail, meta),
  identityVerificationRequired: (meta: {
    ref_path: 'identity_id' | 'account_id' | 'profile_id' | 'from_identity_id' | 'from_account_id'
    identity_id: string
    current_status: string
  }) =>
    new Problem(
      'identity-verification-required',
      `identity ${meta.identity_id} is ${meta.current_status}: nothing can be withdrawn for it, and it is given no deposit address, until it is APPROVED`,
      meta,
    ),
  disabled: (
    what: 'customer' | 'profile' | 'account' | 'identity' | 'fiat account',
    id: string,
    status: string,
  ) => new Problem('disabled', `${what} ${id} is ${status}: nothing can be withdrawn for it`, { id, status }),
  deactivated: (profile_id: string) =>
    new Problem(
      'disabled',
      `profile ${profile_id} is DEACTIVATED: nothing is withdrawn from it or moved to it, and it gets no deposit addresses, instructions or rules`,
      { id: profile_id, status: 'DEACTIVATED' },
    ),
  /** `why` completes the sentence: the rule blocks the payment, or requires what it cannot have. */
  policyRefused: (why: string, meta: { rule_id: string; policy_version: number }) =>
    new Problem('policy-refused', `rule ${meta.rule_id} of the policy ${why}`, meta),
  /** The error handler adds `differs`, because only there both the request and the record are known. */
  alreadyExists: (field: string, existing: unknown, differs?: string[]) =>
    new Problem('already-exists', `a record with this ${field} exists; meta.existing holds it`, {
      existing,
      ...(differs && { differs }),
    }),
  approvalRequired: (meta: { approval_id: string; status: string; approvals: number; required: number }) =>
    new Problem(
      'approval-required',
      `approval ${meta.approval_id} is ${meta.status} with ${meta.approvals} of ${meta.required} approvers; nothing was changed`,
      meta,
    ),
  approvalEnded: (meta: { id: string; status: string }, why: string) =>
    new Problem('approval-ended', `approval ${meta.id} ${why}`, meta),
  notCancellable: (meta: { id: string; status: string }, why: string) =>
    new Problem('not-cancellable', `transfer ${meta.id} ${why}`, meta),
}
