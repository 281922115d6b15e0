import {
  dateIn,
  linesOf,
  plainText,
  referenceIn,
  refuse,
  requireCurrency,
  requireLines,
  shown,
  type BankLine,
  type BankStatement,
} from './statement.ts'

/** BAI2 (Cash Management Balance Reporting, version 2). Amounts are in cents. */

const [OPENING, CLOSING] = ['010', '015']
/** Types of a returned or reversed payment: ACH and checks; and the bank's corrections of its own lines. */
const RETURNED = ['255', '257', '555', '557']
const REVERSED = ['252', '258', '552', '558']
const PARTS_MAX = 1_000

/** Reads the statements of a file, a group of each account and day. Throws a Refusal that names what is wrong with it. */
export async function readBai2(text: string): Promise<BankStatement[]> {
  const statements: BankStatement[] = []
  let [groupDate, groupCurrency, fileId] = ['', '', '']
  let account:
    | (Omit<BankStatement, 'opening' | 'closing'> & { balances: Map<string, bigint>; total: bigint })
    | undefined
  let [groupTotal, fileTotal, lineCount, isEnded] = [0n, 0n, 0, false]
  for await (const record of recordsOf(text)) {
    const fields = record.split(',')
    const [kind] = fields
    if (isEnded || (fileId === '') !== (kind === '01'))
      refuse('the file has records before its header or after its trailer')
    if (account !== undefined && (kind === '02' || kind === '03' || kind === '98' || kind === '99'))
      refuse(`the file is truncated: account ${shown(account.account)} has no record 49`)
    if (kind === '01') fileId = `${fields[3]}-${fields[5]}`
    else if (kind === '02') {
      groupDate = dateIn(fields[4] ?? '', 'record 02')
      groupCurrency = fields[6] || 'USD'
    } else if (kind === '03') {
      const currency = requireCurrency(fields[2] || groupCurrency)
      const named = { account: plainText(fields[1] ?? ''), id: `${fileId}-${groupDate}` }
      if (named.account === '' || groupDate === '')
        refuse('a record 03 names no account, or no group precedes it')
      const empty = { lines: [], balances: new Map<string, bigint>(), total: 0n }
      account = { format: 'BAI2', ...named, currency, date: groupDate, ...empty }
      for (const [code, amount] of balancesOf(fields.slice(3))) {
        account.balances.set(code, amount)
        account.total += amount
      }
    } else if (kind === '16' && account !== undefined) {
      requireLines(++lineCount)
      const line = lineOf(fields, account.date)
      account.total += line.amount < 0n ? -line.amount : line.amount
      if (line.amount !== 0n) account.lines.push(line)
    } else if (kind === '49' && account !== undefined) {
      requireTotal(kind, fields[1], account.total)
      groupTotal += account.total
      const { balances, total: _, ...statement } = account
      const balance = (code: string) =>
        balances.get(code) ?? refuse(`account ${shown(statement.account)} has no balance of type ${code}`)
      statements.push({ ...statement, opening: balance(OPENING), closing: balance(CLOSING) })
      account = undefined
    } else if (kind === '98') {
      requireTotal(kind, fields[1], groupTotal)
      fileTotal += groupTotal
      groupTotal = 0n
    } else if (kind === '99') {
      requireTotal(kind, fields[1], fileTotal)
      isEnded = true
    } else refuse(`${shown(record)} is no record of BAI2 in this place`)
  }
  if (!isEnded) refuse('the file is truncated: it has no record 99')
  return statements
}

/** The records, with their continuations (88) and without the stroke that ends them. */
async function* recordsOf(text: string): AsyncGenerator<string> {
  let parts: string[] = []
  for await (const line of linesOf(text)) {
    const plain = line.trim()
    if (plain === '') continue
    if (plain.startsWith('88,')) {
      if (parts.push(plain.slice(3)) > PARTS_MAX) refuse(`a record has more than ${PARTS_MAX} continuations`)
      continue
    }
    if (parts.length > 0) yield joined(parts)
    parts = [plain]
  }
  if (parts.length > 0) yield joined(parts)
}

/** A part that ends with a stroke ends with its last field; the text of a line goes on in the next part. */
const joined = (parts: string[]) => {
  const ended = parts.map((part) => (part.endsWith('/') ? part.replace(/\/$/, ',') : `${part} `))
  return ended.join('').replace(/[ ,]$/, '')
}

const minorIn = (text: string, what: string): bigint =>
  /^[+-]?\d{1,18}$/.test(text) ? BigInt(text) : refuse(`${what}: ${shown(text)} is no amount`)

function requireTotal(kind: string, text: string | undefined, total: bigint): void {
  if (minorIn(text ?? '', `record ${kind}`) !== total)
    refuse(`record ${kind}: its control total ${shown(text!)} is not that of its records, ${total}`)
}

/** How many fields the funds type takes with what belongs to it. */
function fundsFields([type = '', count = '']: string[]): number {
  if (type === 'D')
    return 2 + 2 * Number(/^\d{1,2}$/.test(count) ? count : refuse('a funds type D has no count'))
  return type === 'S' ? 4 : type === 'V' ? 3 : 1
}

/** The amounts of an account by their type: groups of type, amount, count and funds type. */
function* balancesOf(fields: string[]): Generator<[code: string, amount: bigint]> {
  for (let first = 0; first < fields.length;) {
    const [code = '', amount = ''] = fields.slice(first, first + 2)
    if (code !== '' && amount !== '') yield [code, minorIn(amount, `type ${code}`)]
    first += 3 + fundsFields(fields.slice(first + 3))
  }
}

function lineOf(fields: string[], date: string): BankLine {
  const [, code = '', amount = ''] = fields
  // Types from 100 are credits, from 400 debits. Others have no amount.
  const minor = minorIn(amount || '0', 'record 16')
  if ((minor > 0n && !/^[1-6]\d\d$/.test(code)) || minor < 0n)
    refuse(`record 16: ${shown(code)} is no type of a credit or debit`)
  const rest = fields.slice(3 + fundsFields(fields.slice(3)))
  return {
    date,
    amount: code < '400' ? minor : -minor,
    ...referenceIn('reference', rest[0]),
    ...referenceIn('customer_reference', rest[1]),
    text: plainText(rest.slice(2).join(',').replace(/^,+/, '')),
    code,
    is_reversal: REVERSED.includes(code),
    is_return: RETURNED.includes(code),
  }
}
