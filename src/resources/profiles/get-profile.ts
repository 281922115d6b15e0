import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'
import { Profile, profileToWire, requireProfile } from '../../money/records/profile.ts'

/** Reads one profile by id (API behaviour, Profiles). */
export const getProfile = operation({
  method: 'GET',
  url: '/v2/profiles/:id',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'Get Profile',
  description: 'Reads one profile.',
  example: { params: { id: EXAMPLE.profile_id } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  query: Closed({
    include_deactivated: Type.Optional(
      Type.Boolean({ default: true, description: 'False: a deactivated profile is not found.' }),
    ),
  }),
  reply: Profile,
  problems: ['not-found'],
  async run({ params, query, customerId, db }) {
    const profile = await requireProfile(db, customerId, params.id)
    if (query.include_deactivated === false && profile.deactivated_at !== null)
      throw problem.notFound('profile', params.id)
    return profileToWire(profile)
  },
})
