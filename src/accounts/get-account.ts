import { Type } from 'typebox'
import { Uuid } from '../http/fields.ts'
import { operation } from '../http/operation.ts'
import { Account, accountToWire, requireAccount } from './account.ts'

/** Get Account (spec 4.5). */
export const getAccount = operation({
  method: 'GET',
  url: '/v2/identity/accounts/:id',
  scope: 'identity:read_account',
  tag: 'Accounts',
  summary: 'Get Account',
  params: Type.Object({ id: Uuid('Account id.') }),
  reply: Account,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    return accountToWire(await requireAccount(db, customerId, params.id))
  },
})
