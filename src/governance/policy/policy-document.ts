import { hash } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { parseAmount } from '../../contract/assets/amount.ts'
import { CRYPTO_NETWORKS, findAsset } from '../../contract/assets/catalogue.ts'
import { VALUE_DECIMALS } from '../../contract/assets/usd-value.ts'
import { canonicalJson } from '../../contract/canonical-json.ts'
import { Amount, AssetSymbol, Closed, Lines, OneOf, Text, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { GOVERNED_TYPES } from '../../money/movements/decision.ts'

/** What a policy says: its rules, and the terms of approvals (API behaviour, Policy). */

/** Whose payments a limit can count together. */
export const LIMIT_SUBJECTS = ['PROFILE', 'IDENTITY', 'CUSTOMER', 'DESTINATION'] as const

const APPROVALS_MAX = 10
/** The longest period of a limit: a leap year. */
const PERIOD_SECONDS_MAX = 31_622_400
/** Limits of the deadline of approvals: a minute, and 30 days. */
export const DEADLINE_SECONDS = { minimum: 60, maximum: 2_592_000 }
/** The longest cooling time of a new address: 30 days. */
const COOLING_SECONDS_MAX = 2_592_000
const RULES_MAX = 100
const VALUES_MAX = 100

const Values = <T extends Parameters<typeof Type.Array>[0]>(item: T, description: string) =>
  Type.Optional(Type.Array(item, { minItems: 1, maxItems: VALUES_MAX, uniqueItems: true, description }))

const Approvals = Type.Integer({
  minimum: 1,
  maximum: APPROVALS_MAX,
  description: 'How many different approvers must say yes.',
})
const Role = Type.String({
  minLength: 1,
  maxLength: 32,
  pattern: '^[A-Z][A-Z0-9_]*$',
  inWords: 'must be capitals, digits and underscores',
  description: 'Role of the approvers who decide; APPROVER by default.',
})

const Match = Closed(
  {
    client_ids: Values(
      Text(100, 'Id.', 1),
      'Ids of the API clients or operators that make the payment. An orchestration counts as made by the client that made it or its rule.',
    ),
    profile_ids: Values(Uuid('Profile.'), 'Profiles that pay.'),
    identity_ids: Values(
      Uuid('Identity.'),
      "Identities that pay: the payment's own, and that of its account and of its profile's account.",
    ),
    transfer_types: Values(OneOf(GOVERNED_TYPES, 'Transfer type.'), 'Kinds of payment.'),
    assets: Values(AssetSymbol, 'Assets that are paid.'),
    networks: Values(
      OneOf([...CRYPTO_NETWORKS, 'WIRE'], 'Network.'),
      'Networks that the payment goes over. Internal transfers go over none.',
    ),
    destination: Type.Optional(
      Type.Union(
        [
          Type.Enum(['ANY', 'ADDRESS_BOOK'], { type: 'string' }),
          Type.Array(Uuid('Id.'), { minItems: 1, maxItems: VALUES_MAX, uniqueItems: true }),
        ],
        {
          description:
            'ANY; ADDRESS_BOOK: an APPROVED address of the address book; or a list of ids of such addresses, of fiat accounts and of profiles.',
        },
      ),
    ),
  },
  {
    description:
      'The payments that the rule fits. An absent member fits all; a rule without any fits every payment.',
  },
)

const Limit = Closed({
  amount: Amount('The limit. The total of a payment counts, its fee included.'),
  asset: {
    ...AssetSymbol,
    description:
      'USD: the value in USD of payments of any asset. Another asset: payments of that asset only.',
    examples: ['USD'],
  },
  period_seconds: Type.Integer({
    minimum: 0,
    maximum: PERIOD_SECONDS_MAX,
    description: 'The limit holds for all payments of any period of this length; 0: for each one.',
  }),
  per: Type.Optional(
    OneOf(
      LIMIT_SUBJECTS,
      'Whose payments are counted together; CUSTOMER by default. PROFILE is no limit of a customer: who makes profiles and moves money between them has it several times.',
    ),
  ),
})
export type Limit = Static<typeof Limit>

const RuleBody = {
  description: Type.Optional(Lines(200, 'Why the rule exists.')),
  match: Type.Optional(Match),
  limit: Type.Optional(Limit),
  action: OneOf(
    ['ALLOW', 'BLOCK', 'APPROVE'],
    'With a limit, ALLOW decides while the payment stays within it, BLOCK and APPROVE when it goes beyond it.',
  ),
  approvals: Type.Optional(Approvals),
  role: Type.Optional(Role),
}
const RuleId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
  inWords: 'must be letters, digits, dots, underscores and hyphens',
  description: 'Id of the rule, which refusals name. Its counts go with it from version to version.',
})

const NewRule = Closed({ id: Type.Optional(RuleId), ...RuleBody })
const Rule = Type.Object({ id: RuleId, ...RuleBody })
export type Rule = Static<typeof Rule>

/** The changes that can need approval. */
export const CHANGE_SUBJECTS = [
  'POLICY',
  'APPROVERS',
  'WEBHOOKS',
  'CREDENTIALS',
  'OPERATORS',
  'ADDRESS_BOOK',
] as const
export type ChangeSubject = (typeof CHANGE_SUBJECTS)[number]

const Rest = {
  approvals: Type.Optional(
    Closed(
      {
        deadline_seconds: Type.Integer({
          ...DEADLINE_SECONDS,
          description: 'How long approvers have to decide; a day by default.',
        }),
      },
      { description: 'Terms of approvals.' },
    ),
  ),
  address_book: Type.Optional(
    Closed(
      {
        cooling_seconds: Type.Integer({
          minimum: 0,
          maximum: COOLING_SECONDS_MAX,
          description: 'How long a new address waits before it can be paid by its id.',
        }),
      },
      { description: 'Terms of the address book.' },
    ),
  ),
  changes: Type.Optional(
    Closed(
      {
        subjects: Type.Array(OneOf(CHANGE_SUBJECTS, 'What is changed.'), {
          minItems: 1,
          maxItems: CHANGE_SUBJECTS.length,
          uniqueItems: true,
        }),
        approvals: Approvals,
        role: Type.Optional(Role),
      },
      { description: 'Changes that need approval.' },
    ),
  ),
}

/** A policy as clients send it: the ids of its rules may be left out. */
export const NewPolicyDocument = Closed({
  rules: Type.Array(NewRule, {
    maxItems: RULES_MAX,
    description: 'The rules, in order: the first that decides wins. A payment that none decides is allowed.',
  }),
  ...Rest,
})
export type NewPolicyDocument = Static<typeof NewPolicyDocument>
export const PolicyDocument = Type.Object({ rules: Type.Array(Rule), ...Rest })
export type PolicyDocument = Static<typeof PolicyDocument>

/** The role of approvers where the policy names none. */
export const DEFAULT_ROLE = 'APPROVER'
/** How long approvers have where the policy does not say: a day. */
export const DEFAULT_DEADLINE_SECONDS = 86_400
/** Decimals of values in USD in limits. */
const USD_DECIMALS = 2

/** Returns the decimals in which payments are counted for a limit. */
export const decimalsCounted = ({ asset }: Limit): number =>
  asset === 'USD' ? VALUE_DECIMALS : findAsset(asset)!.decimals

/**
 * Checks a document beyond its schema, and gives an id to each rule without one: a digest of the rule, so that the same
 * rule keeps its id. Throws bad-request, which names the member.
 */
export function completeDocument(document: NewPolicyDocument): PolicyDocument {
  const ids = new Set(document.rules.flatMap(({ id }) => id ?? []))
  const given = document.rules.length - document.rules.filter(({ id }) => id === undefined).length
  if (ids.size < given) throw problem.badRequest('rules: each rule must have an id of its own', 'rules')
  const rules = document.rules.map((rule, index): Rule => {
    requireSense(rule, `rules.${index}`)
    if (rule.id !== undefined) return rule as Rule
    const digest = hash('sha256', canonicalJson(rule), 'hex').slice(0, 12)
    let id = `rule-${digest}`
    for (let copy = 2; ids.has(id); copy++) id = `rule-${digest}-${copy}`
    ids.add(id)
    return { ...rule, id }
  })
  return { ...document, rules }
}

function requireSense(
  { match = {}, limit, action, approvals, role }: NewPolicyDocument['rules'][number],
  path: string,
): void {
  for (const asset of match.assets ?? []) requireAsset(asset, `${path}.match.assets`)
  if (action === 'APPROVE' && approvals === undefined)
    throw problem.badRequest(`${path}.approvals is required for the action APPROVE`, `${path}.approvals`)
  if (action !== 'APPROVE' && (approvals ?? role) !== undefined)
    throw problem.badRequest(
      `${path}.${approvals === undefined ? 'role' : 'approvals'} goes with the action APPROVE only`,
      `${path}.${approvals === undefined ? 'role' : 'approvals'}`,
    )
  if (limit === undefined) return
  requireAsset(limit.asset, `${path}.limit.asset`)
  if (parseAmount(limit.amount, decimalsOfLimit(limit)) === undefined)
    throw problem.badRequest(
      `${path}.limit.amount has more than ${decimalsOfLimit(limit)} decimals, the maximum for ${limit.asset}`,
      `${path}.limit.amount`,
    )
}

function requireAsset(symbol: string, path: string): void {
  if (findAsset(symbol) === undefined) throw problem.badRequest(`${path}: asset ${symbol} is unknown`, path)
}

/** Returns the decimals of a limit's amount: those of its asset, two for values in USD. */
const decimalsOfLimit = ({ asset }: Limit): number =>
  asset === 'USD' ? USD_DECIMALS : findAsset(asset)!.decimals
