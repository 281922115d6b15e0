import type { Operation } from '../../http/operation.ts'
import { listGeneralLedger } from './general-ledger.ts'
import { getProfileStatement } from './get-profile-statement.ts'
import { listActivityOfTime } from './list-activity.ts'
import { listClosedDays } from './list-closed-days.ts'
import { getLiabilityProof, listLiabilities } from './liabilities.ts'
import { getTrialBalance, listAccountsOfPlatform } from './trial-balance.ts'

export const REPORT_OPERATIONS: readonly Operation[] = [
  ...[getTrialBalance, listAccountsOfPlatform, listGeneralLedger, listActivityOfTime, listClosedDays],
  ...[getProfileStatement, listLiabilities, getLiabilityProof],
]
