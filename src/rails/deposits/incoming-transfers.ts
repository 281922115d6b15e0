import { firstIn } from '../../db/changes.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { lockRows } from '../../db/lock-rows.ts'
import { RECHECK_MS } from '../screening/screening.ts'
import { creditedAs, insertCredited } from '../../money/movements/credited-deposits.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/row-macs.ts'
import type { RailsContext } from '../payouts/context.ts'
import type { FoundDeposit } from '../../networks/network.ts'
import { arraysOf } from '../../db/rows.ts'
import { selectOwners, theirOwner } from './owners.ts'

/**
 * Every statement on `incoming_transfers`, the payments to deposit addresses. A row is inserted in the transaction that moves the
 * cursor past it, and credited afterwards; until then it waits, with the reason if there is one.
 */

/** Why a deposit is not credited. FAILED: crediting it failed, for the cause that `detail` names. HAS_TOKENS: a person returns it. */
export type DepositWaitingReason =
  | 'FAILED'
  | 'BELOW_MINIMUM'
  | 'SECOND_NODE'
  | 'ONE_NODE'
  | 'CONFIRMATIONS'
  | 'NODES_DISAGREE'
  | 'SCREENING'
  | 'FORGED'
  | 'HAS_TOKENS'

export interface IncomingTransfer extends Seal {
  customer_id: string
  network: CryptoNetwork
  crypto_tx_hash: string
  crypto_tx_index: string
  address: string
  asset: string
  /** A decimal string of the asset, as PostgreSQL writes numbers. */
  amount: string
  block_number: string | null
  block_hash: string | null
  cleared: boolean
  attempts: number
}

/** A deposit that is not credited, and why. */
export interface Waiting {
  incoming: IncomingTransfer
  reason: DepositWaitingReason
  detail: string
}

/** How many deposits are new, and how many that were gone are in the chain again. */
export interface Recorded {
  found: number
  returned: number
}

/**
 * Records payments to addresses that were given out, and skips all others, because anybody may send anything anywhere. A
 * payment that was recorded before stays as it is, unless the chain had taken it back: then it is CREDITED again, under
 * its old index or a new one. A log's index counts through its block, and differs when the transaction moves to another block.
 */
export async function recordIncoming(
  tx: Transaction,
  { macs }: Pick<RailsContext['ledger'], 'macs'>,
  network: CryptoNetwork,
  deposits: readonly FoundDeposit[],
): Promise<Recorded> {
  const known = deposits.filter(({ asset, amount }) => {
    const decimals = findAsset(asset)?.decimals
    return decimals !== undefined && (parseAmount(amount, decimals) ?? 0n) > 0n
  })
  const owners = await selectOwners(tx, network, known)
  const ours = known.filter(({ address }) => owners.has(address))
  if (ours.length === 0) return { found: 0, returned: 0 }
  let returned = 0
  const fresh: FoundDeposit[] = []
  const gone = await selectReorganised(tx, network, ours)
  for (const arrival of ours) {
    const same = gone.find((one) => isSameTransfer(one, arrival))
    if (same === undefined) fresh.push(arrival)
    else {
      gone.splice(gone.indexOf(same), 1)
      await restore(tx, same, arrival)
      returned += 1
    }
  }
  if (fresh.length === 0) return { found: 0, returned }
  const now = await readClock(tx)
  // Citus counts the rows that are there already, too, unless the statement returns what it inserted.
  const { rows: made } = await tx.query<
    Pick<IncomingTransfer, 'customer_id' | 'crypto_tx_hash' | 'crypto_tx_index'>
  >(
    `
    insert into incoming_transfers
      (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount,
       block_number, block_hash, state, cleared, attempts, found_at, due_at, sealed_at)
    select customer_id, $1, hash, index, address, asset, amount, block_number, block_hash, 'WAITING', false, 0, $2, $2, $2
    from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::numeric[], $9::bigint[], $10::text[])
      as found (customer_id, hash, index, address, asset, amount, block_number, block_hash)
    on conflict (customer_id, network, crypto_tx_hash, crypto_tx_index) do nothing
    returning customer_id, crypto_tx_hash, crypto_tx_index`,
    [
      network,
      now.text,
      fresh.map(({ address }) => theirOwner({ macs }, owners.get(address)!).customer_id),
      ...arraysOf(fresh, 'crypto_tx_hash', 'crypto_tx_index', 'address', 'asset', 'amount'),
      fresh.map(({ block }) => block?.number.toString() ?? null),
      fresh.map(({ block }) => block?.hash ?? null),
    ],
  )
  if (macs !== undefined && made.length > 0) await sealIncoming(tx, macs, network, made)
  return { found: made.length, returned }
}

async function sealIncoming(
  tx: Transaction,
  macs: RowMacs,
  network: CryptoNetwork,
  made: readonly Pick<IncomingTransfer, 'customer_id' | 'crypto_tx_hash' | 'crypto_tx_index'>[],
): Promise<void> {
  const { rows } = await tx.query<(typeof made)[number] & Seal>(
    `
    select customer_id, crypto_tx_hash, crypto_tx_index, ${sealOf('incoming_transfers')}
    from incoming_transfers r
    where r.customer_id = any ($2::uuid[]) and r.network = $1
      and (r.customer_id, r.crypto_tx_hash, r.crypto_tx_index) in (select * from unnest($2::uuid[], $3::text[], $4::text[]))`,
    [network, ...arraysOf(made, 'customer_id', 'crypto_tx_hash', 'crypto_tx_index')],
  )
  await tx.query(
    `
    update incoming_transfers i set mac = m.mac
    from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) as m (customer_id, hash, index, mac)
    where i.customer_id = any ($2::uuid[]) and i.customer_id = m.customer_id and i.network = $1
      and i.crypto_tx_hash = m.hash and i.crypto_tx_index = m.index`,
    [
      network,
      ...arraysOf(rows, 'customer_id', 'crypto_tx_hash', 'crypto_tx_index'),
      rows.map(({ sealed }) => macs.macOf('incoming_transfers', sealed)),
    ],
  )
}

interface Reorganised extends Pick<
  IncomingTransfer,
  'customer_id' | 'network' | 'crypto_tx_hash' | 'crypto_tx_index' | 'address' | 'asset' | 'amount'
> {
  transfer_id: string
}

const isSameTransfer = (one: Reorganised, arrival: FoundDeposit) =>
  one.crypto_tx_hash === arrival.crypto_tx_hash &&
  one.address === arrival.address &&
  one.asset === arrival.asset &&
  minorOf(one) === minorOf(arrival)

const minorOf = ({ asset, amount }: Pick<FoundDeposit, 'asset' | 'amount'>) =>
  parseStoredAmount(amount, decimalsOf(asset))

async function selectReorganised(
  tx: Transaction,
  network: CryptoNetwork,
  deposits: FoundDeposit[],
): Promise<Reorganised[]> {
  return lockRows<Reorganised>(
    tx,
    {
      columns: 'customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, transfer_id',
      from: `incoming_transfers where network = $1 and state = 'REORGANISED' and crypto_tx_hash = any ($2)`,
      order: 'crypto_tx_hash, crypto_tx_index',
    },
    [network, deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)],
  )
}

/** Marks a deposit whose transaction is in the chain again. Under a new index, a second row prevents a second credit. */
async function restore(tx: Transaction, gone: Reorganised, arrival: FoundDeposit): Promise<void> {
  const { customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id } = gone
  const block = [arrival.block?.number.toString() ?? null, arrival.block?.hash ?? null]
  await tx.query(
    `
    update incoming_transfers set state = 'CREDITED', detail = null, block_number = $5, block_hash = $6
    where customer_id = $1 and network = $2 and crypto_tx_hash = $3 and crypto_tx_index = $4`,
    [customer_id, network, crypto_tx_hash, crypto_tx_index, ...block],
  )
  if (arrival.crypto_tx_index === crypto_tx_index) return
  const again = { network, crypto_tx_hash, crypto_tx_index: arrival.crypto_tx_index }
  if ((await creditedAs(tx, customer_id, again)) === undefined)
    await insertCredited(tx, customer_id, [{ ...again, transfer_id }])
  await recordCredited(tx, { customer_id, network }, arrival, transfer_id)
}

export async function recordCredited(
  db: Queryable,
  { customer_id, network }: Pick<IncomingTransfer, 'customer_id' | 'network'>,
  { crypto_tx_hash, crypto_tx_index, address, asset, amount, block }: FoundDeposit,
  transferId: string,
): Promise<void> {
  await db.query(
    `
    insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount,
                                    block_number, block_hash, state, cleared, transfer_id, attempts, found_at, due_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'CREDITED', true, $10, 0, clock_timestamp(), clock_timestamp())
    on conflict (customer_id, network, crypto_tx_hash, crypto_tx_index) do nothing`,
    [
      ...[customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount],
      ...[block?.number.toString(), block?.hash, transferId],
    ],
  )
}

export const isRecorded = (
  { macs }: Pick<RailsContext['ledger'], 'macs'>,
  incoming: IncomingTransfer,
): boolean => macs?.isGenuine('incoming_transfers', incoming.crypto_tx_hash, incoming) === true

export const FORGED_DEPOSIT = 'it was invented or changed in the database (bursar verify)'

const KEY = ['customer_id', 'network', 'crypto_tx_hash', 'crypto_tx_index'] as const
const OF_KEY = 'customer_id = $1 and network = $2 and crypto_tx_hash = $3 and crypto_tx_index = $4'
const keysOf = (some: readonly { incoming: IncomingTransfer }[]) =>
  arraysOf(
    some.map(({ incoming }) => incoming),
    ...KEY,
  )

/** Of a row `r`. */
const COLUMNS = `r.customer_id, r.network, r.crypto_tx_hash, r.crypto_tx_index, r.address, r.asset, r.amount, r.block_number,
  r.block_hash, r.cleared, r.attempts, ${sealOf('incoming_transfers')}`

/** The waiting deposits of a network that are due, or whose due time is so far off that the clock must have been set back. */
export async function selectDue(
  db: Queryable,
  network: CryptoNetwork,
  limit: number,
): Promise<IncomingTransfer[]> {
  const { rows } = await db.query<IncomingTransfer>(
    `
    select ${COLUMNS}
    from incoming_transfers r
    where network = $1 and state = 'WAITING' and reason is distinct from 'BELOW_MINIMUM'
      and (due_at <= clock_timestamp() or due_at > clock_timestamp() + make_interval(secs => $3))
    order by due_at, crypto_tx_hash, crypto_tx_index
    limit $2`,
    [network, limit, RETRY_SECONDS_MAX + 60],
  )
  return rows
}

/** The milliseconds until the next waiting deposit of a network is due (`firstIn`). */
export const depositDueIn = (db: Queryable, network: CryptoNetwork): Promise<number | undefined> =>
  firstIn(
    db,
    `
    select due_at as at from incoming_transfers
    where network = $1 and state = 'WAITING' and reason is distinct from 'BELOW_MINIMUM'`,
    [network],
  )

/**
 * For how long, at least, a transaction that the simulated chain has taken back keeps its network in the rounds. Its PENDING
 * transfer does so until it fails.
 */
const TAKEN_BACK_MINUTES = 5

/**
 * The networks with deposits to credit or to show, or with shown deposits that have not ended. On any other simulated network a
 * round finds nothing. WIRE is the simulated bank.
 */
export async function networksWithDeposits(db: Queryable): Promise<Set<string>> {
  const { rows } = await db.query<{ network: string }>({
    name: 'networks with deposits',
    text: `
      select crypto_network as network from simulated_chain
      where arrives is not false
        and (dropped_at is null or crypto_network = 'WIRE'
             or dropped_at > clock_timestamp() - make_interval(mins => ${TAKEN_BACK_MINUTES}))
      union
      select network from incoming_transfers where state = 'WAITING' and reason is distinct from 'BELOW_MINIMUM'
      union
      select network from seen_deposits where state = 'PENDING'`,
  })
  return new Set(rows.map(({ network }) => network))
}

/** The longest pause before a deposit is tried again: pauses double, beginning with a second. */
const RETRY_SECONDS_MAX = 3_600
/** Blocks come by themselves: no attempt has failed. */
const CONFIRMATIONS_SECONDS = 15

/** Records why deposits are not credited, and when the worker tries again. */
export async function keepWaiting(db: Queryable, waiting: readonly Waiting[]): Promise<void> {
  if (waiting.length === 0) return
  const secondsOf = ({ incoming, reason }: Waiting) => {
    // A deposit that waits for its screening becomes due with an ALLOW.
    if (reason === 'SCREENING') return RECHECK_MS / 1000
    return reason === 'CONFIRMATIONS' ? CONFIRMATIONS_SECONDS : 2 ** Math.min(incoming.attempts, 12)
  }
  // In seconds: Citus adds no interval to a time in an UPDATE with columns.
  await db.query(
    `
    update incoming_transfers i
    set reason = w.reason, detail = w.detail,
        attempts = i.attempts + case when w.reason = 'CONFIRMATIONS' then 0 else 1 end, due_at = to_timestamp(w.now + w.seconds)
    from (
      select *, extract(epoch from statement_timestamp())::float8 as now
      from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[])
        as u (customer_id, network, hash, index, reason, detail, seconds)
    ) w
    where i.customer_id = any ($1::uuid[]) and i.customer_id = w.customer_id and i.network = w.network
      and i.crypto_tx_hash = w.hash and i.crypto_tx_index = w.index and i.state = 'WAITING'`,
    [
      ...keysOf(waiting),
      ...arraysOf(waiting, 'reason', 'detail'),
      waiting.map((one) => Math.min(secondsOf(one), RETRY_SECONDS_MAX)),
    ],
  )
}

const keyOf = (incoming: IncomingTransfer) => KEY.map((column) => incoming[column])

/** Makes a deposit due that waits for its screening. */
export async function wakeDeposit(db: Queryable, incoming: IncomingTransfer): Promise<void> {
  await db.query(
    `
    update incoming_transfers set due_at = (select clock_timestamp())
    where ${OF_KEY}
      and state = 'WAITING' and reason = 'SCREENING'`,
    keyOf(incoming),
  )
}

/** The waiting deposit of a customer with this key; undefined where it does not wait any more. */
export async function selectWaitingDeposit(
  db: Queryable,
  key: readonly [customerId: string, network: string, hash: string, index: string],
): Promise<IncomingTransfer | undefined> {
  const { rows } = await db.query<IncomingTransfer>(
    `
    select ${COLUMNS}
    from incoming_transfers r
    where ${OF_KEY} and state = 'WAITING'`,
    [...key],
  )
  return rows[0]
}

/** Records the CRYPTO_DEPOSIT that credits each deposit. */
export async function markCredited(
  db: Queryable,
  credited: readonly { incoming: IncomingTransfer; transfer_id: string }[],
): Promise<void> {
  if (credited.length === 0) return
  await db.query(
    `
    update incoming_transfers i
    set state = 'CREDITED', transfer_id = done.transfer_id, reason = null, detail = null
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[])
      as done (customer_id, network, hash, index, transfer_id)
    where i.customer_id = any ($1::uuid[]) and i.customer_id = done.customer_id and i.network = done.network
      and i.crypto_tx_hash = done.hash and i.crypto_tx_index = done.index and i.state = 'WAITING'`,
    [...keysOf(credited), credited.map(({ transfer_id }) => transfer_id)],
  )
}

// ---------------------------------------------------------------------------------------------- reorganisations

/** A recorded deposit that a reorganisation may concern. */
export type InBlock = IncomingTransfer & { state: 'WAITING' | 'CREDITED'; transfer_id: string | null }

/** The deposits after this one, or the first ones, with those in the newest block first. */
export async function selectNewest(
  db: Queryable,
  network: CryptoNetwork,
  after: InBlock | undefined,
  limit: number,
): Promise<InBlock[]> {
  const { rows } = await db.query<InBlock>(
    `
    select ${COLUMNS}, state, transfer_id
    from incoming_transfers r
    where network = $1 and state in ('WAITING', 'CREDITED') and block_number is not null
      and ($2::bigint is null or (block_number, crypto_tx_hash, crypto_tx_index) < ($2::bigint, $3, $4))
    order by block_number desc, crypto_tx_hash desc, crypto_tx_index desc
    limit $5`,
    [network, after?.block_number, after?.crypto_tx_hash, after?.crypto_tx_index, limit],
  )
  return rows
}

/** Credited deposits of these transactions. */
export async function selectCredited(
  db: Queryable,
  network: CryptoNetwork,
  hashes: readonly string[],
): Promise<InBlock[]> {
  if (hashes.length === 0) return []
  const { rows } = await db.query<InBlock>(
    `
    select ${COLUMNS}, state, transfer_id
    from incoming_transfers r
    where network = $1 and state = 'CREDITED' and crypto_tx_hash = any ($2)`,
    [network, hashes],
  )
  return rows
}

/** Marks a credited deposit whose block the chain took back. */
export async function markReorganised(
  db: Queryable,
  incoming: IncomingTransfer,
  detail: string,
): Promise<void> {
  await db.query(
    `
    update incoming_transfers set state = 'REORGANISED', detail = $5
    where ${OF_KEY} and state = 'CREDITED'`,
    [...keyOf(incoming), detail],
  )
}

/** Deletes an uncredited deposit: its block is gone, and the next scan finds it in its new one; or a person has returned it. */
export async function forget(db: Queryable, incoming: IncomingTransfer): Promise<void> {
  await db.query(
    `
    delete from incoming_transfers
    where ${OF_KEY} and state = 'WAITING'`,
    keyOf(incoming),
  )
}

/** A recorded deposit as adapters take it. */
export const foundDepositOf = (incoming: IncomingTransfer): FoundDeposit => ({
  address: incoming.address,
  asset: incoming.asset,
  amount: formatAmount(minorOf(incoming), decimalsOf(incoming.asset)),
  crypto_tx_hash: incoming.crypto_tx_hash,
  crypto_tx_index: incoming.crypto_tx_index,
  ...(incoming.block_number !== null && {
    block: { number: BigInt(incoming.block_number), hash: incoming.block_hash! },
  }),
})

// ---------------------------------------------------------------------------------------------- for operators

/** A deposit that is not credited, or was credited and is gone; or a swept amount without a deposit. */
export interface ListedDeposit extends Pick<
  IncomingTransfer,
  'customer_id' | 'network' | 'crypto_tx_hash' | 'crypto_tx_index' | 'address' | 'asset' | 'amount'
> {
  state: 'WAITING' | 'REORGANISED' | 'UNATTRIBUTED'
  /** Null when it is about to be credited. */
  reason: DepositWaitingReason | null
  detail: string | null
  transfer_id: string | null
  found_at: string
}

/** Deposits that are not credited, or are gone, oldest first; of one network if it is given. */
export async function selectUncredited(
  db: Queryable,
  network: CryptoNetwork | null,
  state: ListedDeposit['state'] | null,
  limit: number,
): Promise<ListedDeposit[]> {
  const { rows } = await db.query<ListedDeposit>(
    `
    select customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state, reason, detail,
           transfer_id, found_at
    from incoming_transfers
    where state in ('WAITING', 'REORGANISED', 'UNATTRIBUTED') and ($1::text is null or network = $1)
      and ($2::text is null or state = $2)
    order by found_at, crypto_tx_hash, crypto_tx_index
    limit $3`,
    [network, state, limit],
  )
  return rows
}
