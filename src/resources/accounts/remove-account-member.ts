import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { lockMembers } from '../../money/records/account.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const removeAccountMember = operation({
  method: 'DELETE',
  url: '/v2/identity/account-members/:id',
  scope: 'identity:write_account',
  tag: 'Accounts',
  summary: 'Remove Account Member',
  description: 'Removes a member, by its own id. The identity stays. A repeat changes nothing.',
  params: Type.Object({ id: Uuid('Member id.') }),
  example: { params: { id: EXAMPLE.account_member_id } },
  reply: Closed({}),
  problems: ['not-found'],
  async run({ params, customerId, origin, db }) {
    return transaction(db, async (tx) => {
      const { rows } = await tx.query<{ account_id: string; removed: boolean }>(
        `
        select account_id, removed_at is not null as removed
        from account_members
        where customer_id = $1 and id = $2`,
        [customerId, params.id],
      )
      const [member] = rows
      if (member === undefined) throw problem.notFound('account member', params.id)
      if (member.removed) return {}
      const present = await lockMembers(tx, customerId, member.account_id)
      // Another request may have removed the member before the lock.
      if (!present.some(({ id }) => id === params.id)) return {}
      await tx.query(
        'update account_members set removed_at = (select clock_timestamp()) where customer_id = $1 and id = $2',
        [customerId, params.id],
      )
      await recordNow(tx, customerId, audited(origin, 'account.remove_member', member.account_id))
      return {}
    })
  },
})
