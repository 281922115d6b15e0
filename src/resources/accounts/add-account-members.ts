import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { MEMBERS_MAX, requireIdentities, requireNewMembers } from '../../money/records/members.ts'
import {
  insertMembers,
  lockMembers,
  Member,
  memberToWire,
  NewMember,
  readMembers,
} from '../../money/records/account.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'

export const addAccountMembers = operation({
  method: 'POST',
  url: '/v2/identity/account-members',
  scope: 'identity:write_account',
  tag: 'Accounts',
  repeats: 'HARMLESS',
  summary: 'Add Account Members',
  description: 'Adds all of the members or none, and answers those that were added.',
  body: Closed({
    account_id: Uuid('Account.'),
    members: Type.Array(NewMember, {
      minItems: 1,
      maxItems: MEMBERS_MAX,
      description: 'Additional identities with access to the account.',
    }),
  }),
  example: {
    bodies: {
      'A second owner': {
        account_id: EXAMPLE.account_id,
        members: [{ identity_id: EXAMPLE.identity_id, roles: ['BENEFICIAL_OWNER'] }],
      },
    },
  },
  reply: Type.Object({
    account_id: Uuid('Account.'),
    members: Type.Array(Member, { description: 'The members that were added.' }),
  }),
  problems: ['already-exists', 'not-found'],
  async run({ body, customerId, origin, db }) {
    const { account_id } = body
    const members = readMembers(body.members, 'members')
    const ids = members.map(({ identity_id }) => identity_id)
    return transaction(db, async (tx) => {
      const present = await lockMembers(tx, customerId, account_id)
      await requireIdentities(tx, customerId, ids)
      requireNewMembers(present.map(memberToWire), members)
      const now = await readClock(tx)
      const added = await insertMembers(tx, customerId, account_id, members, now)
      recordChanges(tx, customerId, now, [audited(origin, 'account.add_members', account_id)])
      return { account_id, members: added }
    })
  },
})
