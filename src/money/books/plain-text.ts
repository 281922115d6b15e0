import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { momentOfMicros, type Moment } from '../../db/ids.ts'
import { completeUntil, type Book } from './book.ts'
import { inChart, type AccountKind } from './chart.ts'
import { DIALECTS, type Posted, type Program } from './plain-text-dialects.ts'
import { readEntries, type BookEntry } from './read-entries.ts'
import { readProfileSums, readSums } from './sums.ts'

/** Whatever joins two legs is equity, and zero once both are posted. */
const ROOTS: Record<AccountKind, string> = {
  ...{ ASSET: 'Assets', LIABILITY: 'Liabilities', INCOME: 'Income', EXPENSE: 'Expenses', CLEARING: 'Equity' },
}
/** What fees and costs of before the time have left. */
const EARLIER = 'Equity:Retained-Earnings'

/** The name of an account that both programs take: `Assets:Custody:BITCOIN-CASH`. */
export function nameOfAccount({ account, profile_id }: Pick<BookEntry, 'account' | 'profile_id'>): string {
  if (profile_id !== null) return `Liabilities:Profiles:P-${profile_id}`
  const [first = '', network = ''] = account.replaceAll('_', '-').split(':')
  const name = first.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return `${ROOTS[inChart(account).kind]}:${name}${network && `:${network}`}`
}

/**
 * Writes a book for hledger or beancount, in parts: what each account had at `from`, a transaction for each event of each
 * transfer, and what each account must have at the end, so that the program itself computes it. The time is `from` <= t < `to`, and
 * ends at the horizon. There a liability is negative, so every amount is the ledger's negated. Keeps the accounts' sums in
 * memory, and no transactions. Throws RangeError for an empty time, `HorizonUnknown` as `readEntries` does.
 */
export async function* plainTextOf(
  book: Book,
  program: Program,
  { from, ...asked }: { from: Moment; to: Moment },
): AsyncGenerator<string> {
  const to = await completeUntil(book, asked.to)
  if (to.micros <= from.micros) throw new RangeError(`the time is empty: nothing is final after ${to.text}`)
  const dialect = DIALECTS[program]
  const sums = new Map<string, Posted>()
  const declared = new Set<string>()
  const once = (word: string, lines: string[]) => {
    if (declared.has(word)) return []
    declared.add(word)
    return lines
  }
  const write = (head: string[], day: string, postings: Posted[]) => {
    const declarations = postings.flatMap(({ name, asset, minor }) => {
      const key = `${name} ${asset}`
      sums.set(key, { name, asset, minor: minor + (sums.get(key)?.minor ?? 0n) })
      return [...once(asset, dialect.asset(asset)), ...once(name, dialect.account(name, day))]
    })
    const lines = postings.map((posting) => `  ${posting.name}  ${amountOf(posting)}`)
    return textOfLines([...declarations, ...head, ...lines, ''])
  }
  yield textOfLines([...dialect.begin, `; From ${from.text} to before ${to.text}`, ''])
  const opening = await openingOf(book, from)
  const begin = dayOf(from.text)
  if (opening.length > 0) yield write(dialect.head(begin, 'Opening balances'), begin, opening)
  for await (const entries of eventsIn(readEntries(book, { from, to }))) {
    const [first] = entries as [BookEntry]
    const day = dayOf(first.created_at)
    yield write(dialect.head(day, labelOf(first), first), day, entries.map(postedOf))
  }
  const closing = [...sums.values()].map((sum) => ({ name: sum.name, amount: amountOf(sum) }))
  yield textOfLines(dialect.end(dayOf(momentOfMicros(to.micros - 1).text), closing))
}

/** The entries of one event of a transfer follow one another. */
async function* eventsIn(pages: AsyncIterable<BookEntry[]>): AsyncGenerator<BookEntry[]> {
  let open: BookEntry[] = []
  for await (const page of pages)
    for (const entry of page) {
      const [first] = open
      if (first !== undefined && (first.transfer_id !== entry.transfer_id || first.event !== entry.event)) {
        yield open
        open = []
      }
      open.push(entry)
    }
  if (open.length > 0) yield open
}

const textOfLines = (lines: string[]) => lines.map((line) => `${line}\n`).join('')
const labelOf = ({ type, event }: BookEntry) => (type === undefined ? event : `${type} ${event}`)
const dayOf = (time: string) => time.slice(0, 10)
const postedOf = (entry: Pick<BookEntry, 'account' | 'profile_id' | 'asset' | 'amount'>): Posted => ({
  name: nameOfAccount(entry),
  asset: entry.asset,
  minor: -parseStoredAmount(entry.amount, decimalsOf(entry.asset)),
})

/** With all decimals: beancount takes a difference below the last one that is written for none. */
function amountOf({ asset, minor }: Pick<Posted, 'asset' | 'minor'>): string {
  const decimals = decimalsOf(asset)
  const [whole, fraction = ''] = formatAmount(minor, decimals).split('.')
  return `${whole}.${fraction.padEnd(decimals, '0')} ${asset}`
}

/** What each account had before a moment: the sum is zero, as that of the entries is. */
async function openingOf(book: Book, from: Moment): Promise<Posted[]> {
  const { items } = await readSums(book, { from, to: from })
  const had = items
    .filter(({ account }) => account !== 'profile')
    .map((sums) => ({ ...sums, profile_id: null }))
  const time = { from: from.text, to: from.text, asset: undefined }
  const owed = []
  for await (const page of readProfileSums(book, time)) owed.push(...page)
  const all = [...had, ...owed.map((sums) => ({ ...sums, account: 'profile' }))]
  return all
    .map((sums) => postedOf({ ...sums, amount: sums.closing }))
    .filter(({ minor }) => minor !== 0n)
    .map((posted) => (/^(Income|Expenses):/.test(posted.name) ? { ...posted, name: EARLIER } : posted))
}
