import { transaction, type Database } from '../db/database.ts'
import { selectDays } from './generate-statements.ts'
import { periodOf } from './period.ts'
import { rewardOf, type Derivation } from './reward.ts'
import { STATEMENT_COLUMNS, statementToWire, type Statement, type StatementRow } from './statement.ts'

/**
 * Derives a generated statement anew, from the ledger's entries and the rates as they were set when it was generated.
 * Undefined when there is no such statement or it is not generated yet.
 */
export async function explainStatement(
  db: Database,
  id: string,
): Promise<{ statement: Statement; derivation: Derivation } | undefined> {
  const { rows } = await db.query<StatementRow>(
    `select ${STATEMENT_COLUMNS} from statements s where s.id = $1`,
    [id],
  )
  const [row] = rows
  if (row === undefined || row.generated_at === null) return undefined
  const period = periodOf(row.period_start.slice(0, 7))!
  const days = await transaction(
    db,
    (tx) => selectDays(tx, row.customer_id, period, row.generated_at!),
    'isolation level repeatable read read only',
  )
  return { statement: statementToWire(row), derivation: rewardOf(days) }
}
