import type { Queryable } from '../../db/database.ts'
import type { SigningEvidence } from '../../contract/approval.ts'
import { statementText } from './approval-statement.ts'
import { judgeWithdrawals } from './approved-withdrawal.ts'
import { acceptanceOf, acceptedText } from '../../audit/withdrawal-macs.ts'
import { readAccepted } from '../../money/movements/accepted-withdrawals.ts'

/** What a signer process is told of these withdrawals of the customer, by their ids. */
export async function evidenceOf(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
): Promise<Map<string, SigningEvidence>> {
  const approvals = await judgeWithdrawals(db, customerId, ids)
  return new Map(
    (await readAccepted(db, customerId, ids)).map(({ mac, ...accepted }) => {
      const approval = approvals.get(accepted.id)
      const decisions = (approval?.decisions ?? []).map(({ decision, signed }) => {
        return { text: statementText(decision, approval!.statement), signed }
      })
      return [accepted.id, { accepted: acceptedText(accepted), signature: acceptanceOf(mac), decisions }]
    }),
  )
}
