import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import type { BroadcastWithdrawal, PayoutNetwork, Networks, PaymentStatus } from '../../networks/network.ts'
import { readHash } from './read-hash.ts'
import { statusOfEach } from './follow-withdrawals.ts'
import { stepAfterStatus } from './next-step.ts'
import { findOutgoing } from './found-withdrawals.ts'
import { record } from './record-steps.ts'
import type { Origin } from '../../contract/actor.ts'
import { refusedDestination } from '../../networks/waiting.ts'
import type { OutgoingState } from '../../networks/outgoing-transfers.ts'

/**
 * What an operator says of a withdrawal whose end its network cannot tell. `usedBy`: the transaction that has used its
 * nonce, so that it is signed anew.
 */
export type Resolution = 'PAID' | 'NOT_PAID' | { usedBy: string }

export interface ResolvedWithdrawal {
  customer_id: string
  transfer_id: string
  crypto_network: PayoutNetwork
  outcome: 'PAID' | 'NOT_PAID' | 'SIGN_ANEW'
  /** PENDING where it is signed anew. */
  status: 'COMPLETED' | 'FAILED' | 'PENDING'
}

type Stated = BroadcastWithdrawal & { state: OutgoingState }
type Unresolved = Extract<PaymentStatus, { state: 'UNRESOLVED' }>

/**
 * Ends a withdrawal by an operator's word: PAID completes it, NOT_PAID fails and refunds it. The network's present status
 * decides whether that word is asked for: the transaction must be confirmed, so that it cannot pay a second time, and its
 * effect unclear. Where the status cannot be judged at all, only PAID is accepted. The evidence (what the operator looked
 * at, and where) is stored with it.
 *
 * Where the operator names the transaction that has used the nonce, the network is asked whether it has, and no word is
 * taken for it. The worker asks the same where it finds that transaction by itself.
 *
 * The node is asked with no database transaction open. Its answer is recorded if the withdrawal still has the state and the
 * transaction that it was asked about.
 *
 * Throws a Refusal when there is no such withdrawal, or when the network tells its end or that it is under way;
 * TakenMeanwhile when a worker took it further.
 */
export async function resolveWithdrawal(
  db: Database,
  networks: Networks,
  transferId: string,
  { outcome, evidence, origin }: { outcome: Resolution; evidence: string; origin: Origin },
): Promise<ResolvedWithdrawal> {
  const { status, ...withdrawal } = await findSigned(db, transferId)
  const { customer_id, transfer_id, network } = withdrawal
  if (status !== 'PENDING') throw new Refusal(`withdrawal ${transfer_id} is ${status} already`)
  const adapter = networks.get(network)
  if (adapter === undefined) throw new Refusal(`${network} is not configured here`)
  const about = { customer_id, transfer_id, crypto_network: network }
  if (typeof outcome === 'object') {
    if (adapter.usedBy === undefined) throw new Refusal(`transactions of ${network} have no nonce`)
    const end = await adapter.usedBy(withdrawal, readHash(network, adapter, outcome.usedBy))
    if (end.state !== 'VOID')
      throw new Refusal(`withdrawal ${transfer_id} is not signed anew: ${end.reason.detail}`)
    const step = stepAfterStatus(withdrawal, end, adapter)!
    await transaction(db, (tx) => record(tx, customer_id, [step], { origin, action: 'transfer.resolve' }))
    return { ...about, outcome: 'SIGN_ANEW', status: 'PENDING' }
  }
  const [answer] = await statusOfEach(db, [withdrawal], adapter)
  if (answer!.state !== 'UNRESOLVED')
    throw new Refusal(
      `withdrawal ${transfer_id} needs no decision: ${network} says ${answer!.state}, and the worker follows it`,
    )
  if (outcome === 'NOT_PAID' && answer!.mayBeMined)
    throw new Refusal(
      `withdrawal ${transfer_id} may be paid yet: ${answer!.reason.detail}; a refund needs a confirmed transaction`,
    )
  const transfer = outcome === 'PAID' ? paid(withdrawal, answer!) : notPaid(withdrawal)
  const step = { withdrawal, state: 'DONE', networkFee: answer!.networkFee, transfer } as const
  await transaction(db, async (tx) => {
    await record(tx, customer_id, [step], { origin, action: 'transfer.resolve' })
    await keepResolution(tx, withdrawal, { outcome, evidence, reason: answer!.reason.detail })
  })
  return { ...about, outcome, status: transfer.status }
}

/** Keeps an operator's word on a withdrawal, with the evidence, in the transaction that ends it. */
export async function keepResolution(
  tx: Transaction,
  { customer_id, transfer_id }: Pick<Stated, 'customer_id' | 'transfer_id'>,
  { outcome, evidence, reason }: Record<'evidence' | 'reason', string> & { outcome: 'PAID' | 'NOT_PAID' },
): Promise<void> {
  await tx.query(
    `
    insert into resolved_withdrawals (customer_id, transfer_id, outcome, evidence, reason, resolved_at)
    values ($1, $2, $3, $4, $5, clock_timestamp())`,
    [customer_id, transfer_id, outcome, evidence, reason],
  )
}

function paid(withdrawal: Stated, seen: Unresolved) {
  const { crypto_tx_hash = withdrawal.crypto_tx_hash } = seen
  const crypto_tx_index = seen.crypto_tx_index ?? withdrawal.crypto_tx_index ?? '0'
  return { status: 'COMPLETED', crypto_tx_hash, crypto_tx_index } as const
}

function notPaid(withdrawal: Stated) {
  const message = 'an operator found that nothing had arrived at the destination address'
  return { status: 'FAILED', ...refusedDestination(withdrawal, message) } as const
}

async function findSigned(db: Database, transferId: string): Promise<Stated & { status: string }> {
  const found = await findOutgoing(db, transferId)
  if (found === undefined || found.raw_transaction === null || found.crypto_tx_hash === null)
    throw new Refusal(`there is no withdrawal ${transferId} that was signed`)
  const { crypto_tx_hash, raw_transaction, crypto_tx_index, ...rest } = found
  const index = crypto_tx_index !== null && { crypto_tx_index }
  const isAsked = found.state === 'ASKED' && { isAsked: true as const }
  return { ...rest, crypto_tx_hash, raw_transaction, ...index, ...isAsked }
}
