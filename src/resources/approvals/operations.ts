import type { Operation } from '../../http/operation.ts'
import { approve } from './approve.ts'
import { getApproval } from './get-approval.ts'
import { listApprovals } from './list-approvals.ts'
import { reject } from './reject.ts'

export const APPROVAL_OPERATIONS: readonly Operation[] = [listApprovals, getApproval, approve, reject]
