import { EXAMPLE } from '../../contract/example-records.ts'
import { readOperation } from '../operation.ts'
import { Account, accountToWire, requireAccount } from '../../money/records/account.ts'

export const getAccount = readOperation({
  url: '/v2/identity/accounts/:id',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'Get Account',
  description: 'Reads one account, with its members and its profile.',
  id: 'Account id.',
  example: EXAMPLE.account_id,
  reply: Account,
  async run({ params, customerId, db }) {
    return accountToWire(await requireAccount(db, customerId, params.id))
  },
})
