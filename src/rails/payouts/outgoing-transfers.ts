import { type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { findOwner, PAYOUT_NETWORK, PAYOUT_TYPES, PLATFORM_ID } from '../../money/records/treasury.ts'
import type { SecondaryStatus } from '../../contract/transfer-status.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import type {
  BroadcastWithdrawal,
  PayoutNetwork,
  PaidWithdrawal,
  SignedTransaction,
  Withdrawal,
} from '../../networks/network.ts'
import { SHORT } from '../../networks/longest-waiting.ts'
import { selectPayees } from '../../networks/network-transactions.ts'
import { SCREENING } from '../screening/screening.ts'
import type { State, Step } from './next-step.ts'
import type { WithdrawalMark } from './withdrawal-marks.ts'
import { arraysOf } from '../../db/rows.ts'

/**
 * The statements on outgoing_transfers, which has the state of each withdrawal, and on its neighbours network_transactions
 * (bytes that pay several withdrawals) and replaced_transactions. `lease.ts` has the claims.
 */

export interface Claimed extends Withdrawal {
  state: State
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
  /** Of a transaction that pays several: the output that pays this withdrawal, and how many it pays. */
  crypto_tx_index?: string
  payments?: number
  replaced: string[]
  /** How long ago a worker began it, or last replaced its transaction. */
  age_ms: number
}

export type ClaimedRow = Omit<Claimed, 'replaced' | 'crypto_tx_index'> & { crypto_tx_index: string | null }

export type KeptWithdrawal = Claimed & BroadcastWithdrawal

const CONSOLIDATION_FEE_MAX = `case when t.type = 'TREASURY_CONSOLIDATION' then t.metadata ->> 'max_fee_rate' end`

// Statements here have no names, so that each is planned for the tables as they are: a plan that was made while they
// were small reads all of a customer's transfers for each withdrawal (measured: 500 claimed in 209 ms instead of 4).
/** Selects a withdrawal from its transfer `t`; `$1` is its customer. */
export const SELECT_WITHDRAWAL = `
  select t.customer_id, t.id as transfer_id, t.profile_id, ${PAYOUT_NETWORK} as network, t.asset, t.amount, t.memo,
         t.fiat_account_id, ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max,
         coalesce(t.destination_address, (
           select f.fiat_network_instructions -> 'wire' ->> 'account_number'
           from fiat_accounts f
           where f.customer_id = $1 and f.id = t.fiat_account_id
         ), '') as destination_address`
export const ageOf = (column: string) =>
  `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8 as age_ms`
/** Joins the transfer `t` of a row `b` of outgoing_transfers, of customer `$1`. `offset 0` keeps the primary-key look-up. */
export const JOIN_TRANSFER =
  'cross join lateral (select * from transfers where customer_id = $1 and id = b.transfer_id offset 0) t'

/**
 * Adds to claimed rows the hashes that their transactions replaced. This is a statement after the claim, because the one
 * that claims may not see what another worker replaced just before.
 */
export async function withReplaced(
  db: Queryable,
  customerId: string,
  rows: ClaimedRow[],
): Promise<Claimed[]> {
  if (rows.length === 0) return []
  const claimed = await withSharedTransactions(db, rows)
  const replaced = await db.query<{ transfer_id: string; crypto_tx_hash: string; age_ms: number }>({
    text: `
      select transfer_id, crypto_tx_hash, ${ageOf('replaced_at')}
      from replaced_transactions
      where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    values: [customerId, claimed.map(({ transfer_id }) => transfer_id)],
  })
  return claimed.map((one) => {
    const before = replaced.rows.filter(({ transfer_id }) => transfer_id === one.transfer_id)
    return withCanonicalAddress({
      ...one,
      replaced: before.map(({ crypto_tx_hash }) => crypto_tx_hash),
      age_ms: Math.min(one.age_ms, ...before.map(({ age_ms }) => age_ms)),
    })
  })
}

/** Adds the bytes of transactions that pay several withdrawals; each is read once. */
async function withSharedTransactions(
  db: Queryable,
  rows: ClaimedRow[],
): Promise<Omit<Claimed, 'replaced'>[]> {
  const hashes = new Set(
    rows.flatMap((row) =>
      row.raw_transaction === null && row.crypto_tx_hash !== null ? [row.crypto_tx_hash] : [],
    ),
  )
  const found =
    hashes.size === 0
      ? []
      : (
          await db.query<{
            crypto_tx_hash: string
            raw_transaction: Buffer
            payments: number
            age_ms: number
          }>(
            `
            select crypto_tx_hash, raw_transaction, payments, ${ageOf('signed_at')}
            from network_transactions
            where network = $1 and crypto_tx_hash = any ($2)`,
            [rows[0]!.network, [...hashes]],
          )
        ).rows
  const byHash = new Map(found.map((one) => [one.crypto_tx_hash, one]))
  return rows.map(({ crypto_tx_index, ...row }) => {
    const shared = byHash.get(row.crypto_tx_hash ?? '')
    if (shared === undefined || crypto_tx_index === null) return row
    const { raw_transaction, payments, age_ms } = shared
    return { ...row, raw_transaction, crypto_tx_index, payments, age_ms }
  })
}

/** The withdrawal with its destination in the network's canonical spelling. */
export function withCanonicalAddress<T extends Withdrawal>(claimed: T): T {
  const { network, destination_address } = claimed
  if (network === 'WIRE') return claimed
  const canonical = canonicalAddress(network, destination_address, { testNetworks: true })
  return { ...claimed, destination_address: canonical ?? destination_address }
}

/**
 * All withdrawals, of any customer, that the transactions of these pay. Where one payment of a transaction has ended, or has no
 * record any more, none of that transaction's is returned.
 */
export async function payingTogether(
  tx: Transaction,
  network: PayoutNetwork,
  some: readonly KeptWithdrawal[],
): Promise<KeptWithdrawal[]> {
  const alone = some.filter(({ crypto_tx_index }) => crypto_tx_index === undefined)
  const hashes = new Set(
    some.flatMap(({ crypto_tx_index, crypto_tx_hash }) =>
      crypto_tx_index === undefined ? [] : [crypto_tx_hash],
    ),
  )
  if (hashes.size === 0) return alone
  const payees = await selectPayees(tx, network, [...hashes])
  const customerIds = [...new Set([...payees.values()].flatMap(({ customer_ids }) => customer_ids))]
  const { rows } = await tx.query<ClaimedRow & { ended: boolean }>(
    `
    select t.customer_id, t.id as transfer_id, t.profile_id, b.network, t.asset, t.amount, t.memo, t.fiat_account_id,
           ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max, t.destination_address, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index,
           ${ageOf('b.created_at')}, b.due_at is null as ended
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.customer_id = any ($3) and b.network = $1 and b.crypto_tx_hash = any ($2)
    order by b.crypto_tx_index::int`,
    [network, [...hashes], customerIds],
  )
  const ended = new Set(rows.filter((row) => row.ended).map(({ crypto_tx_hash }) => crypto_tx_hash))
  const recorded = new Set(rows.map(({ transfer_id }) => transfer_id))
  const isWhole = (hash: string) => {
    const { transfer_ids } = payees.get(hash) ?? { transfer_ids: [] }
    return transfer_ids.length > 0 && transfer_ids.every((id) => recorded.has(id))
  }
  const open = rows.filter(({ crypto_tx_hash: hash }) => hash !== null && !ended.has(hash) && isWhole(hash))
  const found: KeptWithdrawal[] = [...alone]
  for (const customerId of new Set(open.map(({ customer_id }) => customer_id))) {
    const its = open.filter(({ customer_id }) => customer_id === customerId)
    found.push(...((await withReplaced(tx, customerId, its)) as KeptWithdrawal[]))
  }
  return found
}

/** Since the claim, somebody else took a withdrawal further: none of these steps may be recorded. */
export class TakenMeanwhile extends Error {
  constructor(count: number) {
    super(`${count} withdrawals were taken further by another worker or an operator meanwhile`)
    this.name = 'TakenMeanwhile'
  }
}

// Citus takes no time plus an interval in an update, and no function that is not immutable: the clock is read before.
const UPDATE = `
      update outgoing_transfers b
      set state = s.state,
          leased_until = null,
          -- What is held has no transaction, or none that can be mined any more.
          raw_transaction = case when s.state = 'HELD' then null when s.crypto_tx_hash is null then b.raw_transaction
                                 else s.raw_transaction end,
          crypto_tx_hash = case when s.state = 'HELD' then null else coalesce(s.crypto_tx_hash, b.crypto_tx_hash) end,
          crypto_tx_index = case when s.state = 'HELD' then null else coalesce(s.crypto_tx_index, b.crypto_tx_index) end,
          signed_at = case when s.state = 'HELD' then null when s.crypto_tx_hash is null then b.signed_at else s.now end,
          broadcast_at = case when s.state = 'HELD' or s.crypto_tx_hash is not null then null
                              when s.state = 'BROADCAST' then coalesce(b.broadcast_at, s.now)
                              else b.broadcast_at end,
          confirmations = s.confirmations,
          confirmations_needed = s.confirmations_needed,
          due_at = s.due_at,
          waiting_code = s.waiting_code,
          waiting_detail = s.waiting_detail,
          -- Only the time for which the wallet was short counts for keeping its money, not a freeze before (longest-waiting.ts).
          waiting_since = case when s.waiting_code is null then null
                               when s.waiting_code in ${SHORT} and b.waiting_code not in ${SHORT}
                               then s.now
                               else coalesce(b.waiting_since, s.now) end
      from (
        select s.*, $14::timestamptz as now, to_timestamp(s.due_at_seconds) as due_at
        from unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::float8[], $7::text[], $8::text[], $9::text[], $10::text[],
                    $11::text[], $12::int[], $13::int[])
          as s (transfer_id, state, raw_transaction, crypto_tx_hash, due_at_seconds, waiting_code, waiting_detail, was, hash_was,
                crypto_tx_index, confirmations, confirmations_needed)
      ) s
      where b.customer_id = $1 and b.transfer_id = any ($2) and b.transfer_id = s.transfer_id
        and b.state = s.was and b.crypto_tx_hash is not distinct from s.hash_was`

/**
 * Writes the steps of one customer, by compare-and-set: throws TakenMeanwhile unless each withdrawal still has the state and
 * the transaction that it was claimed with. It locks the rows to the commit.
 */
export async function updateOutgoing(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  await keepReplaced(
    tx,
    customerId,
    steps.flatMap(({ withdrawal, replaces, usedBy }) =>
      replaces === true || usedBy !== undefined ? withdrawal.transfer_id : [],
    ),
  )
  const now = await readClock(tx)
  const { rowCount } = await tx.query({
    text: UPDATE,
    values: [
      customerId,
      steps.map((step) => step.withdrawal.transfer_id),
      steps.map((step) => step.state),
      // The bytes of a transaction that pays several are in network_transactions.
      steps.map(({ signed }) => (signed?.payments === undefined ? (signed?.raw_transaction ?? null) : null)),
      steps.map((step) => step.signed?.crypto_tx_hash ?? null),
      steps.map(({ dueInMs }) => (dueInMs === undefined ? null : (now.micros / 1000 + dueInMs) / 1000)),
      steps.map((step) => step.waitingReason?.code ?? null),
      steps.map((step) => step.waitingReason?.detail ?? null),
      // A claim writes a new withdrawal as HELD.
      steps.map(({ withdrawal: { state } }) => (state === 'NEW' ? 'HELD' : state)),
      steps.map(({ withdrawal }) => withdrawal.crypto_tx_hash),
      steps.map((step) => step.signed?.crypto_tx_index ?? null),
      steps.map((step) => step.confirmations?.seen ?? null),
      steps.map((step) => step.confirmations?.needed ?? null),
      now.text,
    ],
  })
  if (rowCount !== steps.length) throw new TakenMeanwhile(steps.length - rowCount!)
}

/** Stores the present transaction, which is about to be replaced and may still be mined, or can never be mined. */
async function keepReplaced(tx: Transaction, customerId: string, transferIds: string[]): Promise<void> {
  if (transferIds.length === 0) return
  await tx.query(
    `
    insert into replaced_transactions
      (customer_id, transfer_id, crypto_tx_hash, raw_transaction, signed_at, broadcast_at, replaced_at)
    select customer_id, transfer_id, crypto_tx_hash, raw_transaction, signed_at, broadcast_at, clock_timestamp()
    from outgoing_transfers
    where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    [customerId, transferIds],
  )
}

// ---------------------------------------------------------------------------------------------- for one withdrawal

/** A withdrawal by its customer and id, in the order of the statements' parameters. */
export type OutgoingId = readonly [customerId: string, transferId: string]

/** Locks the row of a withdrawal to the end of the transaction. Returns false where no worker has begun it. */
export async function lockOutgoing(tx: Transaction, ids: OutgoingId): Promise<boolean> {
  const { rowCount } = await tx.query(
    'select 1 from outgoing_transfers where customer_id = $1 and transfer_id = $2 for update',
    [...ids],
  )
  return rowCount !== 0
}

/**
 * Stores the addresses and memos of one customer's new withdrawals for the search. The worker writes them, so that they cost
 * the request that creates a withdrawal nothing. Each such request would write an index of transfers by address.
 */
export async function keepNames(tx: Transaction, withdrawals: readonly Withdrawal[]): Promise<void> {
  const names = withdrawals.flatMap(({ transfer_id, network, destination_address, memo }) => [
    ...(network === 'WIRE' ? [] : [{ transfer_id, name: destination_address, found_by: 'ADDRESS' }]),
    ...(memo === null ? [] : [{ transfer_id, name: memo, found_by: 'MEMO' }]),
  ])
  if (names.length === 0) return
  await tx.query({
    text: `
      insert into withdrawal_names (customer_id, name, transfer_id, found_by)
      values ($1, unnest($2::text[]), unnest($3::uuid[]), unnest($4::text[]))
      on conflict do nothing`,
    values: [withdrawals[0]!.customer_id, ...arraysOf(names, 'name', 'transfer_id', 'found_by')],
  })
}

/**
 * Begins a withdrawal that no worker has begun, due so that a worker sees its deadline. Returns false where one has begun it.
 */
export async function beginOutgoing(tx: Transaction, ids: OutgoingId): Promise<boolean> {
  // Citus counts a row that is there already, too, unless the statement returns what it inserted.
  const { rows } = await tx.query<{ transfer_id: string }>(
    `
    insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, due_at)
    select customer_id, id, ${PAYOUT_NETWORK}, 'HELD', clock_timestamp(), clock_timestamp()
    from transfers t where customer_id = $1 and id = $2
    on conflict (customer_id, transfer_id) do nothing
    returning transfer_id`,
    [...ids],
  )
  if (rows.length === 0) return false
  await keepNames(tx, [await selectHeld(tx, ids)])
  return true
}

/** Makes a withdrawal due that waits for its screening. */
export async function wakeScreened(db: Queryable, ids: OutgoingId): Promise<void> {
  await db.query(
    `
    update outgoing_transfers set due_at = (select clock_timestamp())
    where customer_id = $1 and transfer_id = $2 and state = 'HELD' and waiting_code = '${SCREENING}'`,
    [...ids],
  )
}

export interface HeldWithdrawal extends Withdrawal {
  status: 'PENDING' | 'COMPLETED' | 'FAILED'
  secondary_status: SecondaryStatus | null
  /** Valid while the transfer is PENDING. HELD: nothing is signed. */
  state: State
  crypto_tx_hash: string | null
  raw_transaction: Buffer | null
  marks: WithdrawalMark[]
}

/** A withdrawal that was begun, as the newest committed statement left it. */
export async function selectHeld(tx: Transaction, ids: OutgoingId): Promise<HeldWithdrawal> {
  const { rows } = await tx.query<HeldWithdrawal>(
    `
    ${SELECT_WITHDRAWAL}, t.status, t.secondary_status, b.state, b.crypto_tx_hash, b.raw_transaction,
           array(select mark from withdrawal_marks where customer_id = $1 and transfer_id = $2) as marks
    from (select * from outgoing_transfers where customer_id = $1 and transfer_id = $2) b ${JOIN_TRANSFER}`,
    [...ids],
  )
  return withCanonicalAddress(rows[0]!)
}

/** A transfer out of the platform as an operator finds it, begun or not. */
export type FoundWithdrawal = PaidWithdrawal & {
  status: string
  state: State
  crypto_tx_hash: string | null
  crypto_tx_index: string | null
  /** The transaction that the transfer names, once it is completed. */
  mined_hash: string | null
}

/** The transfer out of the platform with this id, whosever it is; undefined where there is none. Locks nothing. */
export async function findOutgoing(db: Database, transferId: string): Promise<FoundWithdrawal | undefined> {
  const customerId = await findOwner(db, transferId)
  if (customerId === undefined) return undefined
  const { rows } = await db.query<FoundWithdrawal>(
    `
    ${SELECT_WITHDRAWAL}, t.status, coalesce(b.state, 'NEW') as state, b.crypto_tx_hash,
           b.crypto_tx_index, b.raw_transaction, t.crypto_tx_hash as mined_hash
    from transfers t
    left join outgoing_transfers b on b.customer_id = $1 and b.transfer_id = t.id
    where t.customer_id = $1 and t.id = $2 and t.type in ${PAYOUT_TYPES}`,
    [customerId, transferId],
  )
  const [found] = rows
  if (found === undefined) return undefined
  const raw_transaction = found.raw_transaction ?? (await sharedBytes(db, found))
  return withCanonicalAddress({ ...found, raw_transaction })
}

/** The bytes of a transaction that pays several withdrawals; null where the withdrawal has none. */
async function sharedBytes(
  db: Queryable,
  { network, crypto_tx_hash }: Pick<FoundWithdrawal, 'network' | 'crypto_tx_hash'>,
): Promise<Buffer | null> {
  if (crypto_tx_hash === null) return null
  const { rows } = await db.query<{ raw_transaction: Buffer }>(
    'select raw_transaction from network_transactions where network = $1 and crypto_tx_hash = $2',
    [network, crypto_tx_hash],
  )
  return rows[0]?.raw_transaction ?? null
}

/** The hashes that the transactions of a withdrawal replaced. */
export async function selectReplaced(db: Queryable, ids: OutgoingId): Promise<string[]> {
  const { rows } = await db.query<{ crypto_tx_hash: string }>(
    'select crypto_tx_hash from replaced_transactions where customer_id = $1 and transfer_id = $2',
    [...ids],
  )
  return rows.map(({ crypto_tx_hash }) => crypto_tx_hash)
}

/**
 * Gives a withdrawal the transaction that paid it, by compare-and-set: throws TakenMeanwhile unless it still has the state
 * and the transaction that it was found with. The transaction before it counts as replaced.
 */
export async function setTransaction(
  tx: Transaction,
  { customer_id, transfer_id, state, crypto_tx_hash, raw_transaction: before }: FoundWithdrawal,
  paid: SignedTransaction,
): Promise<void> {
  const ids = [customer_id, transfer_id] as const
  if (state === 'NEW') await beginOutgoing(tx, ids)
  if (before !== null) await keepReplaced(tx, customer_id, [transfer_id])
  const { rowCount } = await tx.query(
    `
    update outgoing_transfers
    set state = 'SIGNED', raw_transaction = $3, crypto_tx_hash = $4, crypto_tx_index = $5, due_at = (select clock_timestamp()),
        signed_at = null, broadcast_at = null, confirmations = null, confirmations_needed = null,
        waiting_code = null, waiting_detail = null, waiting_since = null, leased_until = null
    where customer_id = $1 and transfer_id = $2 and state = $6 and crypto_tx_hash is not distinct from $7`,
    [
      ...ids,
      paid.payments === undefined ? paid.raw_transaction : null,
      paid.crypto_tx_hash,
      paid.crypto_tx_index ?? null,
      state === 'NEW' ? 'HELD' : state,
      crypto_tx_hash,
    ],
  )
  if (rowCount !== 1) throw new TakenMeanwhile(1)
}

/** A transaction that was signed for a withdrawal. Its bytes are null where they are not stored here. */
interface KeptTransactionRow {
  crypto_tx_hash: string
  raw_transaction: Buffer | null
}

/** The transactions that were signed for a withdrawal: the last one, and those that it replaced. */
export async function selectKept(
  db: Queryable,
  [customerId, transferId]: OutgoingId,
  network: PayoutNetwork,
): Promise<KeptTransactionRow[]> {
  const { rows } = await db.query<KeptTransactionRow>(
    `
    select crypto_tx_hash, raw_transaction from outgoing_transfers
    where customer_id = $1 and transfer_id = $2 and crypto_tx_hash is not null
    union all
    select crypto_tx_hash, raw_transaction from replaced_transactions
    where customer_id = $1 and transfer_id = $2`,
    [customerId, transferId],
  )
  for (const row of rows) row.raw_transaction ??= await sharedBytes(db, { network, ...row })
  return rows
}

/** The withdrawal, other than this one, that a payment in a transaction belongs to; undefined where none has it. */
export async function findPayee(
  tx: Transaction,
  { transfer_id, network, destination_address, amount }: Withdrawal,
  { crypto_tx_hash, crypto_tx_index }: SignedTransaction,
): Promise<string | undefined> {
  const { rows: taken } = await tx.query<{
    customer_id: string
    transfer_id: string
    crypto_tx_index: string | null
  }>(
    `
    select customer_id, transfer_id, crypto_tx_index from outgoing_transfers where network = $1 and crypto_tx_hash = $2
    union
    select customer_id, transfer_id, null from replaced_transactions where crypto_tx_hash = $2
    union
    select t.*
    from customers c
    cross join lateral (
      select customer_id, id, crypto_tx_index from transfers
      where customer_id = c.id and crypto_tx_hash = $2 and type in ${PAYOUT_TYPES}
    ) t
    union
    select customer_id, id, crypto_tx_index from transfers
    where customer_id = $3 and crypto_tx_hash = $2 and type in ${PAYOUT_TYPES}`,
    [network, crypto_tx_hash, PLATFORM_ID],
  )
  for (const { customer_id, transfer_id: id, crypto_tx_index: index } of taken) {
    if (id === transfer_id) continue
    if (crypto_tx_index !== undefined) {
      if (index === crypto_tx_index) return id
      continue
    }
    const { rowCount } = await tx.query(
      `
      select 1 from transfers
      where customer_id = $1 and id = $2 and amount = $3 and lower(destination_address collate "C") = lower($4 collate "C")`,
      [customer_id, id, amount, destination_address],
    )
    if (rowCount !== 0) return id
  }
  return undefined
}
