import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Uuid } from '../contract/fields.ts'
import { operation } from '../operation.ts'
import { Profile, profileToWire, requireProfile } from '../records/profile.ts'

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
  reply: Profile,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    return profileToWire(await requireProfile(db, customerId, params.id))
  },
})
