import { EXAMPLE } from '../../contract/example-records.ts'
import { timeBounds, timeConditions } from '../../http/lists.ts'
import { filterBy, listOperation } from '../operation.ts'
import { Account, ACCOUNT_UPDATED_AT, accountToWire, SELECT_ACCOUNTS } from '../../money/records/account.ts'

export const listAccounts = listOperation({
  url: '/v2/identity/accounts',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'List Accounts',
  description: "Lists the customer's accounts, newest first.",
  example: { identity_ids: [EXAMPLE.identity_id], limit: 10 },
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
  parameters: timeBounds('updated_at'),
  where: (query) => timeConditions(query, 'updated_at', ACCOUNT_UPDATED_AT),
  toWire: accountToWire,
})
