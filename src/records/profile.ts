import { Type, type Static } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { newId, readClock } from '../db/ids.ts'
import { Text, Uuid } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'

/** A profile, which holds balances (API behaviour, Profiles). */
export const Profile = Type.Object(
  {
    id: Uuid('Profile id.'),
    nickname: Text(100, 'Unique name of the profile.', 1),
    type: Type.Enum(['NORMAL', 'DEFAULT'], {
      type: 'string',
      description: 'DEFAULT is the profile created with the customer; all others are NORMAL.',
    }),
    description: Type.Optional(Text(500, 'Free-text description.')),
    account_id: Type.Optional(Uuid('Account that the profile belongs to.')),
  },
  { $id: 'Profile' },
)
export type Profile = Static<typeof Profile>

export const PROFILE_COLUMNS = 'id, nickname, type, description, account_id'

export type ProfileRow = Pick<Profile, 'id' | 'nickname' | 'type'> & {
  description: string | null
  account_id: string | null
}

export const profileToWire = ({ description, account_id, ...row }: ProfileRow): Profile => ({
  ...row,
  ...(description !== null && { description }),
  ...(account_id !== null && { account_id }),
})

/** Creates a profile. A nickname that is taken violates `profiles_nickname`. */
export async function insertProfile(
  db: Queryable,
  customerId: string,
  profile: Pick<Profile, 'type' | 'nickname' | 'description' | 'account_id'>,
): Promise<ProfileRow> {
  const now = await readClock(db)
  const { rows } = await db.query<ProfileRow>(
    `
    insert into profiles (customer_id, id, created_at, type, nickname, description, account_id)
    values ($1, $2, $3, $4, $5, $6, $7)
    returning ${PROFILE_COLUMNS}`,
    [
      customerId,
      newId(now),
      now.text,
      profile.type,
      profile.nickname,
      profile.description,
      profile.account_id,
    ],
  )
  return rows[0]!
}

/** Reads the customer's profile with this id. Throws not-found. */
export async function requireProfile(db: Queryable, customerId: string, id: string): Promise<ProfileRow> {
  const { rows } = await db.query<ProfileRow>(
    `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('profile', id)
  return rows[0]
}

/** Reads which of `profileIds` belong to this customer, each with its account's id or null. */
export async function selectProfiles(
  db: Queryable,
  customerId: string,
  profileIds: string[],
): Promise<Map<string, string | null>> {
  if (profileIds.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; account_id: string | null }>(
    'select id, account_id from profiles where customer_id = $1 and id = any ($2::uuid[])',
    [customerId, profileIds],
  )
  return new Map(rows.map((row) => [row.id, row.account_id]))
}
