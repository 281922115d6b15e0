import { setTimeout as pause } from 'node:timers/promises'
import { deadlocked, tookTooLong, transaction, type Database, type Transaction } from '../db/database.ts'
import type { SecondaryStatus } from '../contract/transfer-status.ts'
import type { Withdrawal } from '../networks/network.ts'
import { CLAIMED, ITS_TRANSFER, withCanonicalAddress, type State } from './lease.ts'

/** A withdrawal that a client or an operator decides about holds the row in `outgoing_transfers` against workers that sign. */

/** How long it tries while workers, or movements of the same balances, hold what it needs. */
const TRY_MS_MAX = 5_000
/**
 * How long a try waits for the withdrawal with a connection in its hand, and how long it lets go of it before the next.
 * Those that wait must not take all connections: the worker that they wait for may need another one to go on.
 */
const HOLD_WAIT_MS = 50
const PAUSE_MS = 50

export interface WithdrawalId {
  customer_id: string
  transfer_id: string
}

/** A withdrawal that nobody else takes further before the transaction ends. */
export interface HeldWithdrawal extends Withdrawal {
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  secondary_status: SecondaryStatus | null
  /** While it is PENDING. HELD: nothing is signed. */
  state: State
  crypto_tx_hash: string | null
  raw_transaction: Buffer | null
}

/** The withdrawal with this id, whosever it is: for operators. Throws an Error when there is none. */
export async function findWithdrawal(db: Database, transferId: string): Promise<WithdrawalId> {
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
  return { ...rows[0], transfer_id: transferId }
}

/**
 * Does the work in a transaction that holds the withdrawal, which must exist: no worker signs it, and no other such work
 * begins, before it has ended. Throws what the work throws, which changes nothing, and the database's own error when
 * somebody else holds it for too long (`tookTooLong`).
 */
export async function holdWithdrawal<T>(
  db: Database,
  { customer_id, transfer_id }: WithdrawalId,
  work: (tx: Transaction, held: HeldWithdrawal) => Promise<T>,
): Promise<T> {
  const until = performance.now() + TRY_MS_MAX
  for (;;) {
    try {
      const done = await transaction(db, async (tx) => {
        await tx.query(`set local lock_timeout = ${HOLD_WAIT_MS}`)
        const held = await hold(tx, [customer_id, transfer_id])
        if (held === 'BEGUN_MEANWHILE') return held
        await tx.query(`set local lock_timeout = ${TRY_MS_MAX}`)
        return { result: await work(tx, held) }
      })
      if (done !== 'BEGUN_MEANWHILE') return done.result
    } catch (error) {
      // The database has undone it: nothing is changed.
      const isHeld = tookTooLong(error) || deadlocked(error)
      if (!isHeld || performance.now() > until) throw error
    }
    await pause(PAUSE_MS)
  }
}

/**
 * Holds the row in `outgoing_transfers`, as a worker does that takes the withdrawal on. Where there is none, it holds the transfer
 * first, as a worker does that begins it, and makes the row: the other order would be a deadlock.
 */
async function hold(
  tx: Transaction,
  ids: [customerId: string, transferId: string],
): Promise<HeldWithdrawal | 'BEGUN_MEANWHILE'> {
  const begun = await tx.query(
    'select from outgoing_transfers where customer_id = $1 and transfer_id = $2 for update',
    ids,
  )
  if (begun.rowCount === 0) {
    await tx.query('select from transfers where customer_id = $1 and id = $2 for update', ids)
    const { rowCount } = await tx.query(
      `
      insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at)
      select customer_id, id, coalesce(crypto_network, 'WIRE'), 'HELD', clock_timestamp()
      from transfers where customer_id = $1 and id = $2
      on conflict (customer_id, transfer_id) do nothing`,
      ids,
    )
    if (rowCount === 0) return 'BEGUN_MEANWHILE'
  }
  // Behind the locks: what another transaction committed before it let go of them is seen.
  const { rows } = await tx.query<HeldWithdrawal>(
    `
    ${CLAIMED}, t.status, t.secondary_status, b.state, b.crypto_tx_hash, b.raw_transaction
    from (select * from outgoing_transfers where customer_id = $1 and transfer_id = $2) b ${ITS_TRANSFER}`,
    ids,
  )
  return withCanonicalAddress(rows[0]!)
}
