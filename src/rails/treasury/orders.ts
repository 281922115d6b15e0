import type { Origin } from '../../contract/actor.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { addressRefusal } from '../../contract/addresses/destination-rules.ts'
import { Refusal } from '../../contract/refusal.ts'
import {
  transaction,
  violatedConstraint,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { newId, PLATFORM_ID, readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { audited } from '../../audit/audited.ts'
import type { RowMacs } from '../../audit/sealed-rows.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { cancelWithdrawal } from '../payouts/cancel-withdrawal.ts'
import { signAlone } from '../payouts/lease.ts'
import { macOfWithdrawal } from '../../audit/withdrawal-macs.ts'

/**
 * The platform's own transfers: SEND from a hot wallet to cold storage, CONSOLIDATION of a wallet's coins. Each is a
 * row of `transfers` that the worker signs and settles like a withdrawal.
 */
type TreasuryType = 'TREASURY_SEND' | 'TREASURY_CONSOLIDATION'

/** The terms of a consolidation, kept as its transfer's metadata. */
interface ConsolidationTerms {
  /** The highest fee rate: a decimal string per 1,000 virtual bytes. */
  max_fee_rate: string
}

/** A transfer ordered by an operator, with its progress. Amounts are decimal strings. */
export interface TreasuryTransfer {
  id: string
  type: TreasuryType
  /** The operator's own unique name for the transfer. Null for a consolidation. */
  reference: string | null
  crypto_network: CryptoNetwork
  asset: string
  amount: string
  destination_address: string
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  /** The state of its transaction: HELD, SIGNED, BROADCAST or DONE; null until the worker has begun. */
  state: string | null
  crypto_tx_hash: string | null
  /** Why it waits (not signed, or not accepted by the node), as in `networks status`; null where it does not wait. */
  waiting_code: string | null
  waiting_detail: string | null
  created_at: string
}

/** Transfers of the platform that operators order: to cold storage, and within the hot wallet. */

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
  macs: RowMacs
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
 * the same reference changes nothing. Throws a Refusal that names the wrong field.
 */
export async function orderTreasurySend(
  { db, macs, origin }: Ordering,
  adapter: NetworkAdapter,
  send: TreasurySend,
): Promise<Ordered> {
  const { network, asset, reference } = send
  if (!/\S/.test(reference) || reference.length > REFERENCE_MAX)
    throw new Refusal(`reference must have 1 to ${REFERENCE_MAX} characters`)
  const listing = findAsset(asset)?.networks[network]
  if (listing === undefined) throw new Refusal(`asset ${asset} is not on ${network}`)
  const minor = parseAmount(send.amount, listing.decimals)
  if (minor === undefined || minor <= 0n)
    throw new Refusal(`amount must be above 0, with at most ${listing.decimals} decimals`)
  const destination = canonicalAddress(network, send.destination_address, { testNetworks: true })
  if (destination === undefined)
    throw new Refusal(`to: ${send.destination_address} is no address of ${network}`)
  const amount = formatAmount(minor, listing.decimals)
  const wanted = { network, asset, amount, destination_address: destination }
  const before = await selectByReference(db, reference)
  if (before !== undefined) return { transfer: sameAs(before, wanted), is_new: false }
  await requireForeign(db, adapter, network, destination, asset)
  await requireHeld(adapter, network, asset, minor)
  try {
    return await transaction(db, (tx) =>
      insertTransfer(tx, macs, { type: 'TREASURY_SEND', reference, origin, ...wanted }),
    )
  } catch (error) {
    if (violatedConstraint(error) !== 'transfers_ref_id') throw error
    return { transfer: sameAs((await selectByReference(db, reference))!, wanted), is_new: false }
  }
}

/** The maximum length of a client's `ref_id`, because both are in one column. */
const REFERENCE_MAX = 100

function sameAs(before: TreasuryTransfer, wanted: Omit<TreasurySend, 'reference'>): TreasuryTransfer {
  const was = { ...before, network: before.crypto_network }
  const differing = (['network', 'asset', 'amount', 'destination_address'] as const).find(
    (field) => was[field] !== wanted[field],
  )
  if (differing !== undefined)
    throw new Refusal(
      `reference ${before.reference} is of another transfer: its ${differing} is ${was[differing]}, not ${wanted[differing]}`,
    )
  return before
}

/** Throws a Refusal for an address of the platform itself: a payment there would not leave it, or would be lost. */
async function requireForeign(
  db: Database,
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  address: string,
  asset: string,
): Promise<void> {
  const refusal = addressRefusal(network, { address, asset }) ?? adapter.refusesDestination?.(address)
  if (refusal !== undefined) throw new Refusal(`to: ${refusal}`)
  const { rowCount } = await db.query('select 1 from deposit_addresses where address = $1 limit 1', [address])
  if (rowCount !== 0) throw new Refusal(`to: ${address} is a deposit address`)
  if (await adapter.isOwnAddress?.(address))
    throw new Refusal(`to: ${address} is of the hot wallet of ${network} itself`)
}

/** Throws a Refusal where the hot wallet has less than the amount, so that a typing error is found before the order. */
async function requireHeld(adapter: NetworkAdapter, network: CryptoNetwork, asset: string, minor: bigint) {
  if (adapter.status === undefined) throw new Refusal(`${network} is no real network here`)
  const { hotWallet, held, lanes = [] } = await adapter.status()
  const decimals = decimalsOf(asset)
  const ofLanes = lanes.flatMap(({ held: ofLane }) => (ofLane === undefined ? [] : [ofLane]))
  const [there] = (ofLanes.length > 0 ? ofLanes : [hotWallet ?? held])
    .map((has) => parseAmount(has[asset] ?? '0', decimals)!)
    .sort((a, b) => (a > b ? -1 : 1))
  if (there! < minor)
    throw new Refusal(
      `amount: the ${ofLanes.length > 0 ? 'fullest ' : ''}hot wallet of ${network} has ${formatAmount(there!, decimals)} ${asset}`,
    )
}

/**
 * Orders the wallet's smallest coins to be merged into one, for a maximum fee rate (per 1,000 virtual bytes); on an EVM network,
 * what a former wallet holds of an asset to be moved to the hot wallet, for a maximum price of gas in gwei. One consolidation
 * is under way at a time: a second order changes nothing. The node is asked while the signing lock is held, because a batch
 * that is signed meanwhile would spend the coins of the plan. Throws a Refusal where the network has no coins, or too few to
 * merge.
 */
export async function orderConsolidation(
  { db, macs, origin }: Ordering,
  adapter: NetworkAdapter,
  network: CryptoNetwork,
  maxFeeRate: string | undefined,
): Promise<Ordered> {
  if (adapter.planConsolidation === undefined)
    throw new Refusal(`the hot wallet of ${network} has no coins to merge`)
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
    return insertTransfer(tx, macs, {
      type: 'TREASURY_CONSOLIDATION',
      origin,
      reference: null,
      network,
      asset,
      amount,
      destination_address,
      metadata: { max_fee_rate },
    })
  })
}

/**
 * Cancels a treasury transfer that is not signed. Repeating it changes nothing. Throws a Refusal when there is no such
 * transfer, and as `cancelWithdrawal` does.
 */
export async function cancelTreasuryTransfer(
  db: Database,
  id: string,
  origin: Origin,
): Promise<{ changed: boolean }> {
  if ((await selectTreasuryTransfer(db, id)) === undefined)
    throw new Refusal(`there is no treasury transfer ${id}`)
  return cancelWithdrawal(db, { customer_id: PLATFORM_ID, transfer_id: id }, 'operator', origin)
}

interface NewTransfer extends Omit<TreasurySend, 'reference'> {
  type: TreasuryType
  origin: Origin
  reference: string | null
  metadata?: ConsolidationTerms
}

/** Each is its own profile, so that none waits behind another. */
async function insertTransfer(tx: Transaction, macs: RowMacs, made: NewTransfer): Promise<Ordered> {
  const { type, origin, reference, network, asset, amount, destination_address, metadata = null } = made
  const now = await readClock(tx)
  const id = newId(now)
  const ids = { customer_id: PLATFORM_ID, id, profile_id: id }
  const mac = macOfWithdrawal(macs, {
    ...ids,
    asset,
    amount,
    network,
    destination: destination_address,
    memo: null,
  })
  await tx.query(
    `
    insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, ref_id,
                           crypto_network, destination_address, metadata, mac, created_at, updated_at)
    values ($1, $2, $2, $3, 'DEBIT', 'PENDING', $4, $5, 0, $5, $6, $7, $8, $9, $10, $11, $11)`,
    [PLATFORM_ID, id, type, asset, amount, reference, network, destination_address, metadata, mac, now.text],
  )
  recordChanges(tx, PLATFORM_ID, now, [audited(origin, 'transfer.order', id)])
  return { transfer: (await selectTreasuryTransfer(tx, id))!, is_new: true }
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
