import { Type } from 'typebox'
import { transaction } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { lockInstitution } from '../../money/records/institution-member.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const removeInstitutionMember = operation({
  method: 'DELETE',
  url: '/v2/identity/institution-members/:id',
  scope: 'identity:write_identity',
  tag: 'Identities',
  summary: 'Remove Institution Member',
  description:
    'Removes a member, by its own id. The identity stays. A repeat changes nothing. An APPROVED institution becomes PENDING: it needs a new verification.',
  params: Type.Object({ id: Uuid('Member id.') }),
  example: { params: { id: EXAMPLE.institution_member_id } },
  reply: Closed({}),
  problems: ['not-found'],
  async run({ params, customerId, origin, db }) {
    return transaction(db, async (tx) => {
      const { rows } = await tx.query<{ institution_id: string; removed: boolean }>(
        `
        select institution_id, removed_at is not null as removed
        from institution_members
        where customer_id = $1 and id = $2`,
        [customerId, params.id],
      )
      const [member] = rows
      if (member === undefined) throw problem.notFound('institution member', params.id)
      if (member.removed) return {}
      const present = await lockInstitution(tx, customerId, member.institution_id)
      // Another request may have removed the member before the lock.
      if (!present.some(({ id }) => id === params.id)) return {}
      await tx.query(
        'update institution_members set removed_at = (select clock_timestamp()) where customer_id = $1 and id = $2',
        [customerId, params.id],
      )
      await recordNow(tx, customerId, audited(origin, 'identity.remove_member', member.institution_id))
      return {}
    })
  },
})
