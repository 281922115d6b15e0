import {
  arrayLiteral,
  connectionLost,
  type Database,
  type Queryable,
  type Transaction,
} from '../db/database.ts'
import type { Network, SignedTransaction } from './network.ts'

/**
 * The transactions of the shared wallets, each once, with whom it pays. On a cluster they are on the coordinator, and are
 * committed together with their withdrawals: so signing knows every coin and nonce that is in use, and asks no node that has
 * none of the customers it signs for.
 *
 * A transaction counts as under way until it is known that all its payments have ended. So a node that is gone, or that has
 * not committed yet what the coordinator has, frees no coin.
 */

/** MARKED: an operator says that it paid a withdrawal. TOP_UP: it pays gas to a deposit address. */
export type TransactionKind = 'WITHDRAWALS' | 'MARKED' | 'TOP_UP'

/** A signed transaction, and one of the withdrawals that it pays, or its sweep. */
export interface KeptTransaction extends SignedTransaction {
  customer_id: string
  transfer_id: string
}

/** Keeps transactions with all that each of them pays. The withdrawals' own rows are written in the same transaction. */
export async function keepTransactions(
  tx: Transaction,
  network: Network,
  kept: readonly KeptTransaction[],
  kind: TransactionKind = 'WITHDRAWALS',
): Promise<void> {
  const byHash = new Map<string, KeptTransaction[]>()
  for (const one of kept) byHash.set(one.crypto_tx_hash, [...(byHash.get(one.crypto_tx_hash) ?? []), one])
  if (byHash.size === 0) return
  const payees = [...byHash.values()]
  const literals = (idOf: (one: KeptTransaction) => string) =>
    payees.map((some) => arrayLiteral(some.map(idOf)))
  await tx.query(
    `
    insert into network_transactions
      (network, crypto_tx_hash, raw_transaction, kind, payments, customer_ids, transfer_ids, signed_at)
    select $1, hash, raw, $2, payments, payees::uuid[], paid::uuid[], clock_timestamp()
    from unnest($3::text[], $4::bytea[], $5::int[], $6::text[], $7::text[]) as s (hash, raw, payments, payees, paid)
    on conflict (network, crypto_tx_hash) do update
    set customer_ids = network_transactions.customer_ids || excluded.customer_ids,
        transfer_ids = network_transactions.transfer_ids || excluded.transfer_ids,
        ended_at = null`,
    [
      network,
      kind,
      [...byHash.keys()],
      payees.map(([one]) => one!.raw_transaction),
      payees.map(([one]) => one!.payments ?? 1),
      literals(({ customer_id }) => customer_id),
      literals(({ transfer_id }) => transfer_id),
    ],
  )
}

/** A transaction that may be mined yet, or whose end is not recorded yet. */
export interface OpenTransactionRow {
  crypto_tx_hash: string
  raw_transaction: Buffer
  payments: number
}

/** The transactions of a network's wallet that are under way, in the order in which they were signed. */
export async function selectOpenTransactions(db: Queryable, network: Network): Promise<OpenTransactionRow[]> {
  const { rows } = await db.query<OpenTransactionRow>(
    `
    select crypto_tx_hash, raw_transaction, payments
    from network_transactions
    where network = $1 and ended_at is null
    order by signed_at, crypto_tx_hash`,
    [network],
  )
  return rows
}

/** By transfer id, the transaction that was signed for it before. */
export async function signedBefore(
  tx: Transaction,
  network: Network,
  transferIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await tx.query<{ crypto_tx_hash: string; transfer_ids: string[] }>(
    'select crypto_tx_hash, transfer_ids from network_transactions where network = $1 and transfer_ids && $2::uuid[]',
    [network, transferIds],
  )
  return new Map(
    rows.flatMap(({ crypto_tx_hash, transfer_ids }) =>
      transfer_ids.map((id) => [id, crypto_tx_hash] as const),
    ),
  )
}

/** The customers of whom these transactions pay withdrawals. */
export async function selectPayees(
  tx: Transaction,
  network: Network,
  hashes: readonly string[],
): Promise<string[]> {
  const { rows } = await tx.query<{ customer_ids: string[] }>(
    'select customer_ids from network_transactions where network = $1 and crypto_tx_hash = any ($2)',
    [network, hashes],
  )
  return [...new Set(rows.flatMap(({ customer_ids }) => customer_ids))]
}

/**
 * Frees the coins and nonces of transactions that have ended. Gives whether all nodes of a cluster have answered: where one is
 * gone, they stay taken until a later call. No transaction may be open.
 */
export async function freeWhatHasEnded(db: Database, network: Network): Promise<boolean> {
  try {
    await endTransactions(db, network)
    return true
  } catch (error) {
    if (!connectionLost(error)) throw error
    return false
  }
}

/** Notes which transactions have ended: all that they pay has. */
async function endTransactions(db: Database, network: Network): Promise<void> {
  const { rows: open } = await db.query<{ crypto_tx_hash: string; kind: TransactionKind } & Payees>(
    `
    select crypto_tx_hash, kind, customer_ids, transfer_ids
    from network_transactions
    where network = $1 and ended_at is null`,
    [network],
  )
  const done = new Set([
    ...(await endedWithdrawals(
      db,
      open.filter(({ kind }) => kind !== 'TOP_UP'),
    )),
    ...(await endedTopUps(
      db,
      open.filter(({ kind }) => kind === 'TOP_UP'),
    )),
  ])
  const ended = open.filter(({ transfer_ids }) => transfer_ids.every((one) => done.has(one)))
  if (ended.length === 0) return
  // An operator may have marked another payment of one of them meanwhile.
  await db.query(
    `
    update network_transactions n
    set ended_at = e.at
    from (
      select hash, payees, statement_timestamp() as at from unnest($2::text[], $3::int[]) as s (hash, payees)
    ) e
    where n.network = $1 and n.crypto_tx_hash = e.hash and cardinality(n.transfer_ids) = e.payees`,
    [
      network,
      ended.map(({ crypto_tx_hash }) => crypto_tx_hash),
      ended.map(({ transfer_ids }) => transfer_ids.length),
    ],
  )
}

interface Payees {
  customer_ids: string[]
  transfer_ids: string[]
}

/** Both lists of all of them, in the order of the statements' parameters. */
const idsOf = (some: readonly Payees[]): [string[], string[]] => [
  [...new Set(some.flatMap(({ customer_ids }) => customer_ids))],
  some.flatMap(({ transfer_ids }) => transfer_ids),
]

async function endedWithdrawals(db: Database, some: readonly Payees[]): Promise<string[]> {
  if (some.length === 0) return []
  const { rows } = await db.query<{ transfer_id: string }>(
    `select transfer_id from outgoing_transfers where customer_id = any ($1) and transfer_id = any ($2) and state = 'DONE'`,
    idsOf(some),
  )
  return rows.map(({ transfer_id }) => transfer_id)
}

async function endedTopUps(db: Database, some: readonly Payees[]): Promise<string[]> {
  if (some.length === 0) return []
  const { rows } = await db.query<{ id: string }>(
    'select id from evm_sweeps where customer_id = any ($1) and id = any ($2) and ended_at is not null',
    idsOf(some),
  )
  return rows.map(({ id }) => id)
}
