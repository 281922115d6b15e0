import { Type } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { AssetSymbol, Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { momentAt, momentOfMicros, type Moment } from '../../db/ids.ts'
import { PAGE_SIZE_DEFAULT, pageEnd, pageParameters } from '../../http/lists.ts'
import { inChart } from '../../money/books/chart.ts'
import { readEntries } from '../../money/books/read-entries.ts'
import { readSums } from '../../money/books/sums.ts'
import { operation } from '../operation.ts'
import { askedOf, Figure, ITS_TIME, OF_CUSTOMER, PERIOD, type AskedReport } from './report.ts'

const LINE = {
  created_at: Timestamp('When it was posted.'),
  transfer_id: Uuid('The transfer, sweep or acknowledged transaction that it belongs to.'),
  event: Type.String({ description: 'CREATED, SETTLED, REFUNDED or SWEPT.' }),
  position: Type.Integer({ description: 'Its place within the event.' }),
  type: Type.Optional(Type.String({ description: 'The type of the transfer.' })),
  ref_id: Type.Optional(Type.String({ description: 'The ref_id of the transfer.' })),
  account: Type.String({ description: 'The account.' }),
  name: Type.String({ description: 'The account in words.' }),
  customer_id: Uuid('The customer, or the platform.'),
  profile_id: Type.Optional(Uuid('The profile, on a profile.')),
  asset: AssetSymbol,
  amount: Figure('Negative: taken from the account.'),
  balance: Figure(
    'Of the account in the asset after it: of the profile, where the report is of one profile.',
  ),
  counter_accounts: Type.Array(Type.String(), {
    description: 'The other accounts of the same event in the asset.',
  }),
}

type Asked = AskedReport<{ account?: string; asset?: string; profile_id?: string }>

/** The entries from a moment on with the running balance of their account, as they are posted. */
async function* linesOf({ book, time, query }: Asked, from: Moment) {
  const { account, asset, profile_id: profileId } = query
  const balances = new Map<string, bigint>()
  const minorOf = (amount: string, of: string) => parseStoredAmount(amount, decimalsOf(of))
  // A profile's entries have its balance.
  const before = profileId === undefined ? (await readSums(book, { from, to: from })).items : []
  for (const { account: of, asset, closing } of before)
    balances.set(`${asset} ${of}`, minorOf(closing, asset))
  const asked = { from, to: time.to, account, asset, profileId, withCounterAccounts: true }
  for await (const entries of readEntries(book, asked))
    yield entries.map((entry) => {
      const key = `${entry.asset} ${entry.account}`
      const after = (balances.get(key) ?? 0n) + minorOf(entry.amount, entry.asset)
      balances.set(key, after)
      const balance =
        profileId === undefined ? formatAmount(after, decimalsOf(entry.asset)) : entry.balance_after!
      const counter_accounts = entry.counter_accounts!
      return { ...entry, name: inChart(entry.account).name, balance, counter_accounts }
    })
}

/** Reads a cursor: the time of the last entry of a page, and how many entries of that time were shown. Throws bad-request. */
function readCursor(cursor: string): { begin: Moment; shown: number } {
  const [, micros, shown] = /^(\d{16})_(\d{1,9})$/.exec(cursor) ?? []
  if (micros === undefined)
    throw problem.badRequest('page_cursor is not a cursor of this list', 'page_cursor')
  return { begin: momentOfMicros(Number(micros)), shown: Number(shown) }
}

export const listGeneralLedger = operation({
  method: 'GET',
  url: '/v2/reports/general-ledger',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List General Ledger',
  description:
    'The entries of a time in the order of their posting, each with the balance of its account after it, and the accounts on the other side. `Accept: text/csv` answers a file of all pages.',
  query: Closed({
    ...PERIOD,
    account: Type.Optional(Type.String({ maxLength: 60, description: 'Only this account, such as `bank`.' })),
    asset: Type.Optional(AssetSymbol),
    profile_id: Type.Optional(Uuid('Only this profile.')),
    ...OF_CUSTOMER,
    limit: pageParameters.limit,
    page_cursor: pageParameters.page_cursor,
  }),
  example: { query: { account: 'profile' } },
  reply: Type.Object({
    ...ITS_TIME,
    items: Type.Array(Type.Object(LINE)),
    next_page_cursor: pageEnd.next_page_cursor,
  }),
  async run(request) {
    const asked = await askedOf(request)
    const { time, query } = asked
    const { limit = PAGE_SIZE_DEFAULT, page_cursor } = query
    const { begin, shown } =
      page_cursor === undefined ? { begin: time.from, shown: 0 } : readCursor(page_cursor)
    const isOfBegin = ({ created_at }: { created_at: string }) => momentAt(created_at).micros === begin.micros
    let skipped = 0
    const items = []
    for await (const lines of linesOf(asked, begin)) {
      for (const line of lines)
        if (skipped < shown && isOfBegin(line)) skipped += 1
        else items.push(line)
      if (items.length > limit) break
    }
    const page = items.slice(0, limit)
    const answer = { from: time.from.text, to: time.to.text, items: page }
    if (items.length <= limit) return answer
    const last = page.at(-1)!
    const ofLast = page.filter(({ created_at }) => created_at === last.created_at).length
    const count = ofLast + (isOfBegin(last) ? skipped : 0)
    return { ...answer, next_page_cursor: `${momentAt(last.created_at).micros}_${count}` }
  },
  forms: {
    async 'text/csv'(request) {
      const asked = await askedOf(request)
      return csvIn(Object.keys(LINE), rowsOf(linesOf(asked, asked.time.from)), ['amount', 'balance'])
    },
  },
})

async function* rowsOf(parts: ReturnType<typeof linesOf>) {
  for await (const lines of parts)
    yield lines.map((line) => ({ ...line, counter_accounts: line.counter_accounts.join(' ') }))
}
