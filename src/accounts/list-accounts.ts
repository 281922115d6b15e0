import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../http/fields.ts'
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
import { Account, accountToWire, SELECT_ACCOUNTS, type AccountRow } from './account.ts'

/** Lists the customer's accounts, by creation time (design sections 5 and 6). */
export const listAccounts = operation({
  method: 'GET',
  url: '/v2/identity/accounts',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'List Accounts',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by account ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids, of every API client.'),
      identity_ids: Filter(FilterValue, 'Filter by primary identities.'),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Account),
  async run({ query, customerId, db }) {
    const page = pageOf('accounts', query)
    const created = timeRange(query, 'created_at')
    const { rows } = await db.query<AccountRow>(
      `
      ${SELECT_ACCOUNTS}
      where a.customer_id = $1
        and a.id >= $2 and a.id < $3
        and ($4::uuid[] is null or a.id = any ($4))
        and ($5::text[] is null or a.ref_id = any ($5))
        and ($6::uuid[] is null or a.identity_id = any ($6))
        and ($7::uuid is null or a.id ${page.descending ? '<' : '>'} $7)
      order by a.id ${page.descending ? 'desc' : 'asc'}
      limit $8`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        query.ref_ids,
        uuidsOf(query.identity_ids),
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], accountToWire)
  },
})
