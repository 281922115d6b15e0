import type { Origin } from '../../contract/actor.ts'
import { readHash } from '../payouts/read-hash.ts'
import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { Refusal } from '../../contract/refusal.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { newId, PLATFORM_ID } from '../../db/ids.ts'
import { coldEntries, networkFeeEntries } from '../../money/ledger/entries.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { MovedOnChain, PaymentOnChain } from '../../networks/moved-on-chain.ts'
import { signAlone } from '../payouts/lease.ts'
import { forgetRefill } from './found-refills.ts'
import { acknowledgedAs, storeAcknowledged } from '../../networks/network-transactions.ts'

/** Transactions that were made outside of Bursar and are the platform's own. */

export interface Acknowledged extends Partial<Pick<MovedOnChain, 'moved' | 'networkFee'>> {
  id: string
  crypto_network: CryptoNetwork
  crypto_tx_hash: string
  /** False when it was acknowledged before: then nothing changed, and `moved` is absent. */
  is_new: boolean
  /** Unpaid withdrawals with the amount and address of one of its payments, which the operator says it did not pay. */
  not_paid?: string[]
}

/**
 * Records a transaction that was made outside of Bursar as the platform's own: the amount that it moved out of the hot wallet
 * goes to cold storage in the ledger, an amount that it brought comes from there, and its fee is posted. The transaction no
 * longer blocks signing. A payment of a withdrawal is for `markWithdrawalPaid`: the command is refused while a PENDING
 * withdrawal has the amount and address of one of the payments, unless `paysNoWithdrawal` is set. Repeating it changes nothing.
 *
 * The node is asked while the signing lock is held: until the commit, nobody may sign with the transaction's nonce or give one
 * of its payments to a withdrawal, because the amounts would be wrong then. `markWithdrawalPaid` takes the same lock.
 *
 * Throws a Refusal where the transaction is known, is not confirmed, moves nothing of the hot wallet, or may have paid a
 * withdrawal.
 */
export async function acknowledgeTransaction(
  db: Database,
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  typed: string,
  asked: Acknowledging,
): Promise<Acknowledged> {
  const hash = readHash(network, adapter, typed)
  if (adapter.movedBy === undefined) throw new Refusal(`${network} is no real network here`)
  return transaction(db, async (tx) => {
    await signAlone(tx, network)
    const before = await selectAcknowledged(tx, network, hash)
    return before ?? (await postMoved(tx, network, hash, await adapter.movedBy!(tx, hash), asked))
  })
}

/**
 * Posts a refill as `acknowledgeTransaction` does, once. Its effect was asked for before, with no transaction open and without the
 * signing lock: a transaction by others has no nonce of the hot wallet, and pays no withdrawal.
 */
export const postRefill = (
  db: Database,
  network: CryptoNetwork,
  hash: string,
  effect: MovedOnChain,
  origin: Origin,
): Promise<Acknowledged> =>
  transaction(
    db,
    async (tx) =>
      (await selectAcknowledged(tx, network, hash)) ??
      (await postMoved(tx, network, hash, effect, { origin })),
  )

interface Acknowledging {
  paysNoWithdrawal?: boolean
  origin: Origin
}

/** A transaction that was acknowledged before; no refill of it waits any more. */
async function selectAcknowledged(
  tx: Transaction,
  network: CryptoNetwork,
  hash: string,
): Promise<Acknowledged | undefined> {
  await forgetRefill(tx, network, hash)
  const id = await acknowledgedAs(tx, network, hash)
  return id === undefined ? undefined : { id, crypto_network: network, crypto_tx_hash: hash, is_new: false }
}

async function postMoved(
  tx: Transaction,
  network: CryptoNetwork,
  hash: string,
  { moved, payments, networkFee }: MovedOnChain,
  { paysNoWithdrawal = false, origin }: Acknowledging,
): Promise<Acknowledged> {
  const unpaid = await unpaidLike(tx, network, hash, payments)
  if (unpaid.length > 0 && !paysNoWithdrawal) throw new Refusal(alikeText(hash, unpaid))
  const ledger = await LedgerTransaction.open(tx, PLATFORM_ID, [])
  const id = newId(ledger.now)
  await storeAcknowledged(tx, network, hash, { id, now: ledger.now })
  const minorOf = (asset: string, amount: string) => {
    const isNegative = amount.startsWith('-')
    const minor = parseAmount(isNegative ? amount.slice(1) : amount, decimalsOf(asset))!
    return isNegative ? -minor : minor
  }
  const entries = [
    ...moved.flatMap(({ asset, amount }) => coldEntries(network, asset, -minorOf(asset, amount))),
    ...(networkFee === undefined
      ? []
      : networkFeeEntries(network, networkFee.asset, minorOf(networkFee.asset, networkFee.amount))),
  ]
  ledger.post({ transfer_id: id, event: 'SETTLED', entries, origin, action: 'transfer.acknowledge' })
  await ledger.write()
  return {
    id,
    ...{ crypto_network: network, crypto_tx_hash: hash },
    moved,
    ...(networkFee && { networkFee }),
    is_new: true,
    ...(unpaid.length > 0 && { not_paid: unpaid.map(({ id }) => id) }),
  }
}

interface Unpaid {
  id: string
  asset: string
  amount: string
  destination_address: string
}

/** The PENDING withdrawals and sends to cold storage, signed or not, with the amount and address of one of these payments. */
async function unpaidLike(
  tx: Transaction,
  network: CryptoNetwork,
  hash: string,
  payments: readonly PaymentOnChain[],
): Promise<Unpaid[]> {
  if (payments.length === 0) return []
  const { rows } = await tx.query<Unpaid>(
    `
    select t.id, t.asset, t.amount, t.destination_address
    from transfers t
    left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
    where t.status = 'PENDING' and t.type in ('CRYPTO_WITHDRAWAL', 'TREASURY_SEND') and t.crypto_network = $1
      and t.amount = any ($2::numeric[])
      -- A withdrawal that is marked as paid by this transaction has an output of its own.
      and b.crypto_tx_hash is distinct from $3
    order by t.id`,
    [network, payments.map(({ amount }) => amount), hash],
  )
  const canonical = (address: string) => canonicalAddress(network, address, { testNetworks: true }) ?? address
  return rows.filter(({ asset, amount, destination_address }) =>
    payments.some(
      (spend) =>
        spend.asset === asset &&
        parseAmount(spend.amount, decimalsOf(asset)) === parseStoredAmount(amount, decimalsOf(asset)) &&
        spend.address === canonical(destination_address),
    ),
  )
}

const alikeText = (hash: string, [first, ...others]: Unpaid[]) =>
  `${hash} pays ${first!.amount} ${first!.asset} to ${first!.destination_address}, as withdrawal ${first!.id} asks, which is PENDING` +
  `${others.length > 0 ? ` (and ${others.length} more like it)` : ''}: ` +
  `'bursar withdrawal mark-paid ${first!.id} --tx-hash ${hash}' says that it has paid that one, --not-a-withdrawal that it has paid none`
