import { ifAllAnswer, type Transaction } from '../db/database.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import type { PayoutNetwork } from './network.ts'

/** After this wait for the hot wallet, the amount that a withdrawal needs is kept for it: no younger one takes it. */
const RESERVE_AFTER_MS = 1_800_000

/**
 * The hot wallet's money is kept for a withdrawal for this long at most. Then the withdrawal waits like any other, and the next
 * oldest takes its place. An operator has had a day to refill the wallet; one withdrawal must not stop an asset for ever.
 */
const RESERVE_FOR_MS = 86_400_000

/** The codes of withdrawals that the hot wallet cannot pay, as a list in SQL. */
export const SHORT = `('HOT_WALLET_SHORT', 'FEE_NOT_COVERED')`

/** A withdrawal that the hot wallet's money is kept for. */
export interface Reserved {
  transfer_id: string
  asset: string
  /** A decimal string. */
  amount: string
  destination_address: string
}

/**
 * By asset, the oldest withdrawal that has waited for the hot wallet long enough for the money to be kept for it, for
 * `RESERVE_FOR_MS` at most. Otherwise small withdrawals would take every refill before it suffices for a large one. The
 * platform's own transfers never keep money. While a part of the database is gone, nothing is kept, and younger
 * withdrawals are paid.
 */
export async function longestWaiting(
  tx: Transaction,
  network: PayoutNetwork,
  reserveAfterMs = RESERVE_AFTER_MS,
): Promise<Reserved[]> {
  const found = await ifAllAnswer(tx, () =>
    tx.query<Reserved>(
      `
    select distinct on (t.asset) t.id as transfer_id, t.asset, t.amount, t.destination_address
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.network = $1 and b.state = 'HELD' and b.due_at is not null and t.status = 'PENDING'
      and t.customer_id <> '${PLATFORM_ID}' and b.waiting_code in ${SHORT}
      and b.waiting_since < clock_timestamp() - make_interval(secs => $2::float8 / 1000)
      and b.waiting_since > clock_timestamp() - make_interval(secs => ($2::float8 + ${RESERVE_FOR_MS}) / 1000)
    order by t.asset, t.id`,
      [network, reserveAfterMs],
    ),
  )
  return found?.rows ?? []
}

/** Customers' unsigned withdrawals of an asset: their sum, a decimal string, and their number. */
export interface Unsigned {
  asset: string
  amount: string
  count: number
}

/**
 * By asset, customers' PENDING withdrawals of the network that are not signed, for any reason: a send to cold storage leaves
 * their money in the hot wallet. Adapters count a signed withdrawal as having left it. Undefined while a part of the database
 * is gone.
 */
export async function unsignedWithdrawals(
  tx: Transaction,
  network: PayoutNetwork,
): Promise<Unsigned[] | undefined> {
  const found = await ifAllAnswer(tx, () =>
    tx.query<Unsigned>(
      `
    select t.asset, sum(t.amount) as amount, count(*)::int as count
    from transfers t
    left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
    where t.status = 'PENDING' and t.type = 'CRYPTO_WITHDRAWAL' and t.crypto_network = $1
      and t.customer_id <> '${PLATFORM_ID}' and (b.transfer_id is null or b.state = 'HELD')
    group by t.asset`,
      [network],
    ),
  )
  return found?.rows
}
