import { Type } from 'typebox'
import { Filter, FilterValue, FilterWithoutCommas } from '../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  timeConditions,
  uuidsOf,
} from '../http/lists.ts'
import { operation } from '../operation.ts'
import {
  Identity,
  IDENTITY_SUMMARY,
  identityColumns,
  identityToWire,
  includeParameters,
  SummaryStatus,
  type IdentityRow,
} from './identity.ts'

/** Lists the customer's identities, by creation time (API behaviour, Identities). */
export const listIdentities = operation({
  method: 'GET',
  url: '/v2/identity/identities',
  scope: 'identity:read_identity',
  tag: 'Identities',
  summary: 'List Identities',
  description: "Lists the customer's identities, newest first.",
  example: { query: { summary_statuses: ['APPROVED'], limit: 10 } },
  query: Type.Object(
    {
      ids: Filter(FilterValue, 'Filter by identity ids.'),
      ref_ids: FilterWithoutCommas(FilterValue, 'Filter by ref_ids.'),
      summary_statuses: Filter(SummaryStatus, 'Filter by summary statuses.'),
      summary_status: Filter(SummaryStatus, 'Another name for summary_statuses.'),
      identity_type: Filter(Identity.properties.type, 'Filter by types.'),
      ...timeBounds('created_at'),
      ...timeBounds('updated_at'),
      ...includeParameters,
      ...orderByCreation,
      ...pageParameters,
    },
    { additionalProperties: false },
  ),
  reply: listReply(Identity),
  run: ({ query, customerId, db }) =>
    listByCreation(db, customerId, query, {
      list: 'identities',
      select: `select ${identityColumns(query)} from identities`,
      where: [
        ['id = any (?::uuid[])', uuidsOf(query.ids)],
        ['ref_id = any (?)', query.ref_ids],
        [`${IDENTITY_SUMMARY} = any (?::text[])`, query.summary_statuses],
        [`${IDENTITY_SUMMARY} = any (?::text[])`, query.summary_status],
        ['type = any (?::text[])', query.identity_type],
        ...timeConditions(query, 'updated_at'),
      ],
      toWire: (row: IdentityRow) => identityToWire(row, query),
    }),
})
