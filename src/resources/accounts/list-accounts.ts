import { EXAMPLE } from '../../contract/example-records.ts'
import { ACCOUNT_UPDATED_AT, Account, SELECT_ACCOUNTS, accountToWire } from '../../money/records/account.ts'
import { filterBy, listOperation } from '../list-operation.ts'

export const listAccounts = listOperation({
  url: '/v2/identity/accounts',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'List Accounts',
  description: "Lists the customer's accounts, newest first.",
  example: { query: { identity_ids: [EXAMPLE.identity_id], limit: 10 } },
  list: 'accounts',
  item: Account,
  select: SELECT_ACCOUNTS,
  alias: 'a',
  filters: {
    ids: filterBy.ids('a.id', 'Filter by account ids.'),
    ref_ids: filterBy.texts('a.ref_id', 'Filter by ref_ids, of every API client.'),
    identity_ids: filterBy.ids('a.identity_id', 'Filter by primary identities.'),
    identity_id: filterBy.ids('a.identity_id', 'Another name for identity_ids.'),
  },
  updatedAt: ACCOUNT_UPDATED_AT,
  toWire: accountToWire,
})
