import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { freeze } from '../../money/records/freezes.ts'
import { compareCustody, type ComparedCustody } from '../../chains/network-status.ts'
import type { Networks } from '../../chains/network.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { failedLately } from '../payouts/failed-transactions.ts'

const LOOP = originOfLoop('custody')

/** The comparisons of the last hour, one a minute. */
const LOOKS_MAX = 60

/** By network: the assets short at the last comparison, and the least that was held beyond custody at each comparison. */
export type Suspicions = Map<
  CryptoNetwork,
  { short: ReadonlySet<string>; looks: readonly ReadonlyMap<string, bigint>[] }
>

/**
 * Stops payouts over each real network that holds less than the ledgers have in custody there (freeze CUSTODY_SHORT). An asset
 * must be short twice in a row: `suspicions` keeps what the comparisons found. Returns how many networks are short. Throws the
 * failures after the other networks were compared.
 *
 * A payment that was refunded as failed, and arrived all the same, first reduces the surplus over custody. For an hour after a
 * failed transaction, a smaller surplus than before therefore counts as short, too.
 *
 * `formerWalletsHold` is called with the amounts that former hot wallets still hold.
 */
export async function watchCustody(
  db: Database,
  networks: Networks,
  suspicions: Suspicions,
  formerWalletsHold?: (network: CryptoNetwork, asset: string, amount: string) => void,
): Promise<number> {
  const looks = [...networks].map(async ([network, adapter]) => {
    if (network === 'WIRE' || adapter.status === undefined) return false
    const compared = await compareCustody(db, network, adapter)
    for (const { asset, in_former_wallets: minor } of compared)
      if (minor !== undefined) formerWalletsHold?.(network, asset, formatAmount(minor, decimalsOf(asset)))
    const { short: before, looks = [] } = suspicions.get(network) ?? {}
    const hasFailed = await failedLately(db, network)
    const found = compared.flatMap((one) => shortageOf(one, hasFailed ? surplusBefore(looks, one.asset) : 0n))
    const still = found.filter(({ asset }) => before?.has(asset) === true)
    const isShort = still.length > 0
    suspicions.set(network, {
      short: new Set(found.map(({ asset }) => asset)),
      // After a freeze the comparisons begin anew, so that the same money does not freeze the network again once it is lifted.
      looks: isShort
        ? []
        : [...looks, new Map(compared.map(({ asset, least }) => [asset, least]))].slice(-LOOKS_MAX),
    })
    if (!isShort) return false
    const detail = still.map((one) => one.detail).join('; ')
    await freeze(db, LOOP, { kind: 'NETWORK', network }, 'CUSTODY_SHORT', detail)
    return true
  })
  const settled = await Promise.allSettled(looks)
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failures.length > 0)
    throw new AggregateError(failures, `custody of ${failures.length} networks is not known`)
  return settled.filter((one) => one.status === 'fulfilled' && one.value).length
}

/**
 * The surplus over custody, in minor units: the highest that two comparisons in a row have both found. A deposit that only the
 * chain knew raises a single comparison, and a client can time its deposit for one.
 */
function surplusBefore(looks: readonly ReadonlyMap<string, bigint>[], asset: string): bigint {
  const pairs = looks.slice(1).map((one, index) => {
    const [a, b] = [one.get(asset) ?? 0n, looks[index]!.get(asset) ?? 0n]
    return a < b ? a : b
  })
  return pairs.reduce((most, one) => (one > most ? one : most), 0n)
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
