import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Network } from '../../contract/fields.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { DepositAddress, depositAddressToWire } from '../../money/records/deposit-address.ts'
import { DEPOSIT_ADDRESS_COLUMNS, type DepositAddressRow } from '../../networks/deposit-addresses.ts'

export const listDepositAddresses = listOperation({
  url: '/v2/transfer/deposit-addresses',
  scope: 'transfer:read_deposit_address',
  tag: 'Transfers',
  summary: 'List Deposit Addresses',
  description: "Lists the customer's deposit addresses, newest first.",
  example: { query: { profile_ids: [EXAMPLE.profile_id], limit: 10 } },
  list: 'deposit-addresses',
  item: DepositAddress,
  select: `select ${DEPOSIT_ADDRESS_COLUMNS} from deposit_addresses`,
  sealed: 'deposit_addresses',
  filters: {
    ids: filterBy.ids('id', 'Filter by ids.'),
    profile_ids: filterBy.ids('profile_id', 'Filter by profiles.'),
    ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
    addresses: filterBy.values(
      'address',
      'Filter by addresses, in the form in which they were returned.',
      Type.String({ maxLength: 128 }),
    ),
    crypto_networks: filterBy.values('crypto_network', 'Filter by networks.', Network),
    networks: filterBy.values('crypto_network', 'Filter by networks, as crypto_networks does.', Network),
    identity_ids: filterBy.ids('identity_id', 'Filter by identities.'),
    account_ids: filterBy.ids('account_id', 'Filter by accounts.'),
  },
  toWire: (row: DepositAddressRow, { networks }) => depositAddressToWire(networks, row),
})
