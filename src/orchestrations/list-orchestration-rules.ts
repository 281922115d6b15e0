import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../http/fields.ts'
import {
  listReply,
  pageOf,
  pageParameters,
  pageReply,
  timeBounds,
  timeRange,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../http/operation.ts'
import {
  OrchestrationRule,
  RULE_COLUMNS,
  ruleToWire,
  type RuleRow,
} from '../ledger/records/orchestration-rule.ts'

/** Lists the customer's rules, deleted ones too, by creation time (design sections 5 and 6). */
export const listOrchestrationRules = operation({
  method: 'GET',
  url: '/v2/orchestration/rules',
  scope: 'orchestration:read_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'List Orchestration Rules',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by rule ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      profile_ids: Filter(FilterValue, 'Filter by profiles.'),
      statuses: Filter(OrchestrationRule.properties.status, 'Filter by statuses.'),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(OrchestrationRule),
  async run({ query, customerId, db }) {
    const page = pageOf('orchestration-rules', query)
    const created = timeRange(query, 'created_at')
    const { rows } = await db.query<RuleRow>(
      `
      select ${RULE_COLUMNS}
      from orchestration_rules
      where customer_id = $1
        and id >= $2 and id < $3
        and ($4::uuid[] is null or id = any ($4))
        and ($5::text[] is null or ref_id = any ($5))
        and ($6::uuid[] is null or profile_id = any ($6))
        and ($7::text[] is null or status = any ($7))
        and ($8::uuid is null or id ${page.descending ? '<' : '>'} $8)
      order by id ${page.descending ? 'desc' : 'asc'}
      limit $9`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        query.ref_ids,
        uuidsOf(query.profile_ids),
        query.statuses,
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], ruleToWire)
  },
})
