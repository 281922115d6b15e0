import type { Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import type { Network, Withdrawal } from './network.ts'
import type { WaitingReason } from './waiting.ts'

/** A withdrawal that has waited so long for the hot wallet keeps what it needs: no younger one takes it. */
const RESERVE_AFTER_MS = 1_800_000

/**
 * So long a withdrawal keeps the hot wallet's money at most; then it waits like any other, and the next oldest keeps what it
 * needs. An operator has had a day to fill the wallet, and one customer's withdrawal shall not stop an asset for ever.
 */
const RESERVE_FOR_MS = 86_400_000

/** A withdrawal that the hot wallet's money is kept for. */
export interface Reserved {
  transfer_id: string
  asset: string
  /** A decimal string. */
  amount: string
  destination_address: string
}

/**
 * The oldest withdrawal of each asset that has waited for the hot wallet for so long that no younger one may take from it what
 * it needs, for `RESERVE_FOR_MS` at most. Without that, a large one would wait for ever behind small ones: they take each refill before it is enough.
 * The platform's own moves are never among them.
 */
export async function longestWaiting(
  tx: Transaction,
  network: Network,
  reserveAfterMs = RESERVE_AFTER_MS,
): Promise<Reserved[]> {
  const { rows } = await tx.query<Reserved>(
    `
    select distinct on (t.asset) t.id as transfer_id, t.asset, t.amount, t.destination_address
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.network = $1 and b.state = 'HELD' and b.due_at is not null and t.status = 'PENDING'
      and t.customer_id <> '${PLATFORM_ID}' and b.waiting_code = 'HOT_WALLET_SHORT'
      and b.waiting_since < clock_timestamp() - make_interval(secs => $2::float8 / 1000)
      and b.waiting_since > clock_timestamp() - make_interval(secs => ($2::float8 + ${RESERVE_FOR_MS}) / 1000)
    order by t.asset, t.id`,
    [network, reserveAfterMs],
  )
  return rows
}

/** What customers' withdrawals of an asset need that are not signed: their sum, a decimal string, and how many they are. */
export interface Unsigned {
  asset: string
  amount: string
  count: number
}

/** Whether a transfer goes to cold storage: the platform's own, and no consolidation. */
export const isTreasurySend = ({
  customer_id,
  consolidation_fee_max,
}: Pick<Withdrawal, 'customer_id' | 'consolidation_fee_max'>): boolean =>
  customer_id === PLATFORM_ID && (consolidation_fee_max ?? null) === null

/**
 * By asset, the customers' PENDING withdrawals of the network that are not signed, for whatever reason: a send to cold storage
 * leaves them what they need. What is signed has left the hot wallet already, as adapters count.
 */
export async function unsignedWithdrawals(tx: Transaction, network: Network): Promise<Unsigned[]> {
  const { rows } = await tx.query<Unsigned>(
    `
    select t.asset, sum(t.amount) as amount, count(*)::int as count
    from transfers t
    left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
    where t.status = 'PENDING' and t.type = 'CRYPTO_WITHDRAWAL' and t.crypto_network = $1
      and t.customer_id <> '${PLATFORM_ID}' and (b.transfer_id is null or b.state = 'HELD')
    group by t.asset`,
    [network],
  )
  return rows
}

/** Why a send to cold storage waits. Both amounts with their unit. */
export const neededByCustomers = (there: string, needed: string): WaitingReason => ({
  code: 'KEPT_FOR_CUSTOMERS',
  detail: `customers' withdrawals come first: the hot wallet has ${there} left, and those that are not signed need ${needed}`,
})
