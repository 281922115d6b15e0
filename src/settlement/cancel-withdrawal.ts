import type { Database, Transaction } from '../db/database.ts'
import type { SecondaryStatus } from '../contract/transfer-status.ts'
import { findWithdrawal, holdWithdrawal, type HeldWithdrawal } from './hold-withdrawal.ts'
import { record } from './record-steps.ts'

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
  return cancelWithdrawal(db, await findWithdrawal(db, transferId), 'operator')
}

/**
 * Cancels a PENDING withdrawal that is not signed: FAILED, its total back on the profile, its orchestration FAILED, in one
 * transaction. The row in `outgoing_transfers` decides against a worker that signs: each of the two holds it until its commit, so
 * a withdrawal is refunded or signed and never both. Cancelling it again changes nothing. The withdrawal must exist. Throws
 * NotCancellable, and the database's own error when a worker holds it for too long (`tookTooLong`).
 */
export async function cancelWithdrawal(
  db: Database,
  withdrawal: { customer_id: string; transfer_id: string },
  by: Canceller,
): Promise<CancelledWithdrawal> {
  return holdWithdrawal(db, withdrawal, (tx, held) => cancel(tx, held, by))
}

async function cancel(
  tx: Transaction,
  { status, secondary_status, ...withdrawal }: HeldWithdrawal,
  by: Canceller,
): Promise<CancelledWithdrawal> {
  const { customer_id, transfer_id } = withdrawal
  const reasons = Object.values(CANCELLED_BY)
  const was_cancelled =
    status === 'FAILED' && reasons.some(({ detail }) => secondary_status?.detail === detail)
  if (was_cancelled) return { customer_id, transfer_id, changed: false }
  if (status !== 'PENDING') throw new NotCancellable(transfer_id, status)
  // The bytes of a transaction that pays several are kept elsewhere, by its hash.
  const { state, crypto_tx_hash, raw_transaction } = withdrawal
  if (state !== 'HELD' || crypto_tx_hash !== null || raw_transaction !== null)
    throw new NotCancellable(transfer_id, status, 'is signed: it may be paid already')
  const transfer = { status: 'FAILED', secondary_status: CANCELLED_BY[by] } as const
  await record(tx, customer_id, [{ withdrawal, state: 'DONE', transfer }])
  return { customer_id, transfer_id, changed: true }
}
