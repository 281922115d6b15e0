import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { problem } from '../../contract/problems.ts'
import type { PayoutNetwork, Networks } from '../../networks/network.ts'
import { change, need, type Change, type RecordKind, type KnownRecords, type Need } from '../records/need.ts'
import type { View } from './decision.ts'

/**
 * Limits payouts over the real networks of a sandbox: a customer is paid no more than it has deposited over them. A
 * sandbox's money is invented, and wires, conversions and simulated networks would turn it into real coins.
 */

interface Route {
  crypto_network: CryptoNetwork
  asset: string
}

const keyOfCustody = ({ crypto_network, asset }: Route) => `${crypto_network} ${asset}`

/** The amount that a withdrawal takes from a route. */
interface Taken extends Route {
  minor: bigint
}

/** The spendable amount of each route, in minor units. */
export class OwnCustody implements KnownRecords<Route, bigint, Taken> {
  readonly #spendable: Map<string, bigint>

  private constructor(spendable: Map<string, bigint>) {
    this.#spendable = spendable
  }

  /**
   * Reads the spendable amount of these routes. PENDING subtracts all withdrawals that have not ended. SIGNED
   * subtracts only signed withdrawals that have not ended, which is exact for the only signer of the network.
   */
  static async read(
    db: Queryable,
    customerId: string,
    routes: readonly Route[],
    taken: keyof typeof UNDER_WAY,
  ): Promise<OwnCustody> {
    const spendable = new Map<string, bigint>()
    for (const route of new Map(routes.map((route) => [keyOfCustody(route), route])).values())
      spendable.set(keyOfCustody(route), await selectSpendable(db, customerId, route, taken))
    return new OwnCustody(spendable)
  }

  get(route: Route): bigint | undefined {
    return this.#spendable.get(keyOfCustody(route))
  }

  note({ minor, ...route }: Taken): void {
    this.#spendable.set(keyOfCustody(route), this.get(route)! - minor)
  }
}

/** The spendable amounts of limited routes. */
const OWN_CUSTODY: RecordKind<Route, bigint, Taken> = {
  read: (tx, customerId, routes) => OwnCustody.read(tx, customerId, routes, 'PENDING'),
}

/**
 * Whether payouts over the network are limited to the customer's deposits. Never in live mode or over simulated
 * networks.
 */
const isLimited = (networks: Networks, network: PayoutNetwork): boolean =>
  networks.get(network)?.paysDepositsOnly === true

/** Throws insufficient-funds when the spendable amount of a limited route is less than `minor`. */
export function requirePaidIn(profile_id: string, route: Route, spendable: bigint, minor: bigint): void {
  if (spendable >= minor) return
  const decimals = decimalsOf(route.asset)
  throw problem.notPaidIn(route.crypto_network, {
    profile_id,
    asset: route.asset,
    available: formatAmount(spendable > 0n ? spendable : 0n, decimals),
    needed: formatAmount(minor, decimals),
  })
}

/** Returns the need of a movement that pays over this route; none where the route is not limited. */
export const needsOf = (networks: Networks, route: Route): Need[] =>
  isLimited(networks, route.crypto_network) ? [need(OWN_CUSTODY, route)] : []

/**
 * Returns the change of a movement that pays this amount over a limited route; none where the route is not limited.
 * Throws insufficient-funds when the spendable amount is too small.
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
    where b.customer_id = $1 and b.network = $2 and b.state in ('ASKED', 'SIGNED', 'BROADCAST') and t.asset = $3`,
}

/** Reads the customer's custody on the route, network fees added back, less its withdrawals under way. */
async function selectSpendable(
  db: Queryable,
  customerId: string,
  { crypto_network, asset }: Route,
  underWay: keyof typeof UNDER_WAY,
): Promise<bigint> {
  // Repeats the condition of the partial index literally, so that the planner uses it.
  const { rows } = await db.query<{ spendable: string }>(
    `
    select (
        select coalesce(-sum(amount), 0)
        from entries
        where customer_id = $1 and asset = $3
          and account = any (array['custody:' || $2::text, 'network_fees:' || $2::text])
          and (account like 'custody:%' or account like 'network_fees:%')
      ) - (select coalesce(sum(amount), 0) from (${UNDER_WAY[underWay]}) under_way) as spendable`,
    [customerId, crypto_network, asset],
  )
  return parseStoredAmount(rows[0]!.spendable, decimalsOf(asset))
}
