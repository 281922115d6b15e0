import type { Database, Queryable, Transaction } from '../../db/database.ts'
import { findOwner } from '../../money/records/transfer-owner.ts'
import type { PaidWithdrawal, PayoutNetwork, SignedTransaction, Withdrawal } from '../../networks/network.ts'
import { beginOutgoing, SELECT_WITHDRAWAL, withCanonicalAddress } from './claimed-withdrawals.ts'
import { PAYOUT_TYPES } from '../../contract/payout-sql.ts'
import { COMPLETED_BY } from './withdrawal-reader.ts'
import {
  type OutgoingState,
  keepReplaced,
  setTransaction,
  type OutgoingId,
} from '../../networks/outgoing-transfers.ts'

/** Withdrawals as operators' commands find them by their id, and the transactions that were signed for them. */

/** A transfer out of the platform as an operator finds it, begun or not. */
export type FoundWithdrawal = PaidWithdrawal & {
  status: string
  state: OutgoingState
  crypto_tx_hash: string | null
  crypto_tx_index: string | null
  /** The transaction that the transfer names, once it is completed. */
  mined_hash: string | null
  /** The hashes that its transactions replaced. */
  replaced: string[]
}

/** The transfer out of the platform with this id, whosever it is; undefined where there is none. Locks nothing. */
export async function findOutgoing(db: Database, transferId: string): Promise<FoundWithdrawal | undefined> {
  const customerId = await findOwner(db, transferId)
  if (customerId === undefined) return undefined
  const { rows } = await db.query<FoundWithdrawal>(
    `
    ${SELECT_WITHDRAWAL}, t.status, coalesce(b.state, 'NEW') as state, b.crypto_tx_hash,
           b.crypto_tx_index, b.raw_transaction, t.crypto_tx_hash as mined_hash,
           array(select crypto_tx_hash from replaced_transactions where customer_id = $1 and transfer_id = $2) as replaced
    from transfers t
    left join outgoing_transfers b on b.customer_id = $1 and b.transfer_id = t.id
    where t.customer_id = $1 and t.id = $2 and t.type in ${PAYOUT_TYPES}`,
    [customerId, transferId],
  )
  const [found] = rows
  if (found === undefined) return undefined
  const raw_transaction = found.raw_transaction ?? (await sharedBytes(db, found))
  return withCanonicalAddress({ ...found, raw_transaction })
}

/** The bytes of a transaction that pays several withdrawals; null where the withdrawal has none. */
async function sharedBytes(
  db: Queryable,
  { network, crypto_tx_hash }: Pick<FoundWithdrawal, 'network' | 'crypto_tx_hash'>,
): Promise<Buffer | null> {
  if (crypto_tx_hash === null) return null
  const { rows } = await db.query<{ raw_transaction: Buffer }>(
    'select raw_transaction from network_transactions where network = $1 and crypto_tx_hash = $2',
    [network, crypto_tx_hash],
  )
  return rows[0]?.raw_transaction ?? null
}

/** Gives a withdrawal the transaction that paid it. The transaction before it counts as replaced. Throws TakenMeanwhile. */
export async function keepPaid(
  tx: Transaction,
  { customer_id, transfer_id, state, crypto_tx_hash, raw_transaction: before }: FoundWithdrawal,
  paid: SignedTransaction,
): Promise<void> {
  const ids = [customer_id, transfer_id] as const
  if (state === 'NEW') await beginOutgoing(tx, ids)
  if (before !== null) await keepReplaced(tx, customer_id, [transfer_id])
  await setTransaction(tx, ids, { state: state === 'NEW' ? 'HELD' : state, crypto_tx_hash }, paid)
}

/** A transaction that was signed for a withdrawal. Its bytes are null where they are not stored here. */
interface KeptTransactionRow {
  crypto_tx_hash: string
  raw_transaction: Buffer | null
}

/** The transactions that were signed for a withdrawal: the last one, and those that it replaced. */
export async function selectKept(
  db: Queryable,
  [customerId, transferId]: OutgoingId,
  network: PayoutNetwork,
): Promise<KeptTransactionRow[]> {
  const { rows } = await db.query<KeptTransactionRow>(
    `
    select crypto_tx_hash, raw_transaction from outgoing_transfers
    where customer_id = $1 and transfer_id = $2 and crypto_tx_hash is not null
    union all
    select crypto_tx_hash, raw_transaction from replaced_transactions
    where customer_id = $1 and transfer_id = $2`,
    [customerId, transferId],
  )
  for (const row of rows) row.raw_transaction ??= await sharedBytes(db, { network, ...row })
  return rows
}

/** The withdrawal, other than this one, that a payment in a transaction belongs to; undefined where none has it. */
export async function findPayee(
  tx: Transaction,
  { transfer_id, network, destination_address, amount }: Withdrawal,
  { crypto_tx_hash, crypto_tx_index }: SignedTransaction,
): Promise<string | undefined> {
  const { rows: taken } = await tx.query<{
    customer_id: string
    transfer_id: string
    crypto_tx_index: string | null
  }>(
    `
    select customer_id, transfer_id, crypto_tx_index from outgoing_transfers where network = $1 and crypto_tx_hash = $2
    union
    select customer_id, transfer_id, null from replaced_transactions where crypto_tx_hash = $2
    union ${COMPLETED_BY}`,
    [network, crypto_tx_hash],
  )
  for (const { customer_id, transfer_id: id, crypto_tx_index: index } of taken) {
    if (id === transfer_id) continue
    if (crypto_tx_index !== undefined) {
      if (index === crypto_tx_index) return id
      continue
    }
    const { rowCount } = await tx.query(
      `
      select 1 from transfers
      where customer_id = $1 and id = $2 and amount = $3 and lower(destination_address collate "C") = lower($4 collate "C")`,
      [customer_id, id, amount, destination_address],
    )
    if (rowCount !== 0) return id
  }
  return undefined
}
