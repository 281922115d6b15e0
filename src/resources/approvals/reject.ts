import { decisionOperation } from './decision-operation.ts'

export const reject = decisionOperation('REJECT', {
  summary: 'Reject Approval',
  description:
    'Records the statement with which an approver rejects. The status is REJECTED, and a withdrawal fails: its total returns to the profile.',
  problems: ['not-found', 'approval-ended'],
})
