import { randomUUID, type JsonWebKey } from 'node:crypto'
import { transaction, type Database } from '../src/db/database.ts'
import { newId, readClock } from '../src/db/ids.ts'
import type { Origin } from '../src/contract/actor.ts'
import { awaitApproval, type ApprovalRequirement } from '../src/governance/approvals/approved-withdrawal.ts'
import {
  newPrivateKey,
  publicPartOf,
  signStatement,
  thumbprintOf,
} from '../src/governance/approvals/approval-statement.ts'
import { decideApproval, readApproval } from '../src/rails/payouts/decide-approval.ts'
import { checkWithdrawal, movementOf } from '../src/resources/transfers/create-crypto-withdrawal.ts'
import { credit, TEST_ORIGIN, withdrawalOf, type TestCustomer, type TestService } from './support.ts'
import type { ApprovalDecision } from '../src/contract/approval.ts'

/** An approver of a test, with the private key of its key file. */
export interface TestApprover {
  id: string
  jwk: JsonWebKey
}

let made = 0

/** Adds an approver as `bursar approvers add` does: as the role that owns the schema. */
export async function addTestApprover(
  owner: Database,
  customer_id: string,
  {
    jwk = newPrivateKey(),
    name = `Approver ${++made}`,
    role = 'APPROVER',
    operator_id = null as string | null,
    client_id = null as string | null,
  } = {},
): Promise<TestApprover> {
  const key = publicPartOf(jwk)
  return transaction(owner, async (tx) => {
    const now = await readClock(tx)
    const id = newId(now)
    await tx.query(
      `
      insert into approvers (customer_id, id, created_at, name, operator_id, client_id, role, key, thumbprint, status)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ACTIVE')`,
      [customer_id, id, now.text, name, operator_id, client_id, role, JSON.stringify(key), thumbprintOf(key)],
    )
    return { id, jwk }
  })
}

/** Returns the text that approvers sign for a decision. */
export const statementOf = async (
  db: Database,
  customer_id: string,
  approval_id: string,
  decision: ApprovalDecision = 'APPROVE',
): Promise<string> => (await readApproval(db, customer_id, approval_id)).statements[decision]

/** Signs a decision with the approver's key, and records it as the operation does. */
export async function decideAs(
  db: Database,
  customer_id: string,
  approval_id: string,
  { id: approver_id, jwk }: TestApprover,
  decision: ApprovalDecision = 'APPROVE',
) {
  const signed = signStatement(await statementOf(db, customer_id, approval_id, decision), jwk)
  return decideApproval(
    db,
    { customerId: customer_id, id: approval_id, origin: TEST_ORIGIN },
    { approver_id, decision, signed },
  )
}

/** Writes a decision without the operation's checks, as somebody with the service's role could. */
export const insertDecision = (
  db: Database,
  customer_id: string,
  approval_id: string,
  approver_id: string,
  signed: object,
  decision: ApprovalDecision = 'APPROVE',
) =>
  db.query(
    `insert into approval_decisions (customer_id, approval_id, id, created_at, approver_id, decision, signed)
     values ($1, $2, $3, clock_timestamp(), $4, $5, $6)`,
    [customer_id, approval_id, randomUUID(), approver_id, decision, JSON.stringify(signed)],
  )

/** A withdrawal that waits for approvers. */
export interface Waiting {
  id: string
  approval_id: string
}

const RULE: ApprovalRequirement = {
  approvals: 2,
  role: 'APPROVER',
  rule_id: 'large',
  policy_version: 3,
  deadline_seconds: 3600,
}

/** Creates a withdrawal that waits for two approvers, paid from 11 USD that it credits. */
export async function withdrawWithApproval(
  { ledger, networks, settings }: Pick<TestService, 'ledger' | 'networks' | 'settings'>,
  customer: Pick<TestCustomer, 'customer_id' | 'profile_id'>,
  origin: Origin,
  rule: Partial<ApprovalRequirement> = {},
): Promise<Waiting> {
  await credit(ledger, customer, 'USD', '11')
  const body = withdrawalOf(customer) as Parameters<typeof checkWithdrawal>[0]
  const movement = movementOf(customer.customer_id, checkWithdrawal(body, { networks, settings }), {
    networks,
    prices: new Map() as never,
    origin,
    requireCaller: () => undefined,
  })
  const { transfer } = await ledger.submit(customer.customer_id, {
    ...movement,
    decide: (view) => awaitApproval(movement.decide(view), { ...RULE, ...rule }, origin, view),
  })
  return { id: transfer.id, approval_id: transfer.status_details!.pending_customer_approval!.approval_id! }
}
