import { firstIn } from '../../db/changes.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { RECHECK_MS } from '../screening/screening.ts'
import { sealOf, type Seal } from '../../audit/sealed-rows.ts'
import type { FoundDeposit } from '../../networks/found-deposits.ts'

/**
 * The rows of `incoming_transfers`, the payments to deposit addresses. A row is inserted in the transaction that moves the
 * cursor past it (`record-deposits.ts`), and credited afterwards; until then it waits, with the reason if there is one.
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

/** What a step of the line says of deposits: these go on to the next step, and those wait. */
export interface Sifted<Passing extends IncomingTransfer = IncomingTransfer> {
  pass: Passing[]
  wait: Waiting[]
}

/** The amount in minor units of its asset. */
export const minorOf = ({ asset, amount }: Pick<FoundDeposit, 'asset' | 'amount'>): bigint =>
  parseStoredAmount(amount, decimalsOf(asset))

const OF_KEY = 'customer_id = $1 and network = $2 and crypto_tx_hash = $3 and crypto_tx_index = $4'
const keyOf = (incoming: IncomingTransfer) => [
  incoming.customer_id,
  incoming.network,
  incoming.crypto_tx_hash,
  incoming.crypto_tx_index,
]

/** A change of a deposit's row `i` by the values of a row `u`. */
interface RowChange {
  /** The beginning of the statement, with what is set; with `and`, also under which condition. */
  update: string
  and?: string
  /** The names and types of the values that `u` has beside the key. */
  columns?: readonly string[]
}

const KEY_COLUMNS = ['customer_id uuid', 'network text', 'crypto_tx_hash text', 'crypto_tx_index text']

/** Changes the rows of those deposits that wait still, each by its own values. */
export async function updateWaiting<Values extends object>(
  db: Queryable,
  { update, and = 'true', columns = [] }: RowChange,
  changes: readonly (Values & { incoming: IncomingTransfer })[],
): Promise<void> {
  if (changes.length === 0) return
  const rows = changes.map(({ incoming, ...values }) => {
    const { customer_id, network, crypto_tx_hash, crypto_tx_index } = incoming
    return { customer_id, network, crypto_tx_hash, crypto_tx_index, ...values }
  })
  await db.query(
    `
    ${update}
    from json_to_recordset($2) as u (${[...KEY_COLUMNS, ...columns].join(', ')})
    where i.customer_id = any ($1::uuid[]) and i.customer_id = u.customer_id and i.network = u.network
      and i.crypto_tx_hash = u.crypto_tx_hash and i.crypto_tx_index = u.crypto_tx_index and i.state = 'WAITING' and ${and}`,
    [rows.map(({ customer_id }) => customer_id), JSON.stringify(rows)],
  )
}

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
  const secondsOf = ({ incoming, reason }: Waiting) => {
    // A deposit that waits for its screening becomes due with an ALLOW.
    if (reason === 'SCREENING') return RECHECK_MS / 1000
    return reason === 'CONFIRMATIONS' ? CONFIRMATIONS_SECONDS : 2 ** Math.min(incoming.attempts, 12)
  }
  await updateWaiting(
    db,
    {
      // In seconds: rule 3 of src/db/distribution.ts.
      update: `update incoming_transfers i set reason = u.reason, detail = u.detail, attempts = i.attempts + u.attempted,
            due_at = to_timestamp((select extract(epoch from statement_timestamp())::float8) + u.seconds)`,
      columns: ['reason text', 'detail text', 'attempted int', 'seconds int'],
    },
    waiting.map((deposit) => ({
      ...deposit,
      attempted: deposit.reason === 'CONFIRMATIONS' ? 0 : 1,
      seconds: Math.min(secondsOf(deposit), RETRY_SECONDS_MAX),
    })),
  )
}

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
export const markCredited = (
  db: Queryable,
  credited: readonly { incoming: IncomingTransfer; transfer_id: string }[],
): Promise<void> =>
  updateWaiting(
    db,
    {
      update: `update incoming_transfers i set state = 'CREDITED', transfer_id = u.transfer_id, reason = null, detail = null`,
      columns: ['transfer_id uuid'],
    },
    credited.map(({ incoming, transfer_id }) => ({ incoming, transfer_id })),
  )

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
