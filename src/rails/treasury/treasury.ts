import type { Origin } from '../../contract/actor.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import {
  transaction,
  violatedConstraint,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { coldEntries, networkFeeEntries } from '../../money/ledger/entries.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import {
  PLATFORM_ID,
  type ConsolidationTerms,
  type TreasuryTransfer,
  type TreasuryType,
} from '../../money/records/treasury.ts'
import type { WithdrawalMacs } from '../../audit/withdrawal-macs.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { addressRefusal } from '../../contract/addresses/destination-rules.ts'
import type { MovedOnChain, NetworkAdapter, PaymentOnChain } from '../../networks/network.ts'
import { readHash } from '../payouts/read-hash.ts'
import { signAlone } from '../payouts/lease.ts'
import { cancelWithdrawal } from '../payouts/cancel-withdrawal.ts'
import { audited } from '../../audit/audited.ts'
import { forgetRefill } from './found-refills.ts'
import { recordChanges } from '../../audit/audit.ts'

/** An operator's order to move an amount to cold storage. */
export interface TreasurySend {
  network: CryptoNetwork
  asset: string
  /** A decimal string. */
  amount: string
  destination_address: string
  /** The operator's own name for the order: an order with the same reference is carried out once. */
  reference: string
}

/** What an order needs, and who gives it. */
export interface Ordering {
  db: Database
  macs: WithdrawalMacs
  origin: Origin
}

/** A treasury transfer, and whether it was there before. */
export interface Ordered {
  transfer: TreasuryTransfer
  is_new: boolean
}

/**
 * Orders an amount to be moved from the hot wallet to cold storage. The worker signs and settles this transfer of the
 * platform like a withdrawal, after the customers' withdrawals. Customers' balances do not change. Repeating the order with
 * the same reference changes nothing. Throws an Error that names the wrong field.
 */
export async function orderTreasurySend(
  { db, macs, origin }: Ordering,
  adapter: NetworkAdapter,
  send: TreasurySend,
): Promise<Ordered> {
  const { network, asset, reference } = send
  if (!/\S/.test(reference) || reference.length > REFERENCE_MAX)
    throw new Error(`reference must have 1 to ${REFERENCE_MAX} characters`)
  const listing = findAsset(asset)?.networks[network]
  if (listing === undefined) throw new Error(`asset ${asset} is not on ${network}`)
  const minor = parseAmount(send.amount, listing.decimals)
  if (minor === undefined || minor <= 0n)
    throw new Error(`amount must be above 0, with at most ${listing.decimals} decimals`)
  const destination = canonicalAddress(network, send.destination_address, { testNetworks: true })
  if (destination === undefined)
    throw new Error(`to: ${send.destination_address} is no address of ${network}`)
  const wanted = {
    network,
    asset,
    amount: formatAmount(minor, listing.decimals),
    destination_address: destination,
  }
  const before = await selectByReference(db, reference)
  if (before !== undefined) return { transfer: sameAs(before, wanted), is_new: false }
  await requireForeign(db, adapter, network, destination, asset)
  await requireHeld(adapter, network, asset, minor)
  try {
    return await transaction(db, async (tx) => {
      const id = await insert(tx, macs, { type: 'TREASURY_SEND', reference, origin, ...wanted })
      return { transfer: (await selectTreasuryTransfer(tx, id))!, is_new: true }
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'transfers_ref_id') throw error
    return { transfer: sameAs((await selectByReference(db, reference))!, wanted), is_new: false }
  }
}

/** The maximum length of a client's `ref_id`, because both are in one column. */
const REFERENCE_MAX = 100

/** Throws an Error where the reference belongs to a transfer of another amount, asset, network or destination. */
function sameAs(before: TreasuryTransfer, wanted: Omit<TreasurySend, 'reference'>): TreasuryTransfer {
  const was = { ...before, network: before.crypto_network }
  const differing = (['network', 'asset', 'amount', 'destination_address'] as const).find(
    (field) => was[field] !== wanted[field],
  )
  if (differing !== undefined)
    throw new Error(
      `reference ${before.reference} is of another transfer: its ${differing} is ${was[differing]}, not ${wanted[differing]}`,
    )
  return before
}

/** Throws an Error for an address of the platform itself: a payment there would not leave it, or would be lost. */
async function requireForeign(
  db: Database,
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  address: string,
  asset: string,
): Promise<void> {
  const refusal = addressRefusal(network, { address, asset }) ?? adapter.refusesDestination?.(address)
  if (refusal !== undefined) throw new Error(`to: ${refusal}`)
  const { rowCount } = await db.query('select 1 from deposit_addresses where address = $1 limit 1', [address])
  if (rowCount !== 0) throw new Error(`to: ${address} is a deposit address`)
  if (await adapter.isOwnAddress?.(address))
    throw new Error(`to: ${address} is of the hot wallet of ${network} itself`)
}

/** Throws an Error where the hot wallet has less than the amount, so that a typing error is found before the order. */
async function requireHeld(
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  asset: string,
  minor: bigint,
): Promise<void> {
  if (adapter.status === undefined) throw new Error(`${network} is no real network here`)
  const { hotWallet, held, lanes = [] } = await adapter.status()
  const decimals = decimalsOf(asset)
  const ofLanes = lanes.flatMap(({ held: ofLane }) => (ofLane === undefined ? [] : [ofLane]))
  const [there] = (ofLanes.length > 0 ? ofLanes : [hotWallet ?? held])
    .map((has) => parseAmount(has[asset] ?? '0', decimals)!)
    .sort((a, b) => (a > b ? -1 : 1))
  if (there! < minor)
    throw new Error(
      `amount: the ${ofLanes.length > 0 ? 'fullest ' : ''}hot wallet of ${network} has ${formatAmount(there!, decimals)} ${asset}`,
    )
}

/**
 * Orders the wallet's smallest coins to be merged into one, for a maximum fee rate (per 1,000 virtual bytes); on an EVM network,
 * what a former wallet holds of an asset to be moved to the hot wallet, for a maximum price of gas in gwei. One consolidation
 * is under way at a time: a second order changes nothing. The node is asked while the signing lock is held, because a batch
 * that is signed meanwhile would spend the coins of the plan. Throws an Error where the network has no coins, or too few to
 * merge.
 */
export async function orderConsolidation(
  { db, macs, origin }: Ordering,
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  maxFeeRate: string | undefined,
): Promise<Ordered> {
  if (adapter.planConsolidation === undefined)
    throw new Error(`the hot wallet of ${network} has no coins to merge`)
  return transaction(db, async (tx) => {
    await signAlone(tx, network)
    const { rows } = await tx.query<{ id: string }>(
      `
      select id from transfers
      where customer_id = $1 and status = 'PENDING' and type = 'TREASURY_CONSOLIDATION' and crypto_network = $2`,
      [PLATFORM_ID, network],
    )
    if (rows[0] !== undefined)
      return { transfer: (await selectTreasuryTransfer(tx, rows[0].id))!, is_new: false }
    const { max_fee_rate, asset, amount, destination_address } = await adapter.planConsolidation!(
      tx,
      maxFeeRate,
    )
    const id = await insert(tx, macs, {
      type: 'TREASURY_CONSOLIDATION',
      origin,
      reference: null,
      network,
      asset,
      amount,
      destination_address,
      metadata: { max_fee_rate },
    })
    return { transfer: (await selectTreasuryTransfer(tx, id))!, is_new: true }
  })
}

/**
 * Cancels a treasury transfer that is not signed. Repeating it changes nothing. Throws an Error when there is no such
 * transfer, and as `cancelWithdrawal` does.
 */
export async function cancelTreasuryTransfer(
  db: Database,
  id: string,
  origin: Origin,
): Promise<{ changed: boolean }> {
  if ((await selectTreasuryTransfer(db, id)) === undefined)
    throw new Error(`there is no treasury transfer ${id}`)
  return cancelWithdrawal(db, { customer_id: PLATFORM_ID, transfer_id: id }, 'operator', origin)
}

interface New extends Omit<TreasurySend, 'reference'> {
  type: TreasuryType
  origin: Origin
  reference: string | null
  metadata?: ConsolidationTerms
}

/** Inserts a transfer of the platform, with its MAC. Each is its own profile, so that none waits behind another. */
async function insert(tx: Transaction, macs: WithdrawalMacs, made: New): Promise<string> {
  const { type, origin, reference, network, asset, amount, destination_address, metadata = null } = made
  const now = await readClock(tx)
  const id = newId(now)
  const ids = { customer_id: PLATFORM_ID, id, profile_id: id }
  const mac = macs.makeOf({ ...ids, asset, amount, network, destination: destination_address, memo: null })
  await tx.query(
    `
    insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, ref_id,
                           crypto_network, destination_address, metadata, mac, created_at, updated_at)
    values ($1, $2, $2, $3, 'DEBIT', 'PENDING', $4, $5, 0, $5, $6, $7, $8, $9, $10, $11, $11)`,
    [PLATFORM_ID, id, type, asset, amount, reference, network, destination_address, metadata, mac, now.text],
  )
  recordChanges(tx, PLATFORM_ID, now, [audited(origin, 'transfer.order', id)])
  return id
}

const SELECT = `
  select t.id, t.type, t.ref_id as reference, t.crypto_network, t.asset, t.amount, t.destination_address, t.status,
         b.state, coalesce(t.crypto_tx_hash, b.crypto_tx_hash) as crypto_tx_hash, b.waiting_code,
         b.waiting_detail, t.created_at
  from transfers t
  left join outgoing_transfers b on b.customer_id = t.customer_id and b.transfer_id = t.id
  where t.customer_id = '${PLATFORM_ID}'`

async function selectTreasuryTransfer(db: Queryable, id: string): Promise<TreasuryTransfer | undefined> {
  const { rows } = await db.query<TreasuryTransfer>(`${SELECT} and t.id = $1`, [id])
  return rows[0]
}

async function selectByReference(db: Queryable, reference: string): Promise<TreasuryTransfer | undefined> {
  const { rows } = await db.query<TreasuryTransfer>(`${SELECT} and t.ref_id = $1`, [reference])
  return rows[0]
}

/** The newest treasury transfers, of one network or of all. */
export async function selectTreasuryTransfers(
  db: Queryable,
  network: CryptoNetwork | null,
  limit: number,
): Promise<TreasuryTransfer[]> {
  const { rows } = await db.query<TreasuryTransfer>(
    `${SELECT} and ($1::text is null or t.crypto_network = $1) order by t.id desc limit $2`,
    [network, limit],
  )
  return rows
}

// ---------------------------------------------------------------------------------------------- acknowledged transactions

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
 * Throws an Error where the transaction is known, is not confirmed, moves nothing of the hot wallet, or may have paid a
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
  if (adapter.movedBy === undefined) throw new Error(`${network} is no real network here`)
  return transaction(db, async (tx) => {
    await signAlone(tx, network)
    const before = await selectAcknowledged(tx, network, hash)
    return before ?? (await post(tx, network, hash, await adapter.movedBy!(tx, hash), asked))
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
      (await selectAcknowledged(tx, network, hash)) ?? (await post(tx, network, hash, effect, { origin })),
  )

/** Who acknowledges, and whether the transaction has paid none of the withdrawals that it looks like. */
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
  const { rows } = await tx.query<{ id: string }>(
    'select id from acknowledged_transactions where network = $1 and crypto_tx_hash = $2',
    [network, hash],
  )
  return rows[0] && { id: rows[0].id, crypto_network: network, crypto_tx_hash: hash, is_new: false }
}

async function post(
  tx: Transaction,
  network: CryptoNetwork,
  hash: string,
  { moved, payments, networkFee }: MovedOnChain,
  { paysNoWithdrawal = false, origin }: Acknowledging,
): Promise<Acknowledged> {
  const unpaid = await unpaidLike(tx, network, hash, payments)
  if (unpaid.length > 0 && !paysNoWithdrawal) throw new Error(alikeText(hash, unpaid))
  const ledger = await LedgerTransaction.open(tx, PLATFORM_ID, [])
  const id = newId(ledger.now)
  await tx.query(
    `insert into acknowledged_transactions (network, crypto_tx_hash, id, acknowledged_at) values ($1, $2, $3, $4)`,
    [network, hash, id, ledger.now.text],
  )
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

/** A transfer out of the hot wallet that has not ended. */
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
      (one) =>
        one.asset === asset &&
        parseAmount(one.amount, decimalsOf(asset)) === parseStoredAmount(amount, decimalsOf(asset)) &&
        one.address === canonical(destination_address),
    ),
  )
}

const alikeText = (hash: string, [first, ...others]: Unpaid[]) =>
  `${hash} pays ${first!.amount} ${first!.asset} to ${first!.destination_address}, as withdrawal ${first!.id} asks, which is PENDING` +
  `${others.length > 0 ? ` (and ${others.length} more like it)` : ''}: ` +
  `'bursar withdrawal mark-paid ${first!.id} --tx-hash ${hash}' says that it has paid that one, --not-a-withdrawal that it has paid none`
