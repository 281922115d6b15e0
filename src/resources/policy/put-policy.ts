import { Type, type Static } from 'typebox'
import type { Origin } from '../../contract/actor.ts'
import { problem } from '../../contract/problems.ts'
import { violatedConstraint, type Database, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { operation } from '../operation.ts'
import { ApprovalQuery, withApprovedChange } from '../../governance/approvals/approved-change.ts'
import { audited } from '../../audit/audited.ts'
import { requireRoom } from '../../money/records/record-limits.ts'
import {
  completeDocument,
  NewPolicyDocument,
  type PolicyDocument,
} from '../../governance/policy/policy-document.ts'
import {
  NO_POLICY,
  Policy,
  policyToWire,
  type Policies,
  type PolicyVersion,
} from '../../governance/policy/policy.ts'
import { Closed } from '../../contract/fields.ts'

const PutPolicyBody = Closed({
  ...NewPolicyDocument.properties,
  replaces: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_647,
      description: 'The version that was read: 409 if it is not the newest any more. 0: there is none.',
    }),
  ),
})
type PutPolicyBody = Static<typeof PutPolicyBody>

export const putPolicy = operation({
  method: 'PUT',
  url: '/v2/policy',
  scope: 'policy:write_policy',
  tag: 'Governance',
  summary: 'Put Policy',
  description: 'Makes a new version of the policy, which counts for every payment from then on.',
  query: ApprovalQuery,
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
  problems: ['already-exists', 'not-found', 'unavailable', 'approval-required', 'approval-ended'],
  async run({ query: { approval_id }, body, customerId, origin, db, policies }) {
    // Operators may always replace a policy.
    await requireRoom(db, customerId, 'policy_versions')
    const { replaces, ...document } = body satisfies PutPolicyBody
    const change = { customer_id: customerId, origin, approval_id, replaces }
    return policyToWire(await replacePolicy(db, policies, completeDocument(document), change))
  },
})

interface PolicyChange {
  customer_id: string
  origin: Origin
  approval_id?: string | undefined
  replaces?: number | undefined
  /** Also replaces a newest version that cannot be trusted, after an operator has looked at it. */
  replace_untrusted?: boolean | undefined
}

interface Untrusted {
  version: number
  objection: string
}

interface Replaced extends PolicyVersion {
  /** The previous version, if it could not be trusted. */
  untrusted: Untrusted | undefined
}

/**
 * Adds a version of a customer's policy, in a transaction of its own. Throws already-exists when another version was added
 * since `replaces`, approval-required where the policy demands approval of changes, and unavailable where the newest version
 * cannot be trusted. With `replace_untrusted`, the newest version that can be trusted decides whether approval is needed, so
 * that nobody bypasses the approvers by damaging a version.
 */
export async function replacePolicy(
  db: Database,
  policies: Policies,
  document: PolicyDocument,
  { replaces, replace_untrusted = false, ...change }: PolicyChange,
): Promise<Replaced> {
  const { customer_id, origin } = change
  const asked = {
    ...change,
    subject: 'POLICY',
    operation: replace_untrusted ? 'bursar policy set --replace-untrusted' : 'policy.set',
    target: { type: 'policy', id: customer_id },
    values: document,
  } as const
  const inForce = replace_untrusted
    ? { newest: policies.newestTrusted.bind(policies), examine: policies.examine.bind(policies) }
    : policies
  try {
    return await withApprovedChange(db, inForce, asked, async (tx) => {
      const before = await inForce.newest(tx, customer_id)
      const untrusted = replace_untrusted ? await untrustedNewest(tx, policies, customer_id) : undefined
      const now = await readClock(tx)
      const made = await policies.add(tx, customer_id, document, now, replaces)
      const changes = {
        before: { ...(before?.document ?? NO_POLICY.document), ...(untrusted && { untrusted }) },
        after: document,
      }
      recordChanges(tx, customer_id, now, [audited(origin, 'policy.set', customer_id, changes)])
      return { ...made, untrusted }
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'policies_pkey') throw error
    throw problem.alreadyExists('version', policyToWire((await policies.newest(db, customer_id))!))
  }
}

async function untrustedNewest(
  tx: Transaction,
  policies: Policies,
  customerId: string,
): Promise<Untrusted | undefined> {
  const { version, objection } = (await policies.examine(tx, customerId)) ?? {}
  return version === undefined || objection === undefined ? undefined : { version, objection }
}
