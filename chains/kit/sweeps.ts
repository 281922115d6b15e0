import {
  connectionLost,
  transaction,
  violatedConstraint,
  type Database,
  type Transaction,
} from '../../src/db/database.ts'
import { RecordFailure } from '../../src/db/each-alone.ts'
import { markStale } from './holdings.ts'
import { newId, readClock } from '../../src/db/ids.ts'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { EndedTopUps, SignedTransaction } from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import type { SweepRound } from '../../src/networks/sweep-round.ts'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'

/**
 * The life of a sweep, and of what one takes before: gas for an address, or a nonce account. It is signed and stored before it is
 * broadcast, followed to its end, and its fee is posted in the transaction that ends it. An address has at most one under way. What
 * it moves, whether that is worth its fee, and what the chain says of it are the family's.
 */

/** A sweep that is under way, with the derivation of its address's key. */
export interface Sweep extends SignedTransaction {
  customer_id: string
  id: string
  address: string
  derivation: string | null
  kind: 'TOP_UP' | 'SWEEP'
  asset: string
  /** A decimal string. */
  amount: string
  state: 'SIGNED' | 'BROADCAST'
  /** The hashes of the transactions that it replaced. */
  replaced: string[]
  /** It was signed so long ago that it is replaced. */
  stuck: boolean
  /** The network has said before that it can never be made. */
  lost: boolean
}

type NewSweep = Pick<Sweep, 'customer_id' | 'address' | 'kind' | 'asset' | 'amount'>

/** Most that one call follows. */
const UNDER_WAY_MAX = 1_000

/** What is under way on a network, the oldest first: of one kind and in one state, where they are named. */
export async function selectUnderWay(
  db: Database,
  network: CryptoNetwork,
  {
    kind,
    state,
    stuckAfterMs = 0,
  }: { kind?: Sweep['kind']; state?: 'SIGNED' | undefined; stuckAfterMs?: number } = {},
): Promise<Sweep[]> {
  const { rows } = await db.query<Sweep>(
    `
    select s.customer_id, s.id, s.address, s.kind, s.asset, s.amount, s.state, s.raw_transaction, s.crypto_tx_hash, s.replaced,
           s.lost_since is not null as lost, s.signed_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000) as stuck,
           (select d.derivation from deposit_addresses d
            where d.customer_id = s.customer_id and d.address = s.address limit 1) as derivation
    from sweeps s
    where s.network = $1 and s.state in ('SIGNED', 'BROADCAST')
      and ($3::text is null or s.state = $3) and ($4::text is null or s.kind = $4)
    order by s.signed_at
    limit ${UNDER_WAY_MAX}`,
    [network, stuckAfterMs, state, kind],
  )
  return rows
}

/**
 * Signs and stores a sweep in one transaction. False where the network is frozen, `sign` returns false, or another worker was faster
 * at the address.
 */
export async function unlessTaken(
  db: Database,
  network: CryptoNetwork,
  isFrozen: SweepRound['isFrozen'],
  sign: (tx: Transaction) => Promise<boolean>,
): Promise<boolean> {
  try {
    return await transaction(db, async (tx) => !(await isFrozen(tx, network)) && sign(tx))
  } catch (error) {
    if (violatedConstraint(error) !== 'evm_sweeps_under_way') throw error
    return false
  }
}

/** Stores a signed sweep. Returns its id. */
export async function insertSweep(
  tx: Transaction,
  network: CryptoNetwork,
  { customer_id, address, kind, asset, amount }: NewSweep,
  { raw_transaction, crypto_tx_hash }: SignedTransaction,
): Promise<string> {
  const now = await readClock(tx)
  const id = newId(now)
  await tx.query(
    `
    insert into sweeps (customer_id, id, network, address, kind, asset, amount, state, raw_transaction,
                            crypto_tx_hash, replaced, created_at, signed_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'SIGNED', $8, $9, '{}', $10, $10)`,
    [customer_id, id, network, address, kind, asset, amount, raw_transaction, crypto_tx_hash, now.text],
  )
  return id
}

/**
 * Takes a step of each record. Where one fails for itself alone, `failed` gets that, and the others go on. Throws the failure of a
 * node that does not answer, or of the connection to the database. Returns the number of steps.
 */
export async function stepEach<T>(
  records: Iterable<T>,
  nameOf: (record: T) => string,
  failed: (error: unknown) => void,
  step: (record: T) => Promise<boolean>,
): Promise<number> {
  let steps = 0
  for (const record of records)
    try {
      if (await step(record)) steps += 1
    } catch (error) {
      if ((error instanceof NodeFailure && !(error instanceof NodeRefusal)) || connectionLost(error))
        throw error
      failed(new RecordFailure(nameOf(record), error))
    }
  return steps
}

export const sweepName = ({ id }: Pick<Sweep, 'id'>): string => `sweep ${id}`

/** Runs a round. Throws an AggregateError of the failures that it was told, once all else is done. */
export async function collectingFailures(
  round: (failed: (error: unknown) => void) => Promise<number>,
): Promise<number> {
  const failures: unknown[] = []
  const steps = await round((error) => void failures.push(error))
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} sweeps failed`)
  return steps
}

/** Sets the state, unless another worker has changed the state or the bytes since they were read. */
export async function setState(db: Database, sweep: Sweep, state: 'SIGNED' | 'BROADCAST'): Promise<boolean> {
  const { rowCount } = await db.query(
    `update sweeps set state = $5, lost_since = null
     where customer_id = $1 and id = $2 and state = $3 and crypto_tx_hash = $4 and (state <> $5 or lost_since is not null)`,
    [sweep.customer_id, sweep.id, sweep.state, sweep.crypto_tx_hash, state],
  )
  return rowCount === 1
}

/** How long the network must say that a transaction can never be made before that is believed: one answer may be of a node that lags. */
const LOST_SECONDS = 300

/** Notes that the network says that a sweep can never be made. Returns whether it has said so for `LOST_SECONDS`. */
export async function isLost(db: Database, sweep: Sweep): Promise<boolean> {
  const { rows } = await db.query<{ is_lost: boolean }>(
    `
    with lost as (
      update sweeps set lost_since = coalesce(lost_since, (select clock_timestamp()))
      where customer_id = $1 and id = $2 and state = $3 and crypto_tx_hash = $4
      returning lost_since
    )
    select lost_since <= clock_timestamp() - make_interval(secs => $5) as is_lost from lost`,
    [sweep.customer_id, sweep.id, sweep.state, sweep.crypto_tx_hash, LOST_SECONDS],
  )
  return rows[0]?.is_lost === true
}

/** How a sweep has ended. VOID: it can never be made, and has cost nothing. */
export interface SweepEnd {
  state: 'DONE' | 'FAILED' | 'VOID'
  networkFee: NetworkFee
  /** The transaction that was made, where it is one that the sweep had replaced. */
  hash?: string
  /** Absent where it is the planned one. */
  amount?: string | undefined
  /** The block up to which deposits are read before its amount is held against them (`audit-sweeps.ts`). */
  auditBlock?: bigint | undefined
  /** The asset whose balance at the address has changed; absent where all may have. */
  asset?: string
}

/** Ends a sweep, has balances read again, and posts its fee, in one transaction. False where another worker has ended it. */
export async function endSweep(
  db: Database,
  network: CryptoNetwork,
  sweep: Sweep,
  { state, networkFee, hash = sweep.crypto_tx_hash, amount, auditBlock, asset }: SweepEnd,
  { post }: SweepRound,
): Promise<boolean> {
  const { customer_id, id, address } = sweep
  return transaction(db, async (tx) => {
    // This locks the row: of two workers that end the sweep, the second finds it ended and posts nothing.
    const { rowCount } = await tx.query(
      `
      update sweeps
      set state = $3, crypto_tx_hash = $4, network_fee = $5, amount = coalesce($6, amount),
          ended_at = (select clock_timestamp()), audit_block = $7
      where customer_id = $1 and id = $2 and state = $8`,
      [customer_id, id, state, hash, networkFee.amount, amount, auditBlock?.toString(), sweep.state],
    )
    if (rowCount === 0) return false
    await markStale(tx, { network }, { customer_id, address, asset })
    if (state !== 'VOID') await post(tx, { customer_id, id, network, networkFee })
    return true
  })
}

/** Tells which of a customer's sweeps have ended. */
export const endedTopUpsIn =
  (db: Database): EndedTopUps =>
  async (customerId, ids) => {
    const { rows } = await db.query<{ id: string }>(
      'select id from sweeps where customer_id = $1 and id = any ($2::uuid[]) and ended_at is not null',
      [customerId, ids],
    )
    return rows.map(({ id }) => id)
  }
