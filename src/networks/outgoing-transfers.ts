import { PAYOUT_TYPES } from '../contract/payout-sql.ts'
import { Refusal } from '../contract/refusal.ts'
import type { WaitingCode } from '../contract/waiting-codes.ts'
import type { Queryable, Transaction } from '../db/database.ts'
import { readClock, type Moment } from '../db/ids.ts'
import type { Confirmations, SignedTransaction } from './network.ts'
import type { WaitingReason } from './waiting.ts'

/**
 * The withdrawals with their networks, a row each once a worker has begun one: how far it is, its signed transaction, and
 * when to go on; and the transactions that were replaced. Every statement that writes them is here.
 */

/**
 * How far a withdrawal is. NEW: no worker has begun it. HELD: not signed. ASKED: what the signer process or a person is to
 * sign is stored. SIGNED: the signed bytes are stored.
 */
export type OutgoingState = 'NEW' | 'HELD' | 'ASKED' | 'SIGNED' | 'BROADCAST'

/** What the row of a withdrawal takes over of its next step (rails/payouts/next-step.ts). */
export interface OutgoingStep {
  withdrawal: { transfer_id: string; state: OutgoingState; crypto_tx_hash: string | null }
  state: Exclude<OutgoingState, 'NEW'> | 'DONE'
  signed?: SignedTransaction
  /** The signed transaction replaces the one before, which stays on record. */
  replaces?: true
  /** The signed transaction can never be mined, because this one has used its nonce. It stays on record. */
  usedBy?: string
  /** Why the withdrawal could not be signed yet, or why the node did not accept its transaction. */
  waitingReason?: WaitingReason
  /** Of a transaction that is in a block: how many confirmations it has. */
  confirmations?: Confirmations | undefined
  /** In how many milliseconds to go on; absent when the withdrawal has ended. */
  dueInMs?: number
}

/** The codes of withdrawals that the hot wallet cannot pay, as a list in SQL. */
export const SHORT = `('HOT_WALLET_SHORT', 'FEE_NOT_COVERED')`

/** In SQL: whether the transfer `t` is for the worker to sign and no worker has begun it. */
export const IS_NOT_BEGUN = `
  t.status = 'PENDING' and t.type in ${PAYOUT_TYPES}
    and not exists (select 1 from outgoing_transfers b where b.customer_id = t.customer_id and b.transfer_id = t.id)`

/**
 * In SQL: begins the withdrawals that a `select` between these two texts gives. The primary key decides between two workers
 * that try, and what is returned was begun now (rule 5 of src/db/distribution.ts).
 */
export const BEGIN =
  'insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, due_at)'
export const UNLESS_BEGUN = 'on conflict (customer_id, transfer_id) do nothing returning transfer_id'

/** Since the claim, somebody else took a withdrawal further: none of these steps may be recorded. */
export class TakenMeanwhile extends Refusal {
  constructor(count: number) {
    super(`${count} withdrawals were taken further by another worker or an operator meanwhile`)
    this.name = 'TakenMeanwhile'
  }
}

// The clock is read before (rule 3 of src/db/distribution.ts).
const UPDATE = `
      update outgoing_transfers b
      set state = s.state,
          leased_until = null,
          -- What is held has no transaction, or none that can be mined any more.
          raw_transaction = case when s.state = 'HELD' then null when s.crypto_tx_hash is null then b.raw_transaction
                                 else s.raw_transaction end,
          crypto_tx_hash = case when s.state = 'HELD' then null else coalesce(s.crypto_tx_hash, b.crypto_tx_hash) end,
          crypto_tx_index = case when s.state = 'HELD' then null else coalesce(s.crypto_tx_index, b.crypto_tx_index) end,
          signed_at = case when s.state = 'HELD' then null when s.crypto_tx_hash is null then b.signed_at else s.now end,
          broadcast_at = case when s.state = 'HELD' or s.crypto_tx_hash is not null then null
                              when s.state = 'BROADCAST' then coalesce(b.broadcast_at, s.now)
                              else b.broadcast_at end,
          confirmations = s.confirmations,
          confirmations_needed = s.confirmations_needed,
          due_at = s.due_at,
          waiting_code = s.waiting_code,
          waiting_detail = s.waiting_detail,
          -- Only the time for which the wallet was short counts for keeping its money, not a freeze before (withdrawal-reader.ts).
          waiting_since = case when s.waiting_code is null then null
                               when s.waiting_code in ${SHORT} and b.waiting_code not in ${SHORT}
                               then s.now
                               else coalesce(b.waiting_since, s.now) end
      from (
        select s.*, $3::timestamptz as now, to_timestamp(s.due_at_seconds) as due_at
        from json_to_recordset($2) as s (
          transfer_id uuid, was text, hash_was text, state text, raw_transaction bytea, crypto_tx_hash text, crypto_tx_index text,
          due_at_seconds float8, waiting_code text, waiting_detail text, confirmations int, confirmations_needed int
        )
      ) s
      where b.customer_id = $1 and b.transfer_id = any ($4::uuid[]) and b.transfer_id = s.transfer_id
        and b.state = s.was and b.crypto_tx_hash is not distinct from s.hash_was`

function changeOf(
  { withdrawal, state, signed, dueInMs, waitingReason, confirmations }: OutgoingStep,
  now: Moment,
) {
  // The bytes of a transaction that pays several are in network_transactions.
  const bytes = signed?.payments === undefined ? signed?.raw_transaction : undefined
  return {
    transfer_id: withdrawal.transfer_id,
    // A claim writes a new withdrawal as HELD.
    was: withdrawal.state === 'NEW' ? 'HELD' : withdrawal.state,
    hash_was: withdrawal.crypto_tx_hash,
    state,
    raw_transaction: bytes && `\\x${bytes.toString('hex')}`,
    crypto_tx_hash: signed?.crypto_tx_hash,
    crypto_tx_index: signed?.crypto_tx_index,
    due_at_seconds: dueInMs === undefined ? undefined : (now.micros / 1000 + dueInMs) / 1000,
    waiting_code: waitingReason?.code,
    waiting_detail: waitingReason?.detail,
    confirmations: confirmations?.seen,
    confirmations_needed: confirmations?.needed,
  }
}

/**
 * Writes the steps of one customer, by compare-and-set: throws TakenMeanwhile unless each withdrawal still has the state and
 * the transaction that it was claimed with. It locks the rows to the commit.
 */
export async function updateOutgoing(
  tx: Transaction,
  customerId: string,
  steps: readonly OutgoingStep[],
): Promise<void> {
  await keepReplaced(
    tx,
    customerId,
    steps.flatMap(({ withdrawal, replaces, usedBy }) =>
      replaces === true || usedBy !== undefined ? withdrawal.transfer_id : [],
    ),
  )
  const now = await readClock(tx)
  const { rowCount } = await tx.query(UPDATE, [
    customerId,
    JSON.stringify(steps.map((step) => changeOf(step, now))),
    now.text,
    steps.map(({ withdrawal }) => withdrawal.transfer_id),
  ])
  if (rowCount !== steps.length) throw new TakenMeanwhile(steps.length - rowCount!)
}

/** Stores the present transaction, which is about to be replaced and may still be mined, or can never be mined. */
export async function keepReplaced(
  tx: Transaction,
  customerId: string,
  transferIds: string[],
): Promise<void> {
  if (transferIds.length === 0) return
  await tx.query(
    `
    insert into replaced_transactions
      (customer_id, transfer_id, crypto_tx_hash, raw_transaction, signed_at, broadcast_at, replaced_at)
    select customer_id, transfer_id, crypto_tx_hash, raw_transaction, signed_at, broadcast_at, clock_timestamp()
    from outgoing_transfers
    where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    [customerId, transferIds],
  )
}

/** A withdrawal by its customer and id, in the order of the statements' parameters. */
export type OutgoingId = readonly [customerId: string, transferId: string]

/** Locks the row of a withdrawal to the end of the transaction. Returns false where no worker has begun it. */
export async function lockOutgoing(tx: Transaction, ids: OutgoingId): Promise<boolean> {
  const { rowCount } = await tx.query(
    'select 1 from outgoing_transfers where customer_id = $1 and transfer_id = $2 for update',
    [...ids],
  )
  return rowCount !== 0
}

/** Makes a withdrawal due that waits for this reason. */
export async function wake(db: Queryable, ids: OutgoingId, code: WaitingCode): Promise<void> {
  await db.query(
    `
    update outgoing_transfers set due_at = (select clock_timestamp())
    where customer_id = $1 and transfer_id = $2 and state = 'HELD' and waiting_code = $3`,
    [...ids, code],
  )
}

/**
 * Gives a withdrawal the transaction that paid it, by compare-and-set: throws TakenMeanwhile unless it still has the state
 * and the transaction that it was found with.
 */
export async function setTransaction(
  tx: Transaction,
  ids: OutgoingId,
  found: { state: Exclude<OutgoingState, 'NEW'>; crypto_tx_hash: string | null },
  paid: SignedTransaction,
): Promise<void> {
  const { rowCount } = await tx.query(
    `
    update outgoing_transfers
    set state = 'SIGNED', raw_transaction = $3, crypto_tx_hash = $4, crypto_tx_index = $5, due_at = (select clock_timestamp()),
        signed_at = null, broadcast_at = null, confirmations = null, confirmations_needed = null,
        waiting_code = null, waiting_detail = null, waiting_since = null, leased_until = null
    where customer_id = $1 and transfer_id = $2 and state = $6 and crypto_tx_hash is not distinct from $7`,
    [
      ...ids,
      paid.payments === undefined ? paid.raw_transaction : null,
      paid.crypto_tx_hash,
      paid.crypto_tx_index ?? null,
      found.state,
      found.crypto_tx_hash,
    ],
  )
  if (rowCount !== 1) throw new TakenMeanwhile(1)
}

// ---------------------------------------------------------------------------------------------- leases

/** In SQL: no worker has leased a row. */
export const IS_FREE = '(leased_until is null or leased_until <= clock_timestamp())'

/** In SQL: leases signed withdrawals of customer $1 and network $2 that are due: $3 at most, for $4 milliseconds. */
export const LEASE_DUE = `
        update outgoing_transfers
        set leased_until = (select clock_timestamp()) + make_interval(secs => $4::float8 / 1000)
        where customer_id = $1 and transfer_id in (
          select transfer_id
          from outgoing_transfers
          where customer_id = $1 and network = $2 and due_at <= (select clock_timestamp()) and ${IS_FREE}
            and state in ('ASKED', 'SIGNED', 'BROADCAST')
          order by due_at, transfer_id
          limit $3
          for update skip locked
        )
        returning *`

/** Withdrawals of a customer that no other worker asks about until then. The time identifies the lease. */
export interface LeasedWithdrawals {
  customer_id: string
  kept: readonly { transfer_id: string }[]
  leased_until: string
}

const idsOf = ({ kept }: LeasedWithdrawals) => kept.map(({ transfer_id }) => transfer_id)

/** Renews a lease, but for the withdrawals that are being recorded. */
export async function renewLease(db: Queryable, lease: LeasedWithdrawals, ms: number): Promise<void> {
  const { rows } = await db.query<{ leased_until: string }>(
    `
    update outgoing_transfers
    set leased_until = (select clock_timestamp()) + make_interval(secs => $4::float8 / 1000)
    where customer_id = $1 and transfer_id in (
      select transfer_id
      from outgoing_transfers
      where customer_id = $1 and transfer_id = any ($2::uuid[]) and leased_until = $3
      for update skip locked
    )
    returning leased_until`,
    [lease.customer_id, idsOf(lease), lease.leased_until, ms],
  )
  lease.leased_until = rows[0]?.leased_until ?? lease.leased_until
}

/** Ends a lease early: what was not recorded is still due. */
export async function endLease(db: Queryable, lease: LeasedWithdrawals): Promise<void> {
  await db.query(
    `update outgoing_transfers set leased_until = null
     where customer_id = $1 and transfer_id = any ($2::uuid[]) and leased_until = $3`,
    [lease.customer_id, idsOf(lease), lease.leased_until],
  )
}
