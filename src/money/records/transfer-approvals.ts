import type { RequiredApproval } from '../../audit/withdrawal-macs.ts'
import type { Transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { arraysOf } from '../../db/rows.ts'

export interface NewTransferApproval extends RequiredApproval {
  transfer_id: string
  created_at: Moment
}

/** Inserts the approvals that withdrawals require, in the transaction that accepts them: their MACs cover these, too. */
export async function insertTransferApprovals(
  tx: Transaction,
  customerId: string,
  approvals: readonly NewTransferApproval[],
): Promise<void> {
  await tx.query(
    `
    insert into approvals (customer_id, id, created_at, transfer_id, required, role, rule_id, policy_version,
                           initiator_type, initiator_id, deadline, status)
    select $1, n.*, 'PENDING'
    from unnest($2::uuid[], $3::timestamptz[], $4::uuid[], $5::smallint[], $6::text[], $7::text[], $8::bigint[], $9::text[],
                $10::text[], $11::timestamptz[]) as n`,
    [
      customerId,
      approvals.map(({ id }) => id),
      approvals.map(({ created_at }) => created_at.text),
      ...arraysOf(approvals, 'transfer_id', 'required', 'role', 'rule_id', 'policy_version'),
      approvals.map(({ initiator }) => initiator.type),
      approvals.map(({ initiator }) => initiator.id),
      approvals.map(({ deadline }) => deadline),
    ],
  )
}
