import { Type, type Static } from 'typebox'
import { ACTOR_TYPES } from './actor.ts'
import { ActorName, NamedObject, OneOf, Timestamp, Uuid } from './fields.ts'

/** What an approver can sign. */
const DECISIONS = ['APPROVE', 'REJECT'] as const
export type ApprovalDecision = (typeof DECISIONS)[number]

/** A signed statement: a compact JWS (RFC 7515) whose payload is the text, or a passkey's assertion over it. */
export type SignedStatement =
  | { jws: string }
  | { passkey: { authenticator_data: string; client_data_json: string; signature: string } }

/**
 * What a signer process is told of a withdrawal, which believes no database: the text that was accepted, the signature over
 * it by the process that accepted it, and the signed decisions of its approvers.
 */
export interface SigningEvidence {
  accepted: string
  signature: string | null
  decisions: readonly { text: string; signed: SignedStatement }[]
}

export const APPROVAL_STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'USED'] as const
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

const ApproverDecision = Type.Object({
  approver_id: Uuid('The approver.'),
  decision: OneOf(DECISIONS, 'What the approver signed.'),
  created_at: Timestamp('When the decision was recorded.'),
})

/** A withdrawal or change that waits for approvers, or has waited (API behaviour, Approvals). */
export const Approval = NamedObject('Approval', {
  id: Uuid('Id of the approval.'),
  customer_id: Uuid('Customer.'),
  subject: Type.Object(
    {
      type: Type.String({ description: '`transfer`, or the kind of record that is changed.' }),
      id: Type.String({ description: 'The transfer, or the record that is changed.' }),
    },
    { description: 'What is to be approved.' },
  ),
  status: OneOf(APPROVAL_STATUSES, 'CANCELLED: its transfer ended otherwise. USED: its change was made.'),
  approvals: Type.Integer({ minimum: 0, description: 'How many approvers have approved.' }),
  required: Type.Integer({ minimum: 1, description: 'How many different approvers must approve.' }),
  role: Type.String({ description: 'The role that approvers need.' }),
  rule_id: Type.Optional(Type.String({ description: 'The rule that requires the approval.' })),
  policy_version: Type.Integer({ description: 'The version of the policy that the rule is of.' }),
  initiator: Type.Object(
    {
      type: OneOf(ACTOR_TYPES, 'Kind of actor.'),
      id: Type.String({ description: 'The actor.' }),
      name: ActorName,
    },
    { description: 'Who asked for it, and may not approve it.' },
  ),
  change: Type.Optional(
    Type.Object(
      {},
      { additionalProperties: true, description: 'The change, with secrets as their SHA-256.' },
    ),
  ),
  decisions: Type.Array(ApproverDecision, { description: 'In the order in which they were made.' }),
  created_at: Timestamp('Creation time.'),
  deadline: Timestamp('Without enough approvals by then, it is EXPIRED.'),
  ended_at: Type.Optional(Timestamp('When it became REJECTED, EXPIRED, CANCELLED or USED.')),
})
export type Approval = Static<typeof Approval>
