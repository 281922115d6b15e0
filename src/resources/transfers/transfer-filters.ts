import { Type } from 'typebox'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import { CRYPTO_NETWORKS } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, Metadata, Network, OneOf, WIRE_MEMO_LENGTH_MAX } from '../../contract/fields.ts'
import { SecondaryStatusName } from '../../contract/transfer-status.ts'
import { timeBounds } from '../../http/time-bounds.ts'
import { TransferStatus, TransferType } from '../../money/ledger/transfer.ts'
import {
  conditionsOf,
  filterBy,
  parametersOf,
  timeConditions,
  type Condition,
  type ListQuery,
} from '../list-operation.ts'

/** The filters of transfers, which their list and their sums share: of `transfers t`. */

const FILTERS = {
  ids: filterBy.ids('t.id', 'Filter by transfer ids.'),
  profile_ids: filterBy.ids('t.profile_id', 'Filter by profiles.'),
  identity_ids: filterBy.ids('t.identity_id', 'Filter by identities.'),
  account_ids: filterBy.ids('t.account_id', 'Filter by accounts.'),
  ref_ids: filterBy.texts('t.ref_id', 'Filter by ref_ids.'),
  group_ids: filterBy.ids('t.group_id', 'Filter by groups.'),
  crypto_tx_hashes: filterBy.values(
    't.crypto_tx_hash',
    'Filter by on-chain transaction hashes.',
    Type.String({ maxLength: 128 }),
  ),
  type: filterBy.values('t.type', 'Filter by types.', TransferType),
  statuses: filterBy.values('t.status', 'Filter by statuses.', TransferStatus),
  secondary_statuses: filterBy.values(
    `t.secondary_status ->> 'name'`,
    'Filter by secondary statuses.',
    SecondaryStatusName,
  ),
  directions: filterBy.values(
    't.direction',
    'Filter by directions.',
    OneOf(['CREDIT', 'DEBIT'], 'Direction.'),
  ),
  assets: filterBy.values('t.asset', 'Filter by the asset of the amount.', AssetSymbol),
  crypto_networks: filterBy.values('t.crypto_network', 'Filter by blockchain networks.', Network),
  destination_addresses: {
    ...filterBy.values(
      'lower(t.destination_address collate "C")',
      'Filter by destination addresses, in any spelling.',
      Type.String({ maxLength: 128 }),
    ),
    compareWith: (given: unknown) => (given as string[] | undefined)?.flatMap(spellingsOf),
  },
  fiat_account_ids: filterBy.ids('t.fiat_account_id', 'Filter by the fiat accounts of withdrawals.'),
  'amount.gte': {
    parameter: Type.Optional(Amount('At least this amount, in the asset of the transfer.')),
    where: 't.amount >= ?::numeric',
  },
  'amount.lte': {
    parameter: Type.Optional(Amount('At most this amount, in the asset of the transfer.')),
    where: 't.amount <= ?::numeric',
  },
  memo: {
    parameter: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: WIRE_MEMO_LENGTH_MAX,
        description: 'Filter by the memo, as a whole.',
      }),
    ),
    where: 't.memo = ?',
  },
}

export const transferFilters = {
  ...parametersOf(FILTERS),
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

/**
 * What the filters add to a statement about `transfers t` of the customer `$1`. Each pair of metadata is a join by the key of
 * `transfer_metadata`, which has the transfers of a pair in the order of their ids: PostgreSQL begins with the rarest pair, so
 * that a page costs the same among any number of transfers. `ids` are the joined ones, whose index then serves bounds on `t.id`.
 */
export function filtered(query: ListQuery) {
  const pairs = Object.entries((query.metadata ?? {}) as Record<string, string>)
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
      ...conditionsOf(FILTERS, query),
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
  const spellings = [address, ...canonical].map((spelling) => spelling.toLowerCase())
  return [...new Set(spellings.flatMap((spelling) => [spelling, spelling.replace(/^[a-z]+:/, '')]))]
}
