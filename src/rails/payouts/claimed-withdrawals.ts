import type { WaitingCode } from '../../contract/waiting-codes.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import type { SecondaryStatus } from '../../contract/transfer-status.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import type { BroadcastWithdrawal, PayoutNetwork, Withdrawal } from '../../networks/network.ts'
import { selectPayees } from '../../networks/network-transactions.ts'
import type { WithdrawalMark } from './withdrawal-marks.ts'
import { arraysOf } from '../../db/rows.ts'
import { PAYOUT_NETWORK } from '../../contract/payout-sql.ts'
import {
  BEGIN,
  UNLESS_BEGUN,
  type OutgoingId,
  type OutgoingState,
} from '../../networks/outgoing-transfers.ts'

/** Withdrawals as a worker or a command claims them: their transfers with what is kept of their transactions. */

export interface Claimed extends Withdrawal {
  state: OutgoingState
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
  /** Of a transaction that pays several: the output that pays this withdrawal, and how many it pays. */
  crypto_tx_index?: string
  payments?: number
  replaced: string[]
  /** How long ago a worker began it, or last replaced its transaction. */
  age_ms: number
}

export type ClaimedRow = Omit<Claimed, 'replaced' | 'crypto_tx_index'> & { crypto_tx_index: string | null }

export type KeptWithdrawal = Claimed & BroadcastWithdrawal

const CONSOLIDATION_FEE_MAX = `case when t.type = 'TREASURY_CONSOLIDATION' then t.metadata ->> 'max_fee_rate' end`

// Statements here have no names, so that each is planned for the tables as they are: a plan that was made while they
// were small reads all of a customer's transfers for each withdrawal (measured: 500 claimed in 209 ms instead of 4).
/** Selects a withdrawal from its transfer `t`; `$1` is its customer. */
export const SELECT_WITHDRAWAL = `
  select t.customer_id, t.id as transfer_id, t.profile_id, ${PAYOUT_NETWORK} as network, t.asset, t.amount, t.fee, t.memo,
         t.fiat_account_id, ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max,
         coalesce(t.destination_address, (
           select f.fiat_network_instructions -> 'wire' ->> 'account_number'
           from fiat_accounts f
           where f.customer_id = $1 and f.id = t.fiat_account_id
         ), '') as destination_address`
const ageOf = (column: string) =>
  `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8 as age_ms`
/** Selects also what a row `b` of outgoing_transfers keeps of the withdrawal. */
export const SELECT_CLAIMED = `${SELECT_WITHDRAWAL}, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index, ${ageOf('b.created_at')}`
/** Joins the transfer `t` of a row `b` of outgoing_transfers, of customer `$1`. `offset 0` keeps the primary-key look-up. */
export const JOIN_TRANSFER =
  'cross join lateral (select * from transfers where customer_id = $1 and id = b.transfer_id offset 0) t'

/**
 * Adds to claimed rows the hashes that their transactions replaced. This is a statement after the claim, because the one
 * that claims may not see what another worker replaced just before.
 */
export async function withReplaced(
  db: Queryable,
  customerId: string,
  rows: ClaimedRow[],
): Promise<Claimed[]> {
  if (rows.length === 0) return []
  const claimed = await withSharedTransactions(db, rows)
  const replaced = await db.query<{ transfer_id: string; crypto_tx_hash: string; age_ms: number }>({
    text: `
      select transfer_id, crypto_tx_hash, ${ageOf('replaced_at')}
      from replaced_transactions
      where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    values: [customerId, claimed.map(({ transfer_id }) => transfer_id)],
  })
  return claimed.map((withdrawal) => {
    const before = replaced.rows.filter(({ transfer_id }) => transfer_id === withdrawal.transfer_id)
    return withCanonicalAddress({
      ...withdrawal,
      replaced: before.map(({ crypto_tx_hash }) => crypto_tx_hash),
      age_ms: Math.min(withdrawal.age_ms, ...before.map(({ age_ms }) => age_ms)),
    })
  })
}

/** Adds the bytes of transactions that pay several withdrawals; each is read once. */
async function withSharedTransactions(
  db: Queryable,
  rows: ClaimedRow[],
): Promise<Omit<Claimed, 'replaced'>[]> {
  const hashes = new Set(
    rows.flatMap((row) =>
      row.raw_transaction === null && row.crypto_tx_hash !== null ? [row.crypto_tx_hash] : [],
    ),
  )
  const found =
    hashes.size === 0
      ? []
      : (
          await db.query<{
            crypto_tx_hash: string
            raw_transaction: Buffer
            payments: number
            age_ms: number
          }>(
            `
            select crypto_tx_hash, raw_transaction, payments, ${ageOf('signed_at')}
            from network_transactions
            where network = $1 and crypto_tx_hash = any ($2)`,
            [rows[0]!.network, [...hashes]],
          )
        ).rows
  const byHash = new Map(found.map((transaction) => [transaction.crypto_tx_hash, transaction]))
  return rows.map(({ crypto_tx_index, ...row }) => {
    const shared = byHash.get(row.crypto_tx_hash ?? '')
    if (shared === undefined || crypto_tx_index === null) return row
    const { raw_transaction, payments, age_ms } = shared
    return { ...row, raw_transaction, crypto_tx_index, payments, age_ms }
  })
}

/** The withdrawal with its destination in the network's canonical spelling. */
export function withCanonicalAddress<T extends Withdrawal>(claimed: T): T {
  const { network, destination_address } = claimed
  if (network === 'WIRE') return claimed
  const canonical = canonicalAddress(network, destination_address, { testNetworks: true })
  return { ...claimed, destination_address: canonical ?? destination_address }
}

/**
 * All withdrawals, of any customer, that the transactions of these pay. Where one payment of a transaction has ended, or has
 * no record any more, none of that transaction's is returned.
 */
export async function payingTogether(
  tx: Queryable,
  network: PayoutNetwork,
  withdrawals: readonly KeptWithdrawal[],
): Promise<KeptWithdrawal[]> {
  const alone = withdrawals.filter(({ crypto_tx_index }) => crypto_tx_index === undefined)
  const hashes = new Set(
    withdrawals.flatMap(({ crypto_tx_index, crypto_tx_hash }) =>
      crypto_tx_index === undefined ? [] : [crypto_tx_hash],
    ),
  )
  if (hashes.size === 0) return alone
  const payees = await selectPayees(tx, network, [...hashes])
  const customerIds = [...new Set([...payees.values()].flatMap(({ customer_ids }) => customer_ids))]
  const { rows } = await tx.query<ClaimedRow & { ended: boolean }>(
    `
    select t.customer_id, t.id as transfer_id, t.profile_id, b.network, t.asset, t.amount, t.fee, t.memo, t.fiat_account_id,
           ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max, t.destination_address, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index,
           ${ageOf('b.created_at')}, b.due_at is null as ended
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.customer_id = any ($3) and b.network = $1 and b.crypto_tx_hash = any ($2)
    order by b.crypto_tx_index::int`,
    [network, [...hashes], customerIds],
  )
  const ended = new Set(rows.filter((row) => row.ended).map(({ crypto_tx_hash }) => crypto_tx_hash))
  const recorded = new Set(rows.map(({ transfer_id }) => transfer_id))
  const isWhole = (hash: string) => {
    const { transfer_ids } = payees.get(hash) ?? { transfer_ids: [] }
    return transfer_ids.length > 0 && transfer_ids.every((id) => recorded.has(id))
  }
  const open = rows.filter(({ crypto_tx_hash: hash }) => hash !== null && !ended.has(hash) && isWhole(hash))
  const found: KeptWithdrawal[] = [...alone]
  for (const customerId of new Set(open.map(({ customer_id }) => customer_id))) {
    const its = open.filter(({ customer_id }) => customer_id === customerId)
    found.push(...((await withReplaced(tx, customerId, its)) as KeptWithdrawal[]))
  }
  return found
}

/**
 * Stores the addresses and memos of one customer's new withdrawals for the search. The worker writes them, so that they cost
 * the request that creates a withdrawal nothing. Each such request would write an index of transfers by address.
 */
export async function keepNames(tx: Transaction, withdrawals: readonly Withdrawal[]): Promise<void> {
  const names = withdrawals.flatMap(({ transfer_id, network, destination_address, memo }) => [
    ...(network === 'WIRE' ? [] : [{ transfer_id, name: destination_address, found_by: 'ADDRESS' }]),
    ...(memo === null ? [] : [{ transfer_id, name: memo, found_by: 'MEMO' }]),
  ])
  if (names.length === 0) return
  await tx.query({
    text: `
      insert into withdrawal_names (customer_id, name, transfer_id, found_by)
      values ($1, unnest($2::text[]), unnest($3::uuid[]), unnest($4::text[]))
      on conflict do nothing`,
    values: [withdrawals[0]!.customer_id, ...arraysOf(names, 'name', 'transfer_id', 'found_by')],
  })
}

/**
 * Begins a withdrawal that no worker has begun, due so that a worker sees its deadline. Returns false where one has begun
 * it.
 */
export async function beginOutgoing(tx: Transaction, ids: OutgoingId): Promise<boolean> {
  const { rows } = await tx.query<{ transfer_id: string }>(
    `
    ${BEGIN}
    select customer_id, id, ${PAYOUT_NETWORK}, 'HELD', clock_timestamp(), clock_timestamp()
    from transfers t where customer_id = $1 and id = $2
    ${UNLESS_BEGUN}`,
    [...ids],
  )
  if (rows.length === 0) return false
  await keepNames(tx, [await selectHeld(tx, ids)])
  return true
}

export interface HeldWithdrawal extends Withdrawal {
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  secondary_status: SecondaryStatus | null
  /** Valid while the transfer is PENDING. HELD: nothing is signed. */
  state: OutgoingState
  crypto_tx_hash: string | null
  raw_transaction: Buffer | null
  waiting_code: WaitingCode | null
  waiting_detail: string | null
  marks: WithdrawalMark[]
}

/** A withdrawal that was begun, as the newest committed statement left it. */
export async function selectHeld(tx: Transaction, ids: OutgoingId): Promise<HeldWithdrawal> {
  const { rows } = await tx.query<HeldWithdrawal>(
    `
    ${SELECT_WITHDRAWAL}, t.status, t.secondary_status, b.state, b.crypto_tx_hash, b.raw_transaction,
           b.waiting_code, b.waiting_detail, array(select mark from withdrawal_marks where customer_id = $1 and transfer_id = $2) as marks
    from (select * from outgoing_transfers where customer_id = $1 and transfer_id = $2) b ${JOIN_TRANSFER}`,
    [...ids],
  )
  return withCanonicalAddress(rows[0]!)
}
