import { setTimeout as pause } from 'node:timers/promises'
import { Refusal } from '../../contract/refusal.ts'
import { deadlocked, tookTooLong, transaction, type Database, type Transaction } from '../../db/database.ts'
import { limitLockWaits } from '../../db/lock-rows.ts'
import { signedBefore } from '../../networks/network-transactions.ts'
import { beginOutgoing, selectHeld, type HeldWithdrawal } from './claimed-withdrawals.ts'
import { lockOutgoing, type OutgoingId } from '../../networks/outgoing-transfers.ts'

/** Locks a withdrawal against workers while a client or an operator decides about it. */

/** How long to try while workers, or movements of the same balances, hold the locks that are needed. */
const TRY_MS_MAX = 5_000
/**
 * How long one try waits for the lock with a connection, and how long it then pauses without one. Requests that wait must
 * not take all connections, because the worker that they wait for may need another one to finish.
 */
const HOLD_WAIT_MS = 50
const PAUSE_MS = 50

interface WithdrawalId {
  customer_id: string
  transfer_id: string
}

/** The customer of the withdrawal with this id, for operators. Throws a Refusal when there is no such withdrawal. */
export async function findWithdrawal(db: Database, transferId: string): Promise<WithdrawalId> {
  // Transfers are found by their customer, and an operator gives none.
  const { rows } = await db.query<{ customer_id: string }>(
    `
    select t.customer_id
    from customers c
    cross join lateral (select customer_id, type from transfers where customer_id = c.id and id = $1) t
    where t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`,
    [transferId],
  )
  if (rows[0] === undefined) throw new Refusal(`there is no withdrawal ${transferId}`)
  return { ...rows[0], transfer_id: transferId }
}

/**
 * Does the work in a transaction that locks the withdrawal, which must exist: before it ends, no worker signs the withdrawal
 * and no other such work begins. Throws what the work throws, with nothing changed, and the database's own error when
 * somebody else holds the lock for too long (`tookTooLong`).
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
        await limitLockWaits(tx, HOLD_WAIT_MS)
        const held = await hold(tx, [customer_id, transfer_id])
        if (held === 'BEGUN_MEANWHILE') return held
        await limitLockWaits(tx, TRY_MS_MAX)
        return { result: await work(tx, held) }
      })
      if (done !== 'BEGUN_MEANWHILE') return done.result
    } catch (error) {
      // The database has rolled the try back.
      const isHeld = tookTooLong(error) || deadlocked(error)
      if (!isHeld || performance.now() > until) throw error
    }
    await pause(PAUSE_MS)
  }
}

/**
 * Locks the withdrawal's row in `outgoing_transfers`, as a worker does that takes the withdrawal on. Where there is none, it
 * locks the transfer first, as a worker does that begins the withdrawal, because the other order could deadlock.
 */
async function hold(tx: Transaction, ids: OutgoingId): Promise<HeldWithdrawal | 'BEGUN_MEANWHILE'> {
  if (!(await lockOutgoing(tx, ids))) {
    await tx.query('select 1 from transfers where customer_id = $1 and id = $2 for update', [...ids])
    if (!(await beginOutgoing(tx, ids))) return 'BEGUN_MEANWHILE'
  }
  // A statement of its own after the locks, so that it sees what was committed before they were released.
  const held = await selectHeld(tx, ids)
  if (held.status !== 'PENDING' || held.state !== 'HELD') return held
  if (held.network === 'WIRE') return held.marks.includes('TAKEN') ? { ...held, state: 'SIGNED' } : held
  // A part of the database that was restored from an older state has forgotten what was signed. A refund would pay the
  // withdrawal twice.
  const signed = (await signedBefore(tx, held.network, [held.transfer_id])).get(held.transfer_id)?.at(-1)
  return signed === undefined ? held : { ...held, state: 'SIGNED', crypto_tx_hash: signed.crypto_tx_hash }
}
