import { Type } from 'typebox'
import { Items, OneOf, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { presentOf } from '../../db/rows.ts'
import { selectApprovers } from '../../governance/approvals/approver.ts'
import { completeDocument, NewPolicyDocument } from '../../governance/policy/policy-document.ts'
import { PolicyTrial, tryPolicy } from '../../governance/policy/try-policy.ts'
import { operatorOperation } from '../operation.ts'

/**
 * Who may decide approvals of the token's customer, with the credential of each passkey: by it, the console finds the
 * operator's own entries.
 */
export const listApprovers = operatorOperation({
  method: 'GET',
  url: '/v2/operators/approvers',
  scope: 'operators:read_approver',
  summary: 'List Approvers',
  reply: Items(
    Type.Object({
      id: Uuid('Approver.'),
      name: Type.String({ description: 'Its name.' }),
      role: Type.String({ description: 'Whose approvals it decides.' }),
      status: OneOf(['ACTIVE', 'REVOKED'], 'Whether it decides.'),
      operator_id: Type.Optional(Uuid('The same person as an operator.')),
      client_id: Type.Optional(Type.String({ description: 'The same person as an API client.' })),
      credential_id: Type.Optional(Type.String({ description: 'Of a passkey; the others have a key file.' })),
      rp_id: Type.Optional(Type.String({ description: 'The domain that a passkey signs for.' })),
    }),
  ),
  run: async ({ customerId, db }) => ({
    items: (await selectApprovers(db, customerId)).map(
      ({ id, name, role, status, operator_id, client_id, key: { credential_id, rp_id } }) => ({
        id,
        name,
        role,
        status,
        ...presentOf({ operator_id, client_id }),
        ...(credential_id !== undefined && { credential_id, rp_id }),
      }),
    ),
  }),
})

/** A trial takes up to a second of CPU, so a process makes one at a time for each customer. */
const trying = new Set<string>()

/** What a policy would have done with the customer's payments of the last 30 days. It changes nothing. */
export const createPolicyTrial = operatorOperation({
  method: 'POST',
  url: '/v2/operators/policy-trials',
  scope: 'operators:try_policy',
  summary: 'Try Policy',
  body: NewPolicyDocument,
  reply: PolicyTrial,
  async run({ body, customerId, db, policies }) {
    if (trying.has(customerId)) throw problem.tooManyRequests('another policy is being tried; try again', 1)
    trying.add(customerId)
    try {
      return await tryPolicy(db, policies, customerId, completeDocument(body))
    } finally {
      trying.delete(customerId)
    }
  },
})
