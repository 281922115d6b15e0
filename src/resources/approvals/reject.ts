import { Type } from 'typebox'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { decideApproval } from '../../rails/payouts/decide-approval.ts'
import { DecisionBody, EXAMPLE_APPROVAL, EXAMPLE_DECISION, signedStatementOf } from './decision-body.ts'
import { Approval } from '../../contract/approval.ts'

/** Records that an approver rejects a withdrawal or a change, which ends it (API behaviour, Approvals). */
export const reject = operation({
  method: 'POST',
  url: '/v2/approvals/:id/reject',
  scope: 'approvals:write_decision',
  tag: 'Approvals',
  repeats: 'HARMLESS',
  summary: 'Reject Approval',
  description:
    'Records the statement with which an approver rejects. The status is REJECTED, and a withdrawal fails: its total returns to the profile.',
  params: Type.Object({ id: Uuid('Id of the approval.') }),
  body: DecisionBody,
  example: { params: { id: EXAMPLE_APPROVAL }, bodies: { 'Signed with a key file': EXAMPLE_DECISION } },
  reply: Approval,
  problems: ['not-found', 'approval-ended'],
  run: ({ params: { id }, body, customerId, origin, db }) => {
    const { approver_id } = body
    const given = { approver_id, decision: 'REJECT', signed: signedStatementOf(body) } as const
    return decideApproval(db, { customerId, id, origin }, given)
  },
})
