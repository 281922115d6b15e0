import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Temporal } from 'temporal-polyfill'
import { Type } from 'typebox'
import { initiatorOf, originOfLoop, type Origin } from '../../contract/actor.ts'
import { canonicalJson } from '../../contract/canonical-json.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { ownCustomers } from '../../db/parts.ts'
import { customerName, eachAlone } from '../../db/each-alone.ts'
import { newId, readClock, type Moment } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import {
  APPROVAL_COLUMNS,
  approvalEvent,
  approvalToWire,
  changeStatementOf,
  recordExpired,
  selectDecisions,
  setApprovalStatus,
  type ApprovalRow,
  type ChangeToApprove,
} from './approval.ts'
import { judgeDecisions } from './judge-decisions.ts'
import { actorsBehind, selectApprovers } from './approver.ts'
import { DEFAULT_DEADLINE_SECONDS, DEFAULT_ROLE, type ChangeSubject } from '../policy/policy-document.ts'
import { type Policies, type PolicyVersion } from '../policy/policy.ts'
import type { Approval } from '../../contract/approval.ts'

/** A change of configuration that somebody asks for. */
export interface RequestedChange extends ChangeToApprove {
  subject: ChangeSubject
  customer_id: string
  origin: Origin
  approval_id?: string | undefined
}

/** The query of an operation whose change may need approvers. */
export const ApprovalQuery = Closed({
  approval_id: Type.Optional(
    Uuid('The approval of this change, from the 403 `approval-required` of the same request before.'),
  ),
})

/** Returns what an approval shows of a secret: its SHA-256. */
export const secretDigest = (secret: string): string =>
  `sha256:${createHash('sha256').update(secret).digest('hex')}`

/** Reads the policy that says which changes need approvers. */
type PolicyInForce = Pick<Policies, 'newest' | 'examine'>

/** Most changes of a customer that wait for approvers at a time. */
const WAITING_CHANGES_MAX = 100

/**
 * Makes a change of configuration in a transaction, if the customer's policy allows it (API behaviour, Approvals). Where the
 * policy requires approvers, the first request records an approval and throws approval-required, which names the approval.
 * After enough approvers have signed, the same request of the same actor with `approval_id` makes the change, once. Throws
 * not-found, forbidden and approval-ended for an approval that does not fit, and what `work` throws.
 */
export async function withApprovedChange<T>(
  db: Database,
  policies: PolicyInForce,
  change: RequestedChange,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const outcome = await transaction(db, async (tx): Promise<{ done?: T; missing?: Approval }> => {
    const missing = await requireApprovedChange(tx, policies, change)
    return missing === undefined ? { done: await work(tx) } : { missing }
  })
  if (outcome.missing === undefined) return outcome.done as T
  const { id, status, approvals, required } = outcome.missing
  throw problem.approvalRequired({ approval_id: id, status, approvals, required })
}

/**
 * Returns undefined where the change may be made in this transaction; its approval is then USED. Otherwise returns the
 * approval that is missing: the caller commits the transaction, so that the approval is stored, and changes nothing else.
 */
async function requireApprovedChange(
  tx: Transaction,
  policies: PolicyInForce,
  change: RequestedChange,
): Promise<Approval | undefined> {
  const { customer_id, approval_id } = change
  if (approval_id === undefined) {
    const policy = await policies.newest(tx, customer_id)
    const required = policy?.document.changes
    if (policy === undefined || required?.subjects.includes(change.subject) !== true) return undefined
    return keepApproval(tx, change, policy)
  }
  const row = await lockApproval(tx, customer_id, approval_id)
  const now = await readClock(tx)
  requireOpen(row, now)
  requireSameChange(row, change)
  await requirePolicyMet(tx, policies, row)
  const decisions = await selectDecisions(tx, customer_id, [row.id])
  const approvers = await selectApprovers(tx, customer_id)
  const order = { id: row.id, initiator: initiatorOf(change.origin) }
  const [actors] = await actorsBehind(tx, customer_id, [order])
  const { outcome } = judgeDecisions(changeStatementOf(row), decisions, approvers, actors!)
  if (outcome !== 'APPROVED') return approvalToWire(row, decisions)
  await setApprovalStatus(tx, row, 'USED', now)
  recordChanges(tx, customer_id, now, [
    { origin: change.origin, action: 'approval.use', subject: { type: 'approval', id: row.id } },
  ])
  return undefined
}

const valuesOf = ({ subject, operation, target, values }: ChangeToApprove): ChangeToApprove => ({
  subject,
  operation,
  target: { type: target.type, id: target.id },
  values,
})

/** The digest by which a change is found and signed. It covers the initiator, who alone may make the change. */
function digestOf({ customer_id, origin, ...change }: RequestedChange): string {
  const { type, id } = initiatorOf(origin)
  const text = canonicalJson([customer_id, { type, id }, valuesOf(change)])
  return createHash('sha256').update(text).digest('hex')
}

/** Adds the approval of a change, or returns an approval of the same change that is still open. */
async function keepApproval(
  tx: Transaction,
  change: RequestedChange,
  { version, document }: PolicyVersion,
): Promise<Approval> {
  const { customer_id, origin } = change
  const now = await readClock(tx)
  await expireChanges(tx, customer_id, now, origin)
  await requireRoomForChange(tx, customer_id)
  const seconds = document.approvals?.deadline_seconds ?? DEFAULT_DEADLINE_SECONDS
  const micros = BigInt(now.micros) + BigInt(seconds) * 1_000_000n
  const initiator = initiatorOf(origin)
  const digest = digestOf(change)
  const { rows } = await tx.query<ApprovalRow>(
    `
    insert into approvals as a (customer_id, id, created_at, change, change_digest, required, role, policy_version,
                                initiator_type, initiator_id, deadline, status)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'PENDING')
    on conflict (customer_id, change_digest) where change_digest is not null and status in ('PENDING', 'APPROVED')
    do nothing
    returning ${APPROVAL_COLUMNS}`,
    [
      customer_id,
      newId(now),
      now.text,
      JSON.stringify(valuesOf(change)),
      digest,
      document.changes!.approvals,
      document.changes!.role ?? DEFAULT_ROLE,
      version,
      initiator.type,
      initiator.id,
      Temporal.Instant.fromEpochNanoseconds(micros * 1000n).toString({ fractionalSecondDigits: 6 }),
    ],
  )
  if (rows[0] === undefined) return findWaiting(tx, customer_id, digest)
  const approval = approvalToWire(rows[0], [])
  await insertEvents(tx, customer_id, now, [approvalEvent(approval)])
  recordChanges(tx, customer_id, now, [
    { origin, action: 'approval.create', subject: { type: 'approval', id: approval.id } },
  ])
  return approval
}

async function findWaiting(tx: Transaction, customerId: string, digest: string) {
  const { rows } = await tx.query<ApprovalRow>(
    `
    select ${APPROVAL_COLUMNS} from approvals a
    where a.customer_id = $1 and a.change_digest = $2 and a.status in ('PENDING', 'APPROVED')`,
    [customerId, digest],
  )
  if (rows[0] === undefined) throw problem.unavailable('the approval has just ended; try again')
  return approvalToWire(rows[0], await selectDecisions(tx, customerId, [rows[0].id]))
}

async function requireRoomForChange(tx: Transaction, customerId: string): Promise<void> {
  const { rowCount } = await tx.query(
    `
    select 1 from approvals
    where customer_id = $1 and change is not null and status in ('PENDING', 'APPROVED')
    offset $2 limit 1`,
    [customerId, WAITING_CHANGES_MAX],
  )
  if (rowCount! > 0)
    throw problem.badRequest(`${WAITING_CHANGES_MAX} changes wait for approvers, the most allowed`)
}

/** The audit log says what has ended, too: the service's role can set a status back, but removes no record. */
type LockedApproval = ApprovalRow & { has_ended: boolean }

async function lockApproval(tx: Transaction, customerId: string, id: string): Promise<LockedApproval> {
  const { rows } = await tx.query<LockedApproval>(
    `
    select ${APPROVAL_COLUMNS}, exists (
             select 1 from audit_log l
             where l.customer_id = $1 and l.subject_id = a.id::text
               and l.action in ('approval.use', 'approval.reject', 'approval.expire')) as has_ended
    from approvals a
    where a.customer_id = $1 and a.id = $2 and a.change is not null
    for update`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('approval', id)
  return rows[0]
}

/** Throws forbidden unless the approval is of this change, asked for by the same actor. */
function requireSameChange(row: ApprovalRow, change: RequestedChange): void {
  const { type, id } = initiatorOf(change.origin)
  if (row.initiator_type !== type || row.initiator_id !== id)
    throw problem.forbidden(
      `approval ${row.id} was asked for by another actor, who alone can make the change`,
    )
  const asked = JSON.parse(canonicalJson(valuesOf(change))) as unknown
  const approved = JSON.parse(canonicalJson(row.change)) as unknown
  if (row.change_digest !== digestOf(change) || !isDeepStrictEqual(asked, approved))
    throw problem.forbidden(`approval ${row.id} is of another change than this request`)
}

/**
 * Throws forbidden unless the approval asks for the approvers that its policy version and the one in force require: the
 * service's role can insert an approval that asks for fewer, but no version of a policy.
 */
async function requirePolicyMet(tx: Transaction, policies: PolicyInForce, row: ApprovalRow): Promise<void> {
  const named = await policies.examine(tx, row.customer_id, Number(row.policy_version))
  const rules = [named, await policies.newest(tx, row.customer_id)].flatMap(
    (policy) => policy?.document.changes ?? [],
  )
  const isMet = rules.every(
    ({ approvals, role = DEFAULT_ROLE }) => row.required >= approvals && row.role === role,
  )
  if (named?.document.changes === undefined || named.objection !== undefined || !isMet)
    throw problem.forbidden(
      `approval ${row.id} asks for other approvers than the policy; ask for the change again`,
    )
}

function requireOpen({ id, status, deadline, has_ended }: LockedApproval, now: Moment): void {
  const isOpen = status === 'PENDING' || status === 'APPROVED'
  if (has_ended || !isOpen)
    throw problem.approvalEnded({ id, status }, isOpen ? 'has ended before' : `is ${status}`)
  if (deadline <= now.text)
    throw problem.approvalEnded({ id, status }, `had to be decided and used by ${deadline}`)
}

/** Expires the approvals of a customer's changes whose deadline has passed. Returns their number. */
async function expireChanges(
  tx: Transaction,
  customerId: string,
  now: Moment,
  origin: Origin,
): Promise<number> {
  const { rows } = await tx.query<ApprovalRow>(
    `
    update approvals a
    set status = 'EXPIRED', ended_at = $2
    where a.customer_id = $1 and a.change is not null and a.status in ('PENDING', 'APPROVED') and a.deadline <= $2
    returning ${APPROVAL_COLUMNS}`,
    [customerId, now.text],
  )
  await recordExpired(tx, customerId, rows, now, origin)
  return rows.length
}

const ORIGIN = originOfLoop('approvals')

const EXPIRED_CUSTOMERS_MAX = 100

/** Expires the approvals of changes whose deadline has passed, for the worker. Returns their number. */
export async function expireApprovals(db: Database): Promise<number> {
  const { rows } = await selectExpired(ownCustomers(db))
  let expired = 0
  await eachAlone(rows, customerName, async ({ customer_id }) => {
    expired += await transaction(db, async (tx) =>
      expireChanges(tx, customer_id, await readClock(tx), ORIGIN),
    )
  })
  return expired
}

const selectExpired = (db: Queryable) =>
  db.query<{ customer_id: string }>(
    `
    select distinct customer_id from approvals
    where change is not null and status in ('PENDING', 'APPROVED') and deadline <= clock_timestamp()
    limit $1`,
    [EXPIRED_CUSTOMERS_MAX],
  )
