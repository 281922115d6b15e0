import { Type } from 'typebox'
import { Filter, FilterValue } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import { Profile, PROFILE_COLUMNS, profileToWire } from '../records/profile.ts'

/** Lists the customer's profiles, by creation time (API behaviour, Profiles). */
export const listProfiles = operation({
  method: 'GET',
  url: '/v2/profiles',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profiles',
  description: "Lists the customer's profiles, newest first.",
  example: { query: { limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by profile ids.'),
      nickname: Type.Optional(Type.String({ maxLength: 100, description: 'Filter by nickname.' })),
      ...timeBounds('created_at'),
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Profile),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'profiles',
      select: `select ${PROFILE_COLUMNS} from profiles`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['nickname = ?', query.nickname],
      ],
      toWire: profileToWire,
    }),
})
