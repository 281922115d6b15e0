import { Closed, Filter, FilterValue } from '../../contract/fields.ts'
import {
  listByCreation,
  listReply,
  orderByCreation,
  pageParameters,
  timeBounds,
  uuidsOf,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import {
  APPROVAL_COLUMNS,
  approvalToWire,
  selectDecisions,
  type ApprovalRow,
} from '../../governance/approvals/approval.ts'
import { nameInitiators, namesAll } from '../../access/audit-log/actor-names.ts'
import { Approval } from '../../contract/approval.ts'

export const listApprovals = operation({
  method: 'GET',
  url: '/v2/approvals',
  scope: 'approvals:read_approval',
  tag: 'Approvals',
  summary: 'List Approvals',
  description: 'Lists the withdrawals and changes that wait for approvers, or have waited, newest first.',
  example: { query: { statuses: ['PENDING'], limit: 10 } },
  query: Closed({
    statuses: Filter(Approval.properties.status, 'Filter by statuses.'),
    transfer_ids: Filter(FilterValue, 'Filter by the withdrawals that they are of.'),
    ...timeBounds('created_at'),
    ...orderByCreation,
    ...pageParameters,
  }),
  reply: listReply(Approval),
  async run({ query, customerId, scopes, db }) {
    const { items, ...page } = await listByCreation(db, customerId, query, {
      list: 'approvals',
      select: `select ${APPROVAL_COLUMNS} from approvals a`,
      where: [
        ['status = any (?)', query.statuses],
        ['transfer_id = any (?::uuid[])', uuidsOf(query.transfer_ids)],
      ],
      toWire: (row: ApprovalRow) => row,
    })
    const ids = items.map(({ id }) => id)
    const decisions = await selectDecisions(db, customerId, ids)
    const approvals = items.map((row) => approvalToWire(row, decisions))
    return { items: await nameInitiators(db, customerId, approvals, namesAll(scopes)), ...page }
  },
})
