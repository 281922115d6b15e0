import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database, Queryable } from '../../db/database.ts'
import type { Ask } from '../../networks/marks.ts'
import type { DepthFrom } from '../../networks/found-deposits.ts'
import type { Depth } from '../../networks/section.ts'
import type { ConfiguredNetwork } from '../../networks/open-networks.ts'
import type { LaneStatus, NetworkStatus, SignerStatus, TakenBack } from '../../networks/wallet-status.ts'
import type { WaitingReason } from '../../networks/waiting.ts'
import { arrivingOn, coldOn, leavingOn, minorByAsset, sumsOf, type Sums } from './custody.ts'
import { lookAt } from './look.ts'

export type Reported = Pick<ConfiguredNetwork, 'adapter' | 'confirmations' | 'isExperimental'>

/** An asset on a network: the amount that the adapter holds, and the amount that the ledger has in custody. */
interface Custody {
  asset: string
  held: string
  /** The hot wallet's part; absent where it holds everything. */
  hot_wallet?: string
  former_hot_wallets?: { address: string; held: string }[]
  in_custody: string
  /** In cold storage by the platform's ledger, on top of custody. Absent where the platform never moved any. */
  in_cold?: string
  /** `held` less `in_custody`; negative where some is missing. */
  difference: string
  /** Held beyond custody, where no uncredited deposit explains it: the platform's own, which nobody has acknowledged. */
  unexplained?: string
  /** Whether more is missing than signed and unposted transactions can explain. */
  short: boolean
}

/** By asset: the fees that completed withdrawals paid, and the network fees that transactions cost. */
interface FeesOf {
  asset: string
  collected: string
  paid: string
}

/** The state of a network, for operators. Amounts are decimal strings. */
export interface NetworkReport {
  crypto_network: CryptoNetwork
  /** No test runs a node of the network: its adapter is experimental. */
  experimental?: true
  reachable: boolean
  error?: string
  height?: number
  /** Which of the nodes are silent, or have not read their chain to the end. */
  behind?: string
  confirmations: Depth
  confirmations_by_value?: readonly DepthFrom[]
  custody: Custody[]
  fees: FeesOf[]
  /** What pays at the same time, where that is more than one. */
  lanes: LaneStatus[]
  signer?: SignerStatus
  below_low_mark: boolean
  /** The refills and sends to cold storage that people are asked for. */
  asks: Ask[]
  /** Payments from cold storage that are on the chain and not posted, oldest first. */
  refills: FoundRefill[]
  in_flight: Record<string, number>
  /** Those that wait for the signer process: what it is to sign is stored. Absent where there are none. */
  asked?: { count: number; oldest_seconds: number }
  /** The oldest transaction of a payment that no block has after an hour. */
  stuck?: { transfer_id: string; crypto_tx_hash: string; seconds: number }
  /** The freezes that stop signing there: of the network, and of everything. */
  frozen: { reason: string; detail: string; since: string }[]
  /** Waiting withdrawals by reason: their number, and since when the first of them waits. */
  waiting: (WaitingReason & { count: number; since: string })[]
  /** The hot wallet's confirmed transactions that the chain has dropped; the worker broadcasts them again. */
  taken_back: TakenBack[]
  /**
   * Deposits by reason: not credited yet, credited and dropped by the chain (REORGANISED), or swept without being found
   * (UNATTRIBUTED). With their number, and the time of the first.
   */
  uncredited: { reason: string; count: number; since: string }[]
}

/** Reports on the networks that are configured (`bursar networks status`). */
export async function networkReports(
  db: Database,
  networks: ReadonlyMap<CryptoNetwork, Reported>,
): Promise<NetworkReport[]> {
  return Promise.all([...networks].map(([network, configured]) => report(db, network, configured)))
}

async function report(
  db: Database,
  crypto_network: CryptoNetwork,
  { adapter, confirmations, isExperimental }: Reported,
): Promise<NetworkReport> {
  const [look, custody, cold, fees, flights, leaving, arriving, waiting, frozen, uncredited, refills] =
    await Promise.all([
      lookAt(db, crypto_network, adapter).catch((error: Error) => error),
      sumsOf(db, `custody:${crypto_network}`),
      coldOn(db, crypto_network),
      feesOn(db, crypto_network),
      inFlight(db, crypto_network),
      leavingOn(db, crypto_network),
      arrivingOn(db, crypto_network),
      waitingOn(db, crypto_network),
      freezesOn(db, crypto_network),
      uncreditedOn(db, crypto_network),
      refillsOn(db, crypto_network),
    ])
  const about = {
    crypto_network,
    ...(isExperimental && { experimental: isExperimental }),
    confirmations,
    ...(adapter.depths && adapter.depths.length > 1 && { confirmations_by_value: adapter.depths }),
    fees,
    ...flights,
    waiting,
    frozen,
    uncredited,
    refills,
  }
  if (look instanceof Error) {
    const unknown = [...custody].map(([asset, minor]) => {
      const in_custody = formatAmount(minor, decimalsOf(asset))
      return { asset, held: '?', in_custody, ...inCold(cold, asset), difference: '?', short: false }
    })
    const nothing = { below_low_mark: false, asks: [], lanes: [], taken_back: [] }
    return { ...about, reachable: false, error: look.message, ...nothing, custody: unknown }
  }
  const { status, asks } = look
  return {
    ...about,
    reachable: true,
    height: status.height,
    ...(status.behind && { behind: status.behind }),
    lanes: status.lanes ?? [],
    ...(status.signer && { signer: status.signer }),
    taken_back: status.takenBack ?? [],
    custody: custodyOf(crypto_network, status, { custody, cold, leaving, arriving }),
    below_low_mark: asks.some(({ kind }) => kind === 'REFILL'),
    asks,
  }
}

function inCold(cold: Sums, asset: string): Pick<Custody, 'in_cold'> {
  const minor = cold.get(asset)
  return minor === undefined ? {} : { in_cold: formatAmount(minor, decimalsOf(asset)) }
}

function custodyOf(
  network: CryptoNetwork,
  { held: holdings, hotWallet, formerWallets = [] }: NetworkStatus,
  { custody, cold, leaving, arriving }: Record<'custody' | 'cold' | 'leaving' | 'arriving', Sums>,
): Custody[] {
  const minorOf = (amounts: Record<string, string>, asset: string) =>
    parseAmount(amounts[asset] ?? '0', decimalsOf(asset))!
  const assets = [...new Set([...Object.keys(holdings), ...custody.keys(), ...cold.keys()])].sort()
  return assets.map((asset) => {
    const decimals = decimalsOf(asset)
    const [held, owed] = [minorOf(holdings, asset), custody.get(asset) ?? 0n]
    const beyond = held - owed - (arriving.get(asset) ?? 0n)
    // Anybody may send less than what may be withdrawn.
    const least = parseAmount(findAsset(asset)?.networks[network]?.minimum ?? '0', decimals)!
    return {
      asset,
      held: formatAmount(held, decimals),
      ...(hotWallet && { hot_wallet: formatAmount(minorOf(hotWallet, asset), decimals) }),
      ...(formerWallets.length > 0 && {
        former_hot_wallets: formerWallets.map((wallet) => ({
          address: wallet.address,
          held: formatAmount(minorOf(wallet.held, asset), decimals),
        })),
      }),
      in_custody: formatAmount(owed, decimals),
      ...inCold(cold, asset),
      difference: formatAmount(held - owed, decimals),
      ...(beyond > 0n && beyond >= least && { unexplained: formatAmount(beyond, decimals) }),
      short: held + (leaving.get(asset) ?? 0n) < owed,
    }
  })
}

/** The amounts that former hot wallets still hold. */
export const formerWalletsIn = ({ custody }: Pick<NetworkReport, 'custody'>) =>
  custody.flatMap(({ asset, former_hot_wallets = [] }) =>
    former_hot_wallets
      .filter(({ held }) => parseAmount(held, decimalsOf(asset)) !== 0n)
      .map((wallet) => ({ asset, ...wallet })),
  )

async function feesOn(db: Database, network: CryptoNetwork): Promise<FeesOf[]> {
  const [paid, { rows }] = await Promise.all([
    sumsOf(db, `network_fees:${network}`),
    db.query<{ asset: string; amount: string }>(
      `
      select asset, sum(fee) as amount
      from transfers
      where crypto_network = $1 and type = 'CRYPTO_WITHDRAWAL' and status = 'COMPLETED'
      group by asset having sum(fee) <> 0`,
      [network],
    ),
  ])
  const collected = minorByAsset(rows)
  return [...new Set([...collected.keys(), ...paid.keys()])].sort().map((asset) => {
    const text = (sums: Map<string, bigint>) => formatAmount(sums.get(asset) ?? 0n, decimalsOf(asset))
    return { asset, collected: text(collected), paid: text(paid) }
  })
}

/** In SQL: it waits for the signer process. People who sign by hand take their time. */
export const ASKS_SIGNER = `state = 'ASKED' and waiting_code is distinct from 'WAITING_SIGNATURE'`

async function inFlight(
  db: Database,
  network: CryptoNetwork,
): Promise<Pick<NetworkReport, 'in_flight' | 'asked' | 'stuck'>> {
  const { rows } = await db.query<{ state: string; count: string; asked: string; seconds: number | null }>(
    `
    select state, count(*), count(*) filter (where ${ASKS_SIGNER}) as asked,
           extract(epoch from clock_timestamp() - min(coalesce(signed_at, created_at)) filter (where ${ASKS_SIGNER}))::int as seconds
    from outgoing_transfers
    where network = $1 and state <> 'DONE'
    group by state
    order by state`,
    [network],
  )
  const { rows: stuck } = await db.query<NonNullable<NetworkReport['stuck']>>(
    `
    select transfer_id, crypto_tx_hash, extract(epoch from clock_timestamp() - signed_at)::int as seconds
    from outgoing_transfers
    where network = $1 and due_at is not null and state in ('SIGNED', 'BROADCAST') and confirmations is null
      and signed_at < clock_timestamp() - interval '1 hour'
    order by signed_at limit 1`,
    [network],
  )
  const asked = rows.find((row) => row.asked !== '0')
  return {
    in_flight: Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)])),
    ...(asked && { asked: { count: Number(asked.asked), oldest_seconds: asked.seconds! } }),
    ...(stuck[0] && { stuck: stuck[0] }),
  }
}

async function waitingOn(db: Database, network: CryptoNetwork): Promise<NetworkReport['waiting']> {
  const { rows } = await db.query<WaitingReason & { count: string; since: string }>(
    `
    select waiting_code as code, waiting_detail as detail, count(*), min(waiting_since) as since
    from outgoing_transfers
    where network = $1 and waiting_code is not null
    group by waiting_code, waiting_detail
    order by since`,
    [network],
  )
  return rows.map(({ count, ...row }) => ({ ...row, count: Number(count) }))
}

/** Reads the freezes that stop signing on a network, oldest first. */
export async function freezesOn(db: Queryable, network: CryptoNetwork): Promise<NetworkReport['frozen']> {
  const { rows } = await db.query<NetworkReport['frozen'][number]>(
    `
    select reason, detail, created_at as since
    from freezes
    where (kind, subject) in (('ALL', ''), ('NETWORK', $1)) and lifted_at is null
    order by created_at`,
    [network],
  )
  return rows
}

/** A payment from cold storage to the hot wallet that is on the chain and not posted. */
export interface FoundRefill {
  crypto_tx_hash: string
  since: string
  /** Why it could not be posted; null before the first attempt. */
  detail: string | null
}

const REFILLS_SHOWN = 20

/** Reads the refills of a network that are not posted, oldest first. */
export async function refillsOn(db: Queryable, network: CryptoNetwork): Promise<FoundRefill[]> {
  const { rows } = await db.query<FoundRefill>(
    `
    select crypto_tx_hash, found_at as since, detail
    from refills
    where network = $1
    order by found_at, crypto_tx_hash
    limit ${REFILLS_SHOWN}`,
    [network],
  )
  return rows
}

/** Reads the deposits of a network that are not credited, or were dropped by the chain, by reason. */
export async function uncreditedOn(
  db: Queryable,
  network: CryptoNetwork,
): Promise<NetworkReport['uncredited']> {
  const { rows } = await db.query<{ reason: string; count: string; since: string }>(
    `
    select case state when 'WAITING' then coalesce(reason, 'NEW') else state end as reason, count(*),
           min(found_at) as since
    from incoming_transfers
    where network = $1 and state in ('WAITING', 'REORGANISED', 'UNATTRIBUTED')
    group by 1
    order by since`,
    [network],
  )
  return rows.map(({ reason, count, since }) => ({ reason, count: Number(count), since }))
}
