import { PAYOUT_TYPES } from '../../contract/payout-sql.ts'
import { ifAllAnswer, type Queryable, type Transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import { SHORT } from '../../networks/outgoing-transfers.ts'
import type {
  EndOfWithdrawal,
  PaidByTransaction,
  Reserved,
  Unsigned,
  WithdrawalReader,
} from '../../networks/withdrawal-reader.ts'

/** After this wait for the hot wallet, the amount that a withdrawal needs is kept for it: no younger one takes it. */
const RESERVE_AFTER_MS = 1_800_000

/**
 * The hot wallet's money is kept for a withdrawal for this long at most. Then the withdrawal waits like any other, and the next
 * oldest takes its place. An operator has had a day to refill the wallet; one withdrawal must not stop an asset for ever.
 */
const RESERVE_FOR_MS = 86_400_000

async function longestWaiting(
  tx: Transaction,
  network: PayoutNetwork,
  reserveAfterMs: number,
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

async function unsigned(tx: Transaction, network: PayoutNetwork): Promise<Unsigned[] | undefined> {
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

/** By output, the payouts that the transaction $2 has completed: their own, or another in its place. */
export const COMPLETED_BY = `
    select t.*
    from customers c
    cross join lateral (
      select customer_id, id as transfer_id, crypto_tx_index from transfers
      where customer_id = c.id and crypto_tx_hash = $2 and type in ${PAYOUT_TYPES}
    ) t
    union
    select customer_id, id, crypto_tx_index from transfers
    where customer_id = '${PLATFORM_ID}' and crypto_tx_hash = $2 and type in ${PAYOUT_TYPES}`

async function paidBy(
  db: Queryable,
  network: PayoutNetwork,
  hash: string,
  customerIds?: readonly string[],
): Promise<PaidByTransaction[]> {
  const { rows } = await db.query<PaidByTransaction>(
    `
    select p.*
    from (
      select distinct t.id as transfer_id, coalesce(b.crypto_tx_index, t.crypto_tx_index) as crypto_tx_index, t.amount,
             t.destination_address
      from (
        select customer_id, transfer_id, crypto_tx_index from outgoing_transfers
        where network = $1 and crypto_tx_hash = $2 ${customerIds === undefined ? `union ${COMPLETED_BY}` : 'and customer_id = any ($3)'}
      ) b
      join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    ) p
    order by p.crypto_tx_index::int`,
    [network, hash, ...(customerIds === undefined ? [] : [customerIds])],
  )
  return rows
}

async function endOf(
  db: Queryable,
  customerId: string,
  transferId: string,
): Promise<EndOfWithdrawal | undefined> {
  const { rows } = await db.query<EndOfWithdrawal>(
    `
    select t.status, t.crypto_tx_hash, r.raw_transaction
    from transfers t
    left join replaced_transactions r
      on r.customer_id = $1 and r.transfer_id = $2 and r.crypto_tx_hash = t.crypto_tx_hash
    where t.customer_id = $1 and t.id = $2`,
    [customerId, transferId],
  )
  return rows[0]
}

/** Reads withdrawals for their networks. They keep the hot wallet's money after this wait. */
export const readerOfWithdrawals = (reserveAfterMs = RESERVE_AFTER_MS): WithdrawalReader => ({
  longestWaiting: (tx, network) => longestWaiting(tx, network, reserveAfterMs),
  unsigned,
  paidBy,
  endOf,
})

export const withdrawalReader = readerOfWithdrawals()
