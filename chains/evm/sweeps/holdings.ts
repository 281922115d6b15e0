import type { Hex } from 'viem'
import type { Database, Queryable } from '../../../src/db/database.ts'
import { UNDER_WAY, type Holding } from '../../kit/holdings.ts'
import { balancesAt, offChain, type EvmChain } from '../chain.ts'
import { headOf } from '../node.ts'
import { arraysOf } from '../../../src/db/rows.ts'

/** The balances of deposit addresses, as `address_holdings` records them. */

/** Most balances that one statement refreshes, and for how long one call begins further statements. */
const REFRESHED_MAX = 500
const REFRESH_MS_MAX = 5_000

/** Notes that these balances have changed, as by a deposit, so that they are read and swept. */
export async function noteHoldings(
  db: Queryable,
  { network }: EvmChain,
  places: readonly { customer_id: string; address: string; asset: string }[],
): Promise<void> {
  await db.query(
    `
    insert into address_holdings (customer_id, network, address, asset, balance, stale_at)
    -- The statement's time: clock_timestamp() differs for each row, so that distinct would leave several of a place.
    select distinct customer_id, $4, address, asset, 0, statement_timestamp()
    from unnest($1::uuid[], $2::text[], $3::text[]) as found (customer_id, address, asset)
    on conflict (customer_id, network, address, asset) do update set stale_at = excluded.stale_at`,
    [...arraysOf(places, 'customer_id', 'address', 'asset'), network],
  )
}

/** Reads the stale balances of addresses without a sweep under way, as many as there is time for. */
export async function refreshStale(db: Database, chain: EvmChain): Promise<void> {
  const end = performance.now() + REFRESH_MS_MAX
  while ((await refreshSome(db, chain)) === REFRESHED_MAX && performance.now() < end);
}

async function refreshSome(db: Database, chain: EvmChain): Promise<number> {
  const { rows: stale } = await db.query<
    Pick<Holding, 'customer_id' | 'asset'> & { address: Hex; stale_at: string }
  >(
    `
    select h.customer_id, h.address, h.asset, h.stale_at
    from address_holdings h
    where h.network = $1 and h.stale_at is not null and not ${UNDER_WAY}
    order by h.stale_at
    limit $2`,
    [chain.network, REFRESHED_MAX],
  )
  if (stale.length === 0) return 0
  const balances = await balancesAt(chain, await headOf(chain.node), stale)
  await db.query(
    `
    update address_holdings h set balance = seen.balance, stale_at = null
    from unnest($2::uuid[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])
      as seen (customer_id, address, asset, balance, stale_at)
    where h.customer_id = seen.customer_id and h.network = $1 and h.address = seen.address and h.asset = seen.asset
      and h.stale_at = seen.stale_at`,
    [
      chain.network,
      ...arraysOf(stale, 'customer_id', 'address', 'asset'),
      stale.map(({ asset }, index) => offChain(chain, asset, balances[index]!)),
      stale.map(({ stale_at }) => stale_at),
    ],
  )
  return stale.length
}
