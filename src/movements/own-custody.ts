import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../assets/catalogue.ts'
import type { Queryable } from '../db/database.ts'
import { problem } from '../contract/problems.ts'
import type { Network, Networks } from '../networks/network.ts'
import { change, need, type Change, type Kind, type Known, type Need } from '../records/need.ts'
import type { View } from './decision.ts'

/**
 * What a customer may be paid over the real networks of a sandbox: no more than has come in for it over them. A sandbox's
 * money is invented, and wires, conversions and simulated networks would turn it into coins of a real network.
 */

interface Route {
  crypto_network: CryptoNetwork
  asset: string
}

const keyOf = ({ crypto_network, asset }: Route) => `${crypto_network} ${asset}`

/** What a withdrawal takes of it. */
interface Taken extends Route {
  minor: bigint
}

/** What is left for each route, in minor units. */
export class OwnCustody implements Known<Route, bigint, Taken> {
  readonly #left: Map<string, bigint>

  private constructor(left: Map<string, bigint>) {
    this.#left = left
  }

  /**
   * Reads what is left on these routes. PENDING: all withdrawals that have not ended are taken. SIGNED: those that are
   * signed and have not ended; exact for a caller that alone signs on the network.
   */
  static async read(
    db: Queryable,
    customerId: string,
    routes: readonly Route[],
    taken: keyof typeof UNDER_WAY,
  ): Promise<OwnCustody> {
    const left = new Map<string, bigint>()
    for (const route of new Map(routes.map((one) => [keyOf(one), one])).values())
      left.set(keyOf(route), await selectLeft(db, customerId, route, taken))
    return new OwnCustody(left)
  }

  get(route: Route): bigint | undefined {
    return this.#left.get(keyOf(route))
  }

  note({ minor, ...route }: Taken): void {
    this.#left.set(keyOf(route), this.get(route)! - minor)
  }
}

/** What is left for the routes that are limited. */
const OWN_CUSTODY: Kind<Route, bigint, Taken> = {
  read: (tx, customerId, routes) => OwnCustody.read(tx, customerId, routes, 'PENDING'),
}

/** Whether a customer is paid no more over the network than has come in: never in live mode or over simulated networks. */
const isLimited = (networks: Networks, network: Network): boolean =>
  networks.get(network)?.paysDepositsOnly === true

/** Throws insufficient-funds when less than this is left of a limited route. */
export function requirePaidIn(profile_id: string, route: Route, left: bigint, minor: bigint): void {
  if (left >= minor) return
  const decimals = decimalsOf(route.asset)
  throw problem.notPaidIn(route.crypto_network, {
    profile_id,
    asset: route.asset,
    available: formatAmount(left > 0n ? left : 0n, decimals),
    needed: formatAmount(minor, decimals),
  })
}

/** The need of a movement that pays over these routes; none where they are not limited. */
export const needsOf = (networks: Networks, route: Route): Need[] =>
  isLimited(networks, route.crypto_network) ? [need(OWN_CUSTODY, route)] : []

/**
 * The change of a movement that pays this over a route which is limited; none where it is not. Throws insufficient-funds
 * when less than this is left.
 */
export function takeOwnCustody(
  view: Pick<View, 'get'>,
  networks: Networks,
  { profile_id, crypto_network, asset }: Route & { profile_id: string },
  minor: bigint,
): Change[] {
  if (!isLimited(networks, crypto_network)) return []
  const route = { crypto_network, asset }
  requirePaidIn(profile_id, route, view.get(OWN_CUSTODY, route)!, minor)
  return [change(OWN_CUSTODY, { ...route, minor })]
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
    from outgoing_transfers b
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
