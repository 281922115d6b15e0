import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Queryable } from '../db/database.ts'
import { problem } from '../contract/problems.ts'
import type { Networks } from '../networks/network.ts'

/**
 * What a customer may be paid over the real networks of a sandbox: no more than has come in for it over them. A sandbox's
 * money is invented, and wires, conversions and simulated networks would turn it into coins of a real network.
 */

interface Route {
  crypto_network: CryptoNetwork
  asset: string
}

const keyOf = ({ crypto_network, asset }: Route) => `${crypto_network} ${asset}`

/** What is left for each route that is limited, in minor units. */
export type OwnCustodyRead = ReadonlyMap<string, bigint>

const NOT_LIMITED: OwnCustodyRead = new Map()

/** Reads what is left on those of the routes that are limited, which are none in live mode and over simulated networks. */
export async function readOwnCustody(
  db: Queryable,
  customerId: string,
  networks: Networks,
  routes: Route[],
): Promise<OwnCustodyRead> {
  const limited = routes.filter(({ crypto_network }) => networks.get(crypto_network)?.paysDepositsOnly)
  if (limited.length === 0) return NOT_LIMITED
  const left = new Map<string, bigint>()
  for (const route of limited) left.set(keyOf(route), await selectLeft(db, customerId, route, 'PENDING'))
  return left
}

/**
 * Reads what may be signed on a limited network: what is signed and has not ended is taken, what waits is not. Exact for a
 * caller that alone signs on the network.
 */
export async function readSignable(
  db: Queryable,
  customerId: string,
  crypto_network: CryptoNetwork,
  assets: string[],
): Promise<OwnCustodyRead> {
  const left = new Map<string, bigint>()
  for (const asset of new Set(assets)) {
    const route = { crypto_network, asset }
    left.set(keyOf(route), await selectLeft(db, customerId, route, 'SIGNED'))
  }
  return left
}

/** Which withdrawals count as gone. */
const UNDER_WAY = {
  PENDING: `
    select t.amount
    from transfers t
    where t.customer_id = $1 and t.status = 'PENDING' and t.type = 'CRYPTO_WITHDRAWAL'
      and t.crypto_network = $2 and t.asset = $3`,
  SIGNED: `
    select t.amount
    from broadcasts b
    join transfers t on t.customer_id = $1 and t.id = b.transfer_id
    where b.customer_id = $1 and b.network = $2 and b.state in ('SIGNED', 'BROADCAST') and t.asset = $3`,
}

/** In custody for the customer, whatever was paid in network fees, less its withdrawals that are under way. */
async function selectLeft(
  db: Queryable,
  customerId: string,
  { crypto_network, asset }: Route,
  underWay: keyof typeof UNDER_WAY,
): Promise<bigint> {
  // With the condition of the index, in its words.
  const { rows } = await db.query<{ left: string }>(
    `
    select (
        select coalesce(-sum(amount), 0)
        from entries
        where customer_id = $1 and asset = $3
          and account = any (array['custody:' || $2::text, 'network_fees:' || $2::text])
          and (account like 'custody:%' or account like 'network_fees:%')
      ) - (select coalesce(sum(amount), 0) from (${UNDER_WAY[underWay]}) under_way) as left`,
    [customerId, crypto_network, asset],
  )
  return parseStoredAmount(rows[0]!.left, decimalsOf(asset))
}

/** Of some withdrawals that are decided in turn: what one takes, the next has not. */
export class OwnCustody {
  #left: Map<string, bigint>

  constructor(read: OwnCustodyRead) {
    this.#left = new Map(read)
  }

  /** Throws insufficient-funds when the route is limited and less than this is left of it. */
  take(profile_id: string, route: Route, minor: bigint): void {
    const left = this.#left.get(keyOf(route))
    if (left === undefined) return
    const decimals = decimalsOf(route.asset)
    if (left < minor)
      throw problem.notPaidIn(route.crypto_network, {
        profile_id,
        asset: route.asset,
        available: formatAmount(left > 0n ? left : 0n, decimals),
        needed: formatAmount(minor, decimals),
      })
    this.#left.set(keyOf(route), left - minor)
  }
}
