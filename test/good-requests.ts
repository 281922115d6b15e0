import type { Operation } from '../src/http/operation.ts'
import { OPERATIONS as OF_THE_API } from '../src/program/app.ts'
import type { ApprovalDecision } from '../src/contract/approval.ts'
import { CLUSTER } from './cluster.ts'
import {
  ACCOUNT_MEMBERS,
  ACCOUNTS,
  ADDRESSES,
  APPROVALS,
  BOOK,
  CONVERSIONS,
  CREDENTIALS,
  EVENTS,
  FIAT_ACCOUNTS,
  IDENTITIES,
  INSTITUTION_MEMBERS,
  INSTRUCTIONS,
  ORCHESTRATIONS,
  PAYMENTS,
  PROFILES,
  REWARDS,
  RULES,
  STATEMENTS,
  TRANSFERS,
  WEBHOOKS,
} from './paths.ts'
import { withdrawalOf } from './support.ts'
import {
  conversionOf,
  depositOf,
  ETHEREUM_ADDRESS,
  fiatAccountOf,
  hookOf,
  orchestrationOf,
  PERSON,
  quoteOf,
  ruleOf,
  world,
  type Kind,
  type TestApproval,
} from './world.ts'

// For each operation a request of the world's customer that is accepted (world.ts).

export interface Request {
  path: string
  query?: string
  body?: object
  /** Sent unchanged, in place of `body`. */
  payload?: string
  headers?: Record<string, string>
}
/** The difference from the good request: `body` and `query` are merged into its own. */
export type Change = Partial<Request> | (() => Partial<Request>)

// The clock of a distributed database is not moved.
export const OPERATIONS = OF_THE_API.filter(({ url }) => CLUSTER.length === 0 || url !== '/v2/sandbox/clock')
export const nameOf = ({ method, url }: { method: string; url: string }) => `${method} ${url}`
export const PAGED = OPERATIONS.filter(({ query }) => query?.properties.page_cursor)
/** What stands under a path: its name in a refusal, and the record that a good request names. The first that fits counts. */
const UNDER: [path: string, word: string, kind: Kind][] = [
  [PROFILES, 'profile', 'profile'],
  ['/v2/sandbox/profiles', 'profile', 'profile'],
  [IDENTITIES, 'identity', 'identity'],
  [ACCOUNTS, 'account', 'account'],
  [INSTITUTION_MEMBERS, 'institution member', 'institution_member'],
  [ACCOUNT_MEMBERS, 'account member', 'account_member'],
  [INSTRUCTIONS, 'fiat deposit instructions', 'instructions'],
  [ADDRESSES, 'deposit address', 'address'],
  [FIAT_ACCOUNTS, 'fiat account', 'fiat_account'],
  [RULES, 'orchestration rule', 'rule'],
  [ORCHESTRATIONS, 'orchestration', 'orchestration'],
  [CONVERSIONS, 'conversion', 'conversion'],
  [TRANSFERS, 'transfer', 'transfer'],
  ['/v2/transfer/volumes', 'transfer', 'transfer'],
  ['/v2/reports', 'transfer', 'transfer'],
  [BOOK, 'crypto destination address', 'book'],
  [REWARDS, 'statement', 'statement'],
  [PAYMENTS, 'payment', 'statement'],
  [STATEMENTS, 'statement', 'statement'],
  [EVENTS, 'event', 'event'],
  [WEBHOOKS, 'webhook', 'webhook'],
  [APPROVALS, 'approval', 'approval'],
  [CREDENTIALS, 'API client', 'client'],
]
/** Returns the name and the kind of what a path names, or lists. */
export function namedBy(url: string): { word: string; kind: Kind } {
  const found = UNDER.find(([path]) => url === path || url.startsWith(`${path}/`))
  if (found === undefined) throw new Error(`nothing is known of ${url}`)
  return { word: found[1], kind: found[2] }
}

/** The parameter of a path that names a record. */
export const idIn = (url: string): 'id' | 'client_id' | undefined =>
  /:(id|client_id)\b/.exec(url)?.[1] as 'id' | 'client_id' | undefined
/** The operation's path with this id. */
export const pathWith = (url: string, id: string): string =>
  url
    .replace(/:(id|client_id)\b/, () => id)
    .replace(':delivery_id', () => world.own.event.id)
    .replace(':asset', 'USD')
    .replace(':market', 'BTCUSD')

/** Fields whose value is the id of a record: its name in a refusal, and its kind. */
const NAMED_IN_BODIES: Record<string, [word: string, kind: Kind]> = {
  profile_id: ['profile', 'profile'],
  identity_id: ['identity', 'identity'],
  institution_id: ['identity', 'institution'],
  account_id: ['account', 'account'],
  fee_id: ['fee quote', 'quote'],
  fiat_account_id: ['fiat account', 'fiat_account'],
  webhook_id: ['webhook', 'webhook'],
}
/** Fields whose record is refused in another way than by 404, or may be another customer's. */
const NAMED_OTHERWISE: Record<string, string[]> = {
  'POST /v2/transfer/paxos': ['to_profile_id'],
  'POST /v2/orchestration/orchestrations': ['profile_id'],
  'PUT /v2/transfer/fiat-accounts/:id': ['identity_id', 'account_id'],
}
/** Returns the members of an operation's body that name a record of the customer, which must exist. */
export const referencesOf = (operation: Operation): { field: string; word: string; kind: Kind }[] =>
  Object.keys(operation.body?.properties ?? {}).flatMap((field) => {
    const named = NAMED_IN_BODIES[field.replace(/^(from|to)_/, '')]
    return named === undefined || NAMED_OTHERWISE[nameOf(operation)]?.includes(field)
      ? []
      : { field, word: named[0], kind: named[1] }
  })

const behind = (identity_id: string) => ({ identity_id, roles: ['TRUSTEE'] })
const own = (kind: Kind) => world.own[kind].id
const decision = (kind: ApprovalDecision) => () => {
  const { approver_id, signed } = world.own.approval as TestApproval
  return { body: { approver_id, jws: signed[kind] } }
}

/** The operations whose good request is more than their path with the customer's own record. */
const GOOD: Record<string, () => Partial<Request>> = {
  'POST /v2/transfer/crypto-withdrawals': () => ({ body: withdrawalOf(world.customer) }),
  'POST /v2/transfer/crypto-withdrawals/bulk': () => ({
    body: { withdrawals: [withdrawalOf(world.customer, { ref_id: 'one of many' })] },
  }),
  'POST /v2/transfer/fees/crypto-withdrawal': () => ({ body: quoteOf({}) }),
  'POST /v2/sandbox/fiat-deposits': () => ({ body: depositOf(world.own.instructions.memo_id) }),
  'POST /v2/sandbox/profiles/:id/deposit': () => ({
    body: { asset: 'USDP', amount: '10', crypto_network: 'ETHEREUM' },
  }),
  'POST /v2/sandbox/customers': () => ({ body: { name: 'Suite' } }),
  'POST /v2/sandbox/clock': () => ({ body: { advance: 'PT0S' } }),
  'POST /v2/profiles': () => ({ body: { nickname: 'Third' } }),
  'PUT /v2/profiles/:id': () => ({
    path: `${PROFILES}/${own('second')}`,
    body: { description: 'Other' },
  }),
  'PUT /v2/profiles/:id/deactivate': () => ({ path: `${PROFILES}/${world.deactivated}/deactivate` }),
  'GET /v2/statements': () => ({ query: `customer_id=${world.customer.customer_id}` }),
  'PUT /v2/policy': () => ({ body: { rules: [] } }),
  'PUT /v2/transfer/crypto-destination-address': () => ({
    body: { crypto_network: 'ETHEREUM', address: ETHEREUM_ADDRESS },
  }),
  'POST /v2/api-creds/credentials/:client_id/rotate': () => ({ body: {} }),
  'POST /v2/webhooks': () => ({ body: hookOf() }),
  'PUT /v2/webhooks/:id': () => ({ body: { name: 'Other' } }),
  'DELETE /v2/webhooks/:id': () => ({ path: `${WEBHOOKS}/${own('second_webhook')}` }),
  'POST /v2/webhooks/:id/rotate-secret': () => ({ body: {} }),
  'POST /v2/webhooks/:id/test': () => ({ body: { type: 'statement.paid' } }),
  'POST /v2/webhooks/:id/recover': () => ({ body: { since: '2026-01-01T00:00:00Z' } }),
  'POST /v2/events/:id/resend': () => ({ body: {} }),
  'POST /v2/approvals/:id/approve': decision('APPROVE'),
  'POST /v2/approvals/:id/reject': decision('REJECT'),
  'GET /v2/search': () => ({ query: 'q=x' }),
  'POST /v2/transfer/transfers/:id/cancel': () => ({ path: `${TRANSFERS}/${own('cancellable')}/cancel` }),
  'POST /v2/transfer/fiat-deposit-instructions': () => ({
    body: { profile_id: world.customer.profile_id, fiat_network: 'WIRE' },
  }),
  'POST /v2/transfer/internal': () => ({ body: movedTo(own('second')) }),
  'POST /v2/transfer/paxos': () => ({ body: movedTo(world.others.second.id) }),
  'POST /v2/conversion/stablecoins': () => ({ body: conversionOf(world.customer) }),
  'POST /v2/transfer/deposit-addresses': () => ({
    body: { profile_id: world.customer.profile_id, crypto_network: 'ETHEREUM' },
  }),
  'POST /v2/transfer/fiat-accounts': () => ({ body: fiatAccountOf('1') }),
  'PUT /v2/transfer/fiat-accounts/:id': () => ({ body: { metadata: { a: 'b' } } }),
  'DELETE /v2/transfer/fiat-accounts/:id': () => ({ path: `${FIAT_ACCOUNTS}/${world.deleted}` }),
  'POST /v2/transfer/fiat-withdrawals': () => ({
    body: {
      profile_id: world.customer.profile_id,
      asset: 'USD',
      fiat_account_id: own('fiat_account'),
      amount: '10',
    },
  }),
  'POST /v2/identity/identities': () => ({ body: { ref_id: 'new', person_details: PERSON } }),
  'PUT /v2/identity/identities/:id': () => ({
    path: `${IDENTITIES}/${own('institution')}`,
    body: { institution_details: { email: 'new@example.com' } },
  }),
  'POST /v2/identity/institution-members': () => ({
    body: { institution_id: own('institution'), members: [behind(world.barred.DENIED.identity)] },
  }),
  'PUT /v2/identity/identities/:id/sandbox-status': () => ({ body: { status: 'APPROVED' } }),
  'POST /v2/identity/accounts': () => ({ body: { account: { identity_id: own('identity') } } }),
  'PUT /v2/identity/accounts': () => ({ body: { account: { id: own('joint'), description: 'new' } } }),
  'POST /v2/identity/account-members': () => ({
    body: {
      account_id: own('joint'),
      members: [{ identity_id: world.barred.DENIED.identity, roles: [] }],
    },
  }),
  'POST /v2/orchestration/rules': () => ({ body: ruleOf(world.customer) }),
  'POST /v2/orchestration/orchestrations': () => ({ body: orchestrationOf(world.customer) }),
}
const movedTo = (to_profile_id: string) => ({
  asset: 'USD',
  amount: '10',
  from_profile_id: world.customer.profile_id,
  to_profile_id,
})

/** Returns a request of the world's customer that the operation accepts. */
export function goodOf({ method, url }: { method: string; url: string }): Request {
  const id = idIn(url) === undefined ? '' : world.own[namedBy(url).kind].id
  return { path: pathWith(url, id), ...GOOD[nameOf({ method, url })]?.() }
}

export const evaluated = <T extends object>(value: T | (() => T)): T =>
  typeof value === 'function' ? value() : value

export function changed(good: Request, change: Change): Request {
  const { body, query, ...rest } = evaluated(change)
  return {
    ...good,
    ...rest,
    ...(body !== undefined && { body: { ...good.body, ...body } }),
    ...(query !== undefined && { query: queryWith(good.query ?? '', query) }),
  }
}

/** The good query with the parameters of a change, which replace its own of the same name. No change is no query at all. */
export function queryWith(good: string, change: string): string {
  const named = (text: string) => text.split('&').map((part) => part.split('=')[0])
  const kept = good.split('&').filter((part) => part !== '' && !named(change).includes(part.split('=')[0]))
  return change === '' ? '' : [...kept, change].join('&')
}

export const urlOf = ({ path, query }: Request): string =>
  query === undefined || query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
