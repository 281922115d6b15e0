import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue } from '../http/fields.ts'
import {
  listReply,
  pageOf,
  pageParameters,
  pageReply,
  timeBounds,
  timeRange,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../http/operation.ts'
import { Profile, PROFILE_COLUMNS, profileToWire, type ProfileRow } from '../ledger/records/profile.ts'

/** Lists the customer's profiles, by creation time (design sections 5 and 6). */
export const listProfiles = operation({
  method: 'GET',
  url: '/v2/profiles',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profiles',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by profile ids.'),
      nickname: Type.Optional(Type.String({ maxLength: 100, description: 'Filter by nickname.' })),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Profile),
  async run({ query, customerId, db }) {
    const page = pageOf('profiles', query)
    const created = timeRange(query, 'created_at')
    const { rows } = await db.query<ProfileRow>(
      `
      select ${PROFILE_COLUMNS}
      from profiles
      where customer_id = $1
        and id >= $2 and id < $3
        and ($4::uuid[] is null or id = any ($4))
        and ($5::text is null or nickname = $5)
        and ($6::uuid is null or id ${page.descending ? '<' : '>'} $6)
      order by id ${page.descending ? 'desc' : 'asc'}
      limit $7`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        query.nickname,
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], profileToWire)
  },
})
