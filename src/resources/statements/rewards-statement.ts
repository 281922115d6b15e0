import { Type, type Static } from 'typebox'
import { Amount, AssetSymbol, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { StatementFiles } from './statement.ts'

export const REWARDS_STATEMENT_TYPE = 'STATEMENT_TYPE_MONTHLY_REWARDS'

export const RewardsStatement = NamedObject('RewardsStatement', {
  id: Uuid('Statement id: the same as in List Statements.'),
  ref_id: Type.String({ description: 'Client-visible reference.' }),
  asset_type: AssetSymbol,
  period_start: Timestamp('Start of the period covered.'),
  period_end: Timestamp('End of the period covered: its last microsecond.'),
  status: OneOf(
    ['STATEMENT_STATUS_GENERATING', 'STATEMENT_STATUS_COMPLETED'],
    'GENERATING until the amounts are computed, then COMPLETED.',
  ),
  type: OneOf([REWARDS_STATEMENT_TYPE], 'Statement type.'),
  total_accrued: Type.Optional(Amount('Reward of the period. Absent until it is COMPLETED.')),
  amount_paid: Type.Optional(Amount('Amount paid so far. Absent until it is COMPLETED.')),
  files: StatementFiles,
  created_at: Timestamp('Creation time.'),
})
export type RewardsStatement = Static<typeof RewardsStatement>

export interface RewardsStatementRow {
  id: string
  ref_id: string
  asset: string
  total_amount_owed: string | null
  amount_paid: string | null
  period_start: string
  period_end: string
  created_at: string
}

export function rewardsStatementToWire({
  asset,
  total_amount_owed,
  amount_paid,
  ...row
}: RewardsStatementRow): RewardsStatement {
  return {
    ...row,
    asset_type: asset,
    status: total_amount_owed === null ? 'STATEMENT_STATUS_GENERATING' : 'STATEMENT_STATUS_COMPLETED',
    type: REWARDS_STATEMENT_TYPE,
    ...(total_amount_owed !== null && { total_accrued: total_amount_owed }),
    ...(amount_paid !== null && { amount_paid }),
    files: [],
  }
}
