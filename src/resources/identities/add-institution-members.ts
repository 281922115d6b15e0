import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  MEMBERS_MAX,
  requireDistinctMembers,
  requireIdentities,
  requireNewMembers,
} from '../../money/records/members.ts'
import {
  insertInstitutionMembers,
  InstitutionMember,
  institutionMemberToWire,
  lockInstitution,
  NewInstitutionMember,
} from '../../money/records/institution-member.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'

export const addInstitutionMembers = operation({
  method: 'POST',
  url: '/v2/identity/institution-members',
  scope: 'identity:write_identity',
  tag: 'Identities',
  repeats: 'HARMLESS',
  summary: 'Add Institution Members',
  description:
    'Adds all of the members or none, and answers those that were added. An APPROVED institution becomes PENDING: it needs a new verification.',
  body: Closed({
    institution_id: Uuid('Identity of the institution.'),
    members: Type.Array(NewInstitutionMember, {
      minItems: 1,
      maxItems: MEMBERS_MAX,
      description: 'Identities that stand behind the institution.',
    }),
  }),
  example: {
    bodies: {
      'An owner': {
        institution_id: EXAMPLE.institution_id,
        members: [{ identity_id: EXAMPLE.identity_id, roles: ['BENEFICIAL_OWNER'], ownership: '40' }],
      },
    },
  },
  reply: Type.Object({
    institution_id: Uuid('Identity of the institution.'),
    members: Type.Array(InstitutionMember, { description: 'The members that were added.' }),
  }),
  problems: ['already-exists', 'not-found'],
  async run({ body: { institution_id, members }, customerId, origin, db }) {
    requireDistinctMembers(members, 'members')
    const own = members.findIndex(({ identity_id }) => identity_id === institution_id)
    if (own >= 0)
      throw problem.badRequest(
        `members.${own}.identity_id is institution_id; none is a member of itself`,
        `members.${own}.identity_id`,
      )
    const ids = members.map(({ identity_id }) => identity_id)
    return transaction(db, async (tx) => {
      const present = await lockInstitution(tx, customerId, institution_id)
      await requireIdentities(tx, customerId, ids)
      requireNewMembers(present.map(institutionMemberToWire), members)
      const now = await readClock(tx)
      const added = await insertInstitutionMembers(tx, customerId, institution_id, members, now)
      recordChanges(tx, customerId, now, [audited(origin, 'identity.add_members', institution_id)])
      return { institution_id, members: added }
    })
  },
})
