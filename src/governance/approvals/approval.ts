import { strict as assert } from 'node:assert'
import type { ActorType, Origin } from '../../contract/actor.ts'
import type { SignedStatement } from '../../contract/approval.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { recordChanges } from '../../audit/audit.ts'
import { insertEvents, type NewEvent } from '../../money/ledger/events.ts'
import { type StatementOf } from './approval-statement.ts'
import type { RecordKind } from '../../money/records/need.ts'
import type { Approval, ApprovalDecision, ApprovalStatus } from '../../contract/approval.ts'
import { newId, type Moment } from '../../db/ids.ts'
import { insertTransferApprovals, type NewTransferApproval } from '../../money/records/transfer-approvals.ts'

export interface ApprovalRow {
  id: string
  customer_id: string
  created_at: string
  transfer_id: string | null
  change: ChangeToApprove | null
  change_digest: string | null
  required: number
  role: string
  rule_id: string | null
  policy_version: string
  initiator_type: ActorType
  initiator_id: string
  deadline: string
  status: ApprovalStatus
  ended_at: string | null
}

export interface ChangeToApprove {
  subject: string
  operation: string
  target: { type: string; id: string }
  /** The values as they will be applied, with secrets as their SHA-256. */
  values: object
}

export const APPROVAL_COLUMNS = `a.id, a.customer_id, a.created_at, a.transfer_id, a.change, a.change_digest, a.required, a.role,
  a.rule_id, a.policy_version, a.initiator_type, a.initiator_id, a.deadline, a.status, a.ended_at`

/** A decision as its row stores it. */
export interface KeptDecision {
  approval_id: string
  approver_id: string
  decision: ApprovalDecision
  signed: SignedStatement
  created_at: string
}

/** Reads the decisions about these approvals, in the order in which they were made. */
export async function selectDecisions(
  db: Queryable,
  customerId: string,
  approvalIds: readonly string[],
): Promise<KeptDecision[]> {
  if (approvalIds.length === 0) return []
  const { rows } = await db.query<KeptDecision>(
    `
    select approval_id, approver_id, decision, signed, created_at
    from approval_decisions
    where customer_id = $1 and approval_id = any ($2::uuid[])
    order by approval_id, id`,
    [customerId, approvalIds],
  )
  return rows
}

/** Stores a decision about an approval, as it was signed. */
export async function insertDecision(
  tx: Transaction,
  { customer_id, id }: ApprovalRow,
  { approver_id, decision, signed }: Pick<KeptDecision, 'approver_id' | 'decision' | 'signed'>,
  now: Moment,
): Promise<void> {
  await tx.query(
    `
    insert into approval_decisions (customer_id, approval_id, id, created_at, approver_id, decision, signed)
    values ($1, $2, $3, $4, $5, $6, $7)`,
    [customer_id, id, newId(now), now.text, approver_id, decision, JSON.stringify(signed)],
  )
}

const subjectOf = ({ transfer_id, change }: Pick<ApprovalRow, 'transfer_id' | 'change'>) =>
  transfer_id === null ? change!.target : { type: 'transfer', id: transfer_id }

export function approvalToWire(row: ApprovalRow, decisions: readonly KeptDecision[]): Approval {
  const own = decisions.filter(({ approval_id }) => approval_id === row.id)
  return {
    id: row.id,
    customer_id: row.customer_id,
    subject: subjectOf(row),
    status: row.status,
    approvals: own.filter(({ decision }) => decision === 'APPROVE').length,
    required: row.required,
    role: row.role,
    ...(row.rule_id !== null && { rule_id: row.rule_id }),
    policy_version: Number(row.policy_version),
    initiator: { type: row.initiator_type, id: row.initiator_id },
    ...(row.change !== null && { change: row.change }),
    decisions: own.map(({ approver_id, decision, created_at }) => ({ approver_id, decision, created_at })),
    created_at: row.created_at,
    deadline: row.deadline,
    ...(row.ended_at !== null && { ended_at: row.ended_at }),
  }
}

// ---------------------------------------------------------------------------------------------- changes of approvals

export function changeStatementOf(row: ApprovalRow): StatementOf {
  assert(row.change !== null && row.change_digest !== null, `approval ${row.id} is not of a change`)
  const { id: approval_id, customer_id, required, role, rule_id, policy_version, deadline } = row
  const { operation, target } = row.change
  return {
    approval_id,
    customer_id,
    subject: { type: target.type, id: target.id, operation, digest: row.change_digest },
    required,
    role,
    rule_id,
    policy_version: Number(policy_version),
    initiator: { type: row.initiator_type, id: row.initiator_id },
    deadline,
  }
}

/** Gives an approval another status. The transaction has locked it. */
export async function setApprovalStatus(
  tx: Transaction,
  { customer_id, id }: Pick<ApprovalRow, 'customer_id' | 'id'>,
  status: ApprovalStatus,
  now: Moment,
): Promise<ApprovalRow> {
  const { rows } = await tx.query<ApprovalRow>(
    `
    update approvals a
    set status = $3, approved_at = case when $3 = 'APPROVED' then $4::timestamptz else approved_at end,
        ended_at = case when $3 in ('PENDING', 'APPROVED') then null else $4::timestamptz end
    where a.customer_id = $1 and a.id = $2
    returning ${APPROVAL_COLUMNS}`,
    [customer_id, id, status, now.text],
  )
  return rows[0]!
}

/** The approvals of withdrawals. The transaction that accepts a withdrawal writes its approval. */
export const TRANSFER_APPROVALS: RecordKind<string, ApprovalRow, NewTransferApproval> = {
  async read(tx, customerId, transferIds) {
    const { rows } = await tx.query<ApprovalRow>(
      `select ${APPROVAL_COLUMNS} from approvals a where a.customer_id = $1 and a.transfer_id = any ($2::uuid[])`,
      [customerId, transferIds],
    )
    return new Map(rows.map((row) => [row.transfer_id!, row]))
  },
  write(tx, customerId, approvals) {
    const events = approvals.map(({ id, transfer_id, required }) =>
      approvalEvent({
        id,
        subject: { type: 'transfer', id: transfer_id },
        status: 'PENDING',
        approvals: 0,
        required,
      }),
    )
    return [
      insertTransferApprovals(tx, customerId, approvals),
      insertEvents(tx, customerId, approvals[0]!.created_at, events),
    ]
  },
}

const EVENT_NAMES: Partial<Record<ApprovalStatus, string>> = {
  PENDING: 'requested',
  APPROVED: 'approved',
  REJECTED: 'rejected',
  EXPIRED: 'expired',
}

export const approvalEvent = (
  object: Pick<Approval, 'id' | 'subject' | 'status' | 'approvals' | 'required'>,
): NewEvent => ({ type: `approval.${EVENT_NAMES[object.status]}`, object_id: object.id, object })

/**
 * Ends the approvals of withdrawals that have failed, in the transaction that refunds the withdrawals: EXPIRED after the
 * deadline, else CANCELLED.
 */
export async function endApprovalsOf(
  tx: Transaction,
  customerId: string,
  transferIds: readonly string[],
  now: Moment,
  origin: Origin,
): Promise<void> {
  if (transferIds.length === 0) return
  const { rows } = await tx.query<ApprovalRow>(
    `
    update approvals a
    set status = case when a.status = 'PENDING' and deadline <= $3 then 'EXPIRED' else 'CANCELLED' end, ended_at = $3
    where a.customer_id = $1 and a.transfer_id = any ($2::uuid[]) and a.status in ('PENDING', 'APPROVED')
    returning ${APPROVAL_COLUMNS}`,
    [customerId, transferIds, now.text],
  )
  const expired = rows.filter(({ status }) => status === 'EXPIRED')
  await recordExpired(tx, customerId, expired, now, origin)
}

/** Writes the events and audit records of approvals that have just become EXPIRED. */
export async function recordExpired(
  tx: Transaction,
  customerId: string,
  expired: readonly ApprovalRow[],
  now: Moment,
  origin: Origin,
): Promise<void> {
  if (expired.length === 0) return
  const decisions = await selectDecisions(
    tx,
    customerId,
    expired.map(({ id }) => id),
  )
  const events = expired.map((row) => approvalEvent(approvalToWire(row, decisions)))
  await insertEvents(tx, customerId, now, events)
  const subjects = expired.map(({ id }) => ({ type: 'approval', id }))
  recordChanges(
    tx,
    customerId,
    now,
    subjects.map((subject) => ({ origin, action: 'approval.expire', subject })),
  )
}
