import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import { completeUntil, type Book } from './book.ts'
import { DIALECTS, type Posted, type Program } from './plain-text-dialects.ts'
import { readEntries, textOf, type BookEntry } from './read-entries.ts'

/** The accounts of the chart by their first word. Whatever joins two legs is equity, and zero once both are posted. */
const CHART: Record<string, string> = {
  bank: 'Assets:Bank',
  custody: 'Assets:Custody',
  cold: 'Assets:Cold',
  simulated: 'Assets:Simulated',
  in_flight: 'Liabilities:In-Flight',
  fees: 'Income:Fees',
  network_fees: 'Expenses:Network-Fees',
  rewards: 'Expenses:Rewards',
  conversion: 'Equity:Conversion',
  internal: 'Equity:Internal',
  between_customers: 'Equity:Between-Customers',
}
/** What fees and costs of before the time have left. */
const EARLIER = 'Equity:Retained-Earnings'

/** The name of an account that both programs take: `Assets:Custody:BITCOIN-CASH`. Throws for an account that the chart lacks. */
export function nameOfAccount({ account, profile_id }: Pick<BookEntry, 'account' | 'profile_id'>): string {
  if (profile_id !== null) return `Liabilities:Profiles:P-${profile_id}`
  const [first = '', network] = account.split(':')
  const name = CHART[first]
  if (name === undefined) throw new Error(`the chart has no account ${account}`)
  return network === undefined ? name : `${name}:${network.replaceAll('_', '-')}`
}

/**
 * Writes a book for hledger or beancount, in parts that end without a line break: what each account had at `from`, a
 * transaction for each event of each transfer, and what each account must have at the end, so that the program itself
 * computes it. The time is `from` <= t < `to`, and ends at the horizon. There a liability is negative, so every amount is the
 * ledger's negated. Keeps the accounts' sums in memory, and no transactions. Throws RangeError for an empty time,
 * `HorizonUnknown` as `readEntries` does.
 */
export async function* plainTextOf(
  book: Book,
  program: Program,
  asked: { from: Moment; to: Moment },
): AsyncGenerator<string> {
  const to = await completeUntil(book, asked.to)
  if (to.micros <= asked.from.micros)
    throw new RangeError(`the time is empty: nothing is final after ${to.text}`)
  const dialect = DIALECTS[program]
  const sums = new Map<string, { name: string; asset: string; minor: bigint }>()
  const names = new Set<string>()
  const assets = new Set<string>()
  /** Adds a posting to the sums. Returns what must be written before it: its account and its asset, the first time. */
  const add = ({ name, asset, minor }: Posted, day: string): string[] => {
    const key = `${name} ${asset}`
    const sum = sums.get(key)
    if (sum !== undefined) {
      sum.minor += minor
      return []
    }
    const account = names.has(name) ? [] : dialect.account(name, day)
    const commodity = assets.has(asset) ? [] : dialect.asset(asset)
    names.add(name)
    assets.add(asset)
    sums.set(key, { name, asset, minor })
    return [...commodity, ...account]
  }
  const write = (head: string[], day: string, postings: Posted[]) => [
    ...postings.flatMap((posting) => add(posting, day)),
    ...head,
    ...postings.map((posting) => `  ${posting.name}  ${amountOf(posting)}`),
    '',
  ]

  yield [...dialect.begin, `; From ${asked.from.text} to before ${to.text}`, ''].join('\n')
  const opening = await openingOf(book, asked.from)
  const firstDay = dayOf(asked.from.text)
  if (opening.length > 0)
    yield write(dialect.head(firstDay, 'Opening balances'), firstDay, opening).join('\n')
  let open: BookEntry[] = []
  const close = () => {
    const [first] = open
    if (first === undefined) return []
    const day = dayOf(first.created_at)
    return write(dialect.head(day, labelOf(first), first), day, open.map(postedOf))
  }
  for await (const page of readEntries(book, { from: asked.from, to })) {
    const lines: string[] = []
    for (const entry of page) {
      if (open[0]?.transfer_id !== entry.transfer_id || open[0].event !== entry.event) {
        lines.push(...close())
        open = []
      }
      open.push(entry)
    }
    if (lines.length > 0) yield lines.join('\n')
  }
  yield close().join('\n')
  const closing = [...sums.values()].map((sum) => ({ name: sum.name, amount: amountOf(sum) }))
  const lastDay = dayOf(textOf(to.micros - 1))
  yield dialect.end(lastDay, closing).join('\n')
}

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
async function openingOf({ db, customerId }: Book, from: Moment): Promise<Posted[]> {
  type Row = Pick<BookEntry, 'account' | 'profile_id' | 'asset' | 'amount'>
  const rows = await transaction(db, async (tx) => {
    // The only plan: all entries before a moment, in no order.
    await tx.query('set local enable_seqscan = on')
    const found = await tx.query<Row>(
      `
      select account, profile_id, asset, sum(amount) as amount
      from entries
      where created_at < $1 and ($2::uuid is null or customer_id = $2)
      group by account, profile_id, asset
      having sum(amount) <> 0
      order by account collate "C", profile_id, asset collate "C"`,
      [from.text, customerId],
    )
    return found.rows
  })
  return rows.map((row) => {
    const posted = postedOf(row)
    return /^(Income|Expenses):/.test(posted.name) ? { ...posted, name: EARLIER } : posted
  })
}
