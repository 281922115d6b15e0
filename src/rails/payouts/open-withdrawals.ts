import type { Queryable } from '../../db/database.ts'
import type { WaitingCode } from '../../contract/waiting-codes.ts'
import { PAYOUT_NETWORK } from '../../contract/payout-sql.ts'
import type { OutgoingState } from '../../networks/outgoing-transfers.ts'

export const OPEN_WITHDRAWALS_MAX = 1_000

export interface OpenWithdrawal {
  transfer_id: string
  customer_id: string
  profile_id: string
  network: string
  asset: string
  amount: string
  created_at: string
  /** Null until the worker has looked at it. */
  state: OutgoingState | null
  waiting_code: WaitingCode | null
  waiting_detail: string | null
  waiting_since: string | null
}

/** The crypto withdrawals and wires that have not ended, oldest first; of all customers, unless one is named. */
export async function listOpenWithdrawals(db: Queryable, customerId?: string): Promise<OpenWithdrawal[]> {
  const { rows } = await db.query<OpenWithdrawal>(
    `
    select t.id as transfer_id, t.customer_id, t.profile_id, ${PAYOUT_NETWORK} as network, t.asset,
           t.amount, t.created_at, b.state, b.waiting_code, b.waiting_detail, b.waiting_since
    from transfers t
    left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
    where t.status = 'PENDING' and t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')
      and ($1::uuid is null or t.customer_id = $1)
    order by t.id
    limit ${OPEN_WITHDRAWALS_MAX}`,
    [customerId],
  )
  return rows
}
