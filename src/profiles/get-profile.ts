import { Type } from 'typebox'
import type { Database } from '../db/database.ts'
import { Uuid } from '../http/fields.ts'
import { operation } from '../http/operation.ts'
import { problem } from '../http/problems.ts'
import { Profile, PROFILE_COLUMNS, profileToWire, type ProfileRow } from './profile.ts'

/** Reads one profile by id (design section 6). */
export const getProfile = operation({
  method: 'GET',
  url: '/v2/profiles/:id',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'Get Profile',
  params: Type.Object({ id: Uuid('Profile id.') }),
  reply: Profile,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    return profileToWire(await requireProfile(db, customerId, params.id))
  },
})

/** The customer's profile with this id. Throws not-found. */
export async function requireProfile(db: Database, customerId: string, id: string): Promise<ProfileRow> {
  const { rows } = await db.query<ProfileRow>(
    `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('profile', id)
  return rows[0]
}
