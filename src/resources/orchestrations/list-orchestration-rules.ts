import { Type } from 'typebox'
import { pageParameters } from '../../http/lists.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { OrchestrationRule, RULE_COLUMNS, ruleToWire } from '../../money/records/orchestration-rule.ts'

/** No rule is PENDING or REJECTED here, but clients of platforms that review rules ask for these statuses. */
const StatusAsked = Type.Enum(['ACTIVE', 'DELETED', 'PENDING', 'REJECTED'], { type: 'string' })

export const listOrchestrationRules = listOperation({
  url: '/v2/orchestration/rules',
  scope: 'orchestration:read_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'List Orchestration Rules',
  description: 'Lists rules, including deleted rules, newest first.',
  example: { query: { statuses: ['ACTIVE'], limit: 10 } },
  list: 'orchestration-rules',
  item: OrchestrationRule,
  names: ['items', 'rules'],
  select: `select ${RULE_COLUMNS} from orchestration_rules`,
  // A rule shows the address or memo of its source.
  sealed: 'orchestration_rules',
  filters: {
    ids: filterBy.ids('id', 'Filter by rule ids.'),
    ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
    profile_ids: filterBy.ids('profile_id', 'Filter by profiles.'),
    statuses: filterBy.values('status', 'Filter by statuses.', StatusAsked),
    profile_id: filterBy.ids('profile_id', 'Filter by profiles, as profile_ids does.'),
    status: filterBy.values('status', 'Filter by statuses, as statuses does.', StatusAsked),
    source_asset: filterBy.knownAssets('source_asset', 'Filter by source assets.'),
    destination_asset: filterBy.knownAssets('destination_asset', 'Filter by destination assets.'),
  },
  page: pageParameters,
  toWire: ruleToWire,
})
