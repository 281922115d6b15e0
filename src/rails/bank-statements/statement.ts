import { setImmediate } from 'node:timers/promises'
import { IsDate } from 'typebox/format'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { AMOUNT_LENGTH_MAX, UNREADABLE } from '../../contract/fields.ts'
import { Refusal } from '../../contract/refusal.ts'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'

/**
 * A line of a statement in plain values, whatever its format, with its signed cents.
 * `text` is all that strangers wrote and the bank added, and they may choose `customer_reference`: only the bank writes the rest.
 * Reversal: it corrects a line of its own. Return: it says that a payment came back. Single: by markup one payment alone, whose text
 * is of nobody else.
 */
export interface BankLine extends Record<'date' | 'text' | 'code', string> {
  amount: bigint
  reference?: string | undefined
  customer_reference?: string | undefined
  is_reversal: boolean
  is_return: boolean
  is_single?: boolean
}

/** `date` is that of the closing balance. */
export interface BankStatement extends Record<'account' | 'currency' | 'id' | 'date', string> {
  format: 'CAMT_053' | 'MT940' | 'BAI2'
  number?: number | undefined
  from?: string | undefined
  opening: bigint
  closing: bigint
  lines: BankLine[]
}

/** A statement under way: what the file has said of it, in its texts, and the sum of its lines. */
type Draft = Partial<Omit<BankStatement, 'number'>> &
  Pick<BankStatement, 'format' | 'lines'> & { number?: string; sum: bigint }

const [LINES_MAX, TEXT_LENGTH_MAX, CONTINUATIONS_MAX] = [100_000, 20_000, 1_000]
/** How much a parser reads at once: the longest record, or as much of a file without records. */
export const PART = 64 * 1024
/** Where banks need a reference and have none. */
const NONE = /^(?:NONREF|NOTPROVIDED|NOT PROVIDED|0*)$/i

/** The statements of a file. Its parser begins each, adds its lines, and finishes it. */
export class Statements {
  readonly finished: BankStatement[] = []
  draft: Draft | undefined
  #lineCount = 0

  begin(format: Draft['format'], said: Partial<Draft> = {}): void {
    this.finish()
    this.draft = { ...said, format, lines: [], sum: 0n }
  }

  add(line: BankLine): void {
    if (++this.#lineCount > LINES_MAX) refuse(`the file has more than ${LINES_MAX} lines`)
    const draft = this.draft ?? refuse('the file has a line outside of a statement')
    draft.sum += line.amount
    const texts = [line.text, line.code, line.reference, line.customer_reference].map(plainText)
    const [text = '', code = '', ...references] = texts
    const [reference, customer_reference] = references.map((each) => (NONE.test(each) ? undefined : each))
    if (line.amount !== 0n) draft.lines.push({ ...line, text, code, reference, customer_reference })
  }

  /** Throws a Refusal unless the statement under way is whole and its lines lead from its opening to its closing balance. */
  finish(said: Partial<Draft> = {}): void {
    if (this.draft === undefined) return
    const draft = { ...this.draft, ...said }
    const { format, id, account, currency, number = '', from, opening, closing, lines } = draft
    if (!account || opening === undefined || closing === undefined)
      refuse(`${shown(id)} is truncated: it has no balance CLBD (62F, 015), OPBD (60F, 010) or account`)
    requireAsset(currency || WIRE_ASSET)
    const [reached, closed] = [opening + draft.sum, closing].map(amountOf)
    if (reached !== closed)
      refuse(`statement ${shown(id)}: lines up to ${reached} do not make its closing balance ${closed}`)
    const date = dateIn(draft.date)
    for (const line of lines) line.date = line.date === '' ? date : dateIn(line.date)
    const named = { format, account: plainText(account), currency: WIRE_ASSET, id: plainText(id) }
    const numbered = { ...named, number: Number(/^\s*(\d{1,9})\b/.exec(number)?.[1]) || undefined }
    this.finished.push({ ...numbered, from: from ? dateIn(from) : undefined, date, opening, closing, lines })
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
function plainText(text = ''): string {
  if (text.length > TEXT_LENGTH_MAX) refuse(`a line has more than ${TEXT_LENGTH_MAX} characters of text`)
  return text.replace(new RegExp(UNREADABLE, 'gu'), ' ').replace(/\s+/g, ' ').trim()
}

/** A calendar date, YYYY-MM-DD, also with a time, or YYMMDD of this century. Throws a Refusal for any other text. */
export function dateIn(text = ''): string {
  const date = text.replace(/^(\d\d)(\d\d)(\d\d)$/, '20$1-$2-$3').slice(0, 10)
  return IsDate(date) && /^[12]/.test(date) ? date : refuse(`${shown(text)} is no date`)
}

function requireAsset(currency: string): void {
  if (currency !== WIRE_ASSET)
    refuse(`the currency ${shown(currency)} is not ${WIRE_ASSET}, which the platform's account has`)
}

/** Cents as a decimal string. */
export const amountOf = (minor: bigint): string => formatAmount(minor, decimalsOf(WIRE_ASSET))
/** An unsigned decimal as cents. Throws a Refusal for another text, or another currency than that of the platform's account. */
export function centsIn(text = '', currency: string = WIRE_ASSET): bigint {
  requireAsset(currency)
  const minor = text.length > AMOUNT_LENGTH_MAX ? undefined : parseAmount(text, decimalsOf(WIRE_ASSET))
  return minor ?? refuse(`${shown(text)} is no amount in ${WIRE_ASSET}`)
}

/** The records of a text, between other work of the process. `next` is global and matches where another record begins. */
export async function* recordsOf(text: string, next: RegExp): AsyncGenerator<string> {
  for (let [start, end, count] = [0, 0, 1]; start < text.length; start = end, count++) {
    next.lastIndex = start + 1
    end = next.exec(text)?.index ?? text.length
    const record = text.slice(start, end).trim()
    if (record.length > PART || record.split('\n').length > CONTINUATIONS_MAX + 1)
      refuse(
        `a record is too long: none has more than ${PART} characters, more than ${TEXT_LENGTH_MAX} characters of text or more than ${CONTINUATIONS_MAX} continuations`,
      )
    yield record
    if (count % 100 === 0) await setImmediate()
  }
}
