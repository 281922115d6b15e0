import { Type, type Static } from 'typebox'
import type { Origin } from '../contract/actor.ts'
import { Uuid } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'
import { violatedConstraint, type Database } from '../db/database.ts'
import { readClock } from '../db/ids.ts'
import { recordChanges } from '../ledger/audit.ts'
import { operation } from '../operation.ts'
import { withApprovedChange } from '../records/approved-change.ts'
import { audited } from '../records/audited.ts'
import {
  completeDocument,
  NewPolicyDocument,
  NO_POLICY,
  Policy,
  policyToWire,
  type Policies,
  type PolicyDocument,
  type PolicyVersion,
} from '../records/policy.ts'

const PutPolicyBody = Type.Object(
  {
    ...NewPolicyDocument.properties,
    replaces: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description: 'The version that was read: 409 if it is not the newest any more. 0: there is none.',
      }),
    ),
  },
  { additionalProperties: false },
)
type Body = Static<typeof PutPolicyBody>

/** Replaces the customer's policy by a new version (API behaviour, Policy). */
export const putPolicy = operation({
  method: 'PUT',
  url: '/v2/policy',
  scope: 'policy:write_policy',
  tag: 'Governance',
  summary: 'Put Policy',
  description: 'Makes a new version of the policy, which counts for every payment from then on.',
  query: Type.Object(
    { approval_id: Type.Optional(Uuid('The approval of this change, where the policy requires one.')) },
    { additionalProperties: false },
  ),
  body: PutPolicyBody,
  example: {
    bodies: {
      'At most 250000 USD a day': {
        rules: [
          {
            id: 'day-limit',
            limit: { amount: '250000', asset: 'USD', period_seconds: 86_400, per: 'CUSTOMER' },
            action: 'BLOCK',
          },
        ],
      },
    },
  },
  reply: Policy,
  problems: ['already-exists', 'not-found', 'unavailable'],
  async run({ query: { approval_id }, body, customerId, origin, db, policies }) {
    const { replaces, ...document } = body satisfies Body
    const change = { customer_id: customerId, origin, approval_id, replaces }
    return policyToWire(await replacePolicy(db, policies, completeDocument(document), change))
  },
})

interface Change {
  customer_id: string
  origin: Origin
  approval_id?: string | undefined
  replaces?: number | undefined
}

/**
 * Adds a version of a customer's policy, in a transaction of its own. Throws already-exists when another version was added
 * since `replaces`, approval-required where the newest version demands approval of changes, and unavailable where that
 * version cannot be trusted.
 */
export async function replacePolicy(
  db: Database,
  policies: Policies,
  document: PolicyDocument,
  { replaces, ...change }: Change,
): Promise<PolicyVersion> {
  const { customer_id, origin } = change
  const asked = {
    ...change,
    subject: 'POLICY',
    operation: 'policy.set',
    target: { type: 'policy', id: customer_id },
    values: document,
  } as const
  try {
    return await withApprovedChange(db, policies, asked, async (tx) => {
      const before = await policies.newest(tx, customer_id)
      const now = await readClock(tx)
      const made = await policies.add(tx, customer_id, document, now, replaces)
      const changes = { before: before?.document ?? NO_POLICY.document, after: document }
      recordChanges(tx, customer_id, now, [audited(origin, 'policy.set', customer_id, changes)])
      return made
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'policies_pkey') throw error
    throw problem.alreadyExists('version', policyToWire((await policies.newest(db, customer_id))!))
  }
}
