import { transaction, type Database, type Transaction } from '../db/database.ts'
import { OWNERS } from '../records/treasury.ts'
import type { BroadcastWithdrawal, Network, Networks, PaymentStatus } from '../networks/network.ts'
import { CLAIMED, ITS_TRANSFER, withCanonicalAddress, type State } from './lease.ts'
import { record, type Step } from './record-steps.ts'

/** What an operator says of a withdrawal that its network cannot tell the end of. */
export type Resolution = 'PAID' | 'NOT_PAID'

/** A withdrawal that an operator has ended. */
export interface ResolvedWithdrawal {
  customer_id: string
  transfer_id: string
  crypto_network: Network
  outcome: Resolution
  status: 'COMPLETED' | 'FAILED'
}

type Stated = BroadcastWithdrawal & { state: State }
type Kept = Stated & { status: string }
type Unresolved = Extract<PaymentStatus, { state: 'UNRESOLVED' }>

/**
 * Ends a withdrawal by an operator's word: PAID completes it, NOT_PAID fails and refunds it. Only what the network says now
 * decides whether that word is asked for: its transaction must be confirmed, so that it can pay no second time, and its
 * effect unclear. The evidence (what was looked at, where) is kept beside it.
 * Throws an Error when there is no such withdrawal, or the network tells its end or its way itself.
 */
export async function resolveWithdrawal(
  db: Database,
  networks: Networks,
  transferId: string,
  outcome: Resolution,
  evidence: string,
): Promise<ResolvedWithdrawal> {
  return transaction(db, async (tx) => {
    const { status, ...withdrawal } = await claim(tx, transferId)
    const { customer_id, transfer_id, network } = withdrawal
    if (status !== 'PENDING') throw new Error(`withdrawal ${transfer_id} is ${status} already`)
    const adapter = networks.get(network)
    if (adapter === undefined) throw new Error(`${network} is not configured here`)
    const [progress] = await adapter.checkStatus([withdrawal])
    if (progress!.state !== 'UNRESOLVED')
      throw new Error(
        `withdrawal ${transfer_id} needs no decision: ${network} says ${progress!.state}, and the worker follows it`,
      )
    const step = outcome === 'PAID' ? paid(withdrawal, progress!) : notPaid(withdrawal, progress!)
    await record(tx, customer_id, [step])
    await tx.query(
      `
      insert into resolved_withdrawals (customer_id, transfer_id, outcome, evidence, reason, resolved_at)
      values ($1, $2, $3, $4, $5, clock_timestamp())`,
      [customer_id, transfer_id, outcome, evidence, progress!.reason.detail],
    )
    const ended = step.transfer!.status as 'COMPLETED' | 'FAILED'
    return { customer_id, transfer_id, crypto_network: network, outcome, status: ended }
  })
}

function paid(withdrawal: Stated, { networkFee, ...seen }: Unresolved): Step {
  const { crypto_tx_hash = withdrawal.crypto_tx_hash, crypto_tx_index = '0' } = seen
  return {
    withdrawal,
    state: 'DONE',
    networkFee,
    transfer: { status: 'COMPLETED', crypto_tx_hash, crypto_tx_index },
  }
}

function notPaid(withdrawal: Stated, { networkFee }: Unresolved): Step {
  const { destination_address } = withdrawal
  const message = 'an operator found that nothing had arrived at the destination address'
  const status_details = { invalid_destination_address: { message, destination_address } }
  return { withdrawal, state: 'DONE', networkFee, transfer: { status: 'FAILED', status_details } }
}

/** Holds the withdrawal against workers. */
async function claim(tx: Transaction, transferId: string): Promise<Kept> {
  const { rows } = await tx.query<Omit<Kept, 'replaced'>>(
    `
    select kept.*
    from ${OWNERS} c
    cross join lateral (
      ${CLAIMED.replaceAll('$1', 'c.id')}, t.status, b.state, b.raw_transaction, b.crypto_tx_hash
      from (select * from outgoing_transfers where customer_id = c.id and transfer_id = $1 for update) b
      ${ITS_TRANSFER.replaceAll('$1', 'c.id')}
    ) kept
    where kept.raw_transaction is not null`,
    [transferId],
  )
  const found = rows[0]
  if (found === undefined) throw new Error(`there is no withdrawal ${transferId} that was signed`)
  const { rows: replaced } = await tx.query<{ crypto_tx_hash: string }>(
    'select crypto_tx_hash from replaced_transactions where customer_id = $1 and transfer_id = $2',
    [found.customer_id, transferId],
  )
  return withCanonicalAddress({ ...found, replaced: replaced.map(({ crypto_tx_hash }) => crypto_tx_hash) })
}
