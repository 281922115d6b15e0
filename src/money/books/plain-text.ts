import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { momentOfMicros } from '../../db/ids.ts'
import { finalTime, readEntries, readProfileSums, readSums, type Book, type Sums, type Time } from './book.ts'
import { inChart } from './chart.ts'

/** A program that reads books as plain text. */
export type Program = 'hledger' | 'beancount'

interface Dialect {
  /** The first lines. hledger balances transactions to the precision of the assets that it is told. */
  begin: (assets: string[]) => string[]
  account: (name: string, day: string) => string
  /** The first line of a transaction, with the id of its transfer. */
  head: (day: string, label: string, id?: string) => string
  /** Has the program compare its own balance at the end of a day. */
  end: (name: string, amount: string, asset: string, day: string) => string
}

const DIALECTS: Record<Program, Dialect> = {
  hledger: {
    begin: (assets) => [
      'decimal-mark .',
      ...assets.map((asset) => `commodity 1000.${'0'.repeat(decimalsOf(asset))} ${asset}`),
    ],
    account: (name) => `account ${name}`,
    head: (day, label, id = '') => `${day} ${id && `(${id}) `}${label}`,
    end: (name, amount, asset) => `  ${name}  0 ${asset} = ${amount} ${asset}`,
  },
  beancount: {
    begin: () => [],
    account: (name, day) => `${day} open ${name}`,
    head: (day, label, id = '') => `${day} * "${label}"${id && ` ^${id}`}`,
    // A balance is that at the beginning of a day. Without `~ 0`, a difference of one unit is none.
    end: (name, amount, asset, day) => `${dayAfter(day)} balance ${name}  ${amount} ~ 0 ${asset}`,
  },
}

const dayAfter = (day: string) => new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)

/** Whatever joins two legs is equity, and zero once both are posted. */
const ROOTS = {
  ...{ ASSET: 'Assets', LIABILITY: 'Liabilities', INCOME: 'Income', EXPENSE: 'Expenses', CLEARING: 'Equity' },
}

/** The name of an account that both programs take: `Assets:Custody:BITCOIN-CASH`. */
export function nameOfAccount(account: string, profileId?: string): string {
  if (profileId !== undefined) return `Liabilities:Profiles:P-${profileId}`
  const [first = '', network = ''] = account.replaceAll('_', '-').split(':')
  const name = first.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return `${ROOTS[inChart(account).kind]}:${name}${network && `:${network}`}`
}

/** Reads what each account has at the beginning and the end of a time, in minor units. */
async function readBalances(book: Book, time: Time) {
  const balances = new Map<string, { name: string; asset: string; opening: bigint; closing: bigint }>()
  const balanceOf = (name: string, asset: string) => {
    const balance = balances.get(`${name} ${asset}`) ?? { name, asset, opening: 0n, closing: 0n }
    balances.set(`${name} ${asset}`, balance)
    return balance
  }
  const add = (name: string, { asset, ...sums }: Sums) => {
    const [opening, closing] = [minorOf(sums.opening, asset), minorOf(sums.closing, asset)]
    // Fees and costs of earlier times are none of this time.
    const before = balanceOf(/^(Income|Expenses):/.test(name) ? 'Equity:Retained-Earnings' : name, asset)
    before.opening += opening
    before.closing += opening
    balanceOf(name, asset).closing += closing - opening
  }
  const { items } = await readSums(book, time)
  for (const sums of items) if (sums.account !== 'profile') add(nameOfAccount(sums.account), sums)
  for await (const page of readProfileSums(book, time))
    for (const sums of page) add(nameOfAccount('profile', sums.profile_id), sums)
  return [...balances.values()]
}

/** Minor units as both programs sign them, where a liability is negative: the ledger's negated. */
const minorOf = (amount: string, asset: string) => -parseStoredAmount(amount, decimalsOf(asset))

/** With all decimals: beancount takes a difference below the last one that is written for none. */
function written(minor: bigint, asset: string): string {
  const decimals = decimalsOf(asset)
  const [whole, fraction = ''] = formatAmount(minor, decimals).split('.')
  return `${whole}.${fraction.padEnd(decimals, '0')}`
}

/**
 * Writes a book for hledger or beancount, in parts: what each account had at `from`, a transaction for each event of each
 * transfer, and what each account must have at the end, so that the program itself computes it. Keeps the accounts' balances in
 * memory, and no transactions. Throws RangeError for an empty time, and `HorizonUnknown`.
 */
export async function* plainTextOf(book: Book, program: Program, asked: Time): AsyncGenerator<string> {
  const time = await finalTime(book, asked)
  const { from, to } = time
  if (to.micros <= from.micros) throw new RangeError(`the time is empty: nothing is final after ${to.text}`)
  const dialect = DIALECTS[program]
  const [first, last] = [dayOf(from.text), dayOf(momentOfMicros(to.micros - 1).text)]
  const balances = await readBalances(book, time)
  const had = balances.filter(({ opening }) => opening !== 0n)
  const allOf = (member: 'name' | 'asset') => [...new Set(balances.map((balance) => balance[member]))]
  yield textOf([
    ...dialect.begin(allOf('asset')),
    `; From ${from.text} to before ${to.text}`,
    ...allOf('name').map((name) => dialect.account(name, first)),
    ...['', dialect.head(first, 'Opening balances')],
    ...had.map(({ name, asset, opening }) => posting(name, opening, asset)),
  ])
  let open = ''
  for await (const entries of readEntries(book, time))
    yield textOf(
      entries.flatMap(({ created_at, type = '', event, transfer_id, account, profile_id, asset, amount }) => {
        const line = posting(nameOfAccount(account, profile_id), minorOf(amount, asset), asset)
        if (open === `${transfer_id} ${event}`) return [line]
        open = `${transfer_id} ${event}`
        // The id names the transfer: no text of a client is in a journal.
        return ['', dialect.head(dayOf(created_at), `${type} ${event}`.trim(), transfer_id), line]
      }),
    )
  yield textOf([
    ...['', dialect.head(last, 'Closing balances')],
    ...balances.map(({ name, asset, closing }) => dialect.end(name, written(closing, asset), asset, last)),
  ])
}

const posting = (name: string, minor: bigint, asset: string) => `  ${name}  ${written(minor, asset)} ${asset}`
const textOf = (lines: string[]) => `${lines.join('\n')}\n`
const dayOf = (time: string) => time.slice(0, 10)
