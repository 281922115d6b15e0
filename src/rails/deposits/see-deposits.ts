import { strict as assert } from 'node:assert'
import { parseAmount } from '../../contract/assets/amount.ts'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { inOrder, transaction, type Database, type Transaction } from '../../db/database.ts'
import { idsAt, readClock, type Moment } from '../../db/ids.ts'
import { lockRows } from '../../db/lock-rows.ts'
import { arraysOf, byCustomer } from '../../db/rows.ts'
import { transferEventType } from '../../contract/event-types.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { insertMetadata } from '../../money/ledger/transfer-metadata.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { depositRecord } from '../../money/movements/deposit.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { DepositSight } from '../../networks/found-deposits.ts'
import { pricesIn, type RailsContext } from '../context.ts'
import { isReorganised } from './deposit-reorganisations.ts'
import { creditTo, selectOwners, type AddressOwner } from './owners.ts'
import { readCursor } from '../../networks/network-cursors.ts'

/**
 * Shows deposits before they are credited (API behaviour, Deposit addresses). A deposit in a block without enough
 * confirmations is a PENDING transfer, which has no entries: it credits nothing. Nothing verifies the node's answer
 * here, so limits bound the records that a lying node can cause.
 */

/** Most PENDING deposits of a network, and of one address on it. Further deposits are shown when they are credited. */
const PENDING_MAX = 1_000
const PENDING_OF_ADDRESS_MAX = 50
/**
 * After this many shown deposits of a network were removed within a day, no further deposit is shown before its
 * credit.
 */
const FAILED_OF_DAY_MAX = 1_000
/** How often one output is shown again after it was removed. */
const FAILED_OF_OUTPUT_MAX = 3
/** A deposit that waits longer for its credit is not shown as PENDING any more. Crediting it later makes a new transfer. */
const PENDING_HOURS_MAX = 72

/** A deposit in a block without enough confirmations, as its network shows it. */
type SeenDeposit = DepositSight['seen'][number]
/** With the record of its address. */
type SeenOfOwner = SeenDeposit & { owner: AddressOwner }
/** With its PENDING transfer, which is in `seen_deposits`. */
type ShownDeposit = Record<'customer_id' | 'transfer_id', string>

/**
 * Reads the newest blocks of a network and records their deposits. A shown deposit becomes FAILED if neither these
 * blocks nor the scanned confirmed blocks have it. Two workers may run this simultaneously. Returns how many deposits are newly
 * shown, and how many have failed. Throws when the node does not answer.
 */
export async function seeDepositsOn(
  { db, settings }: Pick<RailsContext, 'db' | 'settings'>,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<{ seen: number; failed: number }> {
  if (adapter.seeDeposits === undefined || (await isReorganised(db, network))) return { seen: 0, failed: 0 }
  const { cursor } = await readCursor(db, network)
  if (cursor === undefined) return { seen: 0, failed: 0 }
  // No transaction is open here, because nodes may take long and connections are few.
  const { seen, readUpTo, isBehind, recorded } = await adapter.seeDeposits(cursor)
  const minimumOf = adapter.minimumDeposit?.bind(adapter)
  const shown =
    seen.length === 0
      ? []
      : await transaction(db, async (tx) =>
          showDeposits(tx, network, seen, { prices: await pricesIn({ db, settings }), minimumOf }),
        )
  recorded?.()
  const failed = isBehind ? 0 : await failGone(db, network, readUpTo)
  return { seen: shown.length, failed }
}

/**
 * Records the PENDING transfers of deposits that are new, within the limits. Skips deposits to unknown addresses, and those
 * below `minimumOf`.
 */
export async function showDeposits(
  tx: Transaction,
  network: CryptoNetwork,
  seen: readonly SeenDeposit[],
  { prices, minimumOf }: { prices: UsdPrices; minimumOf?: ((asset: string) => string) | undefined },
): Promise<ShownDeposit[]> {
  const large = seen.filter((one) => isLargeEnough(one, minimumOf))
  const owners = await selectOwners(tx, network, large)
  const arrivals = large.flatMap((one) => {
    const [owner, ...others] = owners.get(one.address) ?? []
    return owner === undefined || others.length > 0 ? [] : [{ ...one, owner }]
  })
  const fresh = await notSeenBefore(tx, network, arrivals)
  return insertPending(tx, network, await withinLimits(tx, network, fresh), prices)
}

/** Whether a deposit is credited alone. A smaller deposit may wait for others without end. */
function isLargeEnough({ asset, amount }: SeenDeposit, minimumOf: ((asset: string) => string) | undefined) {
  const known = findAsset(asset)
  const minor = known && parseAmount(amount, known.decimals)
  if (known === undefined || minor === undefined || minor === 0n) return false
  return minimumOf === undefined || minor >= parseAmount(minimumOf(asset), known.decimals)!
}

/**
 * Leaves out recorded deposits: PENDING ones, whose block is updated, and those that the confirmed scan has found. A
 * transaction that moved to another block may have its log under another index; the transfer of the old index then
 * fails.
 */
async function notSeenBefore(
  tx: Transaction,
  network: CryptoNetwork,
  arrivals: SeenOfOwner[],
): Promise<SeenOfOwner[]> {
  if (arrivals.length === 0) return []
  const hashes = arrivals.map(({ crypto_tx_hash }) => crypto_tx_hash)
  const pending = await lockRows<ShownDeposit & Output & { block_number: string }>(
    tx,
    {
      columns: 'customer_id, transfer_id, crypto_tx_hash, crypto_tx_index, block_number',
      from: `seen_deposits where network = $1 and state = 'PENDING' and crypto_tx_hash = any ($2)`,
      order: 'transfer_id',
    },
    [network, hashes],
  )
  for (const one of pending) {
    const { customer_id, transfer_id } = one
    const ofHash = arrivals.filter(({ crypto_tx_hash }) => crypto_tx_hash === one.crypto_tx_hash)
    const same = ofHash.find((arrival) => nameOf(arrival) === nameOf(one))
    const block = (same ?? ofHash[0]!).block.number.toString()
    if (block === one.block_number) continue
    if (same === undefined) await failPending(tx, [{ customer_id, transfer_id }])
    else
      await tx.query(
        'update seen_deposits set block_number = $3 where customer_id = $1 and transfer_id = $2',
        [customer_id, transfer_id, block],
      )
  }
  // The condition on customers lets the primary key find the hashes: this query runs every second, over all deposits ever made.
  const { rows: found } = await tx.query<Output & { state: string }>(
    `
    select crypto_tx_hash, crypto_tx_index, state
    from incoming_transfers
    where network = $1 and customer_id = any ($2::uuid[]) and crypto_tx_hash = any ($3)`,
    [network, [...new Set(arrivals.map(({ owner }) => owner.customer_id))], hashes],
  )
  const known = new Set([...pending, ...found].map(nameOf))
  // A reorganisation removed a credited deposit. It may be mined again with another index, and is not credited again.
  const returning = new Set(
    found.flatMap(({ state, crypto_tx_hash }) => (state === 'REORGANISED' ? crypto_tx_hash : [])),
  )
  return arrivals.filter((one) => !known.has(nameOf(one)) && !returning.has(one.crypto_tx_hash))
}

type Output = Record<'crypto_tx_hash' | 'crypto_tx_index', string>

const nameOf = ({ crypto_tx_hash, crypto_tx_index }: Output) => `${crypto_tx_hash} ${crypto_tx_index}`

async function withinLimits(
  tx: Transaction,
  network: CryptoNetwork,
  arrivals: SeenOfOwner[],
): Promise<SeenOfOwner[]> {
  if (arrivals.length === 0) return []
  const { rows: pending } = await tx.query<{ address: string; count: string }>(
    `select address, count(*)::text as count from seen_deposits where network = $1 and state = 'PENDING' group by address`,
    [network],
  )
  const ofAddress = new Map(pending.map(({ address, count }) => [address, Number(count)]))
  let left = PENDING_MAX - [...ofAddress.values()].reduce((sum, count) => sum + count, 0)
  const { rows: failed } = await tx.query<{ count: string }>(
    `
    select count(*)::text as count
    from seen_deposits
    where network = $1 and state = 'FAILED' and ended_at > clock_timestamp() - interval '1 day'`,
    [network],
  )
  left = Math.min(left, FAILED_OF_DAY_MAX - Number(failed[0]!.count))
  const { rows: gone } = await tx.query<Output & { count: string }>(
    `
    select crypto_tx_hash, crypto_tx_index, count(*)::text as count
    from seen_deposits
    where network = $1 and state = 'FAILED' and customer_id = any ($2::uuid[]) and crypto_tx_hash = any ($3)
    group by customer_id, crypto_tx_hash, crypto_tx_index`,
    [
      network,
      arrivals.map(({ owner }) => owner.customer_id),
      arrivals.map(({ crypto_tx_hash }) => crypto_tx_hash),
    ],
  )
  const failures = new Map(gone.map((one) => [nameOf(one), Number(one.count)]))
  return arrivals.filter((arrival) => {
    const { address } = arrival
    const count = ofAddress.get(address) ?? 0
    if (left <= 0 || count >= PENDING_OF_ADDRESS_MAX) return false
    if ((failures.get(nameOf(arrival)) ?? 0) >= FAILED_OF_OUTPUT_MAX) return false
    left -= 1
    ofAddress.set(address, count + 1)
    return true
  })
}

/** Records the PENDING transfers. A transfer that another worker has recorded, or that is credited, does not change. */
async function insertPending(
  tx: Transaction,
  network: CryptoNetwork,
  arrivals: SeenOfOwner[],
  prices: UsdPrices,
): Promise<ShownDeposit[]> {
  if (arrivals.length === 0) return []
  const now = await readClock(tx)
  const newId = idsAt(now)
  const made = arrivals.map(({ owner, ...seen }) => ({
    block_number: seen.block.number.toString(),
    ...depositRecord(owner.customer_id, creditTo(owner, { network, ...seen }, prices), { id: newId(), now }),
  }))
  // Inserted in the order of the unique key, so that two workers with the same deposits cannot deadlock.
  made.sort((a, b) => (keyOfDeposit(a) < keyOfDeposit(b) ? -1 : 1))
  const { rows } = await tx.query<ShownDeposit>(
    `
    insert into transfers (customer_id, id, profile_id, identity_id, account_id, type, direction, status, asset,
                           balance_asset, amount, fee, total, notional_value, destination_address, crypto_network,
                           crypto_tx_hash, crypto_tx_index, auto_conversion, metadata, created_at, updated_at)
    select customer_id, id, profile_id, identity_id, account_id, type, direction, status, asset, balance_asset, amount,
           fee, total, notional_value, destination_address, crypto_network, crypto_tx_hash, crypto_tx_index,
           auto_conversion, metadata, created_at, updated_at
    from json_populate_recordset(null::transfers, $1)
    on conflict (customer_id, crypto_network, crypto_tx_hash, crypto_tx_index)
      where type = 'CRYPTO_DEPOSIT' and status <> 'FAILED' do nothing
    returning customer_id, id as transfer_id`,
    [JSON.stringify(made)],
  )
  const ids = new Set(rows.map(({ transfer_id }) => transfer_id))
  const inserted = made.filter(({ id }) => ids.has(id))
  await inOrder([
    insertMetadata(tx, inserted),
    insertDepositEvents(tx, 'PENDING', now, rows),
    tx.query(
      `
    insert into seen_deposits (customer_id, transfer_id, network, crypto_tx_hash, crypto_tx_index, address, block_number,
                               state, seen_at)
    select customer_id, id, crypto_network, crypto_tx_hash, crypto_tx_index, destination_address, block_number, 'PENDING', $2
    from json_to_recordset($1) as made (customer_id uuid, id uuid, crypto_network text, crypto_tx_hash text,
                                        crypto_tx_index text, destination_address text, block_number bigint)`,
      [JSON.stringify(inserted), now.text],
    ),
  ])
  return rows
}

const keyOfDeposit = ({ customer_id, crypto_tx_hash, crypto_tx_index }: Transfer) =>
  `${customer_id} ${crypto_tx_hash!} ${crypto_tx_index!}`

// ---------------------------------------------------------------------------------------------- gone

/**
 * Fails the deposits that were shown in a block up to `readUpTo` and that the confirmed scan has not found there: the
 * chain no longer has their transaction. Deposits that were found and wait for their credit stay PENDING for three
 * days at most.
 */
async function failGone(db: Database, network: CryptoNetwork, readUpTo: bigint): Promise<number> {
  return transaction(db, async (tx) => {
    const { rows: gone } = await tx.query<ShownDeposit & { block_number: string }>(
      `
      select s.customer_id, s.transfer_id, s.block_number
      from seen_deposits s
      where s.network = $1 and s.state = 'PENDING' and (
        s.seen_at < clock_timestamp() - make_interval(hours => $3)
        or s.block_number <= $2 and not exists (
          select 1 from incoming_transfers i
          where i.customer_id = s.customer_id and i.network = s.network and i.crypto_tx_hash = s.crypto_tx_hash
            and i.crypto_tx_index = s.crypto_tx_index and i.state = 'WAITING'
        )
      )`,
      [network, readUpTo.toString(), PENDING_HOURS_MAX],
    )
    if (gone.length === 0) return 0
    const locked = await lockRows<ShownDeposit & { block_number: string }>(
      tx,
      {
        columns: 'customer_id, transfer_id, block_number',
        from: `seen_deposits where network = $1 and state = 'PENDING' and transfer_id = any ($2)`,
        order: 'transfer_id',
      },
      [network, gone.map(({ transfer_id }) => transfer_id)],
    )
    const blocks = new Map(gone.map(({ transfer_id, block_number }) => [transfer_id, block_number]))
    // A deposit may have been seen in another block before it was locked.
    const rows = locked.filter(({ transfer_id, block_number }) => blocks.get(transfer_id) === block_number)
    await failPending(tx, rows)
    return rows.length
  })
}

/** Fails the PENDING transfer of a deposit that arrived with other values. */
export async function failSeen(db: Database, customer_id: string, transfer_id: string): Promise<void> {
  await transaction(db, (tx) => failPending(tx, [{ customer_id, transfer_id }]))
}

/** Fails the PENDING transfers of deposits over networks and of wires, with their events. Returns their number. */
export async function failPending(tx: Transaction, gone: readonly ShownDeposit[]): Promise<number> {
  if (gone.length === 0) return 0
  const now = await readClock(tx)
  // These rows come first, because a credit locks them before it completes a transfer.
  const { rows } = await tx.query<ShownDeposit>(
    `
    update seen_deposits s set state = 'FAILED', ended_at = $3
    from unnest($1::uuid[], $2::uuid[]) as gone (customer_id, transfer_id)
    where s.customer_id = any ($1::uuid[]) and s.customer_id = gone.customer_id and s.transfer_id = gone.transfer_id
      and s.state = 'PENDING'
    returning s.customer_id, s.transfer_id`,
    [...arraysOf(gone, 'customer_id', 'transfer_id'), now.text],
  )
  const { rows: failed } = await tx.query<ShownDeposit & { type: Transfer['type'] }>(
    `
    update transfers t set status = 'FAILED', updated_at = $3
    from unnest($1::uuid[], $2::uuid[]) as gone (customer_id, transfer_id)
    where t.customer_id = any ($1::uuid[]) and t.customer_id = gone.customer_id and t.id = gone.transfer_id
      and t.status = 'PENDING' and t.type in ('CRYPTO_DEPOSIT', 'WIRE_DEPOSIT')
    returning t.customer_id, t.id as transfer_id, t.type`,
    [...arraysOf(rows, 'customer_id', 'transfer_id'), now.text],
  )
  assert(failed.length === rows.length, 'a deposit that was seen and has not ended has a PENDING transfer')
  await insertDepositEvents(tx, 'FAILED', now, failed)
  return failed.length
}

async function insertDepositEvents(
  tx: Transaction,
  status: 'PENDING' | 'FAILED',
  now: Moment,
  deposits: (ShownDeposit & { type?: Transfer['type'] })[],
): Promise<void> {
  for (const [customerId, own] of byCustomer(deposits)) {
    const events = own.map(({ transfer_id, type = 'CRYPTO_DEPOSIT' }) => ({
      type: transferEventType(type, status),
      object_id: transfer_id,
    }))
    await insertEvents(tx, customerId, now, events)
  }
}

// ---------------------------------------------------------------------------------------------- old

/**
 * For how long the record is kept that a deposit was seen before it was credited or failed. Its transfer is kept for
 * ever. After that time, an output that failed too often may be shown again (`FAILED_OF_OUTPUT_MAX`).
 */
const ENDED_KEPT_DAYS = 30

/** Deletes the first `max` records of seen deposits that ended at least 30 days ago, and returns their number. */
export async function deleteEndedSights(db: Database, max: number): Promise<number> {
  const { rows } = await db.query<ShownDeposit>(
    `select customer_id, transfer_id from seen_deposits
     where state <> 'PENDING' and ended_at < clock_timestamp() - make_interval(days => $1)
     order by ended_at
     limit $2`,
    [ENDED_KEPT_DAYS, max],
  )
  if (rows.length === 0) return 0
  const { rowCount } = await db.query(
    `delete from seen_deposits s
     using unnest($1::uuid[], $2::uuid[]) as old (customer_id, transfer_id)
     where s.customer_id = old.customer_id and s.transfer_id = old.transfer_id`,
    arraysOf(rows, 'customer_id', 'transfer_id'),
  )
  return rowCount ?? 0
}
