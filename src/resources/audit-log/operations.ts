import type { Operation } from '../../http/operation.ts'
import { listAuditLog } from './list-audit-log.ts'
import { verifyAuditLog } from './verify-audit-log.ts'

export const AUDIT_LOG_OPERATIONS: readonly Operation[] = [listAuditLog, verifyAuditLog]
