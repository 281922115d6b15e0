import type { Operation } from '../../http/operation.ts'
import { getRewardsStatement } from './get-rewards-statement.ts'
import { getStatementExplanation } from './get-statement-explanation.ts'
import { listPayments } from './list-payments.ts'
import { listRewardsRates } from './list-rewards-rates.ts'
import { listRewardsStatements } from './list-rewards-statements.ts'
import { listStatements } from './list-statements.ts'

export const STATEMENT_OPERATIONS: readonly Operation[] = [
  listStatements,
  listPayments,
  listRewardsStatements,
  getRewardsStatement,
  getStatementExplanation,
  listRewardsRates,
]
