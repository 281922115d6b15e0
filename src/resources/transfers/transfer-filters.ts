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
  Metadata,
  Network,
  OneOf,
  WIRE_MEMO_LENGTH_MAX,
} from '../../contract/fields.ts'
import { SecondaryStatusName } from '../../contract/transfer-status.ts'
import { timeBounds, timeConditions, uuidsOf, type Condition } from '../../http/lists.ts'
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
  memo: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: WIRE_MEMO_LENGTH_MAX,
      description: 'Filter by the memo, as a whole.',
    }),
  ),
  metadata: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      ...Metadata,
      description:
        'Filter by metadata: `metadata.<key>=<value>`, at most 6 of them. A transfer must have each pair.',
    }),
  ),
  ...timeBounds('created_at'),
  ...timeBounds('updated_at'),
}
export const TransferFilters = Closed(transferFilters)
export type TransferFilters = Static<typeof TransferFilters>

/** What the filters add to a statement about `transfers t` of the customer `$1`. */
interface Filtered {
  joins: string
  where: Condition[]
  /** The ids of the joined tables, which equal `t.id`: an index of theirs serves bounds on it. */
  ids: string[]
}

/**
 * Each pair of metadata is a join by the key of `transfer_metadata`, which has the transfers of a pair in the order of their
 * ids: PostgreSQL begins with the rarest pair, so that a page costs the same among any number of transfers.
 */
export function filtered(query: TransferFilters): Filtered {
  const pairs = Object.entries(query.metadata ?? {})
  return {
    joins: pairs
      .map(
        (_, n) => `
      join transfer_metadata m${n} on m${n}.customer_id = $1 and m${n}.transfer_id = t.id`,
      )
      .join(''),
    ids: pairs.map((_, n) => `m${n}.transfer_id`),
    where: [
      ...pairs.map(([key, value], n): Condition => [`m${n}.key = ? and m${n}.value = ?`, key, value]),
      ...timeConditions(query, 'updated_at', 't.updated_at'),
      ['t.id = any (?::uuid[])', uuidsOf(query.ids)],
      ['t.profile_id = any (?::uuid[])', uuidsOf(query.profile_ids)],
      ['t.identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
      ['t.account_id = any (?::uuid[])', uuidsOf(query.account_ids)],
      ['t.ref_id = any (?::text[])', query.ref_ids],
      ['t.group_id = any (?::uuid[])', uuidsOf(query.group_ids)],
      ['t.crypto_tx_hash = any (?::text[])', query.crypto_tx_hashes],
      ['t.type = any (?::text[])', query.type],
      ['t.status = any (?::text[])', query.statuses],
      [`t.secondary_status ->> 'name' = any (?::text[])`, query.secondary_statuses],
      ['t.direction = any (?::text[])', query.directions],
      ['t.asset = any (?::text[])', query.assets],
      ['t.crypto_network = any (?::text[])', query.crypto_networks],
      [
        'lower(t.destination_address collate "C") = any (?::text[])',
        query.destination_addresses?.flatMap(spellingsOf),
      ],
      ['t.fiat_account_id = any (?::uuid[])', uuidsOf(query.fiat_account_ids)],
      ['t.amount >= ?::numeric', query['amount.gte']],
      ['t.amount <= ?::numeric', query['amount.lte']],
      ['t.memo = ?', query.memo],
    ],
  }
}

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
