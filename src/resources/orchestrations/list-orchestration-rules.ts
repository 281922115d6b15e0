import { Type } from 'typebox'
import { Closed, Filter, FilterValue, FilterWithoutCommas } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { listByCreation, pageParameters, timeBounds, uuidsOf, pageEnd } from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { OrchestrationRule, RULE_COLUMNS, ruleToWire } from '../../money/records/orchestration-rule.ts'

/** No rule is PENDING or REJECTED here, but clients of platforms that review rules ask for these statuses. */
const StatusAsked = Type.Enum(['ACTIVE', 'DELETED', 'PENDING', 'REJECTED'], { type: 'string' })

/** Lists the customer's rules, including deleted rules, by creation time (API behaviour, Orchestration rules). */
export const listOrchestrationRules = operation({
  method: 'GET',
  url: '/v2/orchestration/rules',
  scope: 'orchestration:read_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'List Orchestration Rules',
  description: 'Lists rules, including deleted rules, newest first.',
  example: { query: { statuses: ['ACTIVE'], limit: 10 } },
  query: Closed({
    ids: Filter(FilterValue, 'Filter by rule ids.'),
    ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
    profile_ids: Filter(FilterValue, 'Filter by profiles.'),
    statuses: Filter(StatusAsked, 'Filter by statuses.'),
    profile_id: Filter(FilterValue, 'Filter by profiles, as profile_ids does.'),
    status: Filter(StatusAsked, 'Filter by statuses, as statuses does.'),
    source_asset: Filter(FilterValue, 'Filter by source assets.'),
    destination_asset: Filter(FilterValue, 'Filter by destination assets.'),
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
    requireKnownAssets('source_asset', query.source_asset)
    requireKnownAssets('destination_asset', query.destination_asset)
    const { items, ...rest } = await listByCreation(db, customerId, query, {
      list: 'orchestration-rules',
      select: `select ${RULE_COLUMNS} from orchestration_rules`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['ref_id = any (?)', query.ref_ids],
        ['profile_id = any (?::uuid[])', uuidsOf(query.profile_ids)],
        ['status = any (?)', query.statuses],
        ['profile_id = any (?::uuid[])', uuidsOf(query.profile_id)],
        ['status = any (?)', query.status],
        ['source_asset = any (?)', query.source_asset],
        ['destination_asset = any (?)', query.destination_asset],
      ],
      // A rule shows the address or memo of its source.
      keep: (rows) => rowMacs.genuine(db, 'orchestration_rules', customerId, rows),
      toWire: ruleToWire,
      copies: 2,
    })
    return { items, rules: items, ...rest }
  },
})
