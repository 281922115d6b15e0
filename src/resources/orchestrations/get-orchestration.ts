import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  Orchestration,
  ORCHESTRATION_COLUMNS,
  orchestrationToWire,
  type OrchestrationRow,
} from '../../money/records/orchestration.ts'

/** Reads one orchestration by id (API behaviour, Orchestrations). */
export const getOrchestration = operation({
  method: 'GET',
  url: '/v2/orchestration/orchestrations/:id',
  scope: 'orchestration:read_orchestration',
  tag: 'Orchestrations',
  summary: 'Get Orchestration',
  description: 'Reads one orchestration, with its source and destination transfers.',
  params: Type.Object({ id: Uuid('Orchestration id.') }),
  example: { params: { id: EXAMPLE.orchestration_id } },
  reply: Orchestration,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    const { rows } = await db.query<OrchestrationRow>(
      `select ${ORCHESTRATION_COLUMNS} from orchestrations o where o.customer_id = $1 and o.id = $2`,
      [customerId, params.id],
    )
    if (rows[0] === undefined) throw problem.notFound('orchestration', params.id)
    return orchestrationToWire(rows[0])
  },
})
