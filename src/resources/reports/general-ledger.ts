import { Type } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { AssetSymbol, Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { momentAt, momentOfMicros, UUID } from '../../db/ids.ts'
import { PAGE_SIZE_DEFAULT, pageEnd, pageParameters } from '../../http/lists.ts'
import { completeUntil, earlierOf, type Book } from '../../money/books/book.ts'
import { inChart } from '../../money/books/chart.ts'
import { readEntries, type AskedEntries, type BookEntry, type Place } from '../../money/books/read-entries.ts'
import { readSums } from '../../money/books/sums.ts'
import { operation } from '../operation.ts'
import { bookOf, OF_CUSTOMER, reported, reportPeriod, ReportTime } from './book.ts'

const Figure = (description: string) => Type.String({ description, examples: ['-25.5'] })
const LedgerLine = Type.Object({
  created_at: Timestamp('When it was posted.'),
  customer_id: Uuid('The customer, or the platform.'),
  transfer_id: Uuid('The transfer, sweep or acknowledged transaction that it belongs to.'),
  event: Type.String({ description: 'CREATED, SETTLED, REFUNDED or SWEPT.' }),
  position: Type.Integer({ description: 'Its place within the event.' }),
  type: Type.Optional(Type.String({ description: 'The type of the transfer.' })),
  ref_id: Type.Optional(Type.String({ description: 'The ref_id of the transfer.' })),
  account: Type.String({ description: 'The account.' }),
  name: Type.String({ description: 'The account in words.' }),
  profile_id: Type.Optional(Uuid('The profile, on a profile.')),
  asset: AssetSymbol,
  amount: Figure('Negative: taken from the account.'),
  balance: Figure(
    'Of the account in the asset after it: of the profile, where the report is of one profile.',
  ),
  counter_accounts: Type.Array(Type.String(), {
    description: 'The other accounts of the same event in the asset.',
  }),
})
type LedgerLine = Omit<BookEntry, 'profile_id' | 'balance_after' | 'type' | 'ref_id'> & {
  type?: string
  ref_id?: string
  name: string
  profile_id?: string
  balance: string
  counter_accounts: string[]
}

const QUERY = {
  from: ReportTime('The beginning of the time (default: that of the ledger).'),
  to: ReportTime('Its end, not included (default: now).'),
  account: Type.Optional(Type.String({ maxLength: 60, description: 'Only this account, such as `bank`.' })),
  asset: Type.Optional(AssetSymbol),
  profile_id: Type.Optional(Uuid('Only this profile.')),
  ...OF_CUSTOMER,
}

type Query = { account?: string; asset?: string; profile_id?: string } & Record<string, unknown>

interface Asked extends AskedEntries {
  isOfProfile: boolean
}

async function askedOf(book: Book, query: Query): Promise<Asked> {
  const period = reportPeriod(query)
  const to = await reported(completeUntil(book, period.to))
  const { account, asset, profile_id: profileId } = query
  return {
    from: earlierOf(period.from, to),
    to,
    account,
    asset,
    profileId,
    isOfProfile: profileId !== undefined,
  }
}

/** The balances of the accounts before a moment, by `asset account`, in minor units. */
async function balancesAt(book: Book, { from, isOfProfile }: Asked): Promise<Map<string, bigint>> {
  // A profile's entries have its balance.
  if (isOfProfile) return new Map()
  const { items } = await readSums(book, { from, to: from })
  return new Map(items.map(({ asset, account, closing }) => [`${asset} ${account}`, minorOf(closing, asset)]))
}

const minorOf = (amount: string, asset: string) => parseStoredAmount(amount, decimalsOf(asset))

/** The entries with the running balance of their account, as they are posted. */
async function* linesOf(book: Book, asked: Asked): AsyncGenerator<LedgerLine[]> {
  const balances = await balancesAt(book, asked)
  for await (const entries of readEntries(book, asked)) {
    const others = await counterAccounts(book, entries)
    yield entries.map(({ profile_id, balance_after, type, ref_id, ...entry }) => {
      const key = `${entry.asset} ${entry.account}`
      const balance = (balances.get(key) ?? 0n) + minorOf(entry.amount, entry.asset)
      balances.set(key, balance)
      return {
        ...entry,
        ...{ name: inChart(entry.account).name, counter_accounts: others(entry) },
        ...(type !== undefined && { type }),
        ...(ref_id !== undefined && { ref_id }),
        ...(profile_id !== null && { profile_id }),
        balance: asked.isOfProfile ? balance_after! : formatAmount(balance, decimalsOf(entry.asset)),
      }
    })
  }
}

type OfEvent = Pick<BookEntry, 'customer_id' | 'transfer_id' | 'event' | 'asset'>

const eventOf = ({ customer_id, transfer_id, event, asset }: OfEvent) =>
  [customer_id, transfer_id, event, asset].join(' ')

/** Reads which accounts the events of these entries have posted to; the returned function gives the others of an entry. */
async function counterAccounts({ db }: Book, entries: readonly BookEntry[]) {
  const events = new Map(entries.map((entry) => [[entry.customer_id, entry.transfer_id].join(' '), entry]))
  const { rows } = await db.query<OfEvent & { accounts: string[] }>(
    `
    select e.customer_id, e.transfer_id, e.event, e.asset, array_agg(distinct e.account order by e.account) as accounts
    from unnest($1::uuid[], $2::uuid[]) asked (customer_id, transfer_id)
    join entries e on e.customer_id = asked.customer_id and e.transfer_id = asked.transfer_id
    group by e.customer_id, e.transfer_id, e.event, e.asset`,
    [
      [...events.values()].map(({ customer_id }) => customer_id),
      [...events.values()].map(({ transfer_id }) => transfer_id),
    ],
  )
  const accounts = new Map(rows.map((row) => [eventOf(row), row.accounts]))
  return (entry: OfEvent & { account: string }) =>
    accounts.get(eventOf(entry))!.filter((account, _, all) => account !== entry.account || all.length === 1)
}

const PARTS_OF_PLACE = /^(\d{16})_([0-9a-f-]{36})_([0-9a-f-]{36})_([A-Z]+)_(\d{1,4})$/

const cursorOf = ({ created_at, customer_id, transfer_id, event, position }: Place): string =>
  [momentAt(created_at).micros, customer_id, transfer_id, event, position].join('_')

/** Reads a cursor. Throws bad-request. */
function readCursor(cursor: string): Place {
  const [, micros, customer_id = '', transfer_id = '', event = '', position] =
    PARTS_OF_PLACE.exec(cursor) ?? []
  if (micros === undefined || !UUID.test(customer_id) || !UUID.test(transfer_id))
    throw problem.badRequest('page_cursor is not a cursor of this list', 'page_cursor')
  return {
    created_at: momentOfMicros(Number(micros)).text,
    customer_id,
    transfer_id,
    event,
    position: Number(position),
  }
}

/** Whether an entry is at this place of the posting order or before it. */
function isUpTo(place: Place, entry: Place): boolean {
  const [last, own] = [place, entry].map(({ created_at, position, ...ids }) => [
    momentAt(created_at).micros,
    ...[ids.customer_id, ids.transfer_id, ids.event],
    position,
  ])
  const differs = own!.findIndex((part, index) => part !== last![index])
  return differs === -1 || own![differs]! < last![differs]!
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
    ...QUERY,
    limit: pageParameters.limit,
    page_cursor: pageParameters.page_cursor,
  }),
  example: { query: { account: 'profile' } },
  reply: Type.Object({
    from: Timestamp('The beginning of the time.'),
    to: Timestamp('Its end: a moment below which no entry can appear any more.'),
    items: Type.Array(LedgerLine),
    next_page_cursor: pageEnd.next_page_cursor,
  }),
  async run(request) {
    const book = bookOf(request)
    const { limit = PAGE_SIZE_DEFAULT, page_cursor, ...query } = request.query
    const asked = await askedOf(book, query)
    const place = page_cursor === undefined ? undefined : readCursor(page_cursor)
    // The page is read from the time of the last entry before it, where the balances are known, and begins after that entry.
    const from = place === undefined ? asked.from : momentAt(place.created_at)
    const items: LedgerLine[] = []
    for await (const lines of linesOf(book, { ...asked, from })) {
      items.push(...lines.filter((line) => place === undefined || !isUpTo(place, line)))
      if (items.length > limit) break
    }
    const page = items.slice(0, limit)
    return {
      ...{ from: asked.from.text, to: asked.to.text, items: page },
      ...(items.length > limit && { next_page_cursor: cursorOf(page.at(-1)!) }),
    }
  },
  forms: {
    async 'text/csv'(request) {
      const book = bookOf(request)
      return csvIn(COLUMNS, rowsOf(linesOf(book, await askedOf(book, request.query))), ['amount', 'balance'])
    },
  },
})

const COLUMNS = [
  ...['created_at', 'transfer_id', 'event', 'type', 'ref_id', 'account', 'name', 'customer_id', 'profile_id'],
  ...['asset', 'amount', 'balance', 'counter_accounts'],
]

async function* rowsOf(parts: AsyncIterable<LedgerLine[]>) {
  for await (const lines of parts)
    yield lines.map((line) => ({ ...line, counter_accounts: line.counter_accounts.join(' ') }))
}
