import { strict as assert } from 'node:assert'
import type { Origin } from '../../contract/actor.ts'
import type { SignedStatement } from '../../contract/approval.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { momentAt, readClock, type Moment } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { judgeWithdrawals } from '../../governance/approvals/approved-withdrawal.ts'
import {
  APPROVAL_COLUMNS,
  approvalEvent,
  approvalToWire,
  changeStatementOf,
  selectDecisions,
  setApprovalStatus,
  type ApprovalRow,
  insertDecision,
} from '../../governance/approvals/approval.ts'
import { judgeDecisions, type Objection } from '../../governance/approvals/judge-decisions.ts'
import { statementText, type StatementOf } from '../../governance/approvals/approval-statement.ts'
import { actorsBehind, selectApprovers } from '../../governance/approvals/approver.ts'
import { holdWithdrawal } from './hold-withdrawal.ts'
import type { Step } from './next-step.ts'
import type { HeldWithdrawal } from './claimed-withdrawals.ts'
import { record } from './record-steps.ts'
import type { Approval, ApprovalStatus, ApprovalDecision } from '../../contract/approval.ts'

/** An approval with the texts that approvers sign. */
export interface ReadApproval {
  approval: Approval
  statements: Record<ApprovalDecision, string>
}

/** Reads an approval of the customer, with the texts to sign. Throws not-found. */
export async function readApproval(db: Queryable, customerId: string, id: string): Promise<ReadApproval> {
  const row = await selectApproval(db, customerId, id)
  const statement = await statementOf(db, row)
  const statements = {
    APPROVE: statementText('APPROVE', statement),
    REJECT: statementText('REJECT', statement),
  }
  return { approval: approvalToWire(row, await selectDecisions(db, customerId, [id])), statements }
}

interface DecisionRequest {
  customerId: string
  id: string
  origin: Origin
}

export interface SignedDecision {
  approver_id: string
  decision: ApprovalDecision
  signed: SignedStatement
}

/**
 * Records an approver's decision (API behaviour, Approvals). With enough approvals, the withdrawal becomes due to be signed,
 * and signing checks the approvers' signatures again. A rejection fails the withdrawal and refunds it, in this transaction.
 * Throws not-found, approval-ended, forbidden for an approver who may not decide, bad-request for a wrong signature, and
 * already-exists for a second decision of the same kind.
 */
export async function decideApproval(
  db: Database,
  request: DecisionRequest,
  given: SignedDecision,
): Promise<Approval> {
  const { customer_id, transfer_id } = await selectApproval(db, request.customerId, request.id)
  if (transfer_id === null) return transaction(db, (tx) => decide(tx, request, given, undefined))
  return holdWithdrawal(db, { customer_id, transfer_id }, (tx, held) => decide(tx, request, given, held))
}

async function selectApproval(db: Queryable, customerId: string, id: string): Promise<ApprovalRow> {
  const { rows } = await db.query<ApprovalRow>(
    `select ${APPROVAL_COLUMNS} from approvals a where a.customer_id = $1 and a.id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('approval', id)
  return rows[0]
}

/** The members of an approval's statement, from the withdrawal as it would be paid, or from the change. */
async function statementOf(db: Queryable, row: ApprovalRow): Promise<StatementOf> {
  if (row.transfer_id === null) return changeStatementOf(row)
  const judged = await judgeWithdrawals(db, row.customer_id, [row.transfer_id])
  const withdrawal = judged.get(row.transfer_id)
  assert(withdrawal !== undefined, `approval ${row.id} has no withdrawal`)
  return withdrawal.statement
}

async function decide(
  tx: Transaction,
  { customerId, id, origin }: DecisionRequest,
  given: SignedDecision,
  held: HeldWithdrawal | undefined,
): Promise<Approval> {
  await tx.query('select 1 from approvals where customer_id = $1 and id = $2 for update', [customerId, id])
  const row = await selectApproval(tx, customerId, id)
  const now = await readClock(tx)
  requireOpen(row, held, now)
  const statement = await statementOf(tx, row)
  const approvers = await selectApprovers(tx, customerId)
  const kept = await selectDecisions(tx, customerId, [id])
  const order = { id: row.transfer_id ?? id, initiator: statement.initiator }
  const [actors] = await actorsBehind(tx, customerId, [order])
  const before = judgeDecisions(statement, kept, approvers, actors!)
  const after = judgeDecisions(statement, [...kept, given], approvers, actors!)
  // The last objection is to the given decision.
  if (after.objections.length > before.objections.length)
    refuse(given, after.objections.at(-1)!, approvalToWire(row, kept))
  await insertDecision(tx, row, given, now)
  const { approver_id, decision } = given
  recordChanges(tx, customerId, now, [
    {
      origin,
      action: decision === 'APPROVE' ? 'approval.approve' : 'approval.reject',
      subject: { type: 'approval', id },
      changes: { after: { approver_id } },
    },
  ])
  const status = after.outcome === 'PENDING' ? row.status : after.outcome
  const changed = status === row.status ? row : await setApprovalStatus(tx, row, status, now)
  if (held !== undefined && before.outcome !== after.outcome)
    await moveWithdrawal(tx, held, after.outcome, origin)
  const approval = approvalToWire(changed, await selectDecisions(tx, customerId, [id]))
  if (status !== row.status) await insertEvents(tx, customerId, now, [approvalEvent(approval)])
  return approval
}

function refuse(
  { approver_id, decision, signed }: SignedDecision,
  { kind, objection }: Objection,
  approval: Approval,
): never {
  const isRepeat = approval.decisions.some(
    (recorded) => recorded.approver_id === approver_id && recorded.decision === decision,
  )
  if (kind === 'SIGNATURE')
    throw problem.badRequest(
      `the decision is not signed as it must be: ${objection}`,
      'jws' in signed ? 'jws' : 'passkey',
    )
  if (kind === 'REPEATED' && isRepeat) throw problem.alreadyExists('approver_id', approval)
  throw problem.forbidden(`approver ${approver_id} cannot decide: ${objection}`)
}

const OPEN: readonly ApprovalStatus[] = ['PENDING', 'APPROVED']

function requireOpen({ id, status, deadline }: ApprovalRow, held: HeldWithdrawal | undefined, now: Moment) {
  if (!OPEN.includes(status)) throw problem.approvalEnded({ id, status }, `is ${status}`)
  if (held !== undefined && held.status !== 'PENDING')
    throw problem.approvalEnded({ id, status }, `has a transfer that is ${held.status}`)
  if (held !== undefined && (held.state !== 'HELD' || held.crypto_tx_hash !== null))
    throw problem.approvalEnded({ id, status }, 'has a transfer that is signed')
  if (momentAt(deadline).micros <= now.micros)
    throw problem.approvalEnded({ id, status }, `had to be decided by ${deadline}`)
}

async function moveWithdrawal(
  tx: Transaction,
  withdrawal: HeldWithdrawal,
  outcome: 'APPROVED' | 'REJECTED' | 'PENDING',
  origin: Origin,
): Promise<void> {
  if (outcome === 'PENDING') return
  const secondary_status = { name: 'CUSTOMER_REJECTED', detail: 'an approver rejected it' } as const
  const step: Step =
    outcome === 'APPROVED'
      ? { withdrawal, state: 'HELD', dueInMs: 0, transfer: { status: 'PENDING' } }
      : { withdrawal, state: 'DONE', transfer: { status: 'FAILED', secondary_status } }
  await record(tx, withdrawal.customer_id, [step], { origin })
}

const LISTED_MAX = 100

/** The customer's newest approvals, for operators; with a status, only those that have it. */
export async function newestApprovals(
  db: Queryable,
  customerId: string,
  status?: string,
): Promise<Approval[]> {
  const { rows } = await db.query<ApprovalRow>(
    `
    select ${APPROVAL_COLUMNS} from approvals a
    where a.customer_id = $1 and ($2::text is null or a.status = $2)
    order by a.id desc
    limit $3`,
    [customerId, status ?? null, LISTED_MAX],
  )
  const decisions = await selectDecisions(
    db,
    customerId,
    rows.map(({ id }) => id),
  )
  return rows.map((row) => approvalToWire(row, decisions))
}
