import { balanceOf, centsIn, dateIn, recordsOf, refuse, requireCurrency, shown } from './statement.ts'
import type { BankLine, Statements } from './statement.ts'

/** MT940 (SWIFT), also without its envelope, and with the subfields of German banks in field 86. */

/** A field, or the end or the head of a message. */
const NEXT = /(?<=\n)(?::\d\d[A-Z]?:|\{|-\}|-(?:\n|$))/g
const FIELD = /^(?:\{.*\})?:(\d\d)([A-Z]?):([^]*)$/
const BALANCE = /^([CD])(\d{6})([A-Z]{3})(\d[\d,]*)$/
/** Value date, entry date, mark, third letter of the currency, amount, kind, references, and what the bank adds. */
const LINE = /^(\d{6})(\d{4})?(R?[CD])[A-Z]?(\d{1,12},\d{0,2})([A-Z][A-Z0-9]{3})(.*)([^]*)$/
/** Kinds of SWIFT and of German banks for a payment that came back. */
const RETURNED = ['NRTI', '109', '159']

/** Reads the statements of a file. Pages of one statement become one. Throws a Refusal that names what is wrong with it. */
export async function readMt940(text: string, statements: Statements): Promise<void> {
  let isPage = false
  for await (const lines of recordsOf(text, NEXT)) {
    const [, tag, option, value = ''] = FIELD.exec(lines.join('\n')) ?? []
    if (tag === '20') {
      if (!isPage) statements.begin({ format: 'MT940', id: value })
      isPage = false
    }
    const { draft } = statements
    const last = draft?.lines.at(-1)
    // Fields after the closing balance say nothing of the lines.
    if (draft === undefined) continue
    if (tag === '25') [draft.account] = value.split('\n')
    else if (tag === '28') draft.number = value
    else if (tag === '61') statements.add(lineOf(value))
    else if (tag === '86' && last !== undefined) explain(last, value)
    else if (tag === '60' || tag === '62') {
      const [, sign, date, currency, amount = ''] = BALANCE.exec(value) ?? []
      requireCurrency(currency)
      const balance = signed(sign, amount)
      draft.opening ??= balance
      isPage = tag === '62' && option === 'M'
      if (tag === '62' && option === 'F') {
        Object.assign(draft, { date, closing: balance })
        statements.finish()
      } else if (balance !== balanceOf(draft)) refuse('the pages of a statement do not follow each other')
    }
  }
}

function signed(mark: string | undefined, amount: string): bigint {
  const cents = centsIn(amount.replace(',', '.').replace(/\.$/, ''), 'an amount')
  return mark === 'C' || mark === 'RD' ? cents : -cents
}

function lineOf(value: string): BankLine {
  const [head, valued, booked, mark = '', amount = '', code = '', references = '', text = ''] =
    LINE.exec(value) ?? []
  if (head === undefined) return refuse(`field 61: ${shown(value)} is no statement line`)
  // The customer's reference, which a stranger may choose, comes first.
  const parts = references.split('//')
  const reference = parts.length > 1 ? parts.pop() : undefined
  const [, charges] = /\/CHGS\/USD(\d{1,12},\d{0,2})/.exec(text) ?? []
  return {
    date: bookedOn(dateIn(valued), booked),
    amount: signed(mark, amount),
    ...{ reference, customer_reference: parts.join('//'), text, code },
    is_reversal: mark.startsWith('R'),
    is_return: RETURNED.includes(code),
    charges: charges === undefined ? undefined : signed('C', charges),
  }
}

/** The booking date, MMDD, in the year next to the value date. */
function bookedOn(valued: string, booked: string | undefined): string {
  if (booked === undefined) return valued
  const [month, day] = [booked.slice(0, 2), booked.slice(2)]
  const years = Math.round((Number(valued.slice(5, 7)) - Number(month)) / 12)
  return `${Number(valued.slice(0, 4)) + years}-${month}-${day}`
}

/** Adds field 86. German banks begin it with a code of their own, and number its parts. */
function explain(line: BankLine, value: string): void {
  const [, code] = /^(\d{3})\?/.exec(value) ?? []
  const joined =
    code === undefined
      ? value
      : value
          .slice(3)
          .replaceAll('\n', '')
          .replaceAll(/\?\d\d/g, ' ')
  line.text = `${line.text} ${joined}`
  line.is_return ||= code !== undefined && RETURNED.includes(code)
}
