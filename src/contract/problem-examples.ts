import { EXAMPLE } from './example-records.ts'
import { problem, type Problem, type ProblemSlug } from './problems.ts'

/** One example of each problem, for the API reference and the pages at /problems/<slug>. */
export const PROBLEM_EXAMPLES: Record<ProblemSlug, Problem> = {
  'bad-request': problem.badRequest('limit must be at most 1000', 'limit'),
  unauthorized: problem.unauthorized('the Authorization header is missing', 'Bearer realm="bursar"'),
  forbidden: problem.missingScope(['funding:read_profile'], ['transfer:read_transfer']),
  'not-found': problem.notFound('profile', EXAMPLE.profile_id),
  'method-not-allowed': problem.methodNotAllowed('DELETE', 'GET, HEAD, POST'),
  'request-timeout': problem.requestTimeout(),
  conflict: problem.conflict('2 sessions of other processes use the database: stop them first'),
  'payload-too-large': problem.payloadTooLarge(65_536),
  'unsupported-media-type': problem.unsupportedMediaType('application/json'),
  'request-header-fields-too-large': problem.headersTooLarge(131_072),
  'too-many-requests': problem.tooManyRequests('the rate limit of this client is 100 requests per second', 1),
  'internal-error': problem.internalError(),
  unavailable: problem.unavailable('the database does not answer; try again'),
  'exceed-precision': problem.exceedPrecision('amount', { asset: 'USD', decimals: 2 }),
  'below-min-withdraw-limit': problem.belowMinimum('amount', {
    asset: 'USDP',
    minimum: '1',
    amount: '0.5',
  }),
  'exceed-max-withdraw-limit': problem.aboveMaximum('amount', {
    asset: 'USDP',
    maximum: '1000000',
    amount: '1000001',
  }),
  'unsupported-address': problem.unsupportedAddress(
    'destination_address',
    {
      destination_address: 'bc1qqv9pzxqlyckngw6zf9g9whn9d3eh4qvg8d8phl',
      crypto_network: 'ETHEREUM',
    },
    { fault: 'it must be 0x and 40 hexadecimal digits' },
  ),
  'unsupported-network': problem.unsupportedNetwork('crypto_network', {
    asset: 'USDP',
    crypto_network: 'BITCOIN',
    supported: ['ETHEREUM', 'SOLANA'],
  }),
  'insufficient-funds': problem.insufficientFunds({
    profile_id: EXAMPLE.profile_id,
    asset: 'USD',
    available: '12.5',
    needed: '26',
  }),
  expired: problem.expired('the fee quote expired at 2026-01-31T09:30:00.123456Z', {
    fee_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    expired_at: '2026-01-31T09:30:00.123456Z',
  }),
  'identity-verification-required': problem.identityVerificationRequired({
    ref_path: 'identity_id',
    identity_id: EXAMPLE.identity_id,
    current_status: 'PENDING',
  }),
  disabled: problem.disabled('identity', EXAMPLE.identity_id, 'DISABLED'),
  'policy-refused': problem.policyRefused('blocks this payment', {
    rule_id: 'day-limit',
    policy_version: 3,
  }),
  'already-exists': problem.alreadyExists(
    'ref_id',
    { id: EXAMPLE.transfer_id, ref_id: 'payout-2026-0001', amount: '10', status: 'COMPLETED' },
    ['amount'],
  ),
  'approval-required': problem.approvalRequired({
    approval_id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    status: 'PENDING',
    approvals: 0,
    required: 2,
  }),
  'approval-ended': problem.approvalEnded(
    { id: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f', status: 'EXPIRED' },
    'is EXPIRED',
  ),
  'not-cancellable': problem.notCancellable(
    { id: EXAMPLE.transfer_id, status: 'PENDING' },
    'is signed: it may be paid already',
  ),
}

/** Descriptions of the members of `meta`, for the problem pages. */
export const PROBLEM_META: Partial<Record<ProblemSlug, Record<string, string>>> = {
  'exceed-precision': {
    asset: 'The asset.',
    decimals: 'The most decimals of an amount in it.',
  },
  'below-min-withdraw-limit': {
    asset: 'The asset.',
    minimum: 'The smallest amount.',
    limit: 'The same as minimum.',
    amount: 'The amount that would have been sent.',
  },
  'exceed-max-withdraw-limit': {
    asset: 'The asset.',
    maximum: 'The largest amount.',
    limit: 'The same as maximum.',
    amount: 'The amount that would have been sent.',
  },
  'unsupported-address': {
    destination_address: 'The address as it was sent.',
    crypto_network: 'The network that does not accept the address.',
    address: 'The same as destination_address.',
    reason: 'What is wrong with the address.',
  },
  'unsupported-network': {
    asset: 'The asset.',
    crypto_network: 'The requested network.',
    supported: 'The networks that support the asset.',
  },
  'insufficient-funds': {
    profile_id: 'The profile.',
    asset: 'The asset of the balance.',
    available: 'The available balance of the profile.',
    needed: 'The amount that the movement takes, fee included.',
  },
  expired: { fee_id: 'The quote.', expired_at: 'When it expired, unless it was used.' },
  'identity-verification-required': {
    ref_path:
      'The request field that leads to the identity: identity_id, account_id (from_identity_id and from_account_id of an internal transfer) or profile_id.',
    identity_id: 'The identity.',
    current_status: 'Its status.',
  },
  disabled: { id: 'The account, identity or fiat account.', status: 'Its status.' },
  'approval-required': {
    approval_id: 'The approval to name in the same request, once enough approvers have approved it.',
    status: 'Its status.',
    approvals: 'How many approvers have approved it.',
    required: 'How many must.',
  },
  'approval-ended': { id: 'The approval.', status: 'Its status.' },
  'policy-refused': { rule_id: 'The rule.', policy_version: 'The version of the policy.' },
  'not-cancellable': { id: 'The transfer.', status: 'Its status.' },
  'already-exists': {
    existing: 'The existing record, in full, as its own operation answers it.',
    differs:
      'The members of this request whose values the record does not have. Members that it does not keep are not compared.',
  },
}
