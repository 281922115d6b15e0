import { transaction, type Database, type Transaction } from '../db/database.ts'
import { OWNERS, PAYOUT_TYPES } from '../records/treasury.ts'
import type { Network, Networks, PaidWithdrawal } from '../networks/network.ts'
import { CLAIMED, ITS_TRANSFER, signAlone, withCanonicalAddress } from './lease.ts'
import { keepReplaced, keepTransactions } from './record-steps.ts'

/** A withdrawal, and the transaction that has paid it. */
export interface MarkedWithdrawal {
  customer_id: string
  transfer_id: string
  crypto_network: Network
  crypto_tx_hash: string
}

type Found = PaidWithdrawal & { status: string; crypto_tx_hash: string | null }

/**
 * Takes a transaction of the hot wallet, which was signed where this database does not know of it (a backup was
 * restored), for a withdrawal's own: the worker follows it as if it had been signed here, and signs no other. Where one
 * was signed here, it is taken for what has replaced that one. Once said, saying it again changes nothing.
 * Throws an Error when there is no such withdrawal, or the one that was signed here may still be made beside it, and when
 * the network has none of the hash that pays it.
 */
export async function markWithdrawalPaid(
  db: Database,
  networks: Networks,
  transferId: string,
  hash: string,
): Promise<MarkedWithdrawal> {
  return transaction(db, async (tx) => {
    const { status, ...withdrawal } = await claim(tx, transferId)
    const { customer_id, transfer_id, network } = withdrawal
    if (withdrawal.crypto_tx_hash === hash)
      return { customer_id, transfer_id, crypto_network: network, crypto_tx_hash: hash }
    if (status !== 'PENDING') throw new Error(`withdrawal ${transfer_id} is ${status}`)
    const adapter = networks.get(network)
    if (adapter?.claimTransaction === undefined) throw new Error(`${network} is no real network here`)
    await signAlone(tx, network)
    await requireNotAcknowledged(tx, network, hash)
    const paid = await adapter.claimTransaction(tx, withdrawal, hash)
    const { raw_transaction, crypto_tx_hash, crypto_tx_index = null } = paid
    // Where a transaction pays several, the adapter has found an output that is no other's.
    if (paid.payments === undefined) await requireFree(tx, withdrawal, crypto_tx_hash)
    else await keepTransactions(tx, network, [paid], 'MARKED')
    if (withdrawal.raw_transaction !== null) await keepReplaced(tx, customer_id, [transfer_id])
    await tx.query(
      `
      update outgoing_transfers
      set state = 'SIGNED', raw_transaction = $3, crypto_tx_hash = $4, crypto_tx_index = $5, due_at = clock_timestamp(),
          waiting_code = null, waiting_detail = null, waiting_since = null, leased_until = null
      where customer_id = $1 and transfer_id = $2`,
      [
        customer_id,
        transfer_id,
        paid.payments === undefined ? raw_transaction : null,
        crypto_tx_hash,
        crypto_tx_index,
      ],
    )
    return { customer_id, transfer_id, crypto_network: network, crypto_tx_hash }
  })
}

/** What is in the platform's ledger as its own has paid no withdrawal. */
async function requireNotAcknowledged(tx: Transaction, network: Network, hash: string): Promise<void> {
  const { rowCount } = await tx.query(
    'select from acknowledged_transactions where network = $1 and crypto_tx_hash = $2',
    [network, hash],
  )
  if (rowCount !== 0) throw new Error(`${hash} was acknowledged as the platform's own`)
}

/** Holds the withdrawal against workers, whether or not one has begun it. */
async function claim(tx: Transaction, transferId: string): Promise<Found> {
  const missing = () => new Error(`there is no withdrawal ${transferId}`)
  // Transfers are found by their customer; nobody says here whose it is.
  const { rows: owners } = await tx.query<{ customer_id: string }>(
    `
    select t.customer_id
    from ${OWNERS} c
    cross join lateral (select customer_id, type from transfers where customer_id = c.id and id = $1) t
    where t.type in ${PAYOUT_TYPES}`,
    [transferId],
  )
  const customerId = owners[0]?.customer_id
  if (customerId === undefined) throw missing()
  await tx.query(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at)
    select customer_id, id, coalesce(crypto_network, 'WIRE'), 'HELD', clock_timestamp()
    from transfers where customer_id = $1 and id = $2
    on conflict (customer_id, transfer_id) do nothing`,
    [customerId, transferId],
  )
  const { rows } = await tx.query<Found>(
    `
    ${CLAIMED}, t.status, b.crypto_tx_hash, coalesce(b.raw_transaction, (
      select n.raw_transaction from network_transactions n
      where n.network = b.network and n.crypto_tx_hash = b.crypto_tx_hash
    )) as raw_transaction
    from (
      select * from outgoing_transfers where customer_id = $1 and transfer_id = $2
      for update
    ) b ${ITS_TRANSFER}`,
    [customerId, transferId],
  )
  if (rows[0] === undefined) throw missing()
  return withCanonicalAddress(rows[0])
}

/** A transaction pays one withdrawal, whosever it is, but for one of several payments to different places or amounts. */
async function requireFree(
  tx: Transaction,
  { transfer_id, network, destination_address, amount }: PaidWithdrawal,
  hash: string,
): Promise<void> {
  const { rows } = await tx.query<{ id: string }>(
    `
    select t.id
    from ${OWNERS} c
    cross join lateral (
      select transfer_id from outgoing_transfers where customer_id = c.id and network = $1 and crypto_tx_hash = $2
      union
      select transfer_id from replaced_transactions where customer_id = c.id and crypto_tx_hash = $2
      union
      select id from transfers where customer_id = c.id and crypto_tx_hash = $2 and type in ${PAYOUT_TYPES}
    ) taken
    join transfers t on t.customer_id = c.id and t.id = taken.transfer_id
    where t.id <> $3 and t.amount = $4 and lower(t.destination_address) = lower($5)`,
    [network, hash, transfer_id, amount, destination_address],
  )
  if (rows[0] !== undefined) throw new Error(`${hash} is the transaction of withdrawal ${rows[0].id}`)
}
