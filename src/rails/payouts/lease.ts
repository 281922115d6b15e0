import { firstIn } from '../../db/changes.ts'
import { type Database, type Queryable, type Transaction } from '../../db/database.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import { PAYMENT_CODES } from '../../contract/waiting-codes.ts'
import { DELAYS_ALL_ASSETS } from '../../networks/waiting.ts'
import {
  JOIN_TRANSFER,
  keepNames,
  SELECT_CLAIMED,
  SELECT_WITHDRAWAL,
  withCanonicalAddress,
  withReplaced,
  type Claimed,
  type ClaimedRow,
  type KeptWithdrawal,
} from './claimed-withdrawals.ts'
import { LEASE_MS } from '../leases.ts'
import { takeLock } from '../../db/locks.ts'
import { arraysOf, byCustomer } from '../../db/rows.ts'
import { PAYOUT_NETWORK, PAYOUT_TYPES } from '../../contract/payout-sql.ts'
import {
  IS_NOT_BEGUN,
  BEGIN,
  IS_FREE,
  LEASE_DUE,
  UNLESS_BEGUN,
  type LeasedWithdrawals,
  type OutgoingState,
} from '../../networks/outgoing-transfers.ts'

/** Which withdrawals are due, and who takes them: claims in a transaction, leases without one. */

const CLAIM_MAX = 500

/** A customer's withdrawals over one network that are in a state and due. */
export interface Work {
  customer_id: string
  network: PayoutNetwork
  state: OutgoingState
}

/** The work that is due on these networks, in random order, so that a flaky node does not always delay the same customers. */
export async function workToDo(
  db: Queryable,
  networks: readonly PayoutNetwork[],
): Promise<{ work: Work[]; dueBy: string }> {
  const { rows } = await db.query<Work & { due_by: string }>(
    `
    select customer_id, network, state, clock_timestamp() as due_by
    from (
      select customer_id, network, state from outgoing_transfers
      where due_at <= clock_timestamp() and ${IS_FREE} and network = any ($1)
      union
      select t.customer_id, ${PAYOUT_NETWORK}, 'NEW' from transfers t where ${PAYOUT_NETWORK} = any ($1) and ${IS_NOT_BEGUN}
    ) work
    order by random()`,
    [networks],
  )
  return { work: rows, dueBy: rows[0]?.due_by ?? '' }
}

/** The milliseconds until the next withdrawal over these networks is due (`firstIn`). */
export const withdrawalDueIn = (
  db: Queryable,
  networks: readonly PayoutNetwork[],
): Promise<number | undefined> =>
  firstIn(
    db,
    'select greatest(due_at, leased_until) as at from outgoing_transfers where due_at is not null and network = any ($1)',
    [networks],
  )

/** Begins withdrawals that no worker has begun. The primary key of outgoing_transfers decides between two workers that try. */
export async function claimNew(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  limit = CLAIM_MAX,
): Promise<Claimed[]> {
  const { rows: begun } = await tx.query<{ transfer_id: string }>({
    // `statement_timestamp()`, not `clock_timestamp()`: rule 2 of src/db/distribution.ts.
    text: `
      ${BEGIN}
      select t.customer_id, t.id, $2, 'HELD', statement_timestamp(), null::timestamptz
      from transfers t
      where t.customer_id = $1 and ${PAYOUT_NETWORK} = $2 and ${IS_NOT_BEGUN}
      order by t.id
      limit $3
      for update of t skip locked
      ${UNLESS_BEGUN}`,
    values: [customer_id, network, limit],
  })
  if (begun.length === 0) return []
  const { rows } = await tx.query<Claimed>({
    text: `
      ${SELECT_WITHDRAWAL}, 'NEW' as state, null::bytea as raw_transaction, null as crypto_tx_hash,
             '{}'::text[] as replaced, 0 as age_ms
      from unnest($2::uuid[]) as b (transfer_id) ${JOIN_TRANSFER}
      order by t.id`,
    values: [customer_id, begun.map(({ transfer_id }) => transfer_id)],
  })
  const claimed = rows.map(withCanonicalAddress)
  await keepNames(tx, claimed)
  return claimed
}

/** Claims withdrawals that are due; with `dueBy`, only those that wait to be signed and were due by that time. */
export async function claimDue(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  { limit = CLAIM_MAX, dueBy }: { limit?: number; dueBy?: string } = {},
): Promise<Claimed[]> {
  const { rows } = await tx.query<ClaimedRow>({
    text: `
      ${SELECT_CLAIMED}
      from (
        select *
        from outgoing_transfers
        where customer_id = $1 and network = $2 and due_at <= coalesce($4, clock_timestamp())
          and ($4::timestamptz is null or state = 'HELD')
        order by due_at, transfer_id
        limit $3
        for update skip locked
      ) b ${JOIN_TRANSFER}
      order by b.due_at, b.transfer_id`,
    values: [customer_id, network, limit, dueBy ?? null],
  })
  return dueBy === undefined
    ? withReplaced(tx, customer_id, rows)
    : rows.map(({ crypto_tx_index: _, ...row }) => withCanonicalAddress({ ...row, replaced: [] }))
}

export interface Lease extends LeasedWithdrawals {
  kept: KeptWithdrawal[]
}

/** Leases signed withdrawals that are due. `endLease` ends the lease early. */
export async function leaseKept(
  db: Database,
  { customer_id, network }: Omit<Work, 'state'>,
  limit: number,
): Promise<Lease> {
  const { rows } = await db.query<ClaimedRow & { leased_until: string }>({
    text: `
      with leased as (${LEASE_DUE}
      )
      ${SELECT_CLAIMED}, b.leased_until
      from leased b ${JOIN_TRANSFER}
      order by b.due_at, b.transfer_id`,
    values: [customer_id, network, limit, LEASE_MS],
  })
  const leased_until = rows[0]?.leased_until ?? ''
  const own = rows.map(({ leased_until: _, ...row }) => row)
  return { customer_id, kept: (await withReplaced(db, customer_id, own)) as KeptWithdrawal[], leased_until }
}

/** Waits until nobody else signs on the network, and lets nobody sign before the transaction ends. */
export const signAlone = (tx: Transaction, network: PayoutNetwork) => takeLock(tx, 'signing', network)

/**
 * The ids of those that must wait because an earlier withdrawal of their profile, not among them, waits to be signed: one of
 * their asset, or one of any asset that waits for its network fee. A signed withdrawal delays no later one, nor does one
 * that waits for a reason of its own (`PAYMENT_CODES`).
 */
export async function behindOthers(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  const { rows } = await tx.query<{ transfer_id: string }>(
    `
    select mine.transfer_id
    from unnest($3::uuid[], $4::uuid[], $5::text[]) as mine (transfer_id, profile_id, asset)
    where exists (
      select
      from transfers t
      left join outgoing_transfers b on b.customer_id = $1 and b.transfer_id = t.id
      where t.customer_id = $1 and t.profile_id = mine.profile_id and t.status = 'PENDING'
        and t.type in ${PAYOUT_TYPES} and ${PAYOUT_NETWORK} = $2
        and t.id < mine.transfer_id and t.id <> all ($3)
        and (t.asset = mine.asset and (b.transfer_id is null or b.state = 'HELD' and b.waiting_code <> all ($6))
             or b.state = 'HELD' and b.waiting_code = $7)
    )`,
    [
      customer_id,
      network,
      ...arraysOf(withdrawals, 'transfer_id', 'profile_id', 'asset'),
      PAYMENT_CODES,
      DELAYS_ALL_ASSETS,
    ],
  )
  return new Set(rows.map(({ transfer_id }) => transfer_id))
}

/** Asks about the rows of each customer, one customer after the other. Returns all answers. */
export async function ofEachCustomer<T extends { customer_id: string }, Answer>(
  rows: readonly T[],
  ask: (customerId: string, own: T[]) => Promise<Iterable<Answer>>,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const [customerId, own] of byCustomer(rows)) answers.push(...(await ask(customerId, own)))
  return answers
}
