import { EXAMPLE } from '../../contract/example-records.ts'
import { readOperation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  Orchestration,
  ORCHESTRATION_COLUMNS,
  orchestrationToWire,
  type OrchestrationRow,
} from '../../money/records/orchestration.ts'

export const getOrchestration = readOperation({
  url: '/v2/orchestration/orchestrations/:id',
  scope: 'orchestration:read_orchestration',
  tag: 'Orchestrations',
  summary: 'Get Orchestration',
  description: 'Reads one orchestration, with its source and destination transfers.',
  id: 'Orchestration id.',
  example: EXAMPLE.orchestration_id,
  reply: Orchestration,
  async run({ params, customerId, db }) {
    const { rows } = await db.query<OrchestrationRow>(
      `select ${ORCHESTRATION_COLUMNS} from orchestrations o where o.customer_id = $1 and o.id = $2`,
      [customerId, params.id],
    )
    if (rows[0] === undefined) throw problem.notFound('orchestration', params.id)
    return orchestrationToWire(rows[0])
  },
})
