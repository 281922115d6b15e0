import { Type } from 'typebox'
import { firstIdAt } from '../db/ids.ts'
import { Filter, FilterValue, FilterWithoutCommas } from '../http/fields.ts'
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
import { identitySummary, STATUSES, type Status } from '../ledger/records/holders.ts'
import { Identity, IDENTITY_COLUMNS, identityToWire, SummaryStatus, type IdentityRow } from './identity.ts'

/** Lists the customer's identities, by creation time (design sections 5 and 6). */
export const listIdentities = operation({
  method: 'GET',
  url: '/v2/identity/identities',
  scope: 'identity:read_identity',
  tag: 'Identities',
  summary: 'List Identities',
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by identity ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      summary_statuses: Filter(SummaryStatus, 'Filter by summary statuses.'),
      ...timeBounds('created_at'),
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Identity),
  async run({ query, customerId, db }) {
    const page = pageOf('identities', query)
    const created = timeRange(query, 'created_at')
    const states = statesOf(query.summary_statuses)
    const { rows } = await db.query<IdentityRow>(
      `
      select ${IDENTITY_COLUMNS}
      from identities
      where customer_id = $1
        and id >= $2 and id < $3
        and ($4::uuid[] is null or id = any ($4))
        and ($5::text[] is null or ref_id = any ($5))
        and ($6::text[] is null or (status, user_disabled, admin_disabled)
               in (select * from unnest($6::text[], $7::boolean[], $8::boolean[])))
        and ($9::uuid is null or id ${page.descending ? '<' : '>'} $9)
      order by id ${page.descending ? 'desc' : 'asc'}
      limit $10`,
      [
        customerId,
        firstIdAt(created.from),
        firstIdAt(created.to),
        uuidsOf(query.ids),
        query.ref_ids,
        states?.map(({ status }) => status),
        states?.map(({ user_disabled }) => user_disabled),
        states?.map(({ admin_disabled }) => admin_disabled),
        page.after?.[0],
        page.limit + 1,
      ],
    )
    return pageReply(rows, page, (row) => [row.id], identityToWire)
  },
})

const EVERY_STATE = STATUSES.flatMap((status) =>
  [false, true].flatMap((user_disabled) =>
    [false, true].map((admin_disabled) => ({ status, user_disabled, admin_disabled })),
  ),
)

/** The states that come to one of these summaries. The rule is `identitySummary`'s; SQL only looks states up. */
const statesOf = (summaries: readonly Status[] | undefined) =>
  summaries && EVERY_STATE.filter((state) => summaries.includes(identitySummary(state)))
