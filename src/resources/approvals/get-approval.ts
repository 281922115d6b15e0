import { Type } from 'typebox'
import { readOperation } from '../operation.ts'
import { readApproval } from '../../rails/payouts/decide-approval.ts'
import { EXAMPLE_APPROVAL } from './decision-operation.ts'
import { nameInitiators, namesAll } from '../../access/audit-log/actor-names.ts'
import { Approval } from '../../contract/approval.ts'

export const getApproval = readOperation({
  url: '/v2/approvals/:id',
  scope: 'approvals:read_approval',
  tag: 'Approvals',
  summary: 'Get Approval',
  description:
    'Answers the approval with the two texts of which an approver signs one. A text is made from the withdrawal as it would be paid. Read the text before you sign it.',
  id: 'Id of the approval.',
  example: EXAMPLE_APPROVAL,
  reply: Type.Object({
    approval: Approval,
    to_sign: Type.Object(
      {
        APPROVE: Type.String({ description: 'The text that an approver signs to approve.' }),
        REJECT: Type.String({ description: 'The text that an approver signs to reject.' }),
      },
      { description: 'The texts to sign, byte for byte.' },
    ),
  }),
  async run({ params, customerId, scopes, db }) {
    const { approval, statements } = await readApproval(db, customerId, params.id)
    const [named] = await nameInitiators(db, customerId, [approval], namesAll(scopes))
    return { approval: named!, to_sign: statements }
  },
})
