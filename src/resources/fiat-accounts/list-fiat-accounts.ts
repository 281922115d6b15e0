import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import { FIAT_ACCOUNT_COLUMNS, FiatAccount, fiatAccountToWire } from '../../money/records/fiat-account.ts'

export const listFiatAccounts = listOperation({
  url: '/v2/transfer/fiat-accounts',
  scope: 'transfer:read_fiat_account',
  tag: 'Transfers',
  summary: 'List Fiat Accounts',
  description: "Lists the customer's fiat accounts, newest first; deleted ones only with include_deleted.",
  example: { query: { identity_ids: [EXAMPLE.identity_id], limit: 10 } },
  list: 'fiat-accounts',
  item: FiatAccount,
  select: `select ${FIAT_ACCOUNT_COLUMNS} from fiat_accounts`,
  filters: {
    ids: filterBy.ids('id', 'Filter by ids.'),
    ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
    identity_ids: filterBy.ids('identity_id', 'Filter by identities.'),
    account_ids: filterBy.ids('account_id', 'Filter by accounts.'),
    statuses: filterBy.values('status', 'Filter by statuses.', FiatAccount.properties.status),
    include_deleted: {
      parameter: Type.Optional(
        Type.Boolean({ default: false, description: 'True: with deleted fiat accounts.' }),
      ),
      where: '(deleted_at is null or ?)',
      compareWith: (given = false) => given,
    },
  },
  toWire: fiatAccountToWire,
})
