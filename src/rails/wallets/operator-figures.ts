import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { poolOf } from '../../db/customer-pool.ts'
import { forAll, type Queryable } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import type { LaneStatus, SignerStatus } from '../../networks/wallet-status.ts'
import { lookAt, type Look } from './look.ts'
import type { Ask } from '../../networks/marks.ts'
import { sumsOf } from './custody.ts'
import { ASKS_SIGNER, freezesOn, refillsOn, uncreditedOn, type FoundRefill } from './network-status.ts'

/** What operators see of a network: custody, the hot wallet and what waits. Amounts are decimal strings. */
interface OperatorFigures {
  /** Absent where there is no node to ask: a simulated network. */
  reachable?: boolean
  error?: string
  height?: number
  /** The hot wallet's amount of the network's own asset, from which fees are paid. */
  hot_wallet?: { asset: string; amount: string; low_mark?: string; below_low_mark: boolean }
  custody: CustodyFigures[]
  /** What pays at the same time, and the process that signs for it; absent where there is no more than one wallet. */
  lanes?: LaneFigures[]
  signer?: SignerStatus
  /** Withdrawals that wait for the signer process, and since when the first does; absent where there are none. */
  asked?: { count: number; since: string }
  in_flight: number
  waiting: { code: string; detail: string; count: number; since: string }[]
  frozen: { reason: string; detail: string; since: string }[]
  uncredited: { reason: string; count: number; since: string }[]
  /** The refills and sends to cold storage that people are asked for. */
  asks: Ask[]
  refills: (Omit<FoundRefill, 'detail'> & { detail?: string })[]
}

type LaneFigures = Omit<LaneStatus, 'held'> & { holds: { asset: string; amount: string }[] }

const amountsOf = (held: Record<string, string>) =>
  Object.entries(held).map(([asset, amount]) => ({ asset, amount }))

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
  const db = forAll(poolOf(asked))
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
    const isReal = adapter.status !== undefined
    const [look, custody, frozen, uncredited, refills] = await Promise.all([
      isReal ? lookAt(db, network, adapter).catch((error: Error) => error) : undefined,
      isReal ? sumsOf(db, `custody:${network}`) : new Map<string, bigint>(),
      freezesOn(db, network),
      uncreditedOn(db, network),
      isReal ? refillsOn(db, network) : [],
    ])
    const own = unended.filter((row) => row.network === network)
    const asked = own.filter((row) => row.asked_since !== null)
    const askedSince = asked.map((row) => row.asked_since!).sort()[0]
    return [
      network,
      {
        ...figuresOfLook(network, adapter, look, custody),
        ...(askedSince !== undefined && {
          asked: { count: asked.reduce((sum, row) => sum + Number(row.asked), 0), since: askedSince },
        }),
        in_flight: own.reduce((sum, { count }) => sum + Number(count), 0),
        waiting: own.flatMap(({ code, detail, since, count }) =>
          code === null ? [] : [{ code, detail: detail!, count: Number(count), since: since! }],
        ),
        frozen,
        uncredited,
        refills: refills.map((one) => presentOf(one)),
      },
    ]
  })
  return new Map(await Promise.all(figures))
}

function figuresOfLook(
  network: CryptoNetwork,
  { treasury }: NetworkAdapter,
  look: Look | Error | undefined,
  custody: ReadonlyMap<string, bigint>,
): Omit<OperatorFigures, 'asked' | 'in_flight' | 'waiting' | 'frozen' | 'uncredited' | 'refills'> {
  const text = (minor: bigint, asset: string) => formatAmount(minor, decimalsOf(asset))
  if (look === undefined || look instanceof Error)
    return {
      ...(look !== undefined && { reachable: false, error: look.message }),
      asks: [],
      custody: [...custody].map(([asset, minor]) => ({ asset, in_custody: text(minor, asset) })),
    }
  const { status, asks } = look
  const { held, hotWallet = held, height, lanes, signer } = status
  const minorOf = (amounts: Record<string, string>, asset: string) =>
    parseAmount(amounts[asset] ?? '0', decimalsOf(asset))!
  const { gasAsset: asset } = NETWORKS[network]
  const low = treasury?.marks[asset]?.low
  return {
    reachable: true,
    height,
    hot_wallet: {
      asset,
      amount: text(minorOf(hotWallet, asset), asset),
      ...(low !== undefined && { low_mark: low }),
      below_low_mark: asks.some((one) => one.kind === 'REFILL' && one.asset === asset),
    },
    asks,
    ...(lanes && {
      lanes: lanes.map(({ held: ofLane = {}, ...lane }) => ({ ...lane, holds: amountsOf(ofLane) })),
    }),
    ...(signer && { signer }),
    custody: [...new Set([...Object.keys(held), ...custody.keys()])].sort().map((asset) => {
      const [has, owed] = [minorOf(held, asset), custody.get(asset) ?? 0n]
      const difference = text(has - owed, asset)
      return { asset, in_custody: text(owed, asset), held: text(has, asset), difference }
    }),
  }
}

interface Unended {
  network: string
  code: string | null
  detail: string | null
  count: string
  since: string | null
  asked: string
  asked_since: string | null
}

/** Withdrawals that have not ended, by network and reason for waiting. Only they have a due_at, so the index is short. */
async function unendedWithdrawals(db: Queryable): Promise<Unended[]> {
  const { rows } = await db.query<Unended>(`
    select network, waiting_code as code, waiting_detail as detail, count(*), min(waiting_since) as since,
           count(*) filter (where ${ASKS_SIGNER}) as asked,
           min(coalesce(signed_at, created_at)) filter (where ${ASKS_SIGNER}) as asked_since
    from outgoing_transfers
    where due_at is not null
    group by network, waiting_code, waiting_detail
    order by min(waiting_since)`)
  return rows
}
