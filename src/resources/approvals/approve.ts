import { Type } from 'typebox'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { decideApproval } from '../../rails/payouts/decide-approval.ts'
import { DecisionBody, EXAMPLE_APPROVAL, EXAMPLE_DECISION, signedStatementOf } from './decision-body.ts'
import { Approval } from '../../contract/approval.ts'

/** Records that an approver approves a withdrawal or a change (API behaviour, Approvals). */
export const approve = operation({
  method: 'POST',
  url: '/v2/approvals/:id/approve',
  scope: 'approvals:write_decision',
  tag: 'Approvals',
  repeats: 'HARMLESS',
  summary: 'Approve Approval',
  description:
    'Records the statement with which an approver approves. The signature counts, not the token: whoever has the scope may send it. With enough approvals the status is APPROVED.',
  params: Type.Object({ id: Uuid('Id of the approval.') }),
  body: DecisionBody,
  example: { params: { id: EXAMPLE_APPROVAL }, bodies: { 'Signed with a key file': EXAMPLE_DECISION } },
  reply: Approval,
  problems: ['not-found', 'already-exists', 'approval-ended'],
  run: ({ params: { id }, body, customerId, origin, db }) => {
    const { approver_id } = body
    const given = { approver_id, decision: 'APPROVE', signed: signedStatementOf(body) } as const
    return decideApproval(db, { customerId, id, origin }, given)
  },
})
