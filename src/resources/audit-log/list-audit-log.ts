import { Type } from 'typebox'
import { Closed, Filter, FilterValue } from '../../contract/fields.ts'
import {
  listReply,
  pageOf,
  pageParameters,
  pageReply,
  readPage,
  timeBounds,
  timeRange,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { namesAll } from '../../access/audit-log/actor-names.ts'
import {
  ActorTypeField,
  AuditLogRecord,
  OutcomeField,
  selectAuditRecords,
} from '../../access/audit-log/audit-records.ts'

export const listAuditLog = operation({
  method: 'GET',
  url: '/v2/audit-log',
  scope: 'audit:read_audit_log',
  tag: 'Governance',
  summary: 'List Audit Log',
  description:
    'Lists who changed what, and the changes that were refused, newest first. Nothing is ever removed. Filters combine: a record must pass each of them.',
  query: Closed({
    actor_type: Type.Optional(ActorTypeField),
    actor_ids: Filter(FilterValue, 'Filter by who made the change.'),
    subject_type: Type.Optional(
      Type.String({ maxLength: 100, description: 'Filter by the type of the record that was changed.' }),
    ),
    subject_ids: Filter(FilterValue, 'Filter by the record that was changed.'),
    actions: Filter(FilterValue, 'Filter by what was done, such as `transfer.create`.'),
    outcomes: Filter(OutcomeField, 'Filter by outcome.'),
    ...timeBounds('created_at'),
    ...pageParameters,
  }),
  example: { query: { actions: ['transfer.create'], limit: 10 } },
  reply: listReply(AuditLogRecord),
  async run({ query, customerId, scopes, db }) {
    const page = pageOf('audit-log', query)
    const records = await readPage(db, page, timeRange(query, 'created_at'), (range) =>
      selectAuditRecords(
        db,
        customerId,
        query,
        {
          ...range,
          limit: page.limit + 1,
          descending: page.descending,
          after: page.after?.[0],
        },
        namesAll(scopes),
      ),
    )
    return pageReply(
      records,
      page,
      ({ id }) => [id],
      (record) => record,
    )
  },
})
