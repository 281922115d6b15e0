import { dateIn, recordsOf, refuse, shown, type BankLine, type Statements } from './statement.ts'

/** BAI2 (Cash Management Balance Reporting, version 2). Amounts are in cents. */

const NEXT = /(?<=\n)[ \t]*(?!88,)\S/g
/** The records that may follow outside of a file, in it, in its group, and in an account. The second one ends that. */
const PLACES = [['01'], ['02', '99'], ['03', '98'], ['16', '49']]
/** Types of a returned or reversed payment: wires, ACH and checks; and the bank's corrections of its own lines. */
const RETURNED = ['255', '257', '261', '266', '555', '557']
const REVERSED = ['252', '258', '552', '558']

/** Reads the statements of a file, a group of each account and day. Throws a Refusal that names what is wrong with it. */
export async function readBai2(text: string, statements: Statements): Promise<void> {
  /** Sums of all files, and of the file, the group and the account under way. */
  const totals = [0n]
  const add = (amount: bigint) => totals.push(totals.pop()! + amount)
  const balances = new Map<string, bigint>()
  let [file, date, asset]: (string | undefined)[] = []
  for await (const record of recordsOf(text, NEXT)) {
    // A stroke ends the last field of a line. Without it, the text goes on in the next line.
    const [kind = '', ...fields] = record
      .replace(/[ \t]+/g, ' ')
      .replace(/\/? ?\n ?(?:88,)?/g, (end) => (end.startsWith('/') ? ',' : ' '))
      .replace(/\/$/, '')
      .split(',')
    const places = PLACES[totals.length - 1]!
    if (!places.includes(kind)) refuse(`${shown(kind)} is in the place of a record ${places.join(' or ')}`)
    if (kind === '49' || kind === '98' || kind === '99') {
      const total = totals.pop()!
      if (minorIn(fields[0]) !== total)
        refuse(`record ${kind}: its control total ${shown(fields[0])} is not that of its records, ${total}`)
      add(total)
      if (kind !== '49') continue
      const { lines, sum } = statements.draft!
      const closing = balances.get('015')
      // Some banks leave the opening balance out, or have accounts without balances and lines.
      if (closing === undefined && lines.length === 0) statements.draft = undefined
      statements.finish({ opening: balances.get('010') ?? (closing ?? 0n) - sum, closing })
    } else if (kind === '16') {
      const line = lineOf(fields)
      add(line.amount < 0n ? -line.amount : line.amount)
      statements.add(line)
    } else totals.push(0n)
    if (kind === '01') file = `${fields[2]}-${fields[4]}`
    if (kind === '02') {
      ;[date, asset] = [dateIn(fields[3]), fields[5]]
      // Corrections, deletions, tests, and what is no whole day.
      if (fields[2] !== '1' || !['', '2', '4'].includes(fields[6] ?? ''))
        refuse(`the group ${shown(record)} is no update with the balances of a whole day`)
    }
    if (kind === '03') {
      const [account, own] = fields
      statements.begin('BAI2', { account, currency: own || asset, id: `${file}-${date}`, date })
      balances.clear()
      // Groups of type, amount, count and funds type, between which a field may be empty.
      for (let first = 2; first < fields.length;) {
        const [type, amount, , ...funds] = fields.slice(first, first + 5)
        if (type === '015' && balances.has(type)) refuse(`account ${shown(account)} has two closing balances`)
        first += type ? 3 + fundsFields(funds) : 1
        if (!type || !amount) continue
        balances.set(type, minorIn(amount))
        add(minorIn(amount))
      }
    }
  }
  if (totals.length > 1) refuse('the file is truncated: it has no record 99')
}

const minorIn = (text = ''): bigint =>
  /^[+-]?\d{1,18}$/.test(text) ? BigInt(text) : refuse(`${shown(text)} is no amount in cents`)
/** How many fields the funds type takes with what belongs to it. */
function fundsFields([type, count = '']: string[]): number {
  if (type === 'D') return 2 + 2 * Number(/^\d{1,2}$/.exec(count) ?? refuse('a funds type D has no count'))
  return type === 'S' ? 4 : type === 'V' ? 3 : 1
}

function lineOf([code = '', amount, ...more]: string[]): BankLine {
  const minor = minorIn(amount || '0')
  // Types from 100 are credits, from 400 debits. Others have no amount.
  if (minor !== 0n && (minor < 0n || !/^[1-6]\d\d$/.test(code)))
    refuse(`record 16: ${shown(code)} is no type of a credit or debit`)
  const [reference, customer_reference, ...texts] = more.slice(fundsFields(more))
  return {
    ...{ date: '', amount: code < '400' ? minor : -minor, reference, customer_reference },
    ...{ text: texts.join(',').replace(/^,+/, ''), code },
    ...{ is_reversal: REVERSED.includes(code), is_return: RETURNED.includes(code) },
  }
}
