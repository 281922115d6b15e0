import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Filter, FilterValue, FilterWithoutCommas, LENGTH_MAX } from '../../contract/fields.ts'
import { listByCreation, pageEnd, pageParameters, uuidsOf } from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  Statement,
  STATEMENT_COLUMNS,
  StatementStatus,
  statementToWire,
  type StatementRow,
} from './statement.ts'

export const listStatements = operation({
  method: 'GET',
  url: '/v2/statements',
  scope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'List Statements',
  description:
    "Lists the statements of the token's customer, latest period first. Another customer_id is refused with 403.",
  example: { query: { customer_id: EXAMPLE.customer_id, limit: 12 } },
  query: Closed({
    customer_id: Type.String({
      maxLength: LENGTH_MAX,
      transform: ['toLowerCase'],
      description: 'Your own customer id, which each of your transfers and identities names.',
      examples: ['0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'],
    }),
    ref_ids: FilterWithoutCommas(FilterValue, 'Filter by statement ref_ids.'),
    statement_ids: Filter(FilterValue, 'Filter by statement ids.'),
    statuses: Filter(StatementStatus, 'Filter by status; all statuses by default.'),
    ...pageParameters,
  }),
  reply: Type.Object({
    statements: Type.Array(Statement),
    ...pageEnd,
  }),
  async run({ query, customerId, db }) {
    if (query.customer_id !== customerId) {
      throw problem.forbidden("customer_id must be the token's customer")
    }
    const { items: statements, ...rest } = await listByCreation(db, customerId, query, {
      list: 'statements',
      select: `select ${STATEMENT_COLUMNS} from statements s`,
      alias: 's',
      orderBy: 'period_start',
      where: [
        ['s.ref_id = any (?::text[])', query.ref_ids],
        ['s.id = any (?::uuid[])', uuidsOf(query.statement_ids)],
        ['s.status = any (?::text[])', query.statuses],
      ],
      toWire: (row: StatementRow) => statementToWire(row),
    })
    return { statements, ...rest }
  },
})
