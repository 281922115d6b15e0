import { Type, type Static } from 'typebox'
import { Text, Uuid } from '../http/fields.ts'

/** A profile: what holds balances (design section 6). */
export const Profile = Type.Object(
  {
    id: Uuid('Profile id.'),
    nickname: Text(100, 'Unique name of the profile.', 1),
    type: Type.Enum(['NORMAL', 'DEFAULT'], {
      type: 'string',
      description: 'DEFAULT is the one made with the customer; all others are NORMAL.',
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
