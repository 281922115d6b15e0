import { Type } from 'typebox'
import { violatedConstraint, type Queryable } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import { operation } from '../http/operation.ts'
import { problem } from '../http/problems.ts'
import { Profile, PROFILE_COLUMNS, profileToWire, type ProfileRow } from './profile.ts'

/** Creates a profile (design section 6). Its nickname is unique among the customer's. */
export const createProfile = operation({
  method: 'POST',
  url: '/v2/profiles',
  scope: 'funding:write_profile',
  tag: 'Profiles',
  summary: 'Create Profile',
  body: Type.Object(
    { nickname: Profile.properties.nickname, description: Profile.properties.description },
    { additionalProperties: false },
  ),
  example: { nickname: 'Operations', description: 'Day-to-day payouts' },
  reply: Profile,
  problems: ['already-exists'],
  async run({ body, customerId, db }) {
    try {
      return profileToWire(await insertProfile(db, customerId, { type: 'NORMAL', ...body }))
    } catch (error) {
      if (violatedConstraint(error) !== 'profiles_nickname') throw error
      const { rows } = await db.query<ProfileRow>(
        `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and nickname = $2`,
        [customerId, body.nickname],
      )
      throw problem.alreadyExists('nickname', profileToWire(rows[0]!))
    }
  },
})

/** Makes a profile. A nickname that is taken violates `profiles_nickname`. */
export async function insertProfile(
  db: Queryable,
  customerId: string,
  profile: Pick<Profile, 'type' | 'nickname'> & { description?: string },
): Promise<ProfileRow> {
  const now = await readClock(db)
  const { rows } = await db.query<ProfileRow>(
    `
    insert into profiles (customer_id, id, created_at, type, nickname, description)
    values ($1, $2, $3, $4, $5, $6)
    returning ${PROFILE_COLUMNS}`,
    [customerId, newId(now), now.text, profile.type, profile.nickname, profile.description],
  )
  return rows[0]!
}
