import { setImmediate } from 'node:timers/promises'
import { IsDate } from 'typebox/format'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { AMOUNT_LENGTH_MAX, UNREADABLE } from '../../contract/fields.ts'
import { Refusal } from '../../contract/refusal.ts'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'

/** A bank's statement in plain values, whatever its format, and what the parsers share. Amounts are signed cents. */

export interface BankLine {
  /** Booking date, YYYY-MM-DD. */
  date: string
  /** Negative: it left the account. */
  amount: bigint
  /** The bank's own reference. Nobody else chooses it. */
  reference?: string | undefined
  /** End-to-end or customer reference, which a stranger may have chosen. */
  customer_reference?: string | undefined
  /** All of the remittance text and what the bank added. Strangers write it. */
  text: string
  /** The bank's code of the kind. */
  code: string
  /** The bank corrects a line of its own. */
  is_reversal: boolean
  /** The bank says that a payment came back. Never derived from the text. */
  is_return: boolean
  /** Fees within the amount, not negative. */
  charges?: bigint | undefined
}

export interface BankStatement extends Record<'account' | 'currency' | 'id', string> {
  format: 'CAMT_053' | 'MT940' | 'BAI2'
  /** The bank's sequence number. */
  number?: number | undefined
  from?: string | undefined
  /** The date of the closing balance. */
  date: string
  opening: bigint
  closing: bigint
  lines: BankLine[]
}

/** A statement under way, whose texts are still those of the file, and the sum of its lines. */
type Draft = Partial<Omit<BankStatement, 'number'>> & { number?: string; lines: BankLine[]; sum: bigint }

const [LINES_MAX, TEXT_LENGTH_MAX] = [100_000, 20_000]
const [RECORD_LENGTH_MAX, CONTINUATIONS_MAX] = [64 * 1024, 1_000]
const UNREADABLE_ALL = new RegExp(UNREADABLE.source, 'gu')

/** The statements of a file. Its parser begins each, adds its lines, and finishes it. */
export class Statements {
  readonly finished: BankStatement[] = []
  draft: Draft | undefined
  #lineCount = 0

  begin(known: Partial<Draft>): void {
    this.finish()
    this.draft = { ...known, lines: [], sum: 0n }
  }

  add(line: BankLine): void {
    if (++this.#lineCount > LINES_MAX) refuse(`the file has more than ${LINES_MAX} lines`)
    const draft = this.draft ?? refuse('the file has a line outside of a statement')
    const [reference, customer_reference] = [line.reference, line.customer_reference].map(referenceIn)
    const [text, code] = [plainText(line.text), plainText(line.code)]
    draft.sum += line.amount
    if (line.amount !== 0n) draft.lines.push({ ...line, reference, customer_reference, text, code })
  }

  /** Throws a Refusal unless the statement under way is whole and its lines lead from its opening to its closing balance. */
  finish(): void {
    if (this.draft === undefined) return
    const { format, id = '', account, number = '', from, date: day, opening, closing, lines } = this.draft
    if (!format || !account || opening === undefined || closing === undefined)
      return refuse(
        `statement ${shown(id)} is truncated, names no account, or has no balance CLBD and OPBD (camt.053), 62F and 60F or 015 and 010`,
      )
    const [reached, said] = [opening + this.draft.sum, closing].map(amountOf)
    if (reached !== said)
      refuse(`statement ${shown(id)}: lines up to ${reached} do not make its closing balance ${said}`)
    const date = dateIn(day)
    for (const line of lines) line.date = line.date === '' ? date : dateIn(line.date)
    this.finished.push({
      ...{ format, account: plainText(account), currency: WIRE_ASSET, id: plainText(id) },
      number: Number(/^\s*(\d{1,9})\b/.exec(number)?.[1]) || undefined,
      ...{ from: from && dateIn(from), date, opening, closing, lines },
    })
    this.draft = undefined
  }
}

/** Throws a Refusal with this reason. */
export function refuse(why: string): never {
  throw new Refusal(why)
}

/** Text of a file within a reason. */
export const shown = (text = ''): string => JSON.stringify(text.slice(0, 40))

/** Text on one line without characters that nobody sees. */
function plainText(text: string): string {
  if (text.length > TEXT_LENGTH_MAX) refuse(`a line has more than ${TEXT_LENGTH_MAX} characters of text`)
  return text.replace(UNREADABLE_ALL, ' ').replace(/\s+/g, ' ').trim()
}

/** A reference, unless the text is empty or says that there is none. */
function referenceIn(text = ''): string | undefined {
  const plain = plainText(text)
  return /^(?:NONREF|NOTPROVIDED|NOT PROVIDED|0*)$/i.test(plain) ? undefined : plain
}

/** A calendar date, YYYY-MM-DD, also with a time, or YYMMDD of this century. Throws a Refusal for any other text. */
export function dateIn(text = ''): string {
  const date = text.replace(/^(\d\d)(\d\d)(\d\d)$/, '20$1-$2-$3').replace(/T.*/, '')
  return IsDate(date) ? date : refuse(`${shown(text)} is no date`)
}

/** Throws a Refusal for another currency than that of the platform's account. */
export function requireCurrency(currency = ''): void {
  if (currency !== WIRE_ASSET)
    refuse(`the currency ${shown(currency)} is not ${WIRE_ASSET}, which the platform's account has`)
}

/** An unsigned decimal of the platform's currency as cents. Throws a Refusal that names what is wrong. */
export function centsIn(text: string): bigint {
  const minor = text.length > AMOUNT_LENGTH_MAX ? undefined : parseAmount(text, decimalsOf(WIRE_ASSET))
  return minor ?? refuse(`${shown(text)} is no amount in ${WIRE_ASSET}`)
}

/** Cents as a decimal string. */
export const amountOf = (minor: bigint): string => formatAmount(minor, decimalsOf(WIRE_ASSET))

/** The records of a text, between other work of the process. `next` is global and matches where another record begins. */
export async function* recordsOf(text: string, next: RegExp): AsyncGenerator<string> {
  for (let [start, end, count] = [0, 0, 1]; start < text.length; start = end, count++) {
    next.lastIndex = start + 1
    end = next.exec(text)?.index ?? text.length
    const record = text.slice(start, end).trim()
    if (record.length > RECORD_LENGTH_MAX || record.split('\n').length > CONTINUATIONS_MAX + 1)
      refuse(
        `a record is too long: none has more than ${RECORD_LENGTH_MAX} characters, more than ${TEXT_LENGTH_MAX} characters of text or more than ${CONTINUATIONS_MAX} continuations`,
      )
    yield record
    if (count % 100 === 0) await setImmediate()
  }
}
