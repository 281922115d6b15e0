import { Closed, OneOf, Uuid } from '../../contract/fields.ts'
import { operatorOperation } from '../operation.ts'
import { Account, requireAccount } from '../../money/records/account.ts'
import { setAccountDisabled } from './set-account-disabled.ts'

/** Stops the withdrawals of an account of the token's customer, or lets them go on. Answers the account. */
export const decideAccount = operatorOperation({
  method: 'POST',
  url: '/v2/operators/accounts/:id/decisions',
  scope: 'operators:write_verification',
  summary: 'Decide About Account',
  params: Closed({ id: Uuid('Account.') }),
  body: Closed({ decision: OneOf(['DISABLE', 'ENABLE'], 'Whether its withdrawals stop.') }),
  reply: Account,
  async run({ params: { id }, body: { decision }, customerId, origin, db }) {
    await requireAccount(db, customerId, id)
    const admin_disabled = decision === 'DISABLE'
    return (await setAccountDisabled(db, id, { admin_disabled }, origin, customerId))!
  },
})
