import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { repeated, requireUnchanged } from '../../contract/read-only.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { insertAccountEvent } from '../../money/records/summary-status.ts'
import { Account, accountToWire, lockAccount, Member, requireAccount } from '../../money/records/account.ts'
import { audited, changedMembers } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import { Closed } from '../../contract/fields.ts'

const READ_ONLY = [
  'identity_id',
  'admin_disabled',
  'user_disabled',
  'ref_id',
  'created_at',
  'updated_at',
  'summary_status',
  'profile_id',
  'type',
] as const

export const updateAccount = operation({
  method: 'PUT',
  url: '/v2/identity/accounts',
  scope: 'identity:write_account',
  tag: 'Accounts',
  summary: 'Update Account',
  description:
    'Changes the given fields of the account. metadata is replaced as a whole. Other members of the account may be repeated but not changed.',
  body: Closed({
    account: Closed(
      {
        id: Account.properties.id,
        description: Account.properties.description,
        metadata: Account.properties.metadata,
        ...repeated(Account, READ_ONLY),
        members: Type.Optional(Type.Array(Type.Partial(Member), { description: 'As they are stored.' })),
      },
      { description: 'The account.' },
    ),
    set_user_disabled: Type.Optional(Type.Boolean({ description: 'Sets user_disabled.' })),
  }),
  example: {
    bodies: {
      'Another description': { account: { id: EXAMPLE.account_id, description: 'Joint savings' } },
      'Enabled again by the user': { account: { id: EXAMPLE.account_id }, set_user_disabled: false },
    },
  },
  reply: Account,
  problems: ['not-found'],
  async run({ body: { account, set_user_disabled }, customerId, origin, db }) {
    const { id, description, metadata, ...others } = account
    if (description === undefined && metadata === undefined && set_user_disabled === undefined)
      throw problem.badRequest(
        'at least one of account.description, account.metadata and set_user_disabled is required',
        [],
      )
    return transaction(db, async (tx) => {
      const before = accountToWire(await lockAccount(tx, customerId, id))
      requireUnchanged(others, before, 'account.')
      // The clock is read after the row is locked, so that updated_at never decreases.
      const now = await readClock(tx)
      const { rowCount } = await tx.query(
        `
        update accounts
        set description = coalesce($3, description),
            metadata = coalesce($4, metadata),
            user_disabled = coalesce($5, user_disabled),
            updated_at = $6
        where customer_id = $1 and id = $2
          and (description, metadata, user_disabled)
            is distinct from (coalesce($3, description), coalesce($4, metadata), coalesce($5, user_disabled))`,
        [customerId, id, description, metadata, set_user_disabled, now.text],
      )
      const after = accountToWire(await requireAccount(tx, customerId, id))
      await insertAccountEvent(tx, customerId, now, {
        id,
        before: before.summary_status,
        after: after.summary_status,
      })
      if (rowCount! > 0)
        recordChanges(tx, customerId, now, [
          audited(origin, 'account.update', id, changedMembers(before, after, ['user_disabled'])),
        ])
      return after
    })
  },
})
