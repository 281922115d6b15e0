import type { Operation } from '../../http/operation.ts'
import { getPolicy } from './get-policy.ts'
import { listLimitUtilizations } from './list-limit-utilizations.ts'
import { listPolicyVersions } from './list-policy-versions.ts'
import { putPolicy } from './put-policy.ts'

export const POLICY_OPERATIONS: readonly Operation[] = [
  getPolicy,
  putPolicy,
  listPolicyVersions,
  listLimitUtilizations,
]
