import { Type, type Static } from 'typebox'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { Amount, AssetSymbol, Closed, OneOf, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { decimalsCounted, LIMIT_SUBJECTS, type Rule } from '../../governance/policy/policy-document.ts'
import { selectWindows, type CountedWindow } from '../../governance/policy/policy-windows.ts'
import { TransferType } from '../../money/ledger/transfer.ts'
import { GOVERNED_TYPES } from '../../money/movements/decision.ts'

const ITEMS_MAX = 1_000

const Types = OneOf(GOVERNED_TYPES, 'Transfer type.')

const Utilization = Type.Object({
  id: Type.String({ description: 'Id of the limit for its subject.' }),
  rule_id: Type.String({ description: 'The rule.' }),
  action: OneOf(['ALLOW', 'BLOCK', 'APPROVE'], 'What the rule does.'),
  transfer_types: Type.Array(Types, { description: 'The payments that the rule can fit.' }),
  per: OneOf(LIMIT_SUBJECTS, 'Whose payments are counted together.'),
  subject: Type.Optional(
    Type.String({ description: 'The profile, identity or destination; absent for the whole customer.' }),
  ),
  period_seconds: Type.Integer({ description: 'The length of the period; 0: each payment.' }),
  limit: Amount('The limit.'),
  remaining: Amount('What is left of it now.'),
  limit_asset: AssetSymbol,
})

export const listLimitUtilizations = operation({
  method: 'GET',
  url: '/v2/transfer/limits/utilizations',
  scope: 'transfer:read_transfer_limit',
  tag: 'Transfers',
  summary: 'List Transfer Limits',
  description:
    'Lists the limits of the policy with what is left of them, in the order of the rules: one item for each subject with payments in the period, 1,000 at most.',
  query: Closed({
    // Types that no policy governs have no limits.
    transfer_type: Type.Optional(TransferType),
    profile_id: Type.Optional(Uuid('Only the limits that can concern this profile.')),
  }),
  reply: Type.Object({ items: Type.Array(Utilization) }),
  problems: ['unavailable'],
  async run({ query: { transfer_type, profile_id }, customerId, db, policies }) {
    const policy = await policies.newest(db, customerId)
    const rules = (policy?.document.rules ?? []).filter(
      ({ limit, match = {} }) =>
        limit !== undefined &&
        (transfer_type === undefined ||
          (match.transfer_types ?? GOVERNED_TYPES).some((type) => type === transfer_type)) &&
        (profile_id === undefined || (match.profile_ids ?? [profile_id]).includes(profile_id)),
    )
    if (rules.length === 0) return { items: [] }
    const counted = await selectWindows(
      db,
      customerId,
      rules.map(({ id }) => id),
      ITEMS_MAX,
    )
    return { items: rules.flatMap((rule) => itemsOf(rule, counted, profile_id)).slice(0, ITEMS_MAX) }
  },
})

function itemsOf(
  { id: rule_id, action, match = {}, limit }: Rule,
  counted: readonly CountedWindow[],
  profileId: string | undefined,
): Static<typeof Utilization>[] {
  const { amount, asset: limit_asset, period_seconds, per = 'CUSTOMER' } = limit!
  const decimals = decimalsCounted(limit!)
  const most = parseAmount(amount, decimals)!
  const item = (subject: string | undefined, used: bigint) => ({
    id: subject === undefined ? rule_id : `${rule_id}:${subject}`,
    rule_id,
    action,
    transfer_types: match.transfer_types ?? [...GOVERNED_TYPES],
    per,
    ...(subject !== undefined && { subject }),
    period_seconds,
    limit: formatAmount(most, decimals),
    remaining: formatAmount(used < most ? most - used : 0n, decimals),
    limit_asset,
  })
  if (period_seconds === 0) return [item(undefined, 0n)]
  const usedBy = new Map<string, bigint>()
  for (const { key, window, nowMicros } of counted)
    if (
      key.rule_id === rule_id &&
      key.asset === limit_asset &&
      (key.subject === per || key.subject.startsWith(`${per} `))
    )
      usedBy.set(key.subject, window.sumAt(nowMicros, period_seconds * 1_000_000))
  if (per === 'CUSTOMER') return [item(undefined, usedBy.get(per) ?? 0n)]
  if (per === 'PROFILE' && profileId !== undefined)
    return [item(profileId, usedBy.get(`PROFILE ${profileId}`) ?? 0n)]
  return [...usedBy].map(([subject, used]) => item(subject.slice(per.length + 1), used))
}
