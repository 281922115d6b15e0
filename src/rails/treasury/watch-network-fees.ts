import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { freeze, isFrozenFor, type FreezeTarget } from '../../money/records/freezes.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { FEES_FACTOR_DECIMALS, type NetworkAdapter } from '../../networks/network.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { pricesIn, type RailsContext } from '../context.ts'

const LOOP = originOfLoop('network_fees')

const WINDOW_HOURS = 24

/** The cost of a network's transactions, and the fees that the withdrawals among them paid, in minor units. */
interface FeesOfDay {
  /** In the network's own asset; without the cost of failed withdrawals. */
  spent: bigint
  /** The cost of each customer's failed withdrawals, in the network's own asset. They were refunded with their fees. */
  failed: ReadonlyMap<string, bigint>
  /** By asset. */
  taken: ReadonlyMap<string, bigint>
}

export interface NetworkFeesFound {
  /** Frozen just now: the network at most once, and any number of customers. */
  frozen: { target: FreezeTarget; detail: string }[]
  /** Assets of fees that count for nothing, because market history has no price of them. */
  unpriced: string[]
}

/**
 * Stops payouts over a network (freeze NETWORK_FEES) when its transactions of the last 24 hours have cost more than the
 * withdrawals among them paid in fees. The network's section names the factor and the minimum of that loss. Where the failed
 * withdrawals of one customer have cost the minimum, that customer is frozen instead, and these costs do not count for the
 * network: one customer can make withdrawals fail on purpose, and must not stop everybody's. Transfers of the platform
 * itself do not count. Costs before the last such freeze do not count, so that the same money does not freeze again once it
 * is lifted.
 */
export async function watchNetworkFees(
  { db, settings }: Pick<RailsContext, 'db' | 'settings'>,
  network: CryptoNetwork,
  { feesLoss }: Pick<NetworkAdapter, 'feesLoss'>,
): Promise<NetworkFeesFound> {
  const found: NetworkFeesFound = { frozen: [], unpriced: [] }
  if (feesLoss === undefined) return found
  const target: FreezeTarget = { kind: 'NETWORK', network }
  const { gasAsset } = NETWORKS[network]
  const prices = await pricesIn({ db, settings })
  return transaction(db, async (tx) => {
    if (await isFrozenFor(tx, target, 'NETWORK_FEES')) {
      await countFromNow(tx, network)
      return found
    }
    const { spent: others, failed, taken } = await feesOfDay(tx, network)
    const least = parseAmount(feesLoss.minimum, decimalsOf(gasAsset))!
    const text = (minor: bigint, asset: string) => `${formatAmount(minor, decimalsOf(asset))} ${asset}`
    let spent = others
    for (const [customer_id, cost] of failed) {
      const customer: FreezeTarget = { kind: 'CUSTOMER', customer_id }
      const isFrozen = await isFrozenFor(tx, customer, 'NETWORK_FEES')
      if (!isFrozen && cost < least) {
        spent += cost
        continue
      }
      await countCustomerFromNow(tx, customer_id, network)
      if (isFrozen) continue
      const detail =
        `withdrawals over ${network} that the network reverted have cost ${text(cost, gasAsset)} within ${WINDOW_HOURS} hours: ` +
        `at least ${text(least, gasAsset)} (fees_loss_minimum)`
      await freeze(tx, LOOP, customer, 'NETWORK_FEES', detail)
      found.frozen.push({ target: customer, detail })
    }
    if (spent < least) return found
    const { paid, unpriced } = inGasAsset(gasAsset, taken, prices)
    found.unpriced.push(...unpriced)
    if (!isLoss(spent, paid, least, feesLoss.factor)) return found
    const takenTexts = [...taken].map(([asset, minor]) => text(minor, asset))
    const detail =
      `transactions have cost ${text(spent, gasAsset)} within ${WINDOW_HOURS} hours, and the withdrawals among them paid ` +
      `${takenTexts.length === 0 ? 'nothing' : takenTexts.join(' and ')} in fees: more than ${feesLoss.factor} times as much ` +
      `(fees_loss_factor)${unpriced.length === 0 ? '' : `; ${unpriced.join(' and ')} counted for nothing, without a price`}`
    await freeze(tx, LOOP, target, 'NETWORK_FEES', detail)
    await countFromNow(tx, network)
    found.frozen.push({ target, detail })
    return found
  })
}

const countCustomerFromNow = (tx: Transaction, customerId: string, network: CryptoNetwork) =>
  tx.query(
    `
    insert into customer_fee_checks (customer_id, network, counted_from) values ($1, $2, clock_timestamp())
    on conflict (customer_id, network) do update set counted_from = excluded.counted_from`,
    [customerId, network],
  )

const countFromNow = (tx: Transaction, network: CryptoNetwork) =>
  tx.query(
    `
    insert into network_fee_checks (network, counted_from) values ($1, clock_timestamp())
    on conflict (network) do update set counted_from = excluded.counted_from`,
    [network],
  )

/** A withdrawal's fee counts together with the cost of its transaction, at the event that ended the withdrawal. */
async function feesOfDay(tx: Transaction, network: CryptoNetwork): Promise<FeesOfDay> {
  // Otherwise the planner may read all transfers. A lateral or materialized subquery would break rule 6 of
  // src/db/distribution.ts.
  await tx.query('set local enable_hashjoin = off; set local enable_mergejoin = off')
  // The partial index's condition in its own words, so that the planner may use the index.
  const { rows } = await tx.query<{
    kind: 'SPENT' | 'FAILED' | 'TAKEN'
    customer_id: string | null
    asset: string
    amount: string
  }>(
    `
    with posted as not materialized (
      select customer_id, transfer_id, event, asset, amount, created_at
      from entries
      where account = $1 and account like 'network_fees:%' and customer_id <> '${PLATFORM_ID}'
        and created_at > greatest(clock_timestamp() - make_interval(hours => $2),
                                  (select counted_from from network_fee_checks where network = $3))
    )
    select 'SPENT' as kind, null as customer_id, asset, -sum(amount) as amount
    from posted
    where event <> 'REFUNDED'
    group by asset
    union all
    select 'FAILED', p.customer_id, p.asset, -sum(p.amount)
    from posted p
    left join customer_fee_checks c on c.customer_id = p.customer_id and c.network = $3
    where p.event = 'REFUNDED' and p.created_at > coalesce(c.counted_from, '-infinity')
    group by p.customer_id, p.asset
    union all
    select 'TAKEN', null, t.asset, sum(t.fee)
    from posted p
    join transfers t on t.customer_id = p.customer_id and t.id = p.transfer_id
    where p.event = 'SETTLED'
    group by t.asset`,
    [`network_fees:${network}`, WINDOW_HOURS, network],
  )
  let spent = 0n
  const [failed, taken] = [new Map<string, bigint>(), new Map<string, bigint>()]
  for (const { kind, customer_id, asset, amount } of rows) {
    const minor = parseStoredAmount(amount, decimalsOf(asset))
    if (kind === 'SPENT') spent += minor
    else if (kind === 'FAILED') failed.set(customer_id!, minor)
    else if (minor > 0n) taken.set(asset, minor)
  }
  return { spent, failed, taken }
}

/**
 * Fees in the network's own asset, by the newest prices. A fee that has no price counts for nothing and is reported: a
 * missing price must not prevent the freeze.
 */
function inGasAsset(
  gasAsset: string,
  taken: FeesOfDay['taken'],
  prices: UsdPrices,
): { paid: bigint; unpriced: string[] } {
  const unpriced: string[] = []
  let paid = taken.get(gasAsset) ?? 0n
  const gasPrice = prices.get(gasAsset)
  for (const [asset, minor] of taken) {
    if (asset === gasAsset) continue
    const price = prices.get(asset)
    if (price === undefined || gasPrice === undefined || gasPrice === 0n) unpriced.push(asset)
    else
      paid +=
        (minor * price * 10n ** BigInt(decimalsOf(gasAsset))) / (gasPrice * 10n ** BigInt(decimalsOf(asset)))
  }
  return { paid, unpriced }
}

/** Whether the costs are above the fees by the factor, and by at least `least`: all in the network's own asset. */
function isLoss(spent: bigint, paid: bigint, least: bigint, factor: string): boolean {
  const unit = 10n ** BigInt(FEES_FACTOR_DECIMALS)
  return spent - paid >= least && spent * unit > paid * parseAmount(factor, FEES_FACTOR_DECIMALS)!
}
