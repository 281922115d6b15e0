import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  OrchestrationRule,
  RULE_COLUMNS,
  type RuleRow,
  ruleToWire,
  termsOfRule,
} from '../../money/records/orchestration-rule.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { transaction } from '../../db/database.ts'

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
  run: ({ params, customerId, origin, db }) =>
    transaction(db, async (tx) => {
      const { rows } = await tx.query<RuleRow>(
        `select ${RULE_COLUMNS} from orchestration_rules where customer_id = $1 and id = $2 for update`,
        [customerId, params.id],
      )
      const [rule] = rows
      if (rule === undefined) throw problem.notFound('orchestration rule', params.id)
      if (rule.status === 'DELETED') return { rule: ruleToWire(rule) }
      const { rows: deleted } = await tx.query<RuleRow>(
        `
        update orchestration_rules
        set status = 'DELETED', updated_at = (select clock_timestamp())
        where customer_id = $1 and id = $2
        returning ${RULE_COLUMNS}`,
        [customerId, params.id],
      )
      const before = termsOfRule(ruleToWire(rule))
      await recordNow(tx, customerId, audited(origin, 'orchestration_rule.delete', params.id, { before }))
      return { rule: ruleToWire(deleted[0]!) }
    }),
})
