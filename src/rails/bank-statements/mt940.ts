import { centsIn, recordsOf, refuse, shown, type BankLine, type Statements } from './statement.ts'

/** MT940 (SWIFT), also without its envelope, and with the subfields of German banks in field 86. */

/** Field 86 belongs to the field before it. */
const NEXT = /(?<=\n)(?:\{.*\})?:(?!86:)\d\d[A-Z]?:/g
const FIELD = /^(?:\{.*\})?:(\d\d)([A-Z]?):([^]*)$/
const BALANCE = /^([CD])(\d{6})([A-Z]{3})(\d[\d,]*)(?!\S)/
/** Value date, entry date, mark, third letter of the currency, amount, kind, references, and what the bank adds. */
const LINE =
  /^(\d\d)(\d\d)(\d\d)(?:(\d\d)(\d\d))? *(R?[CD])[A-Z]?(\d{1,12}(?:,\d{0,2})?) ?([A-Z][A-Z0-9]{2}[A-Z0-9 ])(?:(.*)\/\/)?(.*)([^]*)$/
/** Kinds of SWIFT and of German banks for a payment that came back. */
const RETURNED = ['NRTI', '109', '159']

/** Reads the statements of a file. Pages of one statement become one. Throws a Refusal that names what is wrong with it. */
export async function readMt940(text: string, statements: Statements): Promise<void> {
  for await (const record of recordsOf(text, NEXT)) {
    const [, tag, option, value = ''] = FIELD.exec(record) ?? []
    // A page whose last balance is not the statement's goes on.
    if (tag === '20' && !statements.draft?.date) statements.begin('MT940', { id: value })
    if (tag === '61') statements.add(lineOf(value))
    const { draft } = statements
    if (draft === undefined) continue
    const [account] = value.split('\n')
    if (tag === '25') draft.account ??= account
    if (tag === '25' && draft.account !== account) refuse('the pages of a statement are of two accounts')
    if (tag === '28') draft.number = value
    if (tag !== '60' && tag !== '62') continue
    const [, mark, date, asset, amount] = BALANCE.exec(value) ?? refuse(`no balance: ${shown(value)}`)
    const balance = signed(mark, amount, asset)
    if (tag === '60') draft.opening ??= balance
    else draft.date = date!
    if (tag === '62' && option !== 'M') statements.finish({ closing: balance })
    else if (balance !== (draft.opening ?? 0n) + draft.sum) refuse('the pages of a statement do not follow')
  }
}

const signed = (mark?: string, amount = '', currency?: string): bigint =>
  (mark === 'C' || mark === 'RD' ? 1n : -1n) * centsIn(amount.replace(',', '.').replace(/\.$/, ''), currency)

function lineOf(value: string): BankLine {
  const [, yy, mm, dd, month = mm, day = dd, mark, amount, kind = '', customers, last, more = ''] =
    LINE.exec(value) ?? refuse(`field 61: ${shown(value)} is no statement line`)
  // The booking date has no year. It is next to the value date.
  const year = 2000 + Number(yy) + Math.round((Number(mm) - Number(month)) / 12)
  // German banks begin field 86 with a code of their own, and number its parts.
  const [, added = '', code = '', detail = ''] = /^([^]*?)(?:\n:86:(\d{3}(?=\?))?([^]*))?$/.exec(more)!
  const explained = code === '' ? detail : detail.replaceAll('\n', '').replaceAll(/\?\d\d/g, ' ')
  return {
    ...{ date: `${year}-${month}-${day}`, amount: signed(mark, amount) },
    // The customer's reference, which a stranger may choose, comes first.
    ...{ customer_reference: customers ?? last, reference: customers === undefined ? undefined : last },
    ...{ text: `${added} ${explained}`.replaceAll(':86:', ' '), code: kind },
    is_reversal: mark!.startsWith('R'),
    is_return: RETURNED.includes(kind) || RETURNED.includes(code),
  }
}
