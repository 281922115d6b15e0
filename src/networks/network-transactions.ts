import { connectionLost, type Database, type Queryable, type Transaction } from '../db/database.ts'
import { arrayLiteral } from '../db/array-literal.ts'
import type { PayoutNetwork, SignedTransaction, EndedTopUps } from './network.ts'
import { arraysOf, grouped } from '../db/rows.ts'
import type { Moment } from '../db/ids.ts'

/**
 * The transactions of the shared wallets, each once, with its payees. They belong to no customer, and
 * are committed together with their withdrawals. Signing therefore knows every coin and nonce in use, and asks only the
 * parts of the database with the customers that it signs for.
 *
 * A transaction counts as under way until it is known that all its payments have ended. A part of the database that is gone, or
 * has not yet committed, frees no coin.
 */

/** MARKED: an operator says that it paid a withdrawal. TOP_UP: it pays gas to a deposit address. */
export type TransactionKind = 'WITHDRAWALS' | 'MARKED' | 'TOP_UP'

/** A signed transaction, and one of the withdrawals that it pays, or its sweep. */
export interface KeptTransaction extends SignedTransaction {
  customer_id: string
  transfer_id: string
}

/** Stores transactions with their payees. The withdrawals' own rows are written in the same transaction. */
export async function keepTransactions(
  tx: Transaction,
  network: PayoutNetwork,
  kept: readonly KeptTransaction[],
  kind: TransactionKind = 'WITHDRAWALS',
): Promise<void> {
  const byHash = grouped(kept, ({ crypto_tx_hash }) => crypto_tx_hash)
  if (byHash.size === 0) return
  const payees = [...byHash.values()]
  const literals = (idOf: (payee: KeptTransaction) => string) =>
    payees.map((group) => arrayLiteral(group.map(idOf)))
  const { rows } = await tx.query<{ crypto_tx_hash: string }>(
    `
    insert into network_transactions
      (network, crypto_tx_hash, raw_transaction, kind, payments, customer_ids, transfer_ids, signed_at)
    select $1, hash, raw, $2, payments, payees::uuid[], paid::uuid[], clock_timestamp()
    from unnest($3::text[], $4::bytea[], $5::int[], $6::text[], $7::text[]) as s (hash, raw, payments, payees, paid)
    on conflict (network, crypto_tx_hash) do nothing
    returning crypto_tx_hash`,
    [
      network,
      kind,
      [...byHash.keys()],
      payees.map(([first]) => first!.raw_transaction),
      payees.map(([first]) => first!.payments ?? 1),
      literals(({ customer_id }) => customer_id),
      literals(({ transfer_id }) => transfer_id),
    ],
  )
  if (rows.length === byHash.size) return
  for (const { crypto_tx_hash } of rows) byHash.delete(crypto_tx_hash)
  // An operator has marked a known transaction as the payment of a further withdrawal, or its signatures have left its hash.
  const known = await selectPayees(tx, network, [...byHash.keys()])
  for (const [hash, group] of byHash) {
    const further = group.filter(({ transfer_id }) => !known.get(hash)!.transfer_ids.includes(transfer_id))
    await tx.query('select add_payees($1, $2, $3::uuid[], $4::uuid[])', [
      network,
      hash,
      ...arraysOf(further, 'customer_id', 'transfer_id'),
    ])
  }
}

/** A transaction that may be mined yet, or whose end is not recorded yet. */
export interface OpenTransactionRow {
  crypto_tx_hash: string
  raw_transaction: Buffer
  payments: number
  /** What has used its nonce, or shown that it can never be mined, as recorded. */
  used_by: string | null
  /** How long ago it was signed, or a signer process was to be asked. */
  age_ms: number
}

/** The transactions of a network's wallet that are under way, in the order in which they were signed. */
export async function selectOpenTransactions(
  db: Queryable,
  network: PayoutNetwork,
): Promise<OpenTransactionRow[]> {
  const { rows } = await db.query<OpenTransactionRow>(
    `
    select crypto_tx_hash, raw_transaction, payments, used_by,
           (extract(epoch from clock_timestamp() - signed_at) * 1000)::float8 as age_ms
    from network_transactions
    where network = $1 and ended_at is null
    order by signed_at, crypto_tx_hash`,
    [network],
  )
  return rows
}

export interface SignedBefore extends SignedTransaction {
  /** The hash of the transaction that has used its nonce, as recorded; null where it may still be mined. */
  used_by: string | null
}

/** The transactions that were signed for any of these transfers, in the order in which they were signed. */
export async function selectPaying(
  db: Queryable,
  network: PayoutNetwork,
  transferIds: readonly string[],
): Promise<(SignedBefore & { transfer_ids: string[] })[]> {
  const { rows } = await db.query<SignedBefore & { transfer_ids: string[] }>(
    `
    select crypto_tx_hash, raw_transaction, used_by, transfer_ids
    from network_transactions
    where network = $1 and transfer_ids && $2::uuid[]
    order by signed_at, crypto_tx_hash`,
    [network, transferIds],
  )
  return rows
}

/** By transfer id, the transactions that were signed for it before, the newest last. */
export async function signedBefore(
  db: Queryable,
  network: PayoutNetwork,
  transferIds: readonly string[],
): Promise<Map<string, SignedBefore[]>> {
  const byTransfer = new Map<string, SignedBefore[]>()
  for (const { transfer_ids, ...signed } of await selectPaying(db, network, transferIds))
    for (const id of transfer_ids) byTransfer.set(id, [...(byTransfer.get(id) ?? []), signed])
  return byTransfer
}

/** Records the hash of the transaction that has used the nonce of everything signed for a withdrawal so far. */
export async function keepUsedBy(
  tx: Transaction,
  { network, transfer_id }: { network: PayoutNetwork; transfer_id: string },
  usedBy: string,
): Promise<void> {
  await tx.query(
    `update network_transactions set used_by = $3
     where network = $1 and transfer_ids @> array[$2::uuid] and used_by is null`,
    [network, transfer_id, usedBy],
  )
}

/** Stores that an operator says that a transaction is the platform's own. `id` is that of its postings. */
export async function storeAcknowledged(
  tx: Transaction,
  network: PayoutNetwork,
  hash: string,
  { id, now }: { id: string; now: Moment },
): Promise<void> {
  await tx.query(
    `insert into acknowledged_transactions (network, crypto_tx_hash, id, acknowledged_at) values ($1, $2, $3, $4)`,
    [network, hash, id, now.text],
  )
}

/** The id of the postings of an acknowledged transaction; undefined where it is none. */
export async function acknowledgedAs(
  db: Queryable,
  network: PayoutNetwork,
  hash: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>(
    'select id from acknowledged_transactions where network = $1 and crypto_tx_hash = $2',
    [network, hash],
  )
  return rows[0]?.id
}

export async function selectPayees(
  db: Queryable,
  network: PayoutNetwork,
  hashes: readonly string[],
): Promise<Map<string, Payees>> {
  const { rows } = await db.query<Payees & { crypto_tx_hash: string }>(
    `
    select crypto_tx_hash, kind, payments, customer_ids, transfer_ids
    from network_transactions
    where network = $1 and crypto_tx_hash = any ($2)`,
    [network, hashes],
  )
  return new Map(rows.map(({ crypto_tx_hash, ...payees }) => [crypto_tx_hash, payees]))
}

/** Whether a transaction was signed for other transfers than this one: of two equal payments, it is not this one's. */
export async function paysAnother(
  db: Queryable,
  network: PayoutNetwork,
  hash: string,
  transferId: string,
): Promise<boolean> {
  const payees = (await selectPayees(db, network, [hash])).get(hash)
  return payees !== undefined && !payees.transfer_ids.includes(transferId)
}

/** What a transaction pays: the n-th transfer is the n-th customer's. */
export interface Payees {
  kind: TransactionKind
  /** How many payments it has; those of WITHDRAWALS are its first outputs. */
  payments: number
  customer_ids: string[]
  transfer_ids: string[]
}

/**
 * Frees the coins and nonces of transactions whose payments have all ended. Returns whether all parts of the database
 * have answered. Where a part out of reach has one of the payees, the coins and nonces stay taken until a later call. No
 * database transaction may be open. Without `endedTopUps`, no transaction that pays gas has ended.
 */
export async function freeWhatHasEnded(
  db: Database,
  network: PayoutNetwork,
  endedTopUps?: EndedTopUps,
): Promise<boolean> {
  const { rows: open } = await db.query<{ crypto_tx_hash: string } & Payees>(
    `
    select crypto_tx_hash, kind, payments, customer_ids, transfer_ids
    from network_transactions
    where network = $1 and ended_at is null`,
    [network],
  )
  const { done, isAll } = await endedOf(
    db,
    open.flatMap(({ kind, customer_ids, transfer_ids }) =>
      transfer_ids.map((id, index) => ({
        id,
        customer_id: customer_ids[index]!,
        isTopUp: kind === 'TOP_UP',
      })),
    ),
    endedTopUps,
  )
  // Of a transaction without payees, nothing says that it has ended.
  const ended = open.filter(
    ({ transfer_ids }) => transfer_ids.length > 0 && transfer_ids.every((id) => done.has(id)),
  )
  if (ended.length === 0) return isAll
  // Meanwhile an operator may have marked another payment of one of these transactions.
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
  return isAll
}

/** A withdrawal that a transaction pays, or the sweep that it sends gas for. */
interface PaidByTransaction {
  id: string
  customer_id: string
  isTopUp: boolean
}

/** Which of these have ended, as far as the parts of the database answer: each customer has a query of its own. */
async function endedOf(
  db: Database,
  paid: readonly PaidByTransaction[],
  endedTopUps: EndedTopUps | undefined,
): Promise<{ done: Set<string>; isAll: boolean }> {
  const done = new Set<string>()
  let isAll = true
  for (const [customerId, own] of grouped(paid, ({ customer_id }) => customer_id))
    try {
      const idsOf = (isTopUp: boolean) =>
        own.flatMap((transfer) => (transfer.isTopUp === isTopUp ? transfer.id : []))
      const [withdrawals, topUps] = [idsOf(false), idsOf(true)]
      if (withdrawals.length > 0)
        for (const id of await endedWithdrawals(db, customerId, withdrawals)) done.add(id)
      if (topUps.length > 0) for (const id of (await endedTopUps?.(customerId, topUps)) ?? []) done.add(id)
    } catch (error) {
      if (!connectionLost(error)) throw error
      isAll = false
    }
  return { done, isAll }
}

async function endedWithdrawals(db: Queryable, customerId: string, ids: string[]): Promise<string[]> {
  const { rows } = await db.query<{ transfer_id: string }>(
    `select transfer_id from outgoing_transfers
     where customer_id = $1 and transfer_id = any ($2::uuid[]) and state = 'DONE'`,
    [customerId, ids],
  )
  return rows.map(({ transfer_id }) => transfer_id)
}
