import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue, FilterWithoutCommas, Network } from '../http/fields.ts'
import {
  listReply,
  pageOf,
  pageParameters,
  pageReply,
  timeBounds,
  timeRange,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../http/operation.ts'
import {
  DEPOSIT_ADDRESS_COLUMNS,
  DepositAddress,
  depositAddressToWire,
  type DepositAddressRow,
} from '../ledger/records/deposit-address.ts'

/** Lists the customer's deposit addresses, by creation time (design sections 5 and 6). */
export const listDepositAddresses = operation({
  method: 'GET',
  url: '/v2/transfer/deposit-addresses',
  scope: 'transfer:read_deposit_address',
  tag: 'Transfers',
  summary: 'List Deposit Addresses',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      profile_ids: Filter(FilterValue, 'Filter by profiles.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      addresses: Filter(Type.String({ maxLength: 128 }), 'Filter by addresses, in the form they were given.'),
      crypto_networks: Filter(Network, 'Filter by networks.'),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(DepositAddress),
  async run({ query, customerId, db }) {
    const page = pageOf('deposit-addresses', query)
    const created = timeRange(query, 'created_at')
    const { rows } = await db.query<DepositAddressRow>(
      `
      select ${DEPOSIT_ADDRESS_COLUMNS}
      from deposit_addresses
      where customer_id = $1
        and id >= $2 and id < $3
        and ($4::uuid[] is null or id = any ($4))
        and ($5::uuid[] is null or profile_id = any ($5))
        and ($6::text[] is null or ref_id = any ($6))
        and ($7::text[] is null or address = any ($7))
        and ($8::text[] is null or crypto_network = any ($8))
        and ($9::uuid is null or id ${page.descending ? '<' : '>'} $9)
      order by id ${page.descending ? 'desc' : 'asc'}
      limit $10`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        uuidsOf(query.profile_ids),
        query.ref_ids,
        query.addresses,
        query.crypto_networks,
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], depositAddressToWire)
  },
})
