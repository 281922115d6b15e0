import { filterBy, listOperation } from '../list-operation.ts'
import {
  Identity,
  IDENTITY_SUMMARY,
  identityColumns,
  identityToWire,
  includeParameters,
  SummaryStatus,
  type IdentityRow,
} from '../../money/records/identity.ts'

export const listIdentities = listOperation({
  url: '/v2/identity/identities',
  scope: 'identity:read_identity',
  tag: 'Identities',
  summary: 'List Identities',
  description: "Lists the customer's identities, newest first.",
  example: { query: { summary_statuses: ['APPROVED'], limit: 10 } },
  list: 'identities',
  item: Identity,
  select: (query) => `select ${identityColumns(query)} from identities`,
  filters: {
    ids: filterBy.ids('id', 'Filter by identity ids.'),
    ref_ids: filterBy.texts('ref_id', 'Filter by ref_ids.'),
    summary_statuses: filterBy.values(IDENTITY_SUMMARY, 'Filter by summary statuses.', SummaryStatus),
    summary_status: filterBy.values(IDENTITY_SUMMARY, 'Another name for summary_statuses.', SummaryStatus),
    identity_type: filterBy.values('type', 'Filter by types.', Identity.properties.type),
  },
  parameters: includeParameters,
  updatedAt: 'updated_at',
  toWire: (row: IdentityRow, { query }) => identityToWire(row, query),
})
