import { Type } from 'typebox'
import { Closed } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { listByCreation, pageParameters, timeBounds, pageEnd } from '../../http/lists.ts'
import { conditionsOf, filterBy, operation, parametersOf } from '../operation.ts'
import { OrchestrationRule, RULE_COLUMNS, ruleToWire } from '../../money/records/orchestration-rule.ts'

/** No rule is PENDING or REJECTED here, but clients of platforms that review rules ask for these statuses. */
const StatusAsked = Type.Enum(['ACTIVE', 'DELETED', 'PENDING', 'REJECTED'], { type: 'string' })

const FILTERS = {
  ids: filterBy.ids('id', 'Filter by rule ids.'),
  ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
  profile_ids: filterBy.ids('profile_id', 'Filter by profiles.'),
  statuses: filterBy.values('status', 'Filter by statuses.', StatusAsked),
  profile_id: filterBy.ids('profile_id', 'Filter by profiles, as profile_ids does.'),
  status: filterBy.values('status', 'Filter by statuses, as statuses does.', StatusAsked),
  source_asset: filterBy.values('source_asset', 'Filter by source assets.'),
  destination_asset: filterBy.values('destination_asset', 'Filter by destination assets.'),
}

export const listOrchestrationRules = operation({
  method: 'GET',
  url: '/v2/orchestration/rules',
  scope: 'orchestration:read_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'List Orchestration Rules',
  description: 'Lists rules, including deleted rules, newest first.',
  example: { query: { statuses: ['ACTIVE'], limit: 10 } },
  query: Closed({
    ...parametersOf(FILTERS),
    ...timeBounds('created_at'),
    ...pageParameters,
  }),
  reply: Type.Object({
    items: Type.Array(OrchestrationRule),
    rules: Type.Array(OrchestrationRule, {
      deprecated: true,
      description: 'Deprecated: the same records as `items`, which replaces it.',
    }),
    ...pageEnd,
  }),
  async run({ query, customerId, db, rowMacs }) {
    for (const name of ['source_asset', 'destination_asset'] as const)
      requireKnownAssets(name, query[name] as string[] | undefined)
    const { items, ...rest } = await listByCreation(db, customerId, query, {
      list: 'orchestration-rules',
      select: `select ${RULE_COLUMNS} from orchestration_rules`,
      where: conditionsOf(FILTERS, query),
      // A rule shows the address or memo of its source.
      keep: (rows) => rowMacs.genuine(db, 'orchestration_rules', customerId, rows),
      toWire: ruleToWire,
      copies: 2,
    })
    return { items, rules: items, ...rest }
  },
})
