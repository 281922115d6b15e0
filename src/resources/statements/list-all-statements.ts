import type { Queryable } from '../../db/database.ts'
import type { Period } from './period.ts'

export interface StatementSummary {
  statement_id: string
  customer_id: string
  ref_id: string
  /** `YYYY-MM`. */
  period: string
  /** Without the prefix that the contract adds. */
  status: string
  asset: string
  total_amount_owed: string | null
  amount_paid: string | null
}

/** Lists the statements of all customers, latest month first, for operators. */
export async function listAllStatements(
  db: Queryable,
  which: { period?: Period | undefined; customerId?: string | undefined } = {},
): Promise<StatementSummary[]> {
  const { rows } = await db.query<StatementSummary>(
    `
    select id as statement_id, customer_id, ref_id, to_char(period_start, 'YYYY-MM') as period,
           replace(status, 'STATEMENT_STATUS_', '') as status, asset, total_amount_owed, amount_paid
    from statements
    where ($1::timestamptz is null or period_start = $1) and ($2::uuid is null or customer_id = $2)
    order by period_start desc, customer_id, id`,
    [which.period?.start, which.customerId],
  )
  return rows
}
