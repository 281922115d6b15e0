import { NETWORKS } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Queryable } from '../../db/database.ts'
import { findOwner, PAYOUT_NETWORK, PAYOUT_TYPES } from '../../money/records/treasury.ts'
import type { EndedTransaction, PayoutNetwork, Networks } from '../../chains/network.ts'
import { isSimulatedPayment } from '../../chains/simulated/adapter.ts'
import { selectKept } from './outgoing-transfers.ts'
import { audited, recordNow } from '../../money/records/audited.ts'
import type { Origin } from '../../contract/actor.ts'

/** A completed withdrawal whose transaction was broadcast again. */
export interface ResentWithdrawal {
  customer_id: string
  transfer_id: string
  crypto_network: PayoutNetwork
  crypto_tx_hash: string
}

interface FoundWithdrawal {
  customer_id: string
  type: string
  status: string
  network: PayoutNetwork
  crypto_tx_hash: string | null
}

/**
 * Broadcasts the stored bytes of a COMPLETED withdrawal again, after its chain has taken its transaction back. Only these bytes
 * are sent, so that the withdrawal is paid once at most. Only the audit log changes. Throws an Error when there is no such
 * withdrawal, it is not completed, its bytes are not stored or are a simulation's, or the chain still has its transaction.
 */
export async function resendWithdrawal(
  db: Database,
  networks: Networks,
  transferId: string,
  origin: Origin,
): Promise<ResentWithdrawal> {
  const { customer_id, type, status, network, crypto_tx_hash } = await find(db, transferId)
  if (type === 'WIRE_WITHDRAWAL' || network === 'WIRE')
    throw new Error(`withdrawal ${transferId} is a wire, which goes over no chain`)
  if (status === 'FAILED')
    throw new Error(`withdrawal ${transferId} is FAILED and was refunded: sending it again might pay it, too`)
  if (status !== 'COMPLETED')
    throw new Error(
      `withdrawal ${transferId} is ${status}: the worker broadcasts it until it is mined, or signs it anew where its nonce was used`,
    )
  const ended = await keptOf(db, customer_id, transferId, network, crypto_tx_hash)
  if (ended === undefined)
    throw new Error(`the bytes of transaction ${String(crypto_tx_hash)} are not kept here`)
  if (isSimulatedPayment(ended))
    throw new Error(`withdrawal ${transferId} was paid over the simulation of ${network}, which is no chain`)
  const adapter = networks.get(network)
  if (adapter?.resend === undefined)
    throw new Error(`${network} (${NETWORKS[network].family}) is no real network here`)
  await adapter.resend(ended)
  await transaction(db, (tx) => recordNow(tx, customer_id, audited(origin, 'transfer.resend', transferId)))
  return {
    customer_id,
    transfer_id: transferId,
    crypto_network: network,
    crypto_tx_hash: ended.crypto_tx_hash,
  }
}

async function find(db: Queryable, transferId: string): Promise<FoundWithdrawal> {
  const customerId = await findOwner(db, transferId)
  const { rows } = await db.query<FoundWithdrawal>(
    `
    select customer_id, type, status, ${PAYOUT_NETWORK} as network, crypto_tx_hash
    from transfers t where customer_id = $1 and id = $2 and type in ${PAYOUT_TYPES}`,
    [customerId, transferId],
  )
  if (rows[0] === undefined) throw new Error(`there is no withdrawal ${transferId}`)
  return rows[0]
}

/** The transaction that was mined: the last one that was signed, or one that it replaced. */
async function keptOf(
  db: Queryable,
  customerId: string,
  transferId: string,
  network: PayoutNetwork,
  mined: string | null,
): Promise<EndedTransaction | undefined> {
  const signed = await selectKept(db, [customerId, transferId], network)
  const kept = signed.find(({ crypto_tx_hash }) => crypto_tx_hash === mined)
  if (kept?.raw_transaction == null) return undefined
  const others = signed.filter((one) => one !== kept).map(({ crypto_tx_hash }) => crypto_tx_hash)
  return {
    crypto_tx_hash: kept.crypto_tx_hash,
    raw_transaction: kept.raw_transaction,
    replaced: [...new Set(others)],
  }
}
