import { EXAMPLE } from '../../contract/example-records.ts'
import { pageParameters } from '../../http/lists.ts'
import { filterBy, listOperation } from '../list-operation.ts'
import {
  OwnCustomerId,
  requireOwnCustomer,
  Statement,
  STATEMENT_COLUMNS,
  StatementStatus,
  statementToWire,
  type StatementRow,
} from './statement.ts'

export const listStatements = listOperation({
  url: '/v2/statements',
  scope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Statements',
  description:
    "Lists the statements of the token's customer, latest period first. Another customer_id is refused with 403.",
  example: { query: { customer_id: EXAMPLE.customer_id, limit: 12 } },
  list: 'statements',
  item: Statement,
  names: ['statements'],
  filters: {
    ref_ids: filterBy.texts('s.ref_id', 'Filter by statement ref_ids.'),
    statement_ids: filterBy.ids('s.id', 'Filter by statement ids.'),
    statuses: filterBy.values('s.status', 'Filter by status; all statuses by default.', StatementStatus),
  },
  parameters: {
    customer_id: OwnCustomerId('Your own customer id, which each of your transfers and identities names.', [
      '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
    ]),
  },
  bounded: false,
  page: pageParameters,
  check: ({ query, customerId }) => requireOwnCustomer(query.customer_id, customerId),
  select: `select ${STATEMENT_COLUMNS} from statements s`,
  alias: 's',
  orderBy: () => 'period_start',
  toWire: (row: StatementRow) => statementToWire(row),
})
