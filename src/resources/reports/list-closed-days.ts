import { Type, type Static } from 'typebox'
import { Closed, Items, Timestamp } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import { operation } from '../operation.ts'
import { ReportTime, reportPeriod } from './book.ts'

const ClosedDay = Type.Object({
  day: Type.String({ description: 'The day, in UTC.', examples: ['2026-01-31'] }),
  closed_at: Timestamp('When its sums were kept. They never change.'),
  digest: Type.String({
    description:
      'SHA-256 of the sums, which the audit log of the platform has, too: whoever keeps its head can check it.',
  }),
})

/** Most days of an answer: a year and a month. */
const DAYS_MAX = 400

export const listClosedDays = operation({
  method: 'GET',
  url: '/v2/reports/closed-days',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List Closed Days',
  description: `The days of the ledger that are closed, newest first, at most ${DAYS_MAX}. A day is closed minutes after its end, once no entry can be dated in it any more.`,
  query: Closed({
    from: ReportTime('Only days that end after it.'),
    to: ReportTime('Only days that begin before it.'),
  }),
  example: {},
  reply: Items(ClosedDay),
  async run({ query, db }) {
    const { from, to } = reportPeriod(query)
    const { rows } = await forAll(db).query<Static<typeof ClosedDay>>(
      `
      select day::text, closed_at, digest
      from closed_days
      where digest is not null and until > $1 and day < ($2::timestamptz at time zone 'UTC')
      order by day desc
      limit ${DAYS_MAX}`,
      [from.text, to.text],
    )
    return { items: rows }
  },
})
