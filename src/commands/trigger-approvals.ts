import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { EventType } from '../contract/event-types.ts'
import { transaction, type Database } from '../db/database.ts'
import { newPrivateKey, publicPartOf, signStatement } from '../records/approval-statement.ts'
import { addApprover, revokeApprover } from '../records/approver.ts'
import { Refused, type Api } from './call-api.ts'
import { originOfCommand, withDatabase } from './command-line.ts'

/**
 * A withdrawal of a new profile waits for an approver, because a rule in front of the customer's policy says so for this
 * profile. The rule is removed again once the withdrawal waits. For a decision, the schema's owner adds an approver with a new
 * key, who is revoked afterwards.
 */

type ApprovalEvent = Extract<EventType, `approval.${string}`>

/** Of the rule's approvers: no other approver has it. */
const ROLE = 'TRIGGER'
/** The shortest deadline that a policy can have. */
const DEADLINE_SECONDS_MIN = 60
/** How often the policy is read and replaced again, where somebody else replaces it at the same time. */
const ATTEMPTS_MAX = 10
/** How long a paid withdrawal may take to be COMPLETED, before its approver is revoked anyway. */
const PAID_MS_MAX = 30_000
const LOOK_EVERY_MS = 200

interface Created {
  id: string
}

/** Returns the recipe of an event of an approval. It throws where the policy may not be changed without approval. */
export const makeApproval =
  (type: ApprovalEvent) =>
  async (api: Api): Promise<string> => {
    if (type === 'approval.requested' || type === 'approval.expired') {
      const { id, approval_id } = await withdrawForApproval(api, type === 'approval.expired')
      if (type === 'approval.requested') await api.call('POST', `/v2/transfer/transfers/${id}/cancel`)
      return approval_id
    }
    let decided: string | undefined
    await withDatabase({ as: 'owner' }, async ({ db: owner }) => {
      const waiting = await withdrawForApproval(api, false)
      await decide(api, owner, waiting, type === 'approval.approved' ? 'APPROVE' : 'REJECT')
      decided = waiting.approval_id
    })
    return decided!
  }

interface Waiting extends Created {
  approval_id: string
}

/** Creates the withdrawal, with the rule in force meanwhile. */
async function withdrawForApproval(api: Api, expiresSoon: boolean): Promise<Waiting> {
  const { call } = api
  const { id: profile_id } = await call<Created>('POST', '/v2/profiles', {
    nickname: `trigger ${randomUUID()}`,
  })
  await call('POST', `/v2/sandbox/profiles/${profile_id}/deposit`, { asset: 'USD', amount: '10' })
  const rule = {
    id: `trigger-${profile_id}`,
    match: { profile_ids: [profile_id] },
    ...{ action: 'APPROVE', approvals: 1, role: ROLE },
  }
  const { approvals: terms } = await call<Policy>('GET', '/v2/policy')
  await changePolicy(api, ({ rules, ...policy }) => ({
    ...policy,
    rules: [rule, ...rules],
    ...(expiresSoon && { approvals: { deadline_seconds: DEADLINE_SECONDS_MIN } }),
  }))
  try {
    const { id, status_details } = await call<
      Created & { status_details?: { pending_customer_approval?: { approval_id: string } } }
    >('POST', '/v2/transfer/crypto-withdrawals', {
      ...{ profile_id, asset: 'USDP', balance_asset: 'USD', crypto_network: 'ETHEREUM', total: '10' },
      destination_address: `0x${randomBytes(20).toString('hex')}`,
      ref_id: `trigger-${randomUUID()}`,
    })
    return { id, approval_id: status_details!.pending_customer_approval!.approval_id }
  } finally {
    await changePolicy(api, ({ rules, approvals, ...policy }) => {
      const kept = expiresSoon ? terms : approvals
      return { ...policy, rules: rules.filter(({ id }) => id !== rule.id), ...(kept && { approvals: kept }) }
    })
  }
}

interface PolicyDocument {
  rules: { id: string }[]
  approvals?: object
  address_book?: object
  changes?: object
}
type Policy = PolicyDocument & { version: number }

/** Replaces the policy by a change of its newest version. */
async function changePolicy(
  { call }: Api,
  change: (policy: PolicyDocument) => PolicyDocument,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const {
      version: replaces,
      rules,
      approvals,
      address_book,
      changes,
    } = await call<Policy>('GET', '/v2/policy')
    const document = {
      rules,
      ...(approvals && { approvals }),
      ...(address_book && { address_book }),
      ...(changes && { changes }),
    }
    try {
      await call('PUT', '/v2/policy', { ...change(document), replaces })
      return
    } catch (error) {
      const wasReplaced = error instanceof Refused && error.status === 409
      if (!wasReplaced || attempt === ATTEMPTS_MAX) throw error
    }
  }
}

/** Adds an approver, who decides and is revoked. An approved withdrawal is paid first: a revoked approver does not count. */
async function decide(
  { call, credentials: { customer_id } }: Api,
  owner: Database,
  { id, approval_id }: Waiting,
  decision: 'APPROVE' | 'REJECT',
): Promise<void> {
  const key = newPrivateKey()
  const approver = { name: `trigger ${randomUUID()}`, role: ROLE, key: publicPartOf(key) }
  const { id: approver_id } = await transaction(owner, (tx) =>
    addApprover(tx, customer_id, approver, originOfCommand()),
  )
  try {
    const path = `/v2/approvals/${approval_id}`
    const { to_sign } = await call<{ to_sign: Record<typeof decision, string> }>('GET', path)
    await call('POST', `${path}/${decision.toLowerCase()}`, {
      approver_id,
      ...signStatement(to_sign[decision], key),
    })
    const deadline = performance.now() + PAID_MS_MAX
    const read = () => call<{ status: string }>('GET', `/v2/transfer/transfers/${id}`)
    while ((await read()).status === 'PENDING' && performance.now() < deadline) await pause(LOOK_EVERY_MS)
  } finally {
    await transaction(owner, (tx) => revokeApprover(tx, customer_id, approver_id, originOfCommand()))
  }
}
