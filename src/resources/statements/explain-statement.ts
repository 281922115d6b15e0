import { transaction, type Database } from '../../db/database.ts'
import { selectDays } from './generate-statements.ts'
import { periodOf } from './period.ts'
import { rewardOf, type Derivation } from './reward.ts'
import { STATEMENT_COLUMNS, statementToWire, type Statement, type StatementRow } from './statement.ts'

/** A generated statement, and its reward computed again. */
export interface Explained {
  statement: Statement
  derivation: Derivation
}

/**
 * Recomputes a generated statement from the ledger's entries, with the rates in force when it was
 * generated. Undefined when the statement does not exist or is not generated yet.
 */
export async function explainStatement(db: Database, id: string): Promise<Explained | undefined> {
  const { rows } = await db.query<StatementRow>(
    `select ${STATEMENT_COLUMNS} from statements s where s.id = $1`,
    [id],
  )
  return rows[0] && explain(db, rows[0])
}

/** The same for a statement of this customer; undefined for another customer's. */
export async function explainStatementOf(
  db: Database,
  customerId: string,
  id: string,
): Promise<Explained | undefined> {
  const { rows } = await db.query<StatementRow>(
    `select ${STATEMENT_COLUMNS} from statements s where s.customer_id = $1 and s.id = $2`,
    [customerId, id],
  )
  return rows[0] && explain(db, rows[0])
}

async function explain(db: Database, row: StatementRow): Promise<Explained | undefined> {
  if (row.generated_at === null) return undefined
  const period = periodOf(row.period_start.slice(0, 7))!
  const days = await transaction(
    db,
    (tx) => selectDays(tx, row.customer_id, period, row.generated_at!),
    'isolation level repeatable read read only',
  )
  return { statement: statementToWire(row), derivation: rewardOf(days) }
}
