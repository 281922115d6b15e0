import { Type } from 'typebox'
import { Network } from '../../contract/fields.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import {
  DESTINATION_ADDRESS_COLUMNS,
  DestinationAddress,
  destinationAddressToWire,
} from '../../money/records/destination-address.ts'

const byMark = (description: string) => ({
  parameter: Type.Optional(Type.Boolean({ description })),
  where: 'bookmarked = ?',
})

export const listDestinationAddresses = listOperation({
  url: '/v2/transfer/crypto-destination-addresses',
  scope: 'transfer:read_crypto_destination_address',
  tag: 'Transfers',
  summary: 'List Crypto Destination Addresses',
  description: "Lists the customer's address book, newest first.",
  example: { query: { crypto_networks: ['ETHEREUM'], limit: 10 } },
  list: 'crypto-destination-addresses',
  item: DestinationAddress,
  select: `select ${DESTINATION_ADDRESS_COLUMNS} from crypto_destination_addresses`,
  filters: {
    ids: filterBy.ids('id', 'Filter by ids.'),
    crypto_networks: filterBy.values('crypto_network', 'Filter by networks.', Network),
    addresses: filterBy.values('address', 'Filter by addresses, as they were sent.'),
    statuses: filterBy.values('status', 'Filter by statuses.', DestinationAddress.properties.status),
    identity_ids: filterBy.ids('identity_id', 'Filter by identities.'),
    nicknames: filterBy.texts('nickname', 'Filter by nicknames.'),
    bookmarked_status: byMark('Filter by the mark, as bookmarked does.'),
    bookmarked: byMark('Filter by the mark.'),
  },
  toWire: destinationAddressToWire,
})
