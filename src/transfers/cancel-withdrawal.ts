import { setTimeout as pause } from 'node:timers/promises'
import { deadlocked, tookTooLong, transaction, type Database, type Transaction } from '../db/database.ts'
import type { SecondaryStatus } from '../ledger/records/transfer.ts'
import type { Withdrawal } from '../networks/networks.ts'
import { CLAIMED, ITS_TRANSFER, withCanonicalAddress, type State } from './claim-withdrawals.ts'
import { record } from './record-steps.ts'

/** How long it tries while workers, or movements of the same balances, hold what it needs. */
const TRY_MS_MAX = 5_000
/**
 * How long a try waits for the withdrawal with a connection in its hand, and how long it lets go of it before the next.
 * Cancels that wait must not take all connections: the worker that they wait for may need another one to go on.
 */
const HOLD_WAIT_MS = 50
const PAUSE_MS = 50

/** Who cancels. */
export type Canceller = 'client' | 'operator'

/** What the record says of a cancelled withdrawal. The contract has no other secondary status that fits. */
export const CANCELLED_BY: Record<Canceller, SecondaryStatus> = {
  client: { name: 'CUSTOMER_REJECTED', detail: 'the client cancelled it before it was signed' },
  operator: { name: 'CUSTOMER_REJECTED', detail: 'the operator cancelled it before it was signed' },
}

export interface CancelledWithdrawal {
  customer_id: string
  transfer_id: string
  /** False when it had been cancelled before: then nothing has changed now. */
  changed: boolean
}

/** The withdrawal is signed, or has ended otherwise: it cannot be cancelled. */
export class NotCancellable extends Error {
  readonly transfer_id: string
  /** Of the transfer: PENDING where it is signed. */
  readonly status: string
  /** What stands in the way, as a predicate: 'is COMPLETED'. */
  readonly why: string

  constructor(transfer_id: string, status: string, why = `is ${status}`) {
    super(`withdrawal ${transfer_id} ${why}`)
    this.name = 'NotCancellable'
    this.transfer_id = transfer_id
    this.status = status
    this.why = why
  }
}

/**
 * Cancels a withdrawal for the operator, whosever it is. Throws as `cancelWithdrawal` does, and an Error when there is no
 * such withdrawal.
 */
export async function cancelForOperator(db: Database, transferId: string): Promise<CancelledWithdrawal> {
  // Transfers are found by their customer; nobody says here whose it is.
  const { rows } = await db.query<{ customer_id: string }>(
    `
    select t.customer_id
    from customers c
    cross join lateral (select customer_id, type from transfers where customer_id = c.id and id = $1) t
    where t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`,
    [transferId],
  )
  if (rows[0] === undefined) throw new Error(`there is no withdrawal ${transferId}`)
  return cancelWithdrawal(db, { ...rows[0], transfer_id: transferId }, 'operator')
}

/**
 * Cancels a PENDING withdrawal that is not signed: FAILED, its total back on the profile, its orchestration FAILED, in one
 * transaction. The row in `broadcasts` decides against a worker that signs: each of the two holds it until its commit, so
 * a withdrawal is refunded or signed and never both. Cancelling it again changes nothing. The withdrawal must exist. Throws
 * NotCancellable, and the database's own error when a worker holds it for too long (`tookTooLong`).
 */
export async function cancelWithdrawal(
  db: Database,
  withdrawal: { customer_id: string; transfer_id: string },
  by: Canceller,
): Promise<CancelledWithdrawal> {
  const until = performance.now() + TRY_MS_MAX
  for (;;) {
    try {
      const cancelled = await transaction(db, (tx) => cancel(tx, withdrawal, by))
      if (cancelled !== 'BEGUN_MEANWHILE') return cancelled
    } catch (error) {
      // The database has undone it: nothing is changed.
      const isHeld = tookTooLong(error) || deadlocked(error)
      if (!isHeld || performance.now() > until) throw error
    }
    await pause(PAUSE_MS)
  }
}

async function cancel(
  tx: Transaction,
  { customer_id, transfer_id }: { customer_id: string; transfer_id: string },
  by: Canceller,
): Promise<CancelledWithdrawal | 'BEGUN_MEANWHILE'> {
  await tx.query(`set local lock_timeout = ${HOLD_WAIT_MS}`)
  const held = await hold(tx, [customer_id, transfer_id])
  if (held === 'BEGUN_MEANWHILE') return held
  const { status, was_cancelled, ...withdrawal } = held
  if (was_cancelled) return { customer_id, transfer_id, changed: false }
  if (status !== 'PENDING') throw new NotCancellable(transfer_id, status)
  // The bytes of a transaction that pays several are kept elsewhere, by its hash.
  const { state, crypto_tx_hash, raw_transaction } = withdrawal
  if (state !== 'HELD' || crypto_tx_hash !== null || raw_transaction !== null)
    throw new NotCancellable(transfer_id, status, 'is signed: it may be paid already')
  await tx.query(`set local lock_timeout = ${TRY_MS_MAX}`)
  const transfer = { status: 'FAILED', secondary_status: CANCELLED_BY[by] } as const
  await record(tx, customer_id, [{ withdrawal, state: 'DONE', transfer }])
  return { customer_id, transfer_id, changed: true }
}

interface Held extends Withdrawal {
  status: string
  was_cancelled: boolean
  state: State
  crypto_tx_hash: string | null
  raw_transaction: Buffer | null
}

/**
 * Holds the row in `broadcasts`, as a worker does that takes the withdrawal on. Where there is none, it holds the transfer
 * first, as a worker does that begins it, and makes the row: the other order would be a deadlock.
 */
async function hold(
  tx: Transaction,
  ids: [customerId: string, transferId: string],
): Promise<Held | 'BEGUN_MEANWHILE'> {
  const begun = await tx.query(
    'select from broadcasts where customer_id = $1 and transfer_id = $2 for update',
    ids,
  )
  if (begun.rowCount === 0) {
    await tx.query('select from transfers where customer_id = $1 and id = $2 for update', ids)
    const { rowCount } = await tx.query(
      `
      insert into broadcasts (customer_id, transfer_id, network, state, created_at)
      select customer_id, id, coalesce(crypto_network, 'WIRE'), 'HELD', clock_timestamp()
      from transfers where customer_id = $1 and id = $2
      on conflict (customer_id, transfer_id) do nothing`,
      ids,
    )
    if (rowCount === 0) return 'BEGUN_MEANWHILE'
  }
  // Behind the locks: what another transaction committed before it let go of them is seen.
  const { rows } = await tx.query<Held>(
    `
    ${CLAIMED}, t.status, b.state, b.crypto_tx_hash, b.raw_transaction,
      t.status = 'FAILED' and coalesce(t.secondary_status = any ($3::jsonb[]), false) as was_cancelled
    from (select * from broadcasts where customer_id = $1 and transfer_id = $2) b ${ITS_TRANSFER}`,
    [...ids, Object.values(CANCELLED_BY).map((status) => JSON.stringify(status))],
  )
  return withCanonicalAddress(rows[0]!)
}
