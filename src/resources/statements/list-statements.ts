import { Type } from 'typebox'
import { firstIdAt, momentAt, UUID } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Filter, FilterValue, FilterWithoutCommas, LENGTH_MAX } from '../../contract/fields.ts'
import {
  EVER,
  MICROS,
  microsToTimestamp,
  pageOf,
  pageParameters,
  pageReply,
  readPage,
  uuidsOf,
  pageEnd,
} from '../../http/lists.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import {
  Statement,
  STATEMENT_COLUMNS,
  StatementStatus,
  statementToWire,
  type StatementRow,
} from './statement.ts'

/** Lists the customer's statements, by period start (API behaviour, Statements). */
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
    const page = pageOf('statements', query, [MICROS, UUID])
    const direction = page.descending ? 'desc' : 'asc'
    const rows = await readPage(db, page, EVER, async ({ to }) => {
      const { rows } = await db.query<StatementRow>(
        `
        select ${STATEMENT_COLUMNS}
        from statements s
        where s.customer_id = $1
          and s.id < $8
          and ($2::text[] is null or s.ref_id = any ($2))
          and ($3::uuid[] is null or s.id = any ($3))
          and ($4::text[] is null or s.status = any ($4))
          and ($5::timestamptz is null or (s.period_start, s.id) ${page.descending ? '<' : '>'} ($5, $6::uuid))
        order by s.period_start ${direction}, s.id ${direction}
        limit $7`,
        [
          customerId,
          query.ref_ids,
          uuidsOf(query.statement_ids),
          query.statuses,
          page.after && microsToTimestamp(Number(page.after[0])),
          page.after?.[1],
          page.limit + 1,
          firstIdAt(to),
        ],
      )
      return rows
    })
    const keyOf = (row: StatementRow) => [String(momentAt(row.period_start).micros), row.id]
    const { items: statements, ...rest } = pageReply(rows, page, keyOf, statementToWire)
    return { statements, ...rest }
  },
})
