import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  timeConditions,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { Account, ACCOUNT_UPDATED_AT, accountToWire, SELECT_ACCOUNTS } from './account.ts'

/** Lists the customer's accounts, by creation time (API behaviour, Accounts). */
export const listAccounts = operation({
  method: 'GET',
  url: '/v2/identity/accounts',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'List Accounts',
  description: "Lists the customer's accounts, newest first.",
  example: { query: { identity_ids: [EXAMPLE.identity_id], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by account ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids, of every API client.'),
      identity_ids: Filter(FilterValue, 'Filter by primary identities.'),
      identity_id: Filter(FilterValue, 'Another name for identity_ids.'),
      ...timeBounds('created_at'),
      ...timeBounds('updated_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Account),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'accounts',
      select: SELECT_ACCOUNTS,
      alias: 'a',
      where: [
        ['a.id = any (?::uuid[])', uuidsOf(query.ids)],
        ['a.ref_id = any (?)', query.ref_ids],
        ['a.identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
        ['a.identity_id = any (?::uuid[])', uuidsOf(query.identity_id)],
        ...timeConditions(query, 'updated_at', ACCOUNT_UPDATED_AT),
      ],
      toWire: accountToWire,
    }),
})
