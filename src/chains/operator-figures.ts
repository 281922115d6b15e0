import { formatAmount, parseAmount } from '../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { poolOf } from '../db/customer-pool.ts'
import type { Queryable } from '../db/database.ts'
import type { NetworkAdapter, NetworkStatus, Networks } from './network.ts'
import { freezesOn, sumsOf, uncreditedOn } from './network-status.ts'

/** What operators see of a network: custody, the hot wallet and what waits. Amounts are decimal strings. */
interface OperatorFigures {
  /** Absent where there is no node to ask: a simulated network. */
  reachable?: boolean
  error?: string
  height?: number
  /** The hot wallet's amount of the network's own asset, from which fees are paid. */
  hot_wallet?: { asset: string; amount: string; low_mark?: string; below_low_mark: boolean }
  custody: CustodyFigures[]
  /** The number of withdrawals that have not ended. */
  in_flight: number
  waiting: { code: string; detail: string; count: number; since: string }[]
  frozen: { reason: string; detail: string; since: string }[]
  uncredited: { reason: string; count: number; since: string }[]
}

/** An asset in custody by all customers' ledgers, and the amount that the wallet holds; the latter absent without an answer. */
interface CustodyFigures {
  asset: string
  in_custody: string
  held?: string
  /** Held beyond custody; negative where less is held. Payments under way explain a small difference. */
  difference?: string
}

/** Time for which an answer is reused. Several operators look at once, and each look asks every node. */
const FRESH_MS = 10_000
/**
 * An answer this old at most is returned while the next one is read. The sum of custody grows with the ledger: a
 * million entries of one network took 1.4 s on a loaded machine, and a page should not wait for that.
 */
const KEPT_MS = 60_000

type Figures = ReadonlyMap<CryptoNetwork, OperatorFigures>
interface KeptFigures {
  readAt: number
  /** When it was last read or began to be read again. */
  askedAt: number
  figures: Promise<Figures>
}
const kept = new WeakMap<Queryable, KeptFigures>()

/** Returns the figures of all connected networks, at most a minute old. Throws when the database does not answer. */
export function operatorFigures(asked: Queryable, networks: Networks): Promise<Figures> {
  const db = poolOf(asked)
  const known = kept.get(db)
  const now = performance.now()
  const isUsable = known !== undefined && now - known.readAt < KEPT_MS
  if (isUsable && now - known.askedAt < FRESH_MS) return known.figures
  const figures = readOperatorFigures(db, networks)
  // After a failure, the next caller reads again.
  figures.catch(() => kept.delete(db))
  if (!isUsable) {
    kept.set(db, { readAt: now, askedAt: now, figures })
    return figures
  }
  known.askedAt = now
  void figures.then(
    () => kept.set(db, { readAt: now, askedAt: now, figures }),
    () => undefined,
  )
  return known.figures
}

/** Reads the figures of all connected networks: some statements for each, and a question to each node. */
export async function readOperatorFigures(db: Queryable, networks: Networks): Promise<Figures> {
  const adapters = [...networks].flatMap(([network, adapter]) =>
    network === 'WIRE' ? [] : [[network, adapter] as const],
  )
  const unended = await unendedWithdrawals(db)
  const figures = adapters.map(async ([network, adapter]): Promise<[CryptoNetwork, OperatorFigures]> => {
    const [status, custody, frozen, uncredited] = await Promise.all([
      adapter.status?.().catch((error: Error) => error),
      adapter.status === undefined ? new Map<string, bigint>() : sumsOf(db, `custody:${network}`),
      freezesOn(db, network),
      uncreditedOn(db, network),
    ])
    const own = unended.filter((row) => row.network === network)
    return [
      network,
      {
        ...figuresOfStatus(network, adapter, status, custody),
        in_flight: own.reduce((sum, { count }) => sum + Number(count), 0),
        waiting: own.flatMap(({ code, detail, since, count }) =>
          code === null ? [] : [{ code, detail: detail!, count: Number(count), since: since! }],
        ),
        frozen,
        uncredited,
      },
    ]
  })
  return new Map(await Promise.all(figures))
}

function figuresOfStatus(
  network: CryptoNetwork,
  { lowMark }: NetworkAdapter,
  status: NetworkStatus | Error | undefined,
  custody: ReadonlyMap<string, bigint>,
): Pick<OperatorFigures, 'reachable' | 'error' | 'height' | 'hot_wallet' | 'custody'> {
  const text = (minor: bigint, asset: string) => formatAmount(minor, decimalsOf(asset))
  if (status === undefined || status instanceof Error)
    return {
      ...(status !== undefined && { reachable: false, error: status.message }),
      custody: [...custody].map(([asset, minor]) => ({ asset, in_custody: text(minor, asset) })),
    }
  const { held, hotWallet = held, height } = status
  const minorOf = (amounts: Record<string, string>, asset: string) =>
    parseAmount(amounts[asset] ?? '0', decimalsOf(asset))!
  const { gasAsset: asset } = NETWORKS[network]
  const there = minorOf(hotWallet, asset)
  const isBelow = lowMark !== undefined && there < parseAmount(lowMark, decimalsOf(asset))!
  return {
    reachable: true,
    height,
    hot_wallet: {
      asset,
      amount: text(there, asset),
      ...(lowMark !== undefined && { low_mark: lowMark }),
      below_low_mark: isBelow,
    },
    custody: [...new Set([...Object.keys(held), ...custody.keys()])].sort().map((asset) => {
      const [has, owed] = [minorOf(held, asset), custody.get(asset) ?? 0n]
      const amounts = { in_custody: owed, held: has, difference: has - owed }
      const texts = Object.entries(amounts).map(([name, minor]) => [name, text(minor, asset)])
      return { asset, ...Object.fromEntries(texts) } as CustodyFigures
    }),
  }
}

interface Unended {
  network: string
  code: string | null
  detail: string | null
  count: string
  since: string | null
}

/** Withdrawals that have not ended, by network and reason for waiting. Only they have a due_at, so the index is short. */
async function unendedWithdrawals(db: Queryable): Promise<Unended[]> {
  const { rows } = await db.query<Unended>(`
    select network, waiting_code as code, waiting_detail as detail, count(*), min(waiting_since) as since
    from outgoing_transfers
    where due_at is not null
    group by network, waiting_code, waiting_detail
    order by min(waiting_since)`)
  return rows
}
