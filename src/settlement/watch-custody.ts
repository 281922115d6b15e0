import type { CryptoNetwork } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { freeze } from '../records/freezes.ts'
import { custodyShortages } from '../networks/network-status.ts'
import type { Networks } from '../networks/network.ts'
import { originOfLoop } from '../contract/actor.ts'

const LOOP = originOfLoop('custody')

/** The assets that were short at the last comparison, by network. */
export type Suspicions = Map<CryptoNetwork, ReadonlySet<string>>

/**
 * Stops payouts over each real network that holds less than the ledgers have in custody there (freeze CUSTODY_SHORT). An
 * asset must be short twice in a row: `suspicions` keeps the assets of the last comparison. Gives how many networks are
 * short. Throws the failures after the other networks were compared.
 */
export async function watchCustody(
  db: Database,
  networks: Networks,
  suspicions: Suspicions,
): Promise<number> {
  const looks = [...networks].map(async ([network, adapter]) => {
    if (network === 'WIRE' || adapter.status === undefined) return false
    const shortages = await custodyShortages(db, network, adapter)
    const before = suspicions.get(network)
    suspicions.set(network, new Set(shortages.map(({ asset }) => asset)))
    const still = shortages.filter(({ asset }) => before?.has(asset) === true)
    if (still.length === 0) return false
    const detail = still.map(
      ({ asset, held, in_custody }) => `${held} ${asset} are held, and ${in_custody} are in custody`,
    )
    await freeze(db, LOOP, { kind: 'NETWORK', network }, 'CUSTODY_SHORT', detail.join('; '))
    return true
  })
  const settled = await Promise.allSettled(looks)
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failures.length > 0)
    throw new AggregateError(failures, `custody of ${failures.length} networks is not known`)
  return settled.filter((one) => one.status === 'fulfilled' && one.value).length
}
