import type { Actor } from '../../contract/actor.ts'
import type { KeptDecision } from './approval.ts'
import { objectionToSignature, statementText, type StatementOf } from './approval-statement.ts'
import { hasRole, personsOf, personsWhoAre, type Approver } from './approver.ts'

/** Why a decision does not count. */
export interface Objection {
  approver_id: string
  /** SIGNATURE: another statement or key. REPEATED: the person has approved already. APPROVER: the person may not decide. */
  kind: 'SIGNATURE' | 'REPEATED' | 'APPROVER'
  objection: string
}

/** The judgement of an approval's decisions. REJECTED outweighs any number of approvals. */
export interface Judgement {
  outcome: 'APPROVED' | 'REJECTED' | 'PENDING'
  /** How many different persons approve. */
  approvals: number
  objections: Objection[]
}

/**
 * Judges an approval by its signed decisions. Only signatures over exactly this statement count, by ACTIVE approvers of the
 * role, one for each person, and none by the `actors` behind the order. Nothing that the service's database role can write is trusted: the
 * schema's owner writes approvers, and the statement is rebuilt from the record that is about to be signed or changed.
 */
export function judgeDecisions(
  statement: StatementOf,
  decisions: readonly Pick<KeptDecision, 'approver_id' | 'decision' | 'signed'>[],
  approvers: readonly Approver[],
  actors: readonly Actor[],
): Judgement {
  const personOf = personsOf(approvers)
  const initiators = personsWhoAre(approvers, personOf, actors)
  const approving = new Set<number>()
  const objections: Objection[] = []
  let isRejected = false
  for (const { approver_id, decision, signed } of decisions) {
    const object = (kind: Objection['kind'], objection: string) =>
      void objections.push({ approver_id, kind, objection })
    const approver = approvers.find(({ id }) => id === approver_id)
    const person = personOf.get(approver_id)
    if (approver === undefined || person === undefined) object('APPROVER', 'there is no such approver')
    else if (approver.status !== 'ACTIVE') object('APPROVER', 'the approver is revoked')
    else if (!hasRole(approver.role, statement.role))
      object('APPROVER', `the approver has the role ${approver.role}, not ${statement.role}`)
    else if (initiators.has(person))
      object('APPROVER', 'the initiator cannot decide, nor who made its credential')
    else {
      const wrong = objectionToSignature(statementText(decision, statement), signed, approver.key)
      if (wrong !== undefined) object('SIGNATURE', wrong)
      else if (decision === 'REJECT') isRejected = true
      else if (approving.has(person)) object('REPEATED', 'the same person has approved already')
      else approving.add(person)
    }
  }
  // At least one signature is required, even if `required` were 0.
  const isApproved = approving.size >= Math.max(1, statement.required)
  return {
    outcome: isRejected ? 'REJECTED' : isApproved ? 'APPROVED' : 'PENDING',
    approvals: approving.size,
    objections,
  }
}
