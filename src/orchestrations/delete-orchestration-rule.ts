import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Uuid } from '../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../contract/problems.ts'
import { OrchestrationRule, RULE_COLUMNS, ruleToWire, type RuleRow } from '../records/orchestration-rule.ts'

/**
 * Deletes a rule (API behaviour, Orchestration rules). Later deposits stay on the profile; orchestrations under way
 * continue. The record stays, with the status DELETED. A repeat changes nothing.
 */
export const deleteOrchestrationRule = operation({
  method: 'DELETE',
  url: '/v2/orchestration/rules/:id',
  scope: 'orchestration:write_orchestration_rule',
  tag: 'Orchestrations',
  summary: 'Delete Orchestration Rule',
  description:
    'Later deposits stay on the profile; orchestrations under way continue. The record stays, with the status DELETED. A repeat changes nothing.',
  params: Type.Object({ id: Uuid('Rule id.') }),
  example: { params: { id: EXAMPLE.orchestration_rule_id } },
  reply: Type.Object({ rule: OrchestrationRule }),
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    const { rows } = await db.query<RuleRow>(
      `
      update orchestration_rules
      set status = 'DELETED', updated_at = case status when 'ACTIVE' then clock_timestamp() else updated_at end
      where customer_id = $1 and id = $2
      returning ${RULE_COLUMNS}`,
      [customerId, params.id],
    )
    if (rows[0] === undefined) throw problem.notFound('orchestration rule', params.id)
    return { rule: ruleToWire(rows[0]) }
  },
})
