import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import type { PayoutNetwork, Networks } from '../../networks/network.ts'
import { readHash } from './read-hash.ts'
import { keepTransactions, acknowledgedAs } from '../../networks/network-transactions.ts'
import { signAlone } from './lease.ts'
import { findOutgoing, findPayee, keepPaid } from './found-withdrawals.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import type { Origin } from '../../contract/actor.ts'

export interface WithdrawalOnChain {
  customer_id: string
  transfer_id: string
  crypto_network: PayoutNetwork
  crypto_tx_hash: string
}

/**
 * Records the hot wallet's transaction that paid a withdrawal, where this database has no record of it because a backup was
 * restored. The worker follows the transaction as if it had been signed here, and signs no other. A transaction that was
 * signed here counts as replaced. Repeating the command changes nothing.
 *
 * The node is asked with no database transaction open. Its answer is recorded if the withdrawal is still as it was found.
 *
 * Throws a Refusal when there is no such withdrawal, when the network has no transaction with the hash that pays it, and
 * when the transaction that was signed here may still be mined as well. Throws TakenMeanwhile when a worker took the
 * withdrawal further.
 */
export async function markWithdrawalPaid(
  db: Database,
  networks: Networks,
  transferId: string,
  typed: string,
  origin: Origin,
): Promise<WithdrawalOnChain> {
  const withdrawal = await findOutgoing(db, transferId)
  if (withdrawal === undefined) throw new Refusal(`there is no withdrawal ${transferId}`)
  const { customer_id, transfer_id, network, status } = withdrawal
  const marked = { customer_id, transfer_id, crypto_network: network }
  const adapter = networks.get(network)
  const hash = adapter === undefined ? typed : readHash(network, adapter, typed)
  if (withdrawal.crypto_tx_hash === hash) return { ...marked, crypto_tx_hash: hash }
  if (status !== 'PENDING') throw new Refusal(`withdrawal ${transfer_id} is ${status}`)
  if (adapter?.claimTransaction === undefined) throw new Refusal(`${network} is no real network here`)
  await requireNotAcknowledged(db, network, hash)
  const { keep, ...paid } = await adapter.claimTransaction(db, withdrawal, hash)
  await transaction(db, async (tx) => {
    // Without the lock, the worker could sign another transaction between the checks below and the commit, and another
    // operator could give the same payment to another withdrawal. No node is asked while it is held.
    await signAlone(tx, network)
    await requireNotAcknowledged(tx, network, hash)
    const payee = await findPayee(tx, withdrawal, paid)
    if (payee !== undefined)
      throw new Refusal(`${paid.crypto_tx_hash} is the transaction of withdrawal ${payee}`)
    await keepTransactions(tx, network, [{ ...paid, customer_id, transfer_id }], 'MARKED')
    await keepPaid(tx, withdrawal, paid)
    await keep?.(tx)
    await recordNow(tx, customer_id, audited(origin, 'transfer.mark_paid', transfer_id))
  })
  return { ...marked, crypto_tx_hash: paid.crypto_tx_hash }
}

/** Throws a Refusal for a transaction that the ledger has as the platform's own: it has paid no withdrawal. */
async function requireNotAcknowledged(db: Database | Transaction, network: PayoutNetwork, hash: string) {
  if ((await acknowledgedAs(db, network, hash)) !== undefined)
    throw new Refusal(`${hash} was acknowledged as the platform's own`)
}
