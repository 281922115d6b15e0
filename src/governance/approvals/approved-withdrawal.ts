import { Temporal } from 'temporal-polyfill'
import { initiatorOf, type Origin } from '../../contract/actor.ts'
import type { Queryable } from '../../db/database.ts'
import { actorsBehind, selectApprovers, type Approver } from './approver.ts'
import { selectDecisions, TRANSFER_APPROVALS, type KeptDecision } from './approval.ts'
import { judgeDecisions, type Judgement } from './judge-decisions.ts'
import type { StatementOf } from './approval-statement.ts'
import { change } from '../../money/records/need.ts'
import type { Decision, View } from '../../money/movements/decision.ts'
import type { AcceptedWithdrawal, RequiredApproval } from '../../audit/withdrawal-macs.ts'
import { readAccepted } from '../../money/movements/accepted-withdrawals.ts'

/** What a rule of the policy requires of a withdrawal that needs approvers. */
export interface ApprovalRequirement {
  /** How many different approvers must agree. */
  approvals: number
  role: string
  rule_id: string
  policy_version: number
  deadline_seconds: number
}

/**
 * Makes the withdrawal of a decision wait for approvers (API behaviour, Approvals). Its total is debited, and its payment is
 * not signed before enough approvers have signed. The withdrawal's MAC covers the requirement.
 */
export function awaitApproval(
  decision: Decision,
  { approvals, role, rule_id, policy_version, deadline_seconds }: ApprovalRequirement,
  origin: Origin,
  { now, newId }: Pick<View, 'now' | 'newId'>,
): Decision {
  const { transfer } = decision
  const micros = BigInt(now.micros) + BigInt(deadline_seconds) * 1_000_000n
  const approval: RequiredApproval = {
    id: newId(),
    required: approvals,
    role,
    rule_id,
    policy_version,
    initiator: initiatorOf(origin),
    deadline: Temporal.Instant.fromEpochNanoseconds(micros * 1000n).toString({ fractionalSecondDigits: 6 }),
  }
  const detail = `the withdrawal waits for ${approvals === 1 ? 'an approver' : `${approvals} approvers`} until ${approval.deadline}`
  return {
    ...decision,
    transfer: {
      ...transfer,
      secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL', detail },
      status_details: {
        pending_customer_approval: { message: detail, approval_id: approval.id, required: approvals, role },
      },
    },
    approval,
    changes: [
      ...(decision.changes ?? []),
      change(TRANSFER_APPROVALS, { ...approval, transfer_id: transfer.id, created_at: now }),
    ],
  }
}

/** Returns the members of the statement about a withdrawal, from the record by which it is paid. */
function statementOf(accepted: AcceptedWithdrawal & { approval: RequiredApproval }): StatementOf {
  const { approval, customer_id, id, profile_id, network, asset, amount, memo } = accepted
  const { id: approval_id, required, role, rule_id, policy_version, initiator, deadline } = approval
  const payment = { profile_id, network, asset, amount, destination: destinationOf(accepted), memo }
  return {
    approval_id,
    customer_id,
    subject: { type: 'transfer', id, payment },
    required,
    role,
    rule_id,
    policy_version,
    initiator,
    deadline,
  }
}

/** The address, or the bank account of a wire. */
function destinationOf({ network, destination }: AcceptedWithdrawal): unknown {
  if (network !== 'WIRE') return destination
  const [fiat_account_id, owner, instructions] = JSON.parse(destination) as unknown[]
  return { fiat_account_id, owner, instructions }
}

/** A withdrawal that needs approvers, with what they have signed. */
export interface ApprovedWithdrawal {
  statement: StatementOf
  decisions: KeptDecision[]
  approvers: Approver[]
  judgement: Judgement
}

/**
 * Reads and judges the approvals of these withdrawals, by withdrawal. Withdrawals that need no approval are left out. The
 * statements are made from the rows that are about to be paid.
 */
export async function judgeWithdrawals(
  db: Queryable,
  customerId: string,
  transferIds: readonly string[],
): Promise<Map<string, ApprovedWithdrawal>> {
  const accepted = (await readAccepted(db, customerId, transferIds)).flatMap((order) =>
    order.approval === undefined ? [] : { ...order, approval: order.approval },
  )
  if (accepted.length === 0) return new Map()
  const approvers = await selectApprovers(db, customerId)
  const recorded = await selectDecisions(
    db,
    customerId,
    accepted.map(({ approval }) => approval.id),
  )
  const orders = accepted.map(({ id, approval: { initiator } }) => ({ id, initiator }))
  const actors = await actorsBehind(db, customerId, orders)
  const judged = new Map<string, ApprovedWithdrawal>()
  for (const [index, order] of accepted.entries()) {
    const statement = statementOf(order)
    const decisions = recorded.filter(({ approval_id }) => approval_id === order.approval.id)
    const judgement = judgeDecisions(statement, decisions, approvers, actors[index]!)
    judged.set(order.id, { statement, decisions, approvers, judgement })
  }
  return judged
}
