import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'

export { PLATFORM_ID }

/**
 * The platform's own transfers: SEND from a hot wallet to cold storage, CONSOLIDATION of a wallet's coins. Each is a
 * row of `transfers` that the worker signs and settles like a withdrawal.
 */
export type TreasuryType = 'TREASURY_SEND' | 'TREASURY_CONSOLIDATION'

/** In SQL: the types of customers' withdrawals. */
export const WITHDRAWAL_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`

/** In SQL: the types of transfers that the worker signs. */
export const PAYOUT_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL', 'TREASURY_SEND', 'TREASURY_CONSOLIDATION')`

/** In SQL: the network of such a transfer `t`. One that goes over no blockchain is a wire. */
export const PAYOUT_NETWORK = `coalesce(t.crypto_network, 'WIRE')`

/** In SQL: whether the transfer `t` is for the worker to sign and no worker has begun it. */
export const IS_NOT_BEGUN = `
  t.status = 'PENDING' and t.type in ${PAYOUT_TYPES}
    and not exists (select 1 from outgoing_transfers b where b.customer_id = t.customer_id and b.transfer_id = t.id)`

/**
 * Finds the owner of a transfer by the transfer's id alone, for operators: a customer or the platform. Records are found by
 * their customer, so this is one look-up for each customer, and later statements name the customer.
 */
export async function findOwner(db: Queryable, transferId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ customer_id: string }>(
    `
    select t.customer_id
    from customers c
    cross join lateral (select customer_id from transfers where customer_id = c.id and id = $1) t
    union all
    select customer_id from transfers where customer_id = $2 and id = $1`,
    [transferId, PLATFORM_ID],
  )
  return rows[0]?.customer_id
}

/** The terms of a consolidation, kept as its transfer's metadata. */
export interface ConsolidationTerms {
  /** The highest fee rate: a decimal string per 1,000 virtual bytes. */
  max_fee_rate: string
}

/** A transfer ordered by an operator, with its progress. Amounts are decimal strings. */
export interface TreasuryTransfer {
  id: string
  type: TreasuryType
  /** The operator's own unique name for the transfer. Null for a consolidation. */
  reference: string | null
  crypto_network: CryptoNetwork
  asset: string
  amount: string
  destination_address: string
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  /** The state of its transaction: HELD, SIGNED, BROADCAST or DONE; null until the worker has begun. */
  state: string | null
  crypto_tx_hash: string | null
  /** Why it waits (not signed, or not accepted by the node), as in `networks status`; null where it does not wait. */
  waiting_code: string | null
  waiting_detail: string | null
  created_at: string
}
