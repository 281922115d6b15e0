import type { Operation } from '../../http/operation.ts'
import { createOrchestration } from './create-orchestration.ts'
import { createOrchestrationRule } from './create-orchestration-rule.ts'
import { deleteOrchestrationRule } from './delete-orchestration-rule.ts'
import { getOrchestration } from './get-orchestration.ts'
import { listOrchestrationRules } from './list-orchestration-rules.ts'
import { listOrchestrations } from './list-orchestrations.ts'

export const ORCHESTRATION_OPERATIONS: readonly Operation[] = [
  listOrchestrations,
  createOrchestrationRule,
  listOrchestrationRules,
  deleteOrchestrationRule,
  createOrchestration,
  getOrchestration,
]
