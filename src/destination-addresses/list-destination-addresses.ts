import { Type } from 'typebox'
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
  DESTINATION_ADDRESS_COLUMNS,
  DestinationAddress,
  destinationAddressToWire,
} from '../records/destination-address.ts'

/** Lists the customer's address book, by creation time (API behaviour, Crypto destination addresses). */
export const listDestinationAddresses = operation({
  method: 'GET',
  url: '/v2/transfer/crypto-destination-addresses',
  scope: 'transfer:read_crypto_destination_address',
  tag: 'Transfers',
  summary: 'List Crypto Destination Addresses',
  description: "Lists the customer's address book, newest first.",
  example: { query: { crypto_networks: ['ETHEREUM'], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      crypto_networks: Filter(Network, 'Filter by networks.'),
      addresses: Filter(FilterValue, 'Filter by addresses, as they were sent.'),
      statuses: Filter(DestinationAddress.properties.status, 'Filter by statuses.'),
      identity_ids: Filter(FilterValue, 'Filter by identities.'),
      nicknames: FilterWithoutCommas(FilterValue, 'Filter by nicknames.'),
      bookmarked_status: Type.Optional(
        Type.Boolean({ description: 'Filter by the mark, as bookmarked does.' }),
      ),
      bookmarked: Type.Optional(Type.Boolean({ description: 'Filter by the mark.' })),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(DestinationAddress),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'crypto-destination-addresses',
      select: `select ${DESTINATION_ADDRESS_COLUMNS} from crypto_destination_addresses`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['crypto_network = any (?)', query.crypto_networks],
        ['address = any (?)', query.addresses],
        ['status = any (?)', query.statuses],
        ['identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
        ['nickname = any (?)', query.nicknames],
        ['bookmarked = ?', query.bookmarked],
        ['bookmarked = ?', query.bookmarked_status],
      ],
      toWire: destinationAddressToWire,
    }),
})
