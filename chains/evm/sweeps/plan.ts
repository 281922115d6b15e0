import type { Hex } from 'viem'
import { hexToBigInt, numberToHex } from 'viem/utils'
import type { Database } from '../../../src/db/database.ts'
import { givenAmong } from '../../../src/networks/given-addresses.ts'
import { UNDER_WAY } from '../../kit/holdings.ts'
import { balancesAt, isNative, offChain, transferOf, type EvmChain } from '../chain.ts'
import { gasWithRoom, PLAIN_GAS, publishingFee, type Fees } from '../fees.ts'
import { at, headOf } from '../node.ts'
import { tryTransfers, type TransferToTry } from '../simulation.ts'
import type { EvmTransaction } from '../transaction.ts'
import { leastWorthSweeping } from './worth.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'

/** Most addresses where one call begins a sweep. */
const PLACES_MAX = 100
/** The least gas of a token's transfer. Addresses that hold less than its price are left out. */
const TOKEN_GAS_MIN = 45_000n

/** A deposit address that may hold enough of an asset to be worth the fee of sweeping it. */
export interface SweepPlace {
  customer_id: string
  address: Hex
  derivation: string
  /** Tokens first: the native asset pays for sweeping them. */
  assets: string[]
}

/** The next transaction at an address. */
export interface SweepPlan {
  kind: 'TOP_UP' | 'SWEEP'
  asset: string
  /** In units of the chain. */
  amount: bigint
  /** The wallet that it moves to; for a top-up, the wallet that the token will move to. */
  into: Hex
  gas: bigint
  fees: Pick<EvmTransaction, 'maxFeePerGas' | 'maxPriorityFeePerGas'>
  /** Why the asset is not swept after all: the token would deliver less than is sent. */
  loses?: string | undefined
}

/** The prices of gas and of assets, which decide what is worth sweeping. */
export interface SweepPrices {
  fees: Fees
  /** The price of a unit of gas of a sweep, in wei. */
  gasPrice: bigint
  prices: SweepRound['prices']
}

/** Addresses without a sweep under way that may hold an asset worth its fee. `failed` gets assets without a price. */
export async function worthSweeping(
  db: Database,
  chain: EvmChain,
  { gasPrice, prices }: SweepPrices,
  failed: (error: unknown) => void,
): Promise<SweepPlace[]> {
  const assets = [...chain.tokens.keys(), chain.gasAsset]
  const least = assets.map((asset) => {
    const gas = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS_MIN
    const units = leastWorthSweeping(chain, prices, asset, gas * gasPrice)
    return units === undefined ? null : offChain(chain, asset, units)
  })
  const { rows } = await db.query<SweepPlace & { unpriced: string[] | null }>(
    `
    select h.customer_id, h.address,
           array_agg(h.asset order by h.asset = $4, h.asset) filter (where a.least is not null) as assets,
           array_agg(h.asset) filter (where a.least is null) as unpriced,
           (select d.derivation from deposit_addresses d
            where d.customer_id = h.customer_id and d.address = h.address limit 1) as derivation
    from address_holdings h
    join unnest($2::text[], $3::numeric[]) as a (asset, least) on a.asset = h.asset and h.balance >= coalesce(a.least, 0)
    where h.network = $1 and h.balance > 0 and not ${UNDER_WAY}
    group by h.customer_id, h.address
    -- Random order, so that addresses which cannot be swept never block the others.
    order by random()
    limit ${PLACES_MAX}`,
    [chain.network, assets, least, chain.gasAsset],
  )
  for (const asset of new Set(rows.flatMap(({ unpriced }) => unpriced ?? []))) {
    const missing = [asset, chain.gasAsset].filter((symbol) => !prices.has(symbol)).join(' and ')
    failed(
      new Error(
        `${asset} is not swept: market history has no price of ${missing}; set sweep_minimum.${asset}, the amount from which on it is swept`,
      ),
    )
  }
  return (await givenAmong(chain, db, rows)).flatMap(({ customer_id, address, derivation, assets }) => {
    return (assets as string[] | null) === null ? [] : [{ customer_id, address, derivation, assets }]
  })
}

/**
 * Plans the next transaction for an asset at an address: its sweep, or a top-up of gas before that. Undefined while the
 * asset is not worth the fee, 'NOTHING_THERE' where its balance is 0.
 */
export async function planAt(
  chain: EvmChain,
  market: SweepPrices,
  address: Hex,
  asset: string,
): Promise<SweepPlan | 'NOTHING_THERE' | undefined> {
  const block = await headOf(chain.node)
  const [gas = 0n, amount = 0n, ...ofLanes] = await balancesAt(chain, block, [
    { address, asset: chain.gasAsset },
    { address, asset },
    ...chain.lanes.map((lane) => ({ address: lane.address, asset })),
  ])
  if (amount === 0n) return 'NOTHING_THERE'
  // The wallet that has the least of the asset needs it first.
  const least = ofLanes.reduce((low, units) => (units < low ? units : low))
  const place: SweepBalances = {
    chain,
    into: chain.lanes[ofLanes.indexOf(least)]!.address,
    market,
    address,
    block,
    gas,
    amount,
    publishing: await publishingFee(chain),
  }
  if (isNative(chain, asset)) return planOfNative(place, asset)
  return planOfToken(place, asset)
}

/** An address at a block, with its balance of gas and of the asset to sweep, in units of the chain. */
interface SweepBalances {
  chain: EvmChain
  market: SweepPrices
  address: Hex
  into: Hex
  block: bigint
  gas: bigint
  amount: bigint
  /** The fee for publishing one transaction to another chain, in wei. */
  publishing: bigint
}

async function planOfNative(place: SweepBalances, asset: string): Promise<SweepPlan | undefined> {
  const { market, address, into, amount, publishing } = place
  const gas = await estimate(place, { from: address, to: into, value: '0x1' })
  const cost = gas * market.gasPrice + publishing
  if (amount <= cost || !isWorth(place, asset, cost)) return undefined
  return { kind: 'SWEEP', asset, amount: amount - cost, into, gas, fees: paying(market.gasPrice) }
}

async function planOfToken(place: SweepBalances, asset: string): Promise<SweepPlan | undefined> {
  const { chain, market, address, into, gas: there, amount, publishing } = place
  const { fees, gasPrice } = market
  const { to, data } = transferOf(chain, asset, into, amount)
  const gas = await estimate(place, { from: address, to, data })
  const cost = gas * gasPrice + publishing
  const call = { from: address, to, value: '0x0', data, gas: numberToHex(gas) } as const
  if (there >= gas * fees.current + publishing) {
    // Gas that was sent for this sweep is used, also where the price has risen a little since.
    const price = there >= cost ? gasPrice : (there - publishing) / gas
    if (!isWorth(place, asset, gas * price + publishing)) return undefined
    const loses = await lossOf(place, asset, call)
    return { kind: 'SWEEP', asset, amount, into, gas, fees: paying(price), loses }
  }
  const topUpGas = await estimate(place, { from: chain.hotWallet.address, to: address, value: '0x1' })
  if (!isWorth(place, asset, cost + topUpGas * gasPrice + publishing)) return undefined
  const offered = { maxFeePerGas: fees.offer, maxPriorityFeePerGas: fees.tip }
  const topUp = {
    kind: 'TOP_UP',
    asset: chain.gasAsset,
    amount: cost - there,
    into,
    gas: topUpGas,
    fees: offered,
  } as const
  return { ...topUp, loses: await lossOf(place, asset, call) }
}

const estimate = async (
  { chain, block }: SweepBalances,
  call: { from: Hex; to: Hex; data?: Hex | undefined; value?: Hex },
): Promise<bigint> => gasWithRoom(hexToBigInt(await chain.node.call<Hex>('eth_estimateGas', call, at(block))))

function isWorth({ chain, market, amount }: SweepBalances, asset: string, cost: bigint): boolean {
  const least = leastWorthSweeping(chain, market.prices, asset, cost)
  return least !== undefined && amount >= least
}

const paying = (price: bigint) => ({ maxFeePerGas: price, maxPriorityFeePerGas: price })

/**
 * Why a token is not swept: the hot wallet would get less than is sent, where the node can tell (eth_simulateV1). The
 * customer is owed the deposit in full, so the difference would be the platform's loss.
 */
async function lossOf(
  { chain, block, into, amount }: SweepBalances,
  asset: string,
  call: TransferToTry['call'],
): Promise<string | undefined> {
  const move = { asset, recipient: into, call }
  const { trials } = await tryTransfers(chain, block, [move], [])
  const { arrives } = trials[0]!
  if (arrives === undefined || arrives >= amount) return undefined
  return (
    `${asset} is not swept: of ${offChain(chain, asset, amount)} at ${call.from}, ${offChain(chain, asset, arrives)} ` +
    `would arrive, since it takes a fee from transfers`
  )
}
