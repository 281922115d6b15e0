import { parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'
import type { Queryable } from '../../db/database.ts'
import { compatibleNetworks } from '../../money/records/deposit-address.ts'
import { sealOf, type Seal } from '../../audit/sealed-rows.ts'
import type { RailsContext } from '../context.ts'

/** The deposit address, with the profile that is credited and its MAC. */
export interface AddressOwner extends Seal {
  id: string
  customer_id: string
  profile_id: string
  identity_id: string | null
  account_id: string | null
  metadata: Record<string, string> | null
  conversion_target_asset: 'NO_CONVERSION' | 'USD'
}

/** The owners of these addresses on a network, oldest first; an address has several only where a record was tampered with. */
export async function selectOwners(
  db: Queryable,
  network: CryptoNetwork,
  places: readonly { address: string }[],
): Promise<Map<string, AddressOwner[]>> {
  const owners = new Map<string, AddressOwner[]>()
  if (places.length === 0) return owners
  const { rows } = await db.query<AddressOwner & { address: string }>(
    `
    select r.address, r.id, r.customer_id, r.profile_id, r.identity_id, r.account_id, r.metadata,
           r.conversion_target_asset, ${sealOf('deposit_addresses')}
    from deposit_addresses r
    where r.address = any ($1::text[]) and r.crypto_network = any ($2::text[])
    order by r.created_at, r.id`,
    [[...new Set(places.map(({ address }) => address))], compatibleNetworks(network)],
  )
  for (const { address, ...owner } of rows) owners.set(address, [...(owners.get(address) ?? []), owner])
  return owners
}

/** A payment to a deposit address. */
export interface Paid extends Record<
  'asset' | 'amount' | 'address' | 'crypto_tx_hash' | 'crypto_tx_index',
  string
> {
  network: CryptoNetwork
}

/** What a payment credits to the owner of its address, also while it is only shown. */
export const creditTo = (
  owner: AddressOwner,
  { network, asset, amount, address, crypto_tx_hash, crypto_tx_index }: Paid,
  prices: UsdPrices,
) => {
  const minor = parseStoredAmount(amount, decimalsOf(asset))
  return {
    profile_id: owner.profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset,
    minor,
    place: owner,
    convertToUsd: owner.conversion_target_asset === 'USD',
    record: {
      crypto_network: network,
      crypto_tx_hash,
      crypto_tx_index,
      destination_address: address,
      notional_value: notionalUsd(minor, findAsset(asset)!, prices),
    },
  } as const
}

/** Those of an address's records that Bursar made, by their MACs. A ledger without master keys knows none. */
export const genuineAmong = (
  { macs }: Pick<RailsContext['ledger'], 'macs'>,
  owners: readonly AddressOwner[] = [],
): AddressOwner[] => owners.filter((owner) => macs?.isGenuine('deposit_addresses', owner.id, owner) === true)

/** The owner to credit: that of the oldest genuine record. Whoever has the database role may have inserted an older one. */
export const oldestOwner = (
  ledger: Pick<RailsContext['ledger'], 'macs'>,
  owners: readonly AddressOwner[],
): AddressOwner => genuineAmong(ledger, owners)[0] ?? owners[0]!

export const FORGED_ADDRESS = 'its deposit address was invented or changed in the database (bursar verify)'
