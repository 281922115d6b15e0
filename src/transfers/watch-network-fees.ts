import { formatAmount, parseAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import { freeze, type FreezeTarget } from '../ledger/records/freezes.ts'
import { usdPrices, type UsdPrices } from '../ledger/usd-prices.ts'
import { FEES_FACTOR_DECIMALS, type NetworkAdapter } from '../networks/networks.ts'

/** The time that is looked at. */
const WINDOW_HOURS = 24
/** Prices are a unit's, times 10^18. */
const SCALE_DECIMALS = 18

/** What a network's transactions have cost, and what the withdrawals among them paid in fees, in minor units by asset. */
interface FeesOfDay {
  spent: bigint
  taken: ReadonlyMap<string, bigint>
}

/**
 * Stops payouts over a network (freeze NETWORK_FEES) when its transactions of the last 24 hours have cost more than the fees
 * that the withdrawals among them paid, by the factor and by the minimum that its section names. What was spent before the
 * last such freeze counts no more, so that lifting it does not freeze again for the same money. Gives the freeze's
 * detail when it froze just now. Throws an Error when a price is missing that it takes to compare.
 */
export async function watchNetworkFees(
  db: Database,
  network: CryptoNetwork,
  { feesLoss }: Pick<NetworkAdapter, 'feesLoss'>,
  { simulatedPrices }: { simulatedPrices: boolean },
): Promise<string | undefined> {
  if (feesLoss === undefined) return undefined
  const target: FreezeTarget = { kind: 'NETWORK', network }
  const { gasAsset } = NETWORKS[network]
  const prices = await usdPrices(db, simulatedPrices)
  return transaction(db, async (tx) => {
    if (await isStopped(tx, network)) {
      await countFromNow(tx, network)
      return undefined
    }
    const fees = await feesOfDay(tx, network)
    const least = parseAmount(feesLoss.minimum, decimalsOf(gasAsset))!
    if (fees.spent < least || !isLoss(network, fees, least, feesLoss.factor, prices)) return undefined
    const text = (minor: bigint, asset: string) => `${formatAmount(minor, decimalsOf(asset))} ${asset}`
    const taken = [...fees.taken].map(([asset, minor]) => text(minor, asset))
    const detail =
      `transactions have cost ${text(fees.spent, gasAsset)} within ${WINDOW_HOURS} hours, and the withdrawals among them paid ` +
      `${taken.length === 0 ? 'nothing' : taken.join(' and ')} in fees: more than ${feesLoss.factor} times as much ` +
      `(fees_loss_factor)`
    await freeze(tx, target, 'NETWORK_FEES', detail)
    await countFromNow(tx, network)
    return detail
  })
}

async function isStopped(tx: Transaction, network: CryptoNetwork): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from freezes where kind = 'NETWORK' and subject = $1 and reason = 'NETWORK_FEES'`,
    [network],
  )
  return rowCount! > 0
}

async function countFromNow(tx: Transaction, network: CryptoNetwork): Promise<void> {
  await tx.query(
    `
    insert into network_fee_checks (network, counted_from) values ($1, clock_timestamp())
    on conflict (network) do update set counted_from = excluded.counted_from`,
    [network],
  )
}

/** A withdrawal's fee counts with what its transaction has cost: in the event that ended it. */
async function feesOfDay(tx: Transaction, network: CryptoNetwork): Promise<FeesOfDay> {
  // The condition of the index, in its words, so that the planner knows that it may be used.
  const { rows } = await tx.query<{ kind: 'SPENT' | 'TAKEN'; asset: string; amount: string }>(
    `
    with posted as materialized (
      select customer_id, transfer_id, event, asset, amount
      from entries
      where account = $1 and account like 'network_fees:%'
        and created_at > greatest(clock_timestamp() - make_interval(hours => $2),
                                  (select counted_from from network_fee_checks where network = $3))
    )
    select 'SPENT' as kind, asset, -sum(amount) as amount from posted group by asset
    union all
    select 'TAKEN', t.asset, sum(t.fee)
    from posted p
    cross join lateral (
      select asset, fee from transfers where customer_id = p.customer_id and id = p.transfer_id offset 0
    ) t
    where p.event = 'SETTLED'
    group by t.asset`,
    [`network_fees:${network}`, WINDOW_HOURS, network],
  )
  const minorOf = ({ asset, amount }: { asset: string; amount: string }) =>
    parseStoredAmount(amount, decimalsOf(asset))
  const spent = rows.filter(({ kind }) => kind === 'SPENT').reduce((sum, row) => sum + minorOf(row), 0n)
  const taken = rows.flatMap((row) =>
    row.kind === 'TAKEN' && minorOf(row) > 0n ? [[row.asset, minorOf(row)] as const] : [],
  )
  return { spent, taken: new Map(taken) }
}

/** Whether the costs are above the fees by the factor, and by at least `least` of the network's own asset. */
function isLoss(
  network: CryptoNetwork,
  { spent, taken }: FeesOfDay,
  least: bigint,
  factor: string,
  prices: UsdPrices,
): boolean {
  const { gasAsset } = NETWORKS[network]
  // Where fees are in the network's own asset alone, no price is needed.
  const needed = [...taken.keys()].every((asset) => asset === gasAsset) ? [] : [gasAsset, ...taken.keys()]
  const missing = needed.filter((asset) => !prices.has(asset))
  if (missing.length > 0)
    throw new Error(
      `the fees of ${network} are not compared with its costs: market history has no price of ${missing.join(' and ')}`,
    )
  const valueOf = (asset: string, minor: bigint) => {
    const price = needed.length === 0 ? 1n : prices.get(asset)!
    return minor * price * 10n ** BigInt(SCALE_DECIMALS - decimalsOf(asset))
  }
  const cost = valueOf(gasAsset, spent)
  const paid = [...taken].reduce((sum, [asset, minor]) => sum + valueOf(asset, minor), 0n)
  const one = 10n ** BigInt(FEES_FACTOR_DECIMALS)
  return (
    cost - paid >= valueOf(gasAsset, least) && cost * one > paid * parseAmount(factor, FEES_FACTOR_DECIMALS)!
  )
}
