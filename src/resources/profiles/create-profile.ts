import { insertOnce } from '../../money/records/insert-once.ts'
import { operation } from '../operation.ts'
import {
  insertProfile,
  Profile,
  PROFILE_COLUMNS,
  profileToWire,
  type ProfileRow,
} from '../../money/records/profile.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { transaction } from '../../db/database.ts'
import { Closed } from '../../contract/fields.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

export const createProfile = operation({
  method: 'POST',
  url: '/v2/profiles',
  scope: 'funding:write_profile',
  tag: 'Profiles',
  repeats: 'HARMLESS',
  summary: 'Create Profile',
  description: "Creates a profile of type NORMAL. Its nickname is unique among the customer's.",
  body: Closed({ nickname: Profile.properties.nickname, description: Profile.properties.description }),
  example: {
    bodies: { 'A profile for payouts': { nickname: 'Operations', description: 'Day-to-day payouts' } },
  },
  reply: Profile,
  problems: ['already-exists'],
  async run({ body, customerId, origin, db }) {
    return insertOnce({
      field: 'nickname',
      constraint: 'profiles_nickname',
      async find() {
        const { rows } = await db.query<ProfileRow>(
          `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and nickname = $2`,
          [customerId, body.nickname],
        )
        return rows[0] && profileToWire(rows[0])
      },
      insert: () =>
        transaction(db, async (tx) => {
          await requireRoom(tx, customerId, 'profiles')
          const made = await insertProfile(tx, customerId, { type: 'NORMAL', ...body })
          await recordNow(tx, customerId, audited(origin, 'profile.create', made.id))
          return profileToWire(made)
        }),
    })
  },
})
