import type { Database, Queryable } from '../../src/db/database.ts'
import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { givenAmong, type AreGiven } from '../../src/networks/given-addresses.ts'

/** What deposit addresses hold, as `address_holdings` records it. */

/**
 * Marks a balance to be read again, or all of an address: a sweep has ended, or the chain has none where this database has
 * one, as after a sweep that a restored database does not know.
 */
export async function markStale(
  db: Queryable,
  { network }: { network: string },
  { customer_id, address, asset }: { customer_id: string; address: string; asset?: string | undefined },
): Promise<void> {
  await db.query(
    `update address_holdings set stale_at = (select clock_timestamp())
     where customer_id = $1 and network = $2 and address = $3 and ($4::text is null or asset = $4)`,
    [customer_id, network, address, asset],
  )
}

/** The recorded balance of an asset at a deposit address. */
export interface Holding {
  customer_id: string
  address: string
  asset: string
  /** A decimal string. */
  balance: string
}

/** In SQL, whether the address of a row `h` has a sweep under way. */
export const UNDER_WAY = `exists (
  select 1 from sweeps s
  where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
    and s.state in ('SIGNED', 'BROADCAST'))`

/**
 * The sums of what deposit addresses hold of these assets, in units of the chain. Balances that may have changed, because
 * they are stale or a sweep is under way, are read again by `read`.
 */
export async function heldAtAddresses(
  db: Database,
  chain: { network: CryptoNetwork; areGiven?: AreGiven | undefined },
  assets: readonly string[],
  {
    read,
    unitsOf,
  }: {
    read: (holdings: Holding[]) => Promise<bigint[]>
    unitsOf: (asset: string, amount: string) => bigint
  },
): Promise<Map<string, bigint>> {
  const { rows } = await db.query<Holding & { is_uncertain: boolean }>(
    `
    select h.customer_id, h.address, h.asset, h.balance, h.stale_at is not null or ${UNDER_WAY} as is_uncertain
    from address_holdings h
    where h.network = $1 and h.asset = any ($2) and (h.balance > 0 or h.stale_at is not null)
    order by h.customer_id`,
    [chain.network, assets],
  )
  const given = await givenAmong(chain, db, rows)
  const uncertain = given.filter(({ is_uncertain }) => is_uncertain)
  const balances = await read(uncertain)
  const now = new Map<Holding, bigint>(uncertain.map((holding, index) => [holding, balances[index]!]))
  const sums = new Map<string, bigint>()
  for (const holding of given) {
    const units = now.get(holding) ?? unitsOf(holding.asset, holding.balance)
    sums.set(holding.asset, (sums.get(holding.asset) ?? 0n) + units)
  }
  return sums
}
