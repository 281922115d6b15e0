import { Type, type Static } from 'typebox'
import { canonicalAddress } from '../../chains/addresses.ts'
import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import {
  Amount,
  AssetSymbol,
  Closed,
  Filter,
  FilterValue,
  FilterWithoutCommas,
  Network,
  OneOf,
} from '../../contract/fields.ts'
import { SecondaryStatusName } from '../../contract/transfer-status.ts'
import { firstIdAt } from '../../db/ids.ts'
import { microsToTimestamp, timeBounds, uuidsOf, type TimeRange } from '../../http/lists.ts'
import { TransferStatus, TransferType } from '../../money/ledger/transfer.ts'

/** The filters of transfers, which their list and their sums share. */

export const transferFilters = {
  ids: Filter(FilterValue, 'Filter by transfer ids.'),
  profile_ids: Filter(FilterValue, 'Filter by profiles.'),
  identity_ids: Filter(FilterValue, 'Filter by identities.'),
  account_ids: Filter(FilterValue, 'Filter by accounts.'),
  ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
  group_ids: Filter(FilterValue, 'Filter by groups.'),
  crypto_tx_hashes: Filter(Type.String({ maxLength: 128 }), 'Filter by on-chain transaction hashes.'),
  type: Filter(TransferType, 'Filter by types.'),
  statuses: Filter(TransferStatus, 'Filter by statuses.'),
  secondary_statuses: Filter(SecondaryStatusName, 'Filter by secondary statuses.'),
  directions: Filter(OneOf(['CREDIT', 'DEBIT'], 'Direction.'), 'Filter by directions.'),
  assets: Filter(AssetSymbol, 'Filter by the asset of the amount.'),
  crypto_networks: Filter(Network, 'Filter by blockchain networks.'),
  destination_addresses: Filter(
    Type.String({ maxLength: 128 }),
    'Filter by destination addresses, in any spelling.',
  ),
  fiat_account_ids: Filter(FilterValue, 'Filter by the fiat accounts of withdrawals.'),
  'amount.gte': Type.Optional(Amount('At least this amount, in the asset of the transfer.')),
  'amount.lte': Type.Optional(Amount('At most this amount, in the asset of the transfer.')),
  ...timeBounds('created_at'),
  ...timeBounds('updated_at'),
}
export const TransferFilters = Closed(transferFilters)
export type TransferFilters = Static<typeof TransferFilters>

/** The conditions on `transfers t`, with the parameters of `filterValues`. */
export const FILTERED = `t.customer_id = $1
      and t.id >= $2 and t.id < $3
      and t.updated_at >= $4 and t.updated_at < $5
      and ($6::uuid[] is null or t.id = any ($6))
      and ($7::uuid[] is null or t.profile_id = any ($7))
      and ($8::uuid[] is null or t.identity_id = any ($8))
      and ($9::uuid[] is null or t.account_id = any ($9))
      and ($10::text[] is null or t.ref_id = any ($10))
      and ($11::uuid[] is null or t.group_id = any ($11))
      and ($12::text[] is null or t.crypto_tx_hash = any ($12))
      and ($13::text[] is null or t.type = any ($13))
      and ($14::text[] is null or t.status = any ($14))
      and ($15::text[] is null or t.secondary_status ->> 'name' = any ($15))
      and ($16::text[] is null or t.direction = any ($16))
      and ($17::text[] is null or t.asset = any ($17))
      and ($18::text[] is null or t.crypto_network = any ($18))
      and ($19::text[] is null or lower(t.destination_address collate "C") = any ($19))
      and ($20::uuid[] is null or t.fiat_account_id = any ($20))
      and ($21::numeric is null or t.amount >= $21)
      and ($22::numeric is null or t.amount <= $22)`

/** The values of `FILTERED`. Ids sort by creation time: the primary key serves the bounds on it. */
export const filterValues = (
  customerId: string,
  query: TransferFilters,
  { created, updated }: { created: TimeRange; updated: TimeRange },
) => [
  customerId,
  firstIdAt(created.from),
  firstIdAt(created.to),
  microsToTimestamp(updated.from),
  microsToTimestamp(updated.to),
  uuidsOf(query.ids),
  uuidsOf(query.profile_ids),
  uuidsOf(query.identity_ids),
  uuidsOf(query.account_ids),
  query.ref_ids,
  uuidsOf(query.group_ids),
  query.crypto_tx_hashes,
  query.type,
  query.statuses,
  query.secondary_statuses,
  query.directions,
  query.assets,
  query.crypto_networks,
  query.destination_addresses?.flatMap(spellingsOf),
  uuidsOf(query.fiat_account_ids),
  query['amount.gte'],
  query['amount.lte'],
]

/**
 * The spellings of an address in lower case. A transfer has the address as its client sent it, and canonical forms differ from
 * that in their capitals and in a prefix. No two addresses of a network differ in their capitals alone: they have checksums,
 * or 32 bytes.
 */
function spellingsOf(address: string): string[] {
  const canonical = CRYPTO_NETWORKS.flatMap(
    (network) => canonicalAddress(network, address, { testNetworks: true }) ?? [],
  )
  const all = [address, ...canonical].map((one) => one.toLowerCase())
  return [...new Set(all.flatMap((one) => [one, one.replace(/^[a-z]+:/, '')]))]
}
