import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../db/database.ts'

/**
 * The table of refills: transactions on the chain with which cold storage has paid a hot wallet, until they are posted. A row is a
 * hint alone: what it moved, and who paid, is asked of the nodes.
 */

export async function recordRefills(
  tx: Transaction,
  network: CryptoNetwork,
  hashes: readonly string[],
): Promise<void> {
  if (hashes.length === 0) return
  await tx.query(
    `insert into refills (network, crypto_tx_hash, found_at) select $1, unnest($2::text[]), clock_timestamp()
     on conflict (network, crypto_tx_hash) do nothing`,
    [network, hashes],
  )
}

/** Most refills of a network that are looked at in a round. */
const REFILLS_MAX = 20

/** A refill that a scan has found. Where it was posted meanwhile, nothing of it is left to do. */
interface KeptRefill {
  crypto_tx_hash: string
  is_posted: boolean
}

/** Some of the refills. Their order is random, so that those which cannot be posted never block the others. */
export async function selectRefills(db: Queryable, network: CryptoNetwork): Promise<KeptRefill[]> {
  const { rows } = await db.query<KeptRefill>(
    `
    select crypto_tx_hash, exists (
      select from acknowledged_transactions a where a.network = r.network and a.crypto_tx_hash = r.crypto_tx_hash
    ) as is_posted
    from refills r
    where network = $1
    order by random()
    limit ${REFILLS_MAX}`,
    [network],
  )
  return rows
}

export async function keepRefillDetail(
  db: Queryable,
  network: CryptoNetwork,
  hash: string,
  detail: string,
): Promise<void> {
  await db.query(
    `update refills set detail = $3
     where network = $1 and crypto_tx_hash = $2 and detail is distinct from $3`,
    [network, hash, detail],
  )
}

/** Days for which a refill that cannot be posted is kept: a reorganisation may have removed it for good. */
const KEPT_DAYS = 30

/** Forgets what could not be posted for long. What the wallet holds still shows as a difference. */
export async function forgetOldRefills(db: Queryable, network: CryptoNetwork): Promise<void> {
  await db.query(
    `delete from refills where network = $1 and found_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS})`,
    [network],
  )
}

/** Forgets a refill, in the transaction that posts it, or later. */
export async function forgetRefill(db: Queryable, network: CryptoNetwork, hash: string): Promise<void> {
  await db.query('delete from refills where network = $1 and crypto_tx_hash = $2', [network, hash])
}
