import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { momentOfMicros, PLATFORM_ID, type Moment } from '../../db/ids.ts'
import { finalTime, type Book, type Time } from './book.ts'
import { inChart, type AccountKind } from './chart.ts'
import { readEntries, type BookEntry } from './read-entries.ts'
import { readProfileSums, readSums } from './sums.ts'

interface Dialect {
  begin: string[]
  /** Declares an asset: hledger balances transactions to this precision. */
  asset: (asset: string) => string[]
  account: (name: string, day: string) => string
  /** The first line of a transaction, with the id of its transfer. */
  head: (day: string, label: string, id?: string) => string
  fact: (name: string, value: string) => string
  /** Has the program compare its own balances at the end of a day. */
  end: (day: string, balances: (readonly [name: string, amount: string])[]) => string[]
}

const DIALECTS = {
  hledger: {
    begin: ['decimal-mark .'],
    asset: (asset) => [`commodity 1000.${'0'.repeat(decimalsOf(asset))} ${asset}`],
    account: (name) => `account ${name}`,
    head: (day, label, id) => `${day}${id === undefined ? '' : ` (${id})`} ${label}`,
    fact: (name, value) => `  ; ${name}:${value}`,
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
    fact: (name, value) => `  ${name}: "${value}"`,
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
/** What fees and costs of before the time have left. */
const EARLIER = 'Equity:Retained-Earnings'

/** The name of an account that both programs take: `Assets:Custody:BITCOIN-CASH`. */
export function nameOfAccount(account: string, profileId?: string): string {
  if (profileId !== undefined) return `Liabilities:Profiles:P-${profileId}`
  const [first = '', network = ''] = account.replaceAll('_', '-').split(':')
  const name = first.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return `${ROOTS[inChart(account).kind]}:${name}${network && `:${network}`}`
}

/** A line of a transaction: an amount in minor units. There a liability is negative: each amount is the ledger's negated. */
interface Posting {
  name: string
  asset: string
  minor: bigint
}

const postingOf = (name: string, asset: string, amount: string): Posting => ({
  ...{ name, asset, minor: -parseStoredAmount(amount, decimalsOf(asset)) },
})

/** With all decimals: beancount takes a difference below the last one that is written for none. */
function amountOf({ asset, minor }: Posting): string {
  const decimals = decimalsOf(asset)
  const [whole, fraction = ''] = formatAmount(minor, decimals).split('.')
  return `${whole}.${fraction.padEnd(decimals, '0')} ${asset}`
}

/**
 * Writes a book for hledger or beancount, in parts: what each account had at `from`, a transaction for each event of each
 * transfer, and what each account must have at the end, so that the program itself computes it. Keeps the accounts' sums in
 * memory, and no transactions. Throws RangeError for an empty time, and `HorizonUnknown`.
 */
export async function* plainTextOf(book: Book, program: Program, asked: Time): AsyncGenerator<string> {
  const { from, to } = await finalTime(book, asked)
  if (to.micros <= from.micros) throw new RangeError(`the time is empty: nothing is final after ${to.text}`)
  const dialect: Dialect = DIALECTS[program]
  const sums = new Map<string, Posting>()
  const declared = new Set<string>()
  const declare = (day: string, { name, asset }: Posting) => {
    const lines = [
      ...(declared.has(asset) ? [] : dialect.asset(asset)),
      ...(declared.has(name) ? [] : [dialect.account(name, day)]),
    ]
    declared.add(asset).add(name)
    return lines
  }
  const write = (day: string, head: string[], postings: Posting[]) => {
    for (const posting of postings) {
      const key = `${posting.name} ${posting.asset}`
      sums.set(key, { ...posting, minor: posting.minor + (sums.get(key)?.minor ?? 0n) })
    }
    const lines = postings.map((posting) => `  ${posting.name}  ${amountOf(posting)}`)
    return textOf([...postings.flatMap((posting) => declare(day, posting)), ...head, ...lines, ''])
  }
  yield textOf([...dialect.begin, `; From ${from.text} to before ${to.text}`, ''])
  const [opening, begin] = [await openingOf(book, from), dayOf(from.text)]
  if (opening.length > 0) yield write(begin, [dialect.head(begin, 'Opening balances')], opening)
  for await (const entries of eventsIn(readEntries(book, { from, to }))) {
    const { created_at, type, event, transfer_id, customer_id, ref_id } = entries[0]!
    const day = dayOf(created_at)
    const head = [
      dialect.head(day, type === undefined ? event : `${type} ${event}`, transfer_id),
      dialect.fact('time', created_at),
      ...(customer_id === PLATFORM_ID ? [] : [dialect.fact('customer_id', customer_id)]),
      ...(ref_id === undefined ? [] : [dialect.fact('ref_id', plain(ref_id))]),
    ]
    const postings = entries.map((entry) =>
      postingOf(nameOfAccount(entry.account, entry.profile_id), entry.asset, entry.amount),
    )
    yield write(day, head, postings)
  }
  const closing = [...sums.values()].map((sum) => [sum.name, amountOf(sum)] as const)
  yield textOf(dialect.end(dayOf(momentOfMicros(to.micros - 1).text), closing))
}

const textOf = (lines: string[]) => lines.map((line) => `${line}\n`).join('')
const dayOf = (time: string) => time.slice(0, 10)

/**
 * Text of a client as part of a line. What ends a line, a string or a tag of either program is percent-encoded, as in
 * addresses of the web: a ref_id must not add a line, or a tag such as hledger's `date:`.
 */
const plain = (text: string) => text.replaceAll(/[%"\\,;\p{C}\p{Zl}\p{Zp}]/gu, hexOf)
const hexOf = (character: string) =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

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

/** What each account had before a moment: the sum is zero, as that of the entries is. */
async function openingOf(book: Book, from: Moment): Promise<Posting[]> {
  const { items } = await readSums(book, { from, to: from })
  const opening = items
    .filter(({ account }) => account !== 'profile')
    .map(({ account, asset, closing }) => {
      const name = nameOfAccount(account)
      return postingOf(/^(Income|Expenses):/.test(name) ? EARLIER : name, asset, closing)
    })
  for await (const page of readProfileSums(book, { from, to: from }))
    for (const { profile_id, asset, closing } of page)
      opening.push(postingOf(nameOfAccount('profile', profile_id), asset, closing))
  return opening.filter(({ minor }) => minor !== 0n)
}
