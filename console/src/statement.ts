import { canonicalJson } from '../../src/contract/canonical-json.ts'
import type { Approval } from './records.ts'

/** The statement that an approver signs, read from the very text that is signed (docs/reference/objects/approval.md). */

export type Decision = 'APPROVE' | 'REJECT'
/** The texts to sign, as the API answers them. */
export type ToSign = Record<Decision, string>

export interface SignedPayment {
  type: 'transfer'
  id: string
  profile_id: string
  network: string
  asset: string
  amount: string
  /** An address, or a bank account with its owner. */
  destination: string | object
  memo: string | null
}
interface SignedChange {
  type: string
  id: string
  operation: string
  digest: string
}

export interface Statement {
  statement: string
  decision: Decision
  approval_id: string
  customer_id: string
  subject: SignedPayment | SignedChange
  required: number
  role: string
  rule_id: string | null
  policy_version: number
  initiator: { type: string; id: string }
  deadline: string
}

export interface ChangeToApprove {
  subject: string
  operation: string
  target: { type: string; id: string }
  values: Record<string, unknown>
}
export const changeOf = ({ change }: Approval): ChangeToApprove | undefined =>
  change as unknown as ChangeToApprove | undefined

export const isPayment = (subject: Statement['subject']): subject is SignedPayment => !('digest' in subject)

/** The SHA-256 of a text. Throws an Error on a page where the browser does not compute it. */
export async function sha256(text: string): Promise<Uint8Array> {
  if ((globalThis as { isSecureContext?: boolean }).isSecureContext === false)
    throw new Error('A browser computes digests on pages of https or localhost alone.')
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
}

/**
 * Reads what both texts say. Throws an Error where a text is not of this approval, where the texts say different things, and
 * where the digest is not that of the change that the answer shows.
 */
export async function readStatement(id: string, approval: Approval, toSign: ToSign): Promise<Statement> {
  const statement = JSON.parse(toSign.APPROVE) as Statement
  const { statement: kind, decision, approval_id, customer_id, subject } = statement
  if (kind !== 'bursar-approval/v1' || decision !== 'APPROVE' || approval_id !== id)
    throw new Error('The text to sign is not of this approval.')
  if (JSON.stringify({ ...statement, decision: 'REJECT' }) !== toSign.REJECT)
    throw new Error('The two texts to sign are not of the same payment or change.')
  if (isPayment(subject)) return statement
  const change = changeOf(approval)
  const { type, id: initiator } = statement.initiator
  const digest = await sha256(canonicalJson([customer_id, { type, id: initiator }, change]))
  const isShown =
    change?.operation === subject.operation &&
    change.target.type === subject.type &&
    change.target.id === subject.id
  if (!isShown || hexOf(digest) !== subject.digest)
    throw new Error('The digest does not match the change that is shown. Do not sign it.')
  return statement
}

const hexOf = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
