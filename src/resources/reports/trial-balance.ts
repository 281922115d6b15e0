import { Type } from 'typebox'
import { csvIn } from '../../contract/csv.ts'
import { AssetSymbol, Closed, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import type { Book } from '../../money/books/book.ts'
import { inChart } from '../../money/books/chart.ts'
import { readProfileSums, readSums, type BookSums, type ProfileSums } from '../../money/books/sums.ts'
import { operation } from '../operation.ts'
import { bookOf, OF_CUSTOMER, reported, reportPeriod, ReportTime } from './book.ts'

const Figure = (description: string) => Type.String({ description, examples: ['-25.5'] })
const FIGURES = {
  opening: Figure('At the beginning.'),
  debit: Figure('What was taken in the time.'),
  credit: Figure('What was added in the time.'),
  closing: Figure('At the end: the opening, less the debit, plus the credit.'),
}
const Line = Type.Object({
  account: Type.String({ description: 'The account of the ledger.', examples: ['bank'] }),
  name: Type.String({ description: 'The account in words.', examples: ['Bank account'] }),
  kind: OneOf(['ASSET', 'LIABILITY', 'INCOME', 'EXPENSE', 'CLEARING'], 'Its place in the chart of accounts.'),
  customer_id: Type.Optional(Uuid('By profile: the customer.')),
  profile_id: Type.Optional(Uuid('By profile: the profile.')),
  asset: AssetSymbol,
  ...FIGURES,
})
type Line = { account: string; name: string; kind: string } & (BookSums['items'][number] | ProfileSums)

const REPLY = {
  from: Timestamp('The beginning of the time.'),
  to: Timestamp('Its end: a moment below which no entry can appear any more.'),
  items: Type.Array(Line),
}
const QUERY = {
  from: ReportTime('Opening balances are those before it (default: the beginning of the ledger).'),
  at: ReportTime('Balances before this moment (default: now).'),
  asset: Type.Optional(AssetSymbol),
  ...OF_CUSTOMER,
}

/** Reads the sums of the accounts for a request, in the asset that it names. */
async function sumsOf(book: Book, query: Record<string, unknown>): Promise<BookSums> {
  const { items, sums, ...time } = await reported(readSums(book, reportPeriod(query, 'at')))
  const isAsked = ({ asset }: { asset: string }) => query.asset === undefined || asset === query.asset
  return { ...time, items: items.filter(isAsked), sums: sums.filter(isAsked) }
}

const lineOf = (sums: BookSums['items'][number]): Line => ({ ...sums, ...inChart(sums.account) })

const COLUMNS = [
  'from',
  'to',
  'account',
  'name',
  'kind',
  'customer_id',
  'profile_id',
  'asset',
  ...Object.keys(FIGURES),
]

/** A file of lines, each with the time that it is of. */
const fileOf = (time: Pick<BookSums, 'from' | 'to'>, parts: AsyncIterable<Line[]>) =>
  csvIn(COLUMNS, dated(time, parts), Object.keys(FIGURES))

async function* dated({ from, to }: Pick<BookSums, 'from' | 'to'>, parts: AsyncIterable<Line[]>) {
  for await (const lines of parts) yield lines.map((line) => ({ from, to, ...line }))
}

/** The lines of a trial balance: an account each; with `by`, a profile each in place of all profiles together. */
async function* linesOf(book: Book, { items, from, to }: BookSums, query: { by?: string; asset?: string }) {
  const isSplit = query.by === 'profile'
  yield items.filter(({ account }) => !isSplit || account !== 'profile').map(lineOf)
  if (!isSplit) return
  for await (const rows of readProfileSums(book, { from, to, asset: query.asset }))
    yield rows.map((row): Line => ({ account: 'profile', ...inChart('profile'), ...row }))
}

/** Lines of an answer in JSON; a file has all of them. */
const LINES_MAX = 10_000

export const getTrialBalance = operation({
  method: 'GET',
  url: '/v2/reports/trial-balance',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'Get Trial Balance',
  description:
    "Each account of the ledger by asset, as of a moment: of the customer's entries, and for an operator of the deployment of all entries. Negative: what the platform has, such as money at its bank. A moment before the last closed day is answered the same for ever. `Accept: text/csv` answers a file.",
  query: Closed({
    ...QUERY,
    by: Type.Optional(OneOf(['profile'], 'A line for each profile, in place of all profiles together.')),
  }),
  example: {},
  reply: Type.Object({
    ...REPLY,
    sums: Type.Array(Type.Object({ asset: AssetSymbol, ...FIGURES }), {
      description: 'All accounts together, by asset: zero, as each entry has its counter-entry.',
    }),
    balanced: Type.Boolean({ description: 'Whether each sum is zero.' }),
  }),
  async run(request) {
    const book = bookOf(request)
    const found = await sumsOf(book, request.query)
    const items: Line[] = []
    for await (const lines of linesOf(book, found, request.query)) {
      items.push(...lines)
      if (items.length > LINES_MAX)
        throw problem.badRequest(`by: more than ${LINES_MAX} lines: ask for a file (Accept: text/csv)`, 'by')
    }
    const { from, to, sums } = found

    const isZero = (figure: string) => !/[1-9]/.test(figure)
    const balanced = sums.every(({ opening, closing }) => isZero(opening) && isZero(closing))
    return { from, to, items: items as never[], sums, balanced }
  },
  forms: {
    async 'text/csv'(request) {
      const book = bookOf(request)
      const found = await sumsOf(book, request.query)
      return fileOf(found, linesOf(book, found, request.query))
    },
  },
})

/** The accounts of the platform: all but profiles' balances, which are other people's money. */
async function ofPlatform(book: Book, query: Record<string, unknown>) {
  const { from, to, items } = await sumsOf(book, query)
  return { from, to, items: items.filter(({ account }) => account !== 'profile').map(lineOf) }
}

export const listAccountsOfPlatform = operation({
  method: 'GET',
  url: '/v2/reports/accounts',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List Platform Accounts',
  description:
    "Each account that is no profile's over a time: the bank, wallets, fees, network fees, rewards, what is under way. `Accept: text/csv` answers a file.",
  query: Closed(QUERY),
  example: {},
  reply: Type.Object(REPLY),
  run: async (request) => (await ofPlatform(bookOf(request), request.query)) as never,
  forms: {
    async 'text/csv'(request) {
      const { items, ...time } = await ofPlatform(bookOf(request), request.query)
      return fileOf(time, inOnePage(items))
    },
  },
})

async function* inOnePage(lines: Line[]) {
  yield lines
}
