import { randomUUID } from 'node:crypto'
import type { EventType } from '../../contract/event-types.ts'
import { transaction } from '../../db/database.ts'
import { newPrivateKey, publicPartOf, signStatement } from '../../governance/approvals/approval-statement.ts'
import { addApprover, revokeApprover } from '../../governance/approvals/approver.ts'
import { Refused, until, type Api } from '../call-api.ts'
import { withDatabase, type AtDatabase } from '../command-line.ts'
import { PROFILE, run, type RecipeStep } from './steps.ts'

/** The role of the rule's approvers. No other approver has it. */
const ROLE = 'TRIGGER'
const DEADLINE_SECONDS_MIN = 60
/** The most attempts to replace the policy while somebody else replaces it at the same time. */
const ATTEMPTS_MAX = 10
/** How long a paid withdrawal may take to be COMPLETED, before its approver is revoked anyway. */
const PAID_MS_MAX = 30_000

/**
 * Makes an event of an approval. A new first rule of the customer's policy makes a withdrawal of a new profile wait for an
 * approver. The rule is removed once the withdrawal waits. For a decision, the schema's owner adds an approver with a new
 * key, who is revoked afterwards. Throws where the policy may not be changed without approval.
 */
export async function makeApproval(api: Api, type: EventType): Promise<string> {
  if (type === 'approval.expired') return (await withdrawForApproval(api, true)).approval!
  if (type === 'approval.requested') {
    const { id, approval } = await withdrawForApproval(api, false)
    await api.call('POST', `/v2/transfer/transfers/${id}/cancel`)
    return approval!
  }
  return withDatabase({ as: 'owner' }, async (at) => {
    const { id, approval } = await withdrawForApproval(api, false)
    await decide(api, at, id!, approval!, type === 'approval.approved' ? 'APPROVE' : 'REJECT')
    return approval!
  })
}

const NEW_HOLDER: RecipeStep[] = [
  PROFILE,
  ['POST /v2/sandbox/profiles/{to}/deposit', { asset: 'USD', amount: '10' }, {}],
]
const WITHDRAWAL: RecipeStep = [
  'POST /v2/transfer/crypto-withdrawals',
  {
    ...{ profile_id: '{to}', asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM', total: '10' },
    ...{ destination_address: '{address}', ref_id: '{ref}' },
  },
  { id: 'id', approval: 'status_details.pending_customer_approval.approval_id' },
]

/** Creates the withdrawal while the rule is in force. */
async function withdrawForApproval(api: Api, expiresSoon: boolean): Promise<Record<string, string>> {
  const holder = await run(api, NEW_HOLDER)
  const id = `trigger-${holder.to}`
  const match = { profile_ids: [holder.to] }
  const rule = { id, match, action: 'APPROVE', approvals: 1, role: ROLE }
  const { approvals: terms } = await api.call<Policy>('GET', '/v2/policy')
  const soon = expiresSoon && { approvals: { deadline_seconds: DEADLINE_SECONDS_MIN } }
  await changePolicy(api, ({ rules }) => ({ rules: [rule, ...rules], ...soon }))
  try {
    return await run(api, [WITHDRAWAL], holder)
  } finally {
    await changePolicy(api, ({ rules }) => ({
      rules: rules.filter((rule) => rule.id !== id),
      ...(expiresSoon && { approvals: terms }),
    }))
  }
}

interface Policy {
  version: number
  rules: { id: string }[]
  approvals?: object | undefined
  address_book?: object
  changes?: object
}

/** Replaces the policy by a change of its newest version. */
async function changePolicy({ call }: Api, change: (policy: Policy) => Partial<Policy>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const policy = await call<Policy>('GET', '/v2/policy')
    const { version: replaces, rules, approvals, address_book, changes } = policy
    try {
      // JSON leaves out what is undefined.
      const document = { rules, approvals, address_book, changes, replaces, ...change(policy) }
      await call('PUT', '/v2/policy', document)
      return
    } catch (error) {
      const wasReplaced = error instanceof Refused && error.status === 409
      if (!wasReplaced || attempt === ATTEMPTS_MAX) throw error
    }
  }
}

/** Adds an approver, who decides and is revoked. The withdrawal ends first, because a revoked approver does not count. */
async function decide(
  { call, credentials: { customer_id } }: Api,
  { db: owner, origin }: AtDatabase,
  withdrawal: string,
  approval: string,
  decision: 'APPROVE' | 'REJECT',
): Promise<void> {
  const key = newPrivateKey()
  const approver = { name: `trigger ${randomUUID()}`, role: ROLE, key: publicPartOf(key) }
  const { id: approver_id } = await transaction(owner, (tx) => addApprover(tx, customer_id, approver, origin))
  try {
    const path = `/v2/approvals/${approval}`
    const { to_sign } = await call<{ to_sign: Record<typeof decision, string> }>('GET', path)
    const signed = signStatement(to_sign[decision], key)
    await call('POST', `${path}/${decision.toLowerCase()}`, { approver_id, ...signed })
    await until(PAID_MS_MAX, async () => {
      const { status } = await call<{ status: string }>('GET', `/v2/transfer/transfers/${withdrawal}`)
      return status === 'PENDING' ? undefined : status
    })
  } finally {
    await transaction(owner, (tx) => revokeApprover(tx, customer_id, approver_id, origin))
  }
}
