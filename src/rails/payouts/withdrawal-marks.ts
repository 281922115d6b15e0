import type { Transaction } from '../../db/database.ts'

/** CANCELLED: before it was signed. TAKEN: a wire, by an operator who may have sent it. */
export type WithdrawalMark = 'CANCELLED' | 'TAKEN'

/** Marks a withdrawal for good: the service's role can neither change nor remove a mark. `orderHash` is that of a taken wire. */
export async function markWithdrawal(
  tx: Transaction,
  { customer_id, transfer_id }: { customer_id: string; transfer_id: string },
  mark: WithdrawalMark,
  orderHash?: string,
): Promise<void> {
  await tx.query(
    `insert into withdrawal_marks (customer_id, transfer_id, mark, order_hash, marked_at)
     values ($1, $2, $3, $4, clock_timestamp())`,
    [customer_id, transfer_id, mark, orderHash],
  )
}
