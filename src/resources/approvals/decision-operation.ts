import { Type, type Static } from 'typebox'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { Approval, type ApprovalDecision, type SignedStatement } from '../../contract/approval.ts'
import type { Operation } from '../../http/operation.ts'
import { decideApproval } from '../../rails/payouts/decide-approval.ts'
import { operation } from '../operation.ts'

/** The statement of a wire has the bank account's owner and instructions, up to 8 KiB each: 22 KiB in base64url. */
const JWS_LENGTH_MAX = 24_576
const PART_LENGTH_MAX = 8_192

const Base64url = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: PART_LENGTH_MAX,
    pattern: '^[A-Za-z0-9_-]+$',
    inWords: 'must be base64url without padding',
    description,
  })

/** The signed statement of an approver: with a key file, or with a passkey. */
const DecisionBody = Closed({
  approver_id: Uuid('The approver who signed.'),
  jws: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: JWS_LENGTH_MAX,
      pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$',
      inWords: 'must be a compact JWS: three parts in base64url, separated by dots',
      description: "A compact JWS of the text, by the approver's key. Its typ is bursar-approval+jws.",
    }),
  ),
  passkey: Type.Optional(
    Closed(
      {
        authenticator_data: Base64url('authenticatorData of the assertion.'),
        client_data_json: Base64url('clientDataJSON of the assertion.'),
        signature: Base64url('signature of the assertion.'),
      },
      { description: "An assertion of the approver's passkey, whose challenge is the SHA-256 of the text." },
    ),
  ),
})

/** Returns the signed statement. Throws bad-request unless there is exactly one. */
function signedStatementOf({ jws, passkey }: Static<typeof DecisionBody>): SignedStatement {
  if (jws !== undefined && passkey !== undefined)
    throw problem.badRequest('exactly one of jws and passkey must be given, not both', 'jws', 'passkey')
  if (jws !== undefined) return { jws }
  if (passkey !== undefined) return { passkey }
  throw problem.badRequest('exactly one of jws and passkey must be given', 'jws', 'passkey')
}

/** The id of an approval, for examples. It does not exist, because nothing of the demo needs approval. */
export const EXAMPLE_APPROVAL = '0192f3a4-0000-7000-8000-0000000000a1'

/** A statement that nobody has signed, for examples. */
const EXAMPLE_DECISION = {
  approver_id: '0192f3a4-0000-7000-8000-0000000000a2',
  jws: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImJ1cnNhci1hcHByb3ZhbCtqd3MifQ.e30.c2lnbmF0dXJl',
}

/** Declares the operation with which an approver decides (API behaviour, Approvals). */
export const decisionOperation = (
  decision: ApprovalDecision,
  words: Pick<Operation, 'summary' | 'description' | 'problems'>,
): Operation =>
  operation({
    ...words,
    method: 'POST',
    url: `/v2/approvals/:id/${decision.toLowerCase()}`,
    scope: 'approvals:write_decision',
    tag: 'Approvals',
    repeats: 'HARMLESS',
    params: Type.Object({ id: Uuid('Id of the approval.') }),
    body: DecisionBody,
    example: { params: { id: EXAMPLE_APPROVAL }, bodies: { 'Signed with a key file': EXAMPLE_DECISION } },
    reply: Approval,
    run: ({ params: { id }, body, customerId, origin, db }) => {
      const { approver_id } = body
      const given = { approver_id, decision, signed: signedStatementOf(body) }
      return decideApproval(db, { customerId, id, origin }, given)
    },
  })
