import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { FIAT_ACCOUNT_COLUMNS, FiatAccount, fiatAccountToWire } from '../records/fiat-account.ts'

/** Lists the customer's fiat accounts, by creation time (API behaviour, Fiat accounts). */
export const listFiatAccounts = operation({
  method: 'GET',
  url: '/v2/transfer/fiat-accounts',
  scope: 'transfer:read_fiat_account',
  tag: 'Transfers',
  summary: 'List Fiat Accounts',
  description: "Lists the customer's fiat accounts, newest first; deleted ones only with include_deleted.",
  example: { query: { identity_ids: [EXAMPLE.identity_id], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      identity_ids: Filter(FilterValue, 'Filter by identities.'),
      account_ids: Filter(FilterValue, 'Filter by accounts.'),
      statuses: Filter(FiatAccount.properties.status, 'Filter by statuses.'),
      include_deleted: Type.Optional(
        Type.Boolean({ default: false, description: 'True: with deleted fiat accounts.' }),
      ),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(FiatAccount),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'fiat-accounts',
      select: `select ${FIAT_ACCOUNT_COLUMNS} from fiat_accounts`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['ref_id = any (?)', query.ref_ids],
        ['identity_id = any (?::uuid[])', uuidsOf(query.identity_ids)],
        ['account_id = any (?::uuid[])', uuidsOf(query.account_ids)],
        ['status = any (?)', query.statuses],
        ['(deleted_at is null or ?)', query.include_deleted ?? false],
      ],
      toWire: fiatAccountToWire,
    }),
})
