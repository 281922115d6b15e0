import { Type } from 'typebox'
import { transaction, violatedConstraint } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import { Profile, PROFILE_COLUMNS, profileToWire, type ProfileRow } from '../../money/records/profile.ts'
import { audited, recordNow } from '../../audit/audited.ts'

export const updateProfile = operation({
  method: 'PUT',
  url: '/v2/profiles/:id',
  scope: 'funding:write_profile',
  tag: 'Profiles',
  summary: 'Update Profile',
  description: "Replaces the given members. The nickname is unique among the customer's profiles.",
  params: Type.Object({ id: Uuid('Profile id.') }),
  body: Closed(
    {
      nickname: Type.Optional(Profile.properties.nickname),
      description: Profile.properties.description,
    },
    { minProperties: 1 },
  ),
  example: {
    params: { id: EXAMPLE.account_profile_id },
    bodies: { 'Another name': { nickname: 'Savings', description: 'Savings of Ada Example' } },
  },
  reply: Profile,
  problems: ['not-found', 'already-exists'],
  async run({ params, body, customerId, origin, db }) {
    const { nickname, description } = body
    return transaction(db, async (tx) => {
      const { rows } = await tx.query<ProfileRow>(
        `
        update profiles
        set nickname = coalesce($3, nickname), description = coalesce($4, description)
        where customer_id = $1 and id = $2
        returning ${PROFILE_COLUMNS}`,
        [customerId, params.id, nickname, description],
      )
      if (rows[0] === undefined) throw problem.notFound('profile', params.id)
      await recordNow(tx, customerId, audited(origin, 'profile.update', params.id))
      return profileToWire(rows[0])
    }).catch(async (error: unknown) => {
      if (violatedConstraint(error) !== 'profiles_nickname') throw error
      const taken = await db.query<ProfileRow>(
        `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and nickname = $2`,
        [customerId, nickname],
      )
      throw problem.alreadyExists('nickname', taken.rows[0] && profileToWire(taken.rows[0]))
    })
  },
})
