import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas, Network } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import {
  DEPOSIT_ADDRESS_COLUMNS,
  DepositAddress,
  depositAddressToWire,
  type DepositAddressRow,
} from '../records/deposit-address.ts'

/** Lists the customer's deposit addresses, by creation time (API behaviour, Deposit addresses). */
export const listDepositAddresses = operation({
  method: 'GET',
  url: '/v2/transfer/deposit-addresses',
  scope: 'transfer:read_deposit_address',
  tag: 'Transfers',
  summary: 'List Deposit Addresses',
  description: "Lists the customer's deposit addresses, newest first.",
  example: { query: { profile_ids: [EXAMPLE.profile_id], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      profile_ids: Filter(FilterValue, 'Filter by profiles.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      addresses: Filter(
        Type.String({ maxLength: 128 }),
        'Filter by addresses, in the form in which they were returned.',
      ),
      crypto_networks: Filter(Network, 'Filter by networks.'),
      networks: Filter(Network, 'Filter by networks, as crypto_networks does.'),
      identity_ids: Filter(FilterValue, 'Filter by identities.'),
      account_ids: Filter(FilterValue, 'Filter by accounts.'),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(DepositAddress),
  run: ({ query, customerId, db, networks }) =>
    listByCreation(db, customerId, query, {
      list: 'deposit-addresses',
      select: `select ${DEPOSIT_ADDRESS_COLUMNS} from deposit_addresses`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['profile_id = any (?::uuid[])', uuidsOf(query.profile_ids)],
        ['ref_id = any (?)', query.ref_ids],
        ['address = any (?)', query.addresses],
        ['crypto_network = any (?)', query.crypto_networks],
        ['crypto_network = any (?)', query.networks],
        ['identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
        ['account_id = any (?::uuid[])', uuidsOf(query.account_ids)],
      ],
      toWire: (row: DepositAddressRow) => depositAddressToWire(networks, row),
    }),
})
