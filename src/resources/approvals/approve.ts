import { decisionOperation } from './decision-operation.ts'

/** Records that an approver approves a withdrawal or a change (API behaviour, Approvals). */
export const approve = decisionOperation('APPROVE', {
  summary: 'Approve Approval',
  description:
    'Records the statement with which an approver approves. The signature counts, not the token: whoever has the scope may send it. With enough approvals the status is APPROVED.',
  problems: ['not-found', 'already-exists', 'approval-ended'],
})
