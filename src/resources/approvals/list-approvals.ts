import { filterBy, listOperation } from '../list-operation.ts'
import {
  APPROVAL_COLUMNS,
  approvalToWire,
  selectDecisions,
  type ApprovalRow,
} from '../../governance/approvals/approval.ts'
import { nameInitiators, namesAll } from '../../access/audit-log/actor-names.ts'
import { Approval } from '../../contract/approval.ts'

export const listApprovals = listOperation({
  url: '/v2/approvals',
  scope: 'approvals:read_approval',
  tag: 'Approvals',
  summary: 'List Approvals',
  description: 'Lists the withdrawals and changes that wait for approvers, or have waited, newest first.',
  example: { query: { statuses: ['PENDING'], limit: 10 } },
  list: 'approvals',
  item: Approval,
  select: `select ${APPROVAL_COLUMNS} from approvals a`,
  filters: {
    statuses: filterBy.values('status', 'Filter by statuses.', Approval.properties.status),
    transfer_ids: filterBy.ids('transfer_id', 'Filter by the withdrawals that they are of.'),
  },
  async complete(rows: ApprovalRow[], { customerId, scopes, db }) {
    const ids = rows.map(({ id }) => id)
    const decisions = await selectDecisions(db, customerId, ids)
    const approvals = rows.map((row) => approvalToWire(row, decisions))
    return nameInitiators(db, customerId, approvals, namesAll(scopes))
  },
})
