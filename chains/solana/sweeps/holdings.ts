import { isAddress } from '@solana/addresses'
import type { Database } from '../../../src/db/database.ts'
import { givenAmong } from '../../../src/networks/given-addresses.ts'
import { heldAtAddresses, UNDER_WAY } from '../../kit/holdings.ts'
import { readAccounts } from '../accounts.ts'
import { NETWORK, onChain, type SolanaChain } from '../chain.ts'
import { accountOf, assetsOf, unitsIn, type Place } from '../deposit-accounts.ts'

/** What deposit addresses hold, as `address_holdings` records it. */

/** The sums of what deposit addresses hold, by asset, in units of the chain. */
export async function sumsAtAddresses(db: Database, chain: SolanaChain): Promise<Map<string, bigint>> {
  const { tokens } = await chain.facts()
  return heldAtAddresses(db, { network: NETWORK, areGiven: chain.areGiven }, assetsOf(tokens), {
    async read(holdings) {
      const places = holdings.map(({ address, asset }) => {
        return { asset, account: isAddress(address) ? accountOf(tokens, address, asset) : undefined }
      })
      const accounts = await readAccounts(
        chain.rpc,
        places.flatMap(({ account }) => account ?? []),
      )
      return places.map(({ asset, account }) => (account ? unitsIn({ asset, account }, accounts) : 0n))
    },
    unitsOf: onChain,
  })
}

/** An asset at a deposit address that may be worth sweeping. */
export type SweepPlace = Place & { derivation: string }

/** Places without a sweep under way that hold at least this much. `least` has decimal strings by asset. */
export async function selectWorth(
  db: Database,
  chain: SolanaChain,
  least: ReadonlyMap<string, string>,
  limit: number,
): Promise<SweepPlace[]> {
  const { tokens } = await chain.facts()
  const { rows } = await db.query<Omit<SweepPlace, 'account'>>(
    `
    select h.customer_id, h.address, h.asset,
           (select d.derivation from deposit_addresses d
            where d.customer_id = h.customer_id and d.address = h.address limit 1) as derivation
    from address_holdings h
    join unnest($2::text[], $3::numeric[]) as a (asset, least) on a.asset = h.asset and h.balance >= a.least
    where h.network = $1 and h.balance > 0 and not ${UNDER_WAY}
    -- Random order, so that addresses which cannot be swept never block the others.
    order by random()
    limit $4`,
    [NETWORK, [...least.keys()], [...least.values()], limit],
  )
  const given = await givenAmong(chain, db, rows)
  // A row that somebody has changed to what is no address keeps no other out.
  return given.flatMap((place) => {
    const account = isAddress(place.address) ? accountOf(tokens, place.address, place.asset) : undefined
    return account === undefined ? [] : { ...place, account }
  })
}
