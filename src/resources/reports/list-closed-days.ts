import { Type } from 'typebox'
import { Timestamp } from '../../contract/fields.ts'
import { PERIOD, report } from './report.ts'

export const listClosedDays = report({
  url: '/v2/reports/closed-days',
  summary: 'List Closed Days',
  description:
    'The days of the ledger that are closed, newest first. A day is closed minutes after its end, once no entry can be dated in it any more.',
  query: PERIOD,
  line: {
    day: Type.String({ description: 'The day, in UTC.', examples: ['2026-01-31'] }),
    closed_at: Timestamp('When its sums were kept. They never change.'),
    digest: Type.String({ description: 'SHA-256 of the sums. The audit log of the platform has it, too.' }),
  },
  async read({ book: { db }, time: { from, to } }) {
    const { rows } = await db.query<Record<'day' | 'closed_at' | 'digest', string>>(
      `select day::text, closed_at, digest
       from closed_days
       where digest is not null and until > $1 and day < ($2::timestamptz at time zone 'UTC')
       order by day desc`,
      [from.text, to.text],
    )
    return { lines: [rows] }
  },
})
