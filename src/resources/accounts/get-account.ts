import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { Account, accountToWire, requireAccount } from './account.ts'

/** Get Account (API behaviour, Accounts). */
export const getAccount = operation({
  method: 'GET',
  url: '/v2/identity/accounts/:id',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'Get Account',
  description: 'Reads one account, with its members and its profile.',
  example: { params: { id: EXAMPLE.account_id } },
  params: Type.Object({ id: Uuid('Account id.') }),
  reply: Account,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    return accountToWire(await requireAccount(db, customerId, params.id))
  },
})
