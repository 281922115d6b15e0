import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { freeze } from '../../money/records/freezes.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { lookAt, type Look } from '../wallets/look.ts'
import { compareCustody, minorByAsset, type ComparedCustody } from '../wallets/custody.ts'
import type { Networks } from '../../networks/network.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { failedLately } from '../payouts/stop-after-failures.ts'

const LOOP = originOfLoop('custody')

/** The comparisons of the last hour, one a minute. */
const LOOKS_MAX = 60

/** By network: the assets short at the last comparison, and the least that was held beyond custody at each comparison. */
export type Suspicions = Map<
  CryptoNetwork,
  { short: ReadonlySet<string>; looks: readonly ReadonlyMap<string, bigint>[] }
>

/** Told what each look at a network found; undefined: its node did not answer. */
export type Seen = (network: CryptoNetwork, look: Look | undefined) => void

/**
 * Stops payouts over each real network that holds less than the ledgers have in custody there (freeze CUSTODY_SHORT). An
 * asset must be short twice in a row: `suspicions` keeps what the comparisons found. Returns how many networks are short.
 * Throws the failures after the other networks were compared.
 *
 * A payment that was refunded as failed, and arrived all the same, first reduces the surplus over custody. For an hour after
 * a failed transaction, a smaller surplus than before therefore counts as short, too.
 */
export async function watchCustody(
  db: Database,
  networks: Networks,
  suspicions: Suspicions,
  seen?: Seen,
): Promise<number> {
  const short = await lookAtEach(db, networks, seen, async (network, readStatus) => {
    const compared = await compareCustody(db, network, readStatus)
    const { short: before, looks = [] } = suspicions.get(network) ?? {}
    const brought = (await failedLately(db, network)) ? await broughtLately(db, network) : undefined
    const found = compared.flatMap((custody) =>
      shortageOf(custody, brought === undefined ? 0n : surplusBefore(looks, custody.asset, brought)),
    )
    const still = found.filter(({ asset }) => before?.has(asset) === true)
    const isShort = still.length > 0
    suspicions.set(network, {
      short: new Set(found.map(({ asset }) => asset)),
      // After a freeze the comparisons begin anew, so that the same money does not freeze the network again once it is
      // lifted.
      looks: isShort
        ? []
        : [...looks, new Map(compared.map(({ asset, least }) => [asset, least]))].slice(-LOOKS_MAX),
    })
    if (!isShort) return false
    const detail = still.map(({ detail }) => detail).join('; ')
    await freeze(db, LOOP, { kind: 'NETWORK', network }, 'CUSTODY_SHORT', detail)
    return true
  })
  return short.filter(Boolean).length
}

/** Looks at the wallets of each real network, for metrics alone. Throws the failures after the others have answered. */
export const watchWallets = (db: Database, networks: Networks, seen: Seen) =>
  lookAtEach(db, networks, seen, (_, readStatus) => readStatus())

async function lookAtEach<T>(
  db: Database,
  networks: Networks,
  seen: Seen | undefined,
  work: (network: CryptoNetwork, readStatus: () => Promise<NetworkStatus>) => Promise<T>,
): Promise<T[]> {
  const looks = [...networks].flatMap(([network, adapter]) => {
    if (network === 'WIRE' || adapter.status === undefined) return []
    const readStatus = async () => {
      const look = await lookAt(db, network, adapter).catch((error: unknown) => {
        seen?.(network, undefined)
        throw error
      })
      seen?.(network, look)
      return look.status
    }
    return [work(network, readStatus)]
  })
  const settled = await Promise.allSettled(looks)
  const failures = settled.flatMap((look) => (look.status === 'rejected' ? [look.reason as unknown] : []))
  if (failures.length > 0)
    throw new AggregateError(failures, `custody of ${failures.length} networks is not known`)
  return settled.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []))
}

/**
 * The surplus over custody, in minor units: the highest that two comparisons in a row have both found. A deposit that only
 * the chain knew raises a single comparison, and a client can time its deposit for one. Less what was posted meanwhile.
 */
function surplusBefore(
  looks: readonly ReadonlyMap<string, bigint>[],
  asset: string,
  brought: ReadonlyMap<string, bigint>,
): bigint {
  const pairs = looks.slice(1).map((look, index) => {
    const [a, b] = [look.get(asset) ?? 0n, looks[index]!.get(asset) ?? 0n]
    return a < b ? a : b
  })
  const most = pairs.reduce((most, pair) => (pair > most ? pair : most), 0n) - (brought.get(asset) ?? 0n)
  return most > 0n ? most : 0n
}

/**
 * By asset, in minor units: what came from outside and was posted within the time that comparisons are kept for, such as a
 * refill. Until then it was held beyond custody.
 */
async function broughtLately(db: Database, network: CryptoNetwork): Promise<Map<string, bigint>> {
  const posted = await db.query<{ id: string }>(
    `select id from acknowledged_transactions
     where network = $1 and acknowledged_at > clock_timestamp() - make_interval(mins => ${LOOKS_MAX})`,
    [network],
  )
  const { rows } = await db.query<{ asset: string; amount: string }>(
    `
    select asset, -sum(amount) as amount from entries
    where customer_id = $1 and transfer_id = any ($2::uuid[]) and account = $3 and amount < 0
    group by asset`,
    [PLATFORM_ID, posted.rows.map(({ id }) => id), `custody:${network}`],
  )
  return minorByAsset(rows)
}

function shortageOf(
  { asset, held, in_custody, most }: ComparedCustody,
  surplus: bigint,
): { asset: string; detail: string }[] {
  const text = (minor: bigint) => formatAmount(minor, decimalsOf(asset))
  if (most >= surplus) return []
  const before =
    surplus === 0n
      ? ''
      : `, of which ${text(surplus)} more were held before withdrawals were refunded as failed`
  return [
    { asset, detail: `${text(held)} ${asset} are held, and ${text(in_custody)} are in custody${before}` },
  ]
}
