import { Refusal } from '../../contract/refusal.ts'
import type { Database, Transaction } from '../../db/database.ts'
import { SIGNED_WITH_NONCE } from '../../networks/waiting.ts'
import type { SecondaryStatus } from '../../contract/transfer-status.ts'
import { findWithdrawal, holdWithdrawal } from './hold-withdrawal.ts'
import type { HeldWithdrawal } from './claimed-withdrawals.ts'
import { markWithdrawal } from './withdrawal-marks.ts'
import { record } from './record-steps.ts'
import type { Origin } from '../../contract/actor.ts'

export type Canceller = 'client' | 'operator'

/** The secondary status of a cancelled withdrawal. The contract has none that fits better. */
export const CANCELLED_BY: Record<Canceller, SecondaryStatus> = {
  client: { name: 'CUSTOMER_REJECTED', detail: 'the client cancelled it before it was signed' },
  operator: { name: 'CUSTOMER_REJECTED', detail: 'the operator cancelled it before it was signed' },
}

export interface CancelledWithdrawal {
  customer_id: string
  transfer_id: string
  /** False when it was cancelled before: then nothing changed. */
  changed: boolean
}

/** The withdrawal cannot be cancelled: it is signed, may be, or has ended. */
export class NotCancellable extends Refusal {
  readonly transfer_id: string
  /** The transfer's status; PENDING where the withdrawal is signed. */
  readonly status: string
  /** The obstacle as a predicate: 'is COMPLETED'. */
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
 * Cancels a withdrawal of any customer for the operator. Throws as `cancelWithdrawal` does, and a Refusal when there is no
 * such withdrawal.
 */
export async function cancelForOperator(
  db: Database,
  transferId: string,
  origin: Origin,
): Promise<CancelledWithdrawal> {
  return cancelWithdrawal(db, await findWithdrawal(db, transferId), 'operator', origin)
}

/**
 * Cancels a PENDING withdrawal that is not signed, in one transaction: the transfer fails, its total goes back to the
 * profile, and its orchestration fails. A worker that signs and a cancel both lock the row in `outgoing_transfers` until
 * they commit, so a withdrawal is refunded or signed, and never both. Repeating it changes nothing. The withdrawal must
 * exist. Throws NotCancellable, and the database's own error when a worker holds the lock for too long (`tookTooLong`).
 */
export async function cancelWithdrawal(
  db: Database,
  withdrawal: { customer_id: string; transfer_id: string },
  canceller: Canceller,
  origin: Origin,
): Promise<CancelledWithdrawal> {
  return holdWithdrawal(db, withdrawal, (tx, held) => cancel(tx, held, canceller, origin))
}

async function cancel(
  tx: Transaction,
  { status, secondary_status: _, marks, waiting_code, waiting_detail, ...withdrawal }: HeldWithdrawal,
  canceller: Canceller,
  origin: Origin,
): Promise<CancelledWithdrawal> {
  const { customer_id, transfer_id } = withdrawal
  if (status === 'FAILED' && marks.includes('CANCELLED')) return { customer_id, transfer_id, changed: false }
  if (status !== 'PENDING') throw new NotCancellable(transfer_id, status)
  // A transaction that pays several has its bytes in network_transactions: then only the hash is here.
  const { state, crypto_tx_hash, raw_transaction } = withdrawal
  if (state !== 'HELD' || crypto_tx_hash !== null || raw_transaction !== null)
    throw new NotCancellable(transfer_id, status, 'is signed: it may be paid already')
  // A restored database has forgotten what was signed.
  if (waiting_code === 'UNKNOWN_SPENDS' || waiting_detail?.includes(SIGNED_WITH_NONCE) === true)
    throw new NotCancellable(transfer_id, status, 'may be paid already, by a payment that is not on record')
  const transfer = { status: 'FAILED', secondary_status: CANCELLED_BY[canceller] } as const
  await record(tx, customer_id, [{ withdrawal, state: 'DONE', transfer }], {
    origin,
    action: 'transfer.cancel',
  })
  await markWithdrawal(tx, withdrawal, 'CANCELLED')
  return { customer_id, transfer_id, changed: true }
}
