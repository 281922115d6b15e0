import { Type } from 'typebox'
import { filterBy, listOperation } from '../list-operation.ts'
import { Profile, PROFILE_COLUMNS, profileToWire } from '../../money/records/profile.ts'

export const listProfiles = listOperation({
  url: '/v2/profiles',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profiles',
  description: "Lists the customer's profiles, newest first.",
  example: { query: { limit: 10 } },
  list: 'profiles',
  item: Profile,
  select: `select ${PROFILE_COLUMNS} from profiles`,
  filters: {
    ids: filterBy.ids('id', 'Filter by profile ids.'),
    nickname: {
      parameter: Type.Optional(Type.String({ maxLength: 100, description: 'Filter by nickname.' })),
      where: 'nickname = ?',
    },
  },
  toWire: profileToWire,
})
