/**
 * Every action of the audit log (API behaviour, Audit log): the type of its subject, and what happened to the subject.
 * Names are only ever added, because customers filter by them: nothing records `customer.set_limit` any more.
 */
const VERBS_OF = {
  account: ['add_members', 'create', 'disable', 'enable', 'remove_member', 'update'],
  api_client: ['create', 'delete', 'disable', 'enable', 'rename', 'rotate'],
  approval: ['approve', 'create', 'expire', 'reject', 'use'],
  approver: ['add', 'revoke'],
  bank_line: ['match'],
  bank_statement: ['import'],
  customer: ['create', 'disable', 'enable', 'freeze', 'set_limit', 'unfreeze'],
  day: ['close'],
  deployment: ['advance_clock', 'change_issuer', 'migrate'],
  deposit_address: ['create'],
  destination_address: ['approve', 'create', 'reject', 'update'],
  event: ['resend'],
  fee_quote: ['create'],
  fiat_account: ['create', 'delete', 'update'],
  fiat_deposit_instructions: ['create'],
  identity: [
    'add_members',
    'approve',
    'create',
    'deny',
    'disable',
    'enable',
    'remove_member',
    'reopen',
    'set_status',
    'update',
  ],
  market: ['follow', 'import'],
  network: ['freeze', 'rescan', 'resume', 'unfreeze'],
  operator: ['create', 'disable', 'enable', 'link', 'set_role', 'sign_in'],
  orchestration: ['complete', 'create', 'fail'],
  orchestration_rule: ['create', 'delete'],
  passkey: ['create', 'delete'],
  platform: ['freeze', 'unfreeze'],
  policy: ['set'],
  policy_rule: ['refuse'],
  profile: ['create', 'deactivate', 'freeze', 'unfreeze', 'update'],
  /** Requests that were refused, and the number of refusals that have no record of their own. */
  request: ['omit', 'refuse'],
  reward_rate: ['set'],
  /** A request to the screening endpoint about a payment, and whether payments must be screened at all. */
  screening: ['ask', 'reject', 'require', 'waive'],
  session: ['revoke'],
  signing_key: ['create', 'retire'],
  master_key: ['replace'],
  statement: ['generate', 'pay', 'reverse'],
  sweep: ['settle'],
  transfer: [
    'acknowledge',
    'cancel',
    'complete',
    'create',
    'export',
    'fail',
    'mark_failed',
    'mark_paid',
    'mark_sent',
    'order',
    'replace',
    'resend',
    'resolve',
    'seal',
    'sign',
    'take',
    'void',
  ],
  webhook: ['create', 'delete', 'disable', 'recover', 'rotate_secret', 'test', 'update'],
} as const satisfies Record<string, readonly string[]>

type Verbs = typeof VERBS_OF
export type AuditSubject = keyof Verbs
/** `<subject>.<verb>`, such as `webhook.update`. */
export type AuditAction = { [Subject in AuditSubject]: `${Subject}.${Verbs[Subject][number]}` }[AuditSubject]

export const AUDIT_ACTIONS = Object.entries(VERBS_OF).flatMap(([subject, verbs]) =>
  verbs.map((verb) => `${subject}.${verb}`),
) as AuditAction[]

export const AUDIT_SUBJECTS = Object.keys(VERBS_OF) as AuditSubject[]

/** Returns the type of the record that an action changes. */
export const subjectOfAction = (action: AuditAction): AuditSubject =>
  action.slice(0, action.indexOf('.')) as AuditSubject
