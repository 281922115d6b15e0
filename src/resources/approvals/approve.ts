import { decisionOperation } from './decision-operation.ts'

export const approve = decisionOperation('APPROVE', {
  summary: 'Approve Approval',
  description:
    'Records the statement with which an approver approves. The signature counts, not the token: whoever has the scope may send it. With enough approvals the status is APPROVED.',
  problems: ['not-found', 'already-exists', 'approval-ended'],
})
