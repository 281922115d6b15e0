import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { problem } from '../../contract/problems.ts'
import { readOperation } from '../operation.ts'
import { RewardsStatement, rewardsStatementToWire, type RewardsStatementRow } from './rewards-statement.ts'

export const getRewardsStatement = readOperation({
  url: '/v2/rewards/statements/:id',
  scope: 'rewards:read_statements',
  alternativeScope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'Get Rewards Statement',
  description: 'Returns the rewards of one month.',
  id: 'Statement id.',
  example: EXAMPLE.statement_id,
  reply: Type.Object({ statement: RewardsStatement }),
  async run({ params, customerId, db }) {
    const { rows } = await db.query<RewardsStatementRow>(
      `
      select id, ref_id, asset, total_amount_owed, amount_paid, period_start, period_end, created_at
      from statements
      where customer_id = $1 and id = $2`,
      [customerId, params.id],
    )
    if (rows[0] === undefined) throw problem.notFound('statement', params.id)
    return { statement: rewardsStatementToWire(rows[0]) }
  },
})
