import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'

/** What the ledgers say of the money on a network, and what is on its way in or out: by asset, in minor units. */

export type Sums = Map<string, bigint>

/** Rows of sums as PostgreSQL writes them. */
export const minorByAsset = (rows: readonly { asset: string; amount: string }[]): Sums =>
  new Map(rows.map(({ asset, amount }) => [asset, parseStoredAmount(amount, decimalsOf(asset))]))

type AccountOnNetwork = `custody:${CryptoNetwork}` | `network_fees:${CryptoNetwork}`

/**
 * The sums of an account over the ledgers of all customers, by asset, in minor units. Entries of assets and losses are
 * negative, and are counted as positive here.
 */
export async function sumsOf(db: Queryable, account: AccountOnNetwork): Promise<Sums> {
  // The partial index's condition in its own words, so that the planner may use the index.
  const { rows } = await db.query<{ asset: string; amount: string }>(
    `
    select asset, -sum(amount) as amount
    from entries
    where account = $1 and (account like 'custody:%' or account like 'network_fees:%')
    group by asset having sum(amount) <> 0`,
    [account],
  )
  return minorByAsset(rows)
}

/** The amounts moved off a network's hot wallet to cold storage, less those that came back, from the platform's own ledger. */
export async function coldOn(db: Queryable, network: CryptoNetwork): Promise<Sums> {
  const { rows } = await db.query<{ asset: string; amount: string }>(
    `select asset, -sum(amount) as amount from entries where customer_id = $1 and account = $2 group by asset`,
    [PLATFORM_ID, `cold:${network}`],
  )
  return minorByAsset(rows)
}

/** Sums the deposits that are known and not credited, by asset. What `held` leaves out is left out. */
export async function arrivingOn(db: Queryable, network: CryptoNetwork): Promise<Sums> {
  const { rows } = await db.query<{ asset: string; amount: string }>(
    `
    select asset, sum(amount) as amount
    from (
      select asset, amount from incoming_transfers where network = $1 and state in ('WAITING', 'UNATTRIBUTED')
        and reason is distinct from 'HAS_TOKENS'
      union all
      select t.asset, t.amount
      from seen_deposits s
      join transfers t on t.customer_id = s.customer_id and t.id = s.transfer_id
      where s.network = $1 and s.state = 'PENDING'
    ) arriving
    group by asset`,
    [network],
  )
  return minorByAsset(rows)
}

/**
 * Sums payments that are signed but not posted, by asset: they may or may not have left the wallet. Adds an estimate of
 * their network fees: `feeFactor` times the fee that customers pay. Sweeps of deposit addresses cost only that fee.
 */
export async function leavingOn(db: Queryable, network: CryptoNetwork, feeFactor = 1n): Promise<Sums> {
  const { gasAsset } = NETWORKS[network]
  const { rows } = await db.query<{ asset: string; amount: string; count: string }>(
    `
    select asset, sum(amount) as amount, count(*)
    from (
      select t.asset, case when t.type = 'TREASURY_CONSOLIDATION' then 0 else t.amount end as amount
      from outgoing_transfers b
      join transfers t on t.customer_id = b.customer_id and t.id = b.transfer_id
      where b.network = $1 and b.state in ('ASKED', 'SIGNED', 'BROADCAST')
      union all
      select $2, 0 from sweeps where network = $1 and state in ('SIGNED', 'BROADCAST')
    ) leaving
    group by asset`,
    [network, gasAsset],
  )
  const leaving = minorByAsset(rows)
  const count = rows.reduce((sum, { count }) => sum + BigInt(count), 0n)
  const fee = parseAmount(findAsset(gasAsset)!.networks[network]!.fee, decimalsOf(gasAsset))!
  return leaving.set(gasAsset, (leaving.get(gasAsset) ?? 0n) + count * fee * feeFactor)
}

/** A transaction under way may cost this many times the schedule's fee, before its cost is taken for missing custody. */
const FEE_SPIKE_MAX = 50n

/** An asset on a network, held against custody. Amounts in minor units. */
export interface ComparedCustody {
  asset: string
  held: bigint
  in_custody: bigint
  /** The most that may be held beyond custody, if every payment under way has left; negative where some is missing. */
  most: bigint
  /** The least that may be held beyond custody: no payment under way has left, and no uncredited deposit is the platform's. */
  least: bigint
}

/**
 * Compares the amounts that the wallet holds with those that the ledgers have in custody. The ledgers are read before and
 * after the chain, because a payment that ended in between counts in only one of the readings.
 */
export async function compareCustody(
  db: Queryable,
  network: CryptoNetwork,
  readStatus: () => Promise<NetworkStatus>,
): Promise<ComparedCustody[]> {
  const ledgers = async () => ({
    custody: await sumsOf(db, `custody:${network}`),
    leaving: await leavingOn(db, network, FEE_SPIKE_MAX),
    arriving: await arrivingOn(db, network),
  })
  const before = await ledgers()
  const status = await readStatus()
  const after = await ledgers()
  return [...after.custody].map(([asset, in_custody]) => {
    const held = parseAmount(status.held[asset] ?? '0', decimalsOf(asset))!
    const beyond = [before, after].map(({ custody }) => held - (custody.get(asset) ?? 0n))
    const most = [before, after].map(({ leaving }, index) => beyond[index]! + (leaving.get(asset) ?? 0n))
    const least = [before, after].map(({ arriving }, index) => beyond[index]! - (arriving.get(asset) ?? 0n))
    return {
      asset,
      held,
      in_custody,
      most: most[0]! > most[1]! ? most[0]! : most[1]!,
      least: least[0]! < least[1]! ? least[0]! : least[1]!,
    }
  })
}
