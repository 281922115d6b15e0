import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { readOperation } from '../operation.ts'
import { Profile, profileToWire, requireProfile } from '../../money/records/profile.ts'

export const getProfile = readOperation({
  url: '/v2/profiles/:id',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'Get Profile',
  description: 'Reads one profile.',
  id: 'Profile id.',
  example: EXAMPLE.profile_id,
  query: Closed({
    include_deactivated: Type.Optional(
      Type.Boolean({ default: true, description: 'False: a deactivated profile is not found.' }),
    ),
  }),
  reply: Profile,
  async run({ params, query, customerId, db }) {
    const profile = await requireProfile(db, customerId, params.id)
    if (query.include_deactivated === false && profile.deactivated_at !== null)
      throw problem.notFound('profile', params.id)
    return profileToWire(profile)
  },
})
