import type { Hex } from 'viem'
import type { Database } from '../../../src/db/database.ts'
import { givenAmong } from '../../../src/networks/given-addresses.ts'
import { balancesAt, offChain, onChain, type EvmChain } from '../chain.ts'
import { headOf } from '../node.ts'
import { arraysOf } from '../../../src/db/rows.ts'

/** The balances of deposit addresses, as `evm_holdings` records them. */

/** Most balances that one statement refreshes, and for how long one call begins further statements. */
const REFRESHED_MAX = 500
const REFRESH_MS_MAX = 5_000

/** Notes that these addresses have received deposits, so that their balances are read and swept. */
export async function noteHoldings(
  db: Database,
  { network }: EvmChain,
  places: readonly { customer_id: string; address: string; asset: string }[],
): Promise<void> {
  await db.query(
    `
    insert into evm_holdings (customer_id, network, address, asset, balance, stale_at)
    -- The statement's time: clock_timestamp() differs for each row, so that distinct would leave several of a place.
    select distinct customer_id, $4, address, asset, 0, statement_timestamp()
    from unnest($1::uuid[], $2::text[], $3::text[]) as found (customer_id, address, asset)
    on conflict (customer_id, network, address, asset) do update set stale_at = excluded.stale_at`,
    [...arraysOf(places, 'customer_id', 'address', 'asset'), network],
  )
}

/** The recorded balance of an asset at a deposit address. */
interface Holding {
  customer_id: string
  address: Hex
  asset: string
  balance: string
  stale_at: string | null
  under_way: boolean
}

const HOLDINGS = `
  select h.customer_id, h.address, h.asset, h.balance, h.stale_at,
         exists (select 1 from evm_sweeps s
                 where s.customer_id = h.customer_id and s.network = h.network and s.address = h.address
                   and s.state in ('SIGNED', 'BROADCAST')) as under_way
  from evm_holdings h
  where h.network = $1`

/** Reads the stale balances of addresses without a sweep under way, as many as there is time for. */
export async function refreshStale(db: Database, chain: EvmChain): Promise<void> {
  const end = performance.now() + REFRESH_MS_MAX
  while ((await refreshSome(db, chain)) === REFRESHED_MAX && performance.now() < end);
}

async function refreshSome(db: Database, chain: EvmChain): Promise<number> {
  const { rows: stale } = await db.query<Holding>(
    `select * from (${HOLDINGS} and h.stale_at is not null) stale
     where not under_way order by stale_at limit $2`,
    [chain.network, REFRESHED_MAX],
  )
  if (stale.length === 0) return 0
  const balances = await balancesAt(chain, await headOf(chain.node), stale)
  await db.query(
    `
    update evm_holdings h set balance = seen.balance, stale_at = null
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

/** The sums of the balances of deposit addresses at a block, by asset, in units of the chain. Reads stale balances again. */
export async function unswept(db: Database, chain: EvmChain, block: bigint): Promise<Map<string, bigint>> {
  const { rows } = await db.query<Holding>(
    `${HOLDINGS} and (h.balance > 0 or h.stale_at is not null) order by h.customer_id`,
    [chain.network],
  )
  const given = await givenAmong(chain, db, rows)
  const known = given.filter(({ asset }) => asset === chain.gasAsset || chain.tokens.has(asset))
  const uncertain = known.filter(({ stale_at, under_way }) => stale_at !== null || under_way)
  const balances = await balancesAt(chain, block, uncertain)
  const now = new Map(uncertain.map((holding, index) => [holding, balances[index]!]))
  const sums = new Map<string, bigint>()
  for (const holding of known) {
    const units = now.get(holding) ?? onChain(chain, holding.asset, holding.balance)
    sums.set(holding.asset, (sums.get(holding.asset) ?? 0n) + units)
  }
  return sums
}
