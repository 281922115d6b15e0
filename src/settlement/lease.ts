import type { Database, Queryable, Transaction } from '../db/database.ts'
import { PAYOUT_TYPES } from '../records/treasury.ts'
import { canonicalAddress } from '../networks/addresses.ts'
import type { BroadcastWithdrawal, Network, Withdrawal } from '../networks/network.ts'

/** Held while a network's withdrawals are signed, beside the network's name. */
const SIGNING_LOCK = 7_311_006

/** Most withdrawals that one claim takes on. */
const CLAIM_MAX = 500

/**
 * How long a worker has to ask a node about the withdrawals that it leased. A worker that takes longer loses nothing:
 * what it records must find each withdrawal as it was leased.
 */
const LEASE_MS = 60_000

export type State = 'NEW' | 'HELD' | 'SIGNED' | 'BROADCAST'

/** A withdrawal that this worker has claimed, with how far it is. */
export interface Claimed extends Withdrawal {
  state: State
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
  /** Where its transaction pays several: which output pays it, and how many there are. */
  crypto_tx_index?: string
  payments?: number
  replaced: string[]
  /** How long ago its worker began it, or replaced its transaction. */
  age_ms: number
}

type Row = Omit<Claimed, 'replaced' | 'crypto_tx_index'> & { crypto_tx_index: string | null }

/** A withdrawal whose transaction is kept. */
export type Kept = Claimed & BroadcastWithdrawal

/** A customer's withdrawals over one network that are in a state and due. */
export interface Work {
  customer_id: string
  network: Network
  state: State
}

// A withdrawal that goes over no blockchain is a wire.
const NETWORK = `coalesce(t.crypto_network, 'WIRE')`
const IS_NEW = `
  t.status = 'PENDING' and t.type in ${PAYOUT_TYPES}
    and not exists (select from outgoing_transfers b where b.customer_id = t.customer_id and b.transfer_id = t.id)`
const IS_FREE = '(leased_until is null or leased_until <= clock_timestamp())'

/** What is due on these networks, customers in another order each time: a node that fails now and then delays others. */
export async function workToDo(
  db: Database,
  networks: readonly Network[],
): Promise<{ work: Work[]; at: string }> {
  const { rows } = await db.query<Work & { at: string }>(
    `
    select customer_id, network, state, clock_timestamp() as at
    from (
      select customer_id, network, state from outgoing_transfers
      where due_at <= clock_timestamp() and ${IS_FREE} and network = any ($1)
      union
      select t.customer_id, ${NETWORK}, 'NEW' from transfers t where ${NETWORK} = any ($1) and ${IS_NEW}
    ) work
    order by random()`,
    [networks],
  )
  return { work: rows, at: rows[0]?.at ?? '' }
}

const CONSOLIDATION_FEE_MAX = `case when t.type = 'TREASURY_CONSOLIDATION' then t.metadata ->> 'max_fee_rate' end`

// Statements here have no names, so that each is planned for the tables as they are: a plan that was made while they
// were young reads all of a customer's transfers for each withdrawal (measured: 500 claimed in 209 ms instead of 4).
/** A withdrawal by its transfer `t`; `$1` is its customer. */
export const CLAIMED = `
  select t.customer_id, t.id as transfer_id, t.profile_id, ${NETWORK} as network, t.asset, t.amount, t.memo,
         t.fiat_account_id, ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max,
         coalesce(t.destination_address, (
           select f.fiat_network_instructions -> 'wire' ->> 'account_number'
           from fiat_accounts f
           where f.customer_id = $1 and f.id = t.fiat_account_id
         ), '') as destination_address`
const ageOf = (column: string) =>
  `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8 as age_ms`
/** Of a broadcast `b`; `$1` is its customer. */
export const ITS_TRANSFER =
  'cross join lateral (select * from transfers where customer_id = $1 and id = b.transfer_id offset 0) t'

/** Begins withdrawals that no worker has begun. The broadcast's primary key decides between two that try. */
export async function claimNew(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  limit = CLAIM_MAX,
): Promise<Claimed[]> {
  const { rows } = await tx.query<Claimed>({
    text: `
      with new as (
        select t.id
        from transfers t
        where t.customer_id = $1 and ${NETWORK} = $2 and ${IS_NEW}
        order by t.id
        limit $3
        for update of t skip locked
      ), claimed as (
        insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at)
        select $1, new.id, $2, 'HELD', clock_timestamp()
        from new
        on conflict (customer_id, transfer_id) do nothing
        returning transfer_id
      )
      ${CLAIMED}, 'NEW' as state, null as raw_transaction, null as crypto_tx_hash, '{}'::text[] as replaced, 0 as age_ms
      from claimed b ${ITS_TRANSFER}
      order by t.id`,
    values: [customer_id, network, limit],
  })
  return rows.map(withCanonicalAddress)
}

/** Those that are due; where `heldAt` is given, only those that wait to be signed and were due by that time. */
export async function claimDue(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  { limit = CLAIM_MAX, heldAt }: { limit?: number; heldAt?: string } = {},
): Promise<Claimed[]> {
  const { rows } = await tx.query<Row>({
    text: `
      ${CLAIMED}, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index, ${ageOf('b.created_at')}
      from (
        select *
        from outgoing_transfers
        where customer_id = $1 and network = $2 and due_at <= coalesce($4, clock_timestamp())
          and ($4::timestamptz is null or state = 'HELD')
        order by due_at, transfer_id
        limit $3
        for update skip locked
      ) b ${ITS_TRANSFER}
      order by b.due_at, b.transfer_id`,
    values: [customer_id, network, limit, heldAt ?? null],
  })
  return heldAt === undefined
    ? withReplaced(tx, customer_id, rows)
    : rows.map(({ crypto_tx_index: _, ...row }) => withCanonicalAddress({ ...row, replaced: [] }))
}

/**
 * Leases what is kept and due: nobody else asks about it meanwhile. Give it back with `release` what was not recorded.
 */
export async function leaseKept(
  db: Database,
  { customer_id, network }: Omit<Work, 'state'>,
  limit: number,
): Promise<Kept[]> {
  const { rows } = await db.query<Row>({
    text: `
      with leased as (
        update outgoing_transfers
        set leased_until = clock_timestamp() + make_interval(secs => $4::float8 / 1000)
        where customer_id = $1 and transfer_id in (
          select transfer_id
          from outgoing_transfers
          where customer_id = $1 and network = $2 and due_at <= clock_timestamp() and ${IS_FREE}
            and state in ('SIGNED', 'BROADCAST')
          order by due_at, transfer_id
          limit $3
          for update skip locked
        )
        returning *
      )
      ${CLAIMED}, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index, ${ageOf('b.created_at')}
      from leased b ${ITS_TRANSFER}
      order by b.due_at, b.transfer_id`,
    values: [customer_id, network, limit, LEASE_MS],
  })
  return (await withReplaced(db, customer_id, rows)) as Kept[]
}

/**
 * Every withdrawal that a transaction pays which pays one of these, whoever's; none of a transaction of which a payment has
 * ended already.
 */
export async function payingTogether(
  tx: Transaction,
  network: Network,
  some: readonly Kept[],
): Promise<Kept[]> {
  const alone = some.filter(({ crypto_tx_index }) => crypto_tx_index === undefined)
  const hashes = new Set(
    some.flatMap(({ crypto_tx_index, crypto_tx_hash }) =>
      crypto_tx_index === undefined ? [] : [crypto_tx_hash],
    ),
  )
  if (hashes.size === 0) return alone
  const { rows } = await tx.query<Row & { ended: boolean }>(
    `
    select t.customer_id, t.id as transfer_id, t.profile_id, b.network, t.asset, t.amount, t.memo, t.fiat_account_id,
           ${CONSOLIDATION_FEE_MAX} as consolidation_fee_max, t.destination_address, b.state, b.raw_transaction, b.crypto_tx_hash, b.crypto_tx_index,
           ${ageOf('b.created_at')}, b.due_at is null as ended
    from outgoing_transfers b
    join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
    where b.network = $1 and b.crypto_tx_hash = any ($2)
    order by b.crypto_tx_index::int`,
    [network, [...hashes]],
  )
  const ended = new Set(rows.filter((row) => row.ended).map(({ crypto_tx_hash }) => crypto_tx_hash))
  const open = rows.filter(({ crypto_tx_hash }) => !ended.has(crypto_tx_hash))
  const found: Kept[] = [...alone]
  for (const customerId of new Set(open.map(({ customer_id }) => customer_id))) {
    const its = open.filter(({ customer_id }) => customer_id === customerId)
    found.push(...((await withReplaced(tx, customerId, its)) as Kept[]))
  }
  return found
}

/** Ends the leases of what was not recorded: it is still due. */
export async function release(db: Database, customerId: string, transferIds: string[]): Promise<void> {
  await db.query(
    'update outgoing_transfers set leased_until = null where customer_id = $1 and transfer_id = any ($2::uuid[])',
    [customerId, transferIds],
  )
}

/**
 * With what each one's transaction has replaced. Asked behind the claim: the statement that claims may not see what
 * another worker replaced just before.
 */
async function withReplaced(db: Queryable, customerId: string, rows: Row[]): Promise<Claimed[]> {
  if (rows.length === 0) return []
  const claimed = await withTheirTransactions(db, rows)
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

/** With the bytes of the transactions that pay several: each is read once. */
async function withTheirTransactions(db: Queryable, rows: Row[]): Promise<Omit<Claimed, 'replaced'>[]> {
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

/** With its address as the network's are written. */
export function withCanonicalAddress<T extends Withdrawal>(claimed: T): T {
  const { network, destination_address } = claimed
  if (network === 'WIRE') return claimed
  const canonical = canonicalAddress(network, destination_address, { testNetworks: true })
  return { ...claimed, destination_address: canonical ?? destination_address }
}

/** Waits until nobody else signs on the network, and keeps it so to the commit. */
export const signAlone = (tx: Transaction, network: Network) =>
  tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [SIGNING_LOCK, network])

/**
 * Those that another withdrawal of their profile comes before which is not signed yet and not among them: what waits,
 * waits in order. A broadcast withdrawal that an operator must judge holds up no later one.
 */
export async function behindOthers(
  tx: Transaction,
  { customer_id, network }: Omit<Work, 'state'>,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  const { rows } = await tx.query<{ transfer_id: string }>(
    `
    select mine.transfer_id
    from unnest($3::uuid[], $4::uuid[]) as mine (transfer_id, profile_id)
    where exists (
      select
      from transfers t
      left join outgoing_transfers b on b.customer_id = $1 and b.transfer_id = t.id
      where t.customer_id = $1 and t.profile_id = mine.profile_id and t.status = 'PENDING'
        and t.type in ${PAYOUT_TYPES} and ${NETWORK} = $2
        and t.id < mine.transfer_id and t.id <> all ($3)
        and (b.transfer_id is null or b.state <> 'BROADCAST' and b.waiting_code is not null)
    )`,
    [
      customer_id,
      network,
      withdrawals.map(({ transfer_id }) => transfer_id),
      withdrawals.map(({ profile_id }) => profile_id),
    ],
  )
  return new Set(rows.map(({ transfer_id }) => transfer_id))
}
