import { Type } from 'typebox'
import { Filter, FilterValue } from '../../contract/fields.ts'
import { pageParameters } from '../../http/lists.ts'
import { listOperation } from '../list-operation.ts'
import { namesAll } from '../../access/audit-log/actor-names.ts'
import {
  ActorTypeField,
  AuditLogRecord,
  OutcomeField,
  selectAuditRecords,
} from '../../access/audit-log/audit-records.ts'

export const listAuditLog = listOperation({
  url: '/v2/audit-log',
  scope: 'audit:read_audit_log',
  tag: 'Governance',
  summary: 'List Audit Log',
  description:
    'Lists who changed what, and the changes that were refused, newest first. Nothing is ever removed. Filters combine: a record must pass each of them.',
  example: { query: { actions: ['transfer.create'], limit: 10 } },
  list: 'audit-log',
  item: AuditLogRecord,
  parameters: {
    actor_type: Type.Optional(ActorTypeField),
    actor_ids: Filter(FilterValue, 'Filter by who made the change.'),
    subject_type: Type.Optional(
      Type.String({ maxLength: 100, description: 'Filter by the type of the record that was changed.' }),
    ),
    subject_ids: Filter(FilterValue, 'Filter by the record that was changed.'),
    actions: Filter(FilterValue, 'Filter by what was done, such as `transfer.create`.'),
    outcomes: Filter(OutcomeField, 'Filter by outcome.'),
  },
  page: pageParameters,
  read({ query, customerId, scopes, db }, { limit, descending, after }, range) {
    const part = { ...range, limit: limit + 1, descending, after: after?.[0] }
    return selectAuditRecords(db, customerId, query, part, namesAll(scopes))
  },
})
