import { Refusal } from '../../contract/refusal.ts'
import { NETWORKS } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Queryable } from '../../db/database.ts'
import type { EndedTransaction, Networks } from '../../networks/network.ts'
import { isSimulatedPayment } from '../../networks/simulated/adapter.ts'
import type { WithdrawalOnChain } from './mark-withdrawal-paid.ts'
import { findOutgoing, selectKept, type FoundWithdrawal } from './found-withdrawals.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import type { Origin } from '../../contract/actor.ts'

/**
 * Broadcasts the stored bytes of a COMPLETED withdrawal again, after its chain has taken its transaction back. Only these
 * bytes are sent, so that the withdrawal is paid once at most. Only the audit log changes. Throws a Refusal when there is no
 * such withdrawal, it is not completed, its bytes are not stored or are a simulation's, or the chain still has its
 * transaction.
 */
export async function resendWithdrawal(
  db: Database,
  networks: Networks,
  transferId: string,
  origin: Origin,
): Promise<WithdrawalOnChain> {
  const found = await findOutgoing(db, transferId)
  if (found === undefined) throw new Refusal(`there is no withdrawal ${transferId}`)
  const { customer_id, transfer_id, status, network, mined_hash } = found
  if (network === 'WIRE') throw new Refusal(`withdrawal ${transferId} is a wire, which goes over no chain`)
  if (status === 'FAILED')
    throw new Refusal(
      `withdrawal ${transferId} is FAILED and was refunded: sending it again might pay it, too`,
    )
  if (status !== 'COMPLETED')
    throw new Refusal(
      `withdrawal ${transferId} is ${status}: the worker broadcasts it until it is mined, or signs it anew where its nonce was used`,
    )
  const ended = await keptOf(db, found)
  if (ended === undefined)
    throw new Refusal(`the bytes of transaction ${String(mined_hash)} are not kept here`)
  if (isSimulatedPayment(ended))
    throw new Refusal(
      `withdrawal ${transferId} was paid over the simulation of ${network}, which is no chain`,
    )
  const adapter = networks.get(network)
  if (adapter?.resend === undefined)
    throw new Refusal(`${network} (${NETWORKS[network].family}) is no real network here`)
  await adapter.resend(ended)
  await transaction(db, (tx) => recordNow(tx, customer_id, audited(origin, 'transfer.resend', transferId)))
  return { customer_id, transfer_id, crypto_network: network, crypto_tx_hash: ended.crypto_tx_hash }
}

/** The transaction that was mined: the last one that was signed, or one that it replaced. */
async function keptOf(
  db: Queryable,
  { customer_id, transfer_id, network, mined_hash }: FoundWithdrawal,
): Promise<EndedTransaction | undefined> {
  const signed = await selectKept(db, [customer_id, transfer_id], network)
  const kept = signed.find(({ crypto_tx_hash }) => crypto_tx_hash === mined_hash)
  if (kept?.raw_transaction == null) return undefined
  const others = signed.filter((other) => other !== kept).map(({ crypto_tx_hash }) => crypto_tx_hash)
  return {
    crypto_tx_hash: kept.crypto_tx_hash,
    raw_transaction: kept.raw_transaction,
    replaced: [...new Set(others)],
  }
}
