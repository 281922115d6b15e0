import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { momentOfMicros } from '../../db/ids.ts'
import { finalTime, type Book, type Time } from './book.ts'
import { inChart, type AccountKind } from './chart.ts'
import { readEntries, type BookEntry } from './read-entries.ts'
import { readProfileSums, readSums, type Sums } from './sums.ts'

interface Dialect {
  begin: string[]
  /** Declares an asset: hledger balances transactions to this precision. */
  asset: (asset: string) => string[]
  account: (name: string, day: string) => string
  /** The first line of a transaction, with the id of its transfer. */
  head: (day: string, label: string, id?: string) => string
  /** Has the program compare its own balances at the end of a day. */
  end: (day: string, balances: (readonly [name: string, amount: string])[]) => string[]
}

const DIALECTS = {
  hledger: {
    begin: ['decimal-mark .'],
    asset: (asset) => [`commodity 1000.${'0'.repeat(decimalsOf(asset))} ${asset}`],
    account: (name) => `account ${name}`,
    head: (day, label, id) => `${day}${id === undefined ? '' : ` (${id})`} ${label}`,
    end: (day, balances) => [
      `${day} Closing balances`,
      ...balances.map(([name, amount]) => `  ${name}  0 ${amount.split(' ')[1]} = ${amount}`),
    ],
  },
  beancount: {
    begin: [],
    asset: () => [],
    account: (name, day) => `${day} open ${name}`,
    head: (day, label, id) => `${day} * "${label}"${id === undefined ? '' : ` ^${id}`}`,
    // A balance is that at the beginning of a day. Without `~ 0`, a difference of one unit is none.
    end: (day, balances) =>
      balances.map(([name, amount]) => `${dayAfter(day)} balance ${name}  ${amount.replace(' ', ' ~ 0 ')}`),
  },
} satisfies Record<string, Dialect>

/** The programs that read books as plain text. */
export type Program = keyof typeof DIALECTS

const dayAfter = (day: string) => new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)

/** Whatever joins two legs is equity, and zero once both are posted. */
const ROOTS: Record<AccountKind, string> = {
  ...{ ASSET: 'Assets', LIABILITY: 'Liabilities', INCOME: 'Income', EXPENSE: 'Expenses', CLEARING: 'Equity' },
}

/** The name of an account that both programs take: `Assets:Custody:BITCOIN-CASH`. */
export function nameOfAccount(account: string, profileId?: string): string {
  if (profileId !== undefined) return `Liabilities:Profiles:P-${profileId}`
  const [first = '', network = ''] = account.replaceAll('_', '-').split(':')
  const name = first.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return `${ROOTS[inChart(account).kind]}:${name}${network && `:${network}`}`
}

/** An account's balances at the beginning and the end, in minor units. There a liability is negative: each is the ledger's negated. */
interface Balances {
  name: string
  asset: string
  opening: bigint
  closing: bigint
}

/** Reads the balances of all accounts over a time. What fees and costs were before it is an account of its own. */
async function readBalances(book: Book, time: Time): Promise<Balances[]> {
  const accounts = new Map<string, Balances>()
  const add = (name: string, asset: string, opening: bigint, closing: bigint) => {
    const key = `${name} ${asset}`
    const known = accounts.get(key) ?? { opening: 0n, closing: 0n }
    accounts.set(key, { name, asset, opening: known.opening + opening, closing: known.closing + closing })
  }
  const addSums = (name: string, { asset, ...sums }: Sums) => {
    const [opening, closing] = [negated(sums.opening, asset), negated(sums.closing, asset)]
    const isOfTime = /^(Income|Expenses):/.test(name)
    if (isOfTime && opening !== 0n) add('Equity:Retained-Earnings', asset, opening, opening)
    add(name, asset, isOfTime ? 0n : opening, isOfTime ? closing - opening : closing)
  }
  const { items } = await readSums(book, time)
  for (const sums of items) if (sums.account !== 'profile') addSums(nameOfAccount(sums.account), sums)
  for await (const page of readProfileSums(book, time))
    for (const sums of page) addSums(nameOfAccount('profile', sums.profile_id), sums)
  return [...accounts.values()]
}

const negated = (amount: string, asset: string) => -parseStoredAmount(amount, decimalsOf(asset))

/** With all decimals: beancount takes a difference below the last one that is written for none. */
function written(asset: string, minor: bigint): string {
  const decimals = decimalsOf(asset)
  const [whole, fraction = ''] = formatAmount(minor, decimals).split('.')
  return `${whole}.${fraction.padEnd(decimals, '0')} ${asset}`
}

const posting = (name: string, asset: string, minor: bigint) => `  ${name}  ${written(asset, minor)}`

/**
 * Writes a book for hledger or beancount, in parts: what each account had at `from`, a transaction for each event of each
 * transfer, and what each account must have at the end, so that the program itself computes it. Keeps the accounts' balances in
 * memory, and no transactions. Throws RangeError for an empty time, and `HorizonUnknown`.
 */
export async function* plainTextOf(book: Book, program: Program, asked: Time): AsyncGenerator<string> {
  const time = await finalTime(book, asked)
  const { from, to } = time
  if (to.micros <= from.micros) throw new RangeError(`the time is empty: nothing is final after ${to.text}`)
  const dialect: Dialect = DIALECTS[program]
  const begin = dayOf(from.text)
  const accounts = await readBalances(book, time)
  const namesOf = (name: 'name' | 'asset') => [...new Set(accounts.map((account) => account[name]))]
  yield textOf([
    ...dialect.begin,
    `; From ${from.text} to before ${to.text}`,
    ...namesOf('asset').flatMap(dialect.asset),
    ...namesOf('name').map((name) => dialect.account(name, begin)),
  ])
  const had = accounts.filter(({ opening }) => opening !== 0n)
  if (had.length > 0) {
    const postings = had.map(({ name, asset, opening }) => posting(name, asset, opening))
    yield textOf([dialect.head(begin, 'Opening balances'), ...postings])
  }
  for await (const entries of eventsIn(readEntries(book, time))) yield transactionOf(dialect, entries)
  const closing = accounts.map(({ name, asset, closing }) => [name, written(asset, closing)] as const)
  yield textOf(dialect.end(dayOf(momentOfMicros(to.micros - 1).text), closing))
}

/** A transaction names its transfer by the id: no text of a client is in a journal. */
function transactionOf(dialect: Dialect, entries: BookEntry[]): string {
  const { created_at, type, event, transfer_id } = entries[0]!
  const label = type === undefined ? event : `${type} ${event}`
  const postings = entries.map(({ account, profile_id, asset, amount }) =>
    posting(nameOfAccount(account, profile_id), asset, negated(amount, asset)),
  )
  return textOf([dialect.head(dayOf(created_at), label, transfer_id), ...postings])
}

/** Lines, and an empty one after them. */
const textOf = (lines: string[]) => `${lines.join('\n')}\n\n`
const dayOf = (time: string) => time.slice(0, 10)

/** The entries of one event of a transfer follow one another. */
async function* eventsIn(pages: AsyncIterable<BookEntry[]>): AsyncGenerator<BookEntry[]> {
  let open: BookEntry[] = []
  for await (const page of pages)
    for (const entry of page) {
      const [first = entry] = open
      if (first.transfer_id !== entry.transfer_id || first.event !== entry.event) {
        yield open
        open = []
      }
      open.push(entry)
    }
  if (open.length > 0) yield open
}
