import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { asksOf, type Ask } from '../../networks/marks.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { NetworkStatus } from '../../networks/wallet-status.ts'
import { minorByAsset, type Sums } from './custody.ts'

/** One look at a network: what its adapter says, and what people are asked to do. */
export interface Look {
  status: NetworkStatus
  asks: Ask[]
}

/** Looks at a real network. Throws when its node does not answer. */
export async function lookAt(
  db: Queryable,
  network: CryptoNetwork,
  adapter: Pick<NetworkAdapter, 'status' | 'treasury'>,
): Promise<Look> {
  const { treasury } = adapter
  const isHighMarked = Object.values(treasury?.marks ?? {}).some(({ high }) => high !== undefined)
  const leaving = isHighMarked ? await leavingFor(db, network) : new Map()
  const status = await adapter.status!()
  return { status, asks: treasury === undefined ? [] : asksOf(network, treasury, status, leaving) }
}

async function leavingFor(db: Queryable, network: CryptoNetwork): Promise<Sums> {
  const { rows } = await db.query<{ asset: string; amount: string }>(
    `
    select asset, sum(amount) as amount
    from transfers
    where customer_id = $1 and type = 'TREASURY_SEND' and status = 'PENDING' and crypto_network = $2
    group by asset`,
    [PLATFORM_ID, network],
  )
  return minorByAsset(rows)
}
