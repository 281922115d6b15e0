import { setImmediate } from 'node:timers/promises'
import { Temporal } from 'temporal-polyfill'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { UNREADABLE } from '../../contract/fields.ts'
import { Refusal } from '../../contract/refusal.ts'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'

/** A bank's statement in plain values, whatever its format, and what its parsers share. Amounts are signed cents. */

export interface BankLine {
  /** Booking date, YYYY-MM-DD. */
  date: string
  /** Negative: it left the account. */
  amount: bigint
  /** The bank's own reference. Nobody else chooses it. */
  reference?: string
  /** End-to-end or customer reference, which a stranger may have chosen. */
  customer_reference?: string
  /** All of the remittance text and what the bank added. Strangers write it. */
  text: string
  /** The bank's code of the kind. */
  code: string
  /** The bank corrects a line of its own. */
  is_reversal: boolean
  /** The bank says that a payment came back. Never derived from the text. */
  is_return: boolean
  /** Fees within the amount, not negative. */
  charges?: bigint
}

export interface BankStatement {
  format: 'CAMT_053' | 'MT940' | 'BAI2'
  account: string
  currency: string
  id: string
  /** The bank's sequence number. */
  number?: number
  from?: string
  /** The date of the closing balance. */
  date: string
  opening: bigint
  closing: bigint
  lines: BankLine[]
}

const LINES_MAX = 100_000
const TEXT_LENGTH_MAX = 20_000
const AMOUNT_LENGTH_MAX = 24
/** How much a parser reads before other work of the process has its turn. */
const PART = 64 * 1024
const UNREADABLE_ALL = new RegExp(UNREADABLE.source, 'gu')

/** Throws a Refusal with this reason. */
export function refuse(why: string): never {
  throw new Refusal(why)
}

/** Text on one line without characters that nobody sees. Throws a Refusal for text above the limit. */
export function plainText(text: string): string {
  if (text.length > TEXT_LENGTH_MAX) refuse(`a line has more than ${TEXT_LENGTH_MAX} characters of text`)
  return text.replace(UNREADABLE_ALL, ' ').replace(/\s+/g, ' ').trim()
}

/** A member of this name, or none where the text is empty or says that there is no reference. */
export function referenceIn<Name extends string>(name: Name, text = ''): { [N in Name]?: string } {
  const plain = plainText(text)
  const isNone = /^(?:NONREF|NOTPROVIDED|NOT PROVIDED|0*)$/i.test(plain)
  return (isNone ? {} : { [name]: plain }) as { [N in Name]?: string }
}

/** An unsigned decimal of the platform's currency as cents. Throws a Refusal that names what is wrong. */
export function centsIn(text: string, what: string): bigint {
  const minor = text.length > AMOUNT_LENGTH_MAX ? undefined : parseAmount(text, decimalsOf(WIRE_ASSET))
  return minor ?? refuse(`${what}: ${shown(text)} is no amount in ${WIRE_ASSET}`)
}

/** Cents as a decimal string. */
export const amountOf = (minor: bigint): string => formatAmount(minor, decimalsOf(WIRE_ASSET))

/** Cents without their sign, as a decimal string. */
export const absolute = (minor: bigint): string => amountOf(minor < 0n ? -minor : minor)

/** Throws a Refusal for another currency than that of the platform's account. */
export function requireCurrency(currency: string): string {
  return currency === WIRE_ASSET
    ? currency
    : refuse(`the currency ${shown(currency)} is not ${WIRE_ASSET}, which the platform's account has`)
}

/** A calendar date, YYYY-MM-DD, or YYMMDD of this century. Throws a Refusal for any other text. */
export function dateIn(text: string, what: string): string {
  const date = text.replace(/^(\d\d)(\d\d)(\d\d)$/, '20$1-$2-$3')
  try {
    if (/^\d{4}-\d\d-\d\d$/.test(date))
      return Temporal.PlainDate.from(date, { overflow: 'reject' }).toString()
  } catch {
    // Such a day is not in the calendar.
  }
  return refuse(`${what}: ${shown(text)} is no date`)
}

/** Text of a file within a reason. */
export const shown = (text: string): string => JSON.stringify(text.slice(0, 40))

/** Throws a Refusal where a file has too many lines. */
export function requireLines(count: number): void {
  if (count > LINES_MAX) refuse(`the file has more than ${LINES_MAX} lines`)
}

/** The parts of a text, one after the other, between other work of the process. */
export async function* partsOf(text: string): AsyncGenerator<string> {
  for (let start = 0; start < text.length; start += PART) {
    yield text.slice(start, start + PART)
    await setImmediate()
  }
}

/** The lines of a text, without what separates them, between other work of the process. */
export async function* linesOf(text: string): AsyncGenerator<string> {
  let rest = ''
  for await (const part of partsOf(text)) {
    const lines = (rest + part).split('\n')
    rest = lines.pop()!
    if (rest.length > PART) refuse(`a line has more than ${PART} characters`)
    for (const line of lines) yield line.replace(/\r$/, '')
  }
  yield rest.replace(/\r$/, '')
}

/** Throws a Refusal for a statement whose lines do not lead from its opening to its closing balance. */
export function requireBalanced({ id, opening, closing, lines }: BankStatement): void {
  const sum = lines.reduce((total, { amount }) => total + amount, 0n)
  if (opening + sum === closing) return
  const [from, moved, to] = [opening, sum, closing].map(amountOf)
  refuse(
    `statement ${shown(id)}: its opening balance ${from} and its lines, ${moved}, do not make its closing balance ${to}`,
  )
}
