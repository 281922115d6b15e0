import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, DOLLARS } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { Amount, AssetSymbol, Closed, OneOf, Timestamp } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { completeUntil, earlierOf, type Book } from '../../money/books/book.ts'
import { operation } from '../operation.ts'
import { bookOf, OF_CUSTOMER, reported, reportPeriod, ReportTime } from './book.ts'

/** What activity is grouped by, in SQL. */
const KEYS = {
  day: `(e.created_at at time zone 'UTC')::date::text`,
  type: `coalesce(t.type, e.event)`,
  asset: 'e.asset',
  profile: `coalesce(t.profile_id::text, '')`,
}
const NAMES = Object.keys(KEYS) as (keyof typeof KEYS)[]

const Row = Type.Object({
  key: Type.String({ description: 'The day, type, asset or profile.' }),
  asset: AssetSymbol,
  count: Type.Integer({ description: 'Transfers that have changed balances of profiles.' }),
  refunded: Type.Integer({ description: 'Transfers that were given back.' }),
  in: Amount('What was added to profiles, with what was given back.'),
  out: Amount('What was taken from profiles, with fees.'),
  fees: Type.String({ description: 'Fees charged, less those given back.', examples: ['1.5'] }),
  network_fees: Type.String({
    description: 'Network fees that the platform has paid.',
    examples: ['0.0001'],
  }),
  value_usd: Amount('The value of the transfers in USD when they were made.'),
  unpriced: Type.Integer({ description: 'Transfers whose value is not known.' }),
})
type Row = Static<typeof Row>
const AMOUNTS = ['in', 'out', 'fees', 'network_fees'] as const

const QUERY = {
  from: ReportTime('The beginning of the time (default: that of the ledger).'),
  to: ReportTime('Its end, not included (default: now).'),
  by: Type.Optional(OneOf(NAMES, 'What each line is about.', { default: 'day' })),
  ...OF_CUSTOMER,
}

type Query = Record<string, unknown> & { by?: keyof typeof KEYS }

/** Lines that are read at once: each page reads the time again, and a report by profile may have a million. */
const PAGE = 20_000

/** Sums what was posted within a time. It reads the entries of that time, so that a time that has passed never changes. */
async function readActivity(book: Book, query: Query) {
  const asked = reportPeriod(query)
  const to = await reported(completeUntil(book, asked.to))
  const from = earlierOf(asked.from, to)
  const pages = async function* () {
    for (let page: Row[] | undefined; page === undefined || page.length === PAGE;)
      yield (page = await selectActivity(book, query, { from: from.text, to: to.text, last: page?.at(-1) }))
  }
  return { from: from.text, to: to.text, pages: pages() }
}

async function selectActivity(
  book: Book,
  query: Query,
  { from, to, last }: { from: string; to: string; last: Row | undefined },
): Promise<Row[]> {
  const { rows } = await book.db.query<Record<keyof Row, string>>(
    `
    with posted as (
      select ${KEYS[query.by ?? 'day']} as key, e.asset, e.account, e.amount, e.account = 'profile' and e.event = 'CREATED' as made,
             e.account = 'profile' and e.event = 'REFUNDED' as refunded,
             coalesce(t.notional_value, case when t.asset = any ($4) then t.total end) as value
      from entries e
      left join transfers t on t.customer_id = e.customer_id and t.id = e.transfer_id
      where ($1::text is null or e.customer_id::text = $1) and e.created_at >= $2 and e.created_at < $3
    )
    select key, asset, count(*) filter (where made) as count, count(*) filter (where refunded) as refunded,
           coalesce(sum(amount) filter (where account = 'profile' and amount > 0), 0) as "in",
           coalesce(-sum(amount) filter (where account = 'profile' and amount < 0), 0) as out,
           coalesce(sum(amount) filter (where account = 'fees'), 0) as fees,
           coalesce(-sum(amount) filter (where account like 'network\\_fees:%'), 0) as network_fees,
           coalesce(sum(value) filter (where made), 0) as value_usd,
           count(*) filter (where made and value is null) as unpriced
    from posted
    where $5::text is null or (key, asset) > ($5, $6::text)
    group by key, asset
    order by key, asset
    limit ${PAGE}`,
    [book.customerId, from, to, DOLLARS, last?.key, last?.asset],
  )
  return rows.map(({ count, refunded, unpriced, ...row }): Row => {
    const written = (amount: string, asset: string) =>
      formatAmount(parseStoredAmount(amount, decimalsOf(asset)), decimalsOf(asset))
    const amounts = Object.fromEntries(AMOUNTS.map((name) => [name, written(row[name], row.asset)]))
    const counts = { count: Number(count), refunded: Number(refunded), unpriced: Number(unpriced) }
    return {
      ...row,
      ...counts,
      ...(amounts as Pick<Row, (typeof AMOUNTS)[number]>),
      value_usd: row.value_usd,
    }
  })
}

/** Lines of an answer in JSON; a file has all of them. */
const LINES_MAX = 10_000

export const listActivityOfTime = operation({
  method: 'GET',
  url: '/v2/reports/activity',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List Activity Report',
  description:
    'What was posted within a time, by day, type, asset or profile: transfers, what came and went, fees, network fees, and the value in USD at the time. `Accept: text/csv` answers a file.',
  query: Closed(QUERY),
  example: { query: { by: 'type' } },
  reply: Type.Object({
    from: Timestamp('The beginning of the time.'),
    to: Timestamp('Its end: a moment below which no entry can appear any more.'),
    items: Type.Array(Row),
  }),
  async run(request) {
    const { from, to, pages } = await readActivity(bookOf(request), request.query)
    const items: Row[] = (await pages.next()).value ?? []
    if (items.length > LINES_MAX)
      throw problem.badRequest(`more than ${LINES_MAX} lines: ask for a file (Accept: text/csv)`, 'by')
    return { from, to, items }
  },
  forms: {
    async 'text/csv'(request) {
      const { pages } = await readActivity(bookOf(request), request.query)
      return csvIn(Object.keys(Row.properties), pages, [
        ...AMOUNTS,
        'value_usd',
        'count',
        'refunded',
        'unpriced',
      ])
    },
  },
})
