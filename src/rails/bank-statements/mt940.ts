import {
  centsIn,
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

/** MT940 (SWIFT), also without its envelope, and with the subfields of German banks in field 86. */

/** Value date, entry date, mark, third letter of the currency, amount, kind. What follows are the references. */
const LINE = /^(\d{6})(\d{4})?(R?[CD])([A-Z])?(\d{1,12},\d{0,2})([A-Z][A-Z0-9]{3})/
/** Kinds of SWIFT and of German banks for a payment that came back. */
const RETURNED = ['NRTI', '109', '159']

const FIELD_LENGTH_MAX = 20_000

/** Reads the statements of a file. Pages of one statement become one. Throws a Refusal that names what is wrong with it. */
export async function readMt940(text: string): Promise<BankStatement[]> {
  const statements: BankStatement[] = []
  let lineCount = 0
  /** Under way, until its closing balance. */
  let draft: (Partial<BankStatement> & { lines: BankLine[]; isPage: boolean }) | undefined
  for await (const [tag, value] of fieldsOf(text)) {
    if (tag === '20') {
      if (draft?.isPage === false)
        refuse(`the file is truncated: statement ${shown(draft.id!)} has no field 62F`)
      draft ??= { id: plainText(value), lines: [], isPage: false }
      draft.isPage = false
    }
    // Fields after the closing balance say nothing of the lines.
    if (draft === undefined) continue
    const last = draft.lines.at(-1)
    if (tag === '25') draft.account = plainText(value.split('\n')[0]!)
    else if (tag === '28C' || tag === '28') {
      const [, number] = /^(\d{1,9})(?:\/\d+)?$/.exec(value.trim()) ?? []
      if (number !== undefined && Number(number) > 0) draft.number = Number(number)
    } else if (tag === '60F' || tag === '60M') {
      const { amount, currency } = balanceOf(value, tag)
      if (draft.opening === undefined)
        Object.assign(draft, { opening: amount, currency: requireCurrency(currency) })
      else if (tag === '60F' || amount !== balanceSoFar(draft))
        refuse('the pages of a statement do not follow each other')
    } else if (tag === '61') {
      requireLines(++lineCount)
      draft.lines.push(lineOf(value))
    } else if (tag === '86' && last !== undefined) explain(last, value)
    else if (tag === '62F' || tag === '62M') {
      const { account, opening, currency, id, number, lines } = draft
      const { amount, date, currency: closingIn } = balanceOf(value, tag)
      if (account === undefined || opening === undefined || currency !== closingIn)
        return refuse(
          `statement ${shown(id!)} lacks field 25 or 60F, or its balances differ in their currency`,
        )
      draft.isPage = tag === '62M'
      if (draft.isPage && amount !== balanceSoFar(draft))
        refuse('the pages of a statement do not follow each other')
      if (draft.isPage) continue
      const named = {
        format: 'MT940',
        account,
        currency,
        id: id!,
        ...(number !== undefined && { number }),
      } as const
      const counted = lines.filter((line) => line.amount !== 0n)
      statements.push({ ...named, date, opening, closing: amount, lines: counted })
      draft = undefined
    }
  }
  if (draft !== undefined) refuse(`the file is truncated: statement ${shown(draft.id!)} has no field 62F`)
  return statements
}

const balanceSoFar = ({ opening, lines }: Partial<BankStatement> & { lines: BankLine[] }) =>
  lines.reduce((sum, { amount }) => sum + amount, opening ?? 0n)

/** The fields of all messages: each with its tag, and its lines. */
async function* fieldsOf(text: string): AsyncGenerator<[tag: string, value: string]> {
  let field: [tag: string, value: string] | undefined
  for await (const line of linesOf(text)) {
    const [, tag, value] = /^(?:\{.*\})?:(\d\d[A-Z]?):(.*)$/.exec(line) ?? []
    const isEnd = line === '-' || line.startsWith('-}') || line.startsWith('{')
    if (tag === undefined && !isEnd) {
      if (field !== undefined) field[1] += `\n${line}`
      if ((field?.[1].length ?? 0) > FIELD_LENGTH_MAX)
        refuse(`a field has more than ${FIELD_LENGTH_MAX} characters`)
      continue
    }
    if (field !== undefined) yield field
    field = tag === undefined ? undefined : [tag, value!]
  }
  if (field !== undefined) yield field
}

const decimalIn = (text: string, what: string) => centsIn(text.replace(/,$/, '').replace(',', '.'), what)

function balanceOf(value: string, tag: string): { amount: bigint; date: string; currency: string } {
  const [, sign, date, currency, amount] = /^([CD])(\d{6})([A-Z]{3})(\d[\d,]*)$/.exec(value.trim()) ?? []
  if (amount === undefined) return refuse(`field ${tag}: ${shown(value)} is no balance`)
  requireCurrency(currency!)
  const minor = decimalIn(amount, `field ${tag}`)
  return { amount: sign === 'C' ? minor : -minor, date: dateIn(date!, `field ${tag}`), currency: currency! }
}

function lineOf(value: string): BankLine {
  const [head, valued, booked, mark, , amount, code] = LINE.exec(value) ?? []
  if (head === undefined) return refuse(`field 61: ${shown(value)} is no statement line`)
  const minor = decimalIn(amount!, 'field 61')
  const [references = '', ...supplement] = value.slice(head.length).split('\n')
  // The customer's reference, which a stranger may choose, comes first.
  const bar = references.lastIndexOf('//')
  const further = supplement.join(' ')
  const [, charges] = /\/CHGS\/USD(\d{1,12},\d{0,2})/.exec(further) ?? []
  return {
    date: bookedOn(dateIn(valued!, 'field 61'), booked),
    amount: mark === 'C' || mark === 'RD' ? minor : -minor,
    ...referenceIn('customer_reference', bar < 0 ? references : references.slice(0, bar)),
    ...referenceIn('reference', bar < 0 ? '' : references.slice(bar + 2)),
    text: plainText(further),
    code: code!,
    is_reversal: mark!.startsWith('R'),
    is_return: RETURNED.includes(code!),
    ...(charges !== undefined && { charges: decimalIn(charges, 'field 61') }),
  }
}

/** The booking date, MMDD, in the year next to the value date. */
function bookedOn(valued: string, booked: string | undefined): string {
  if (booked === undefined) return valued
  const year = Number(valued.slice(0, 4))
  const months = Number(booked.slice(0, 2)) - Number(valued.slice(5, 7))
  const near = months > 6 ? year - 1 : months < -6 ? year + 1 : year
  return dateIn(`${near}-${booked.slice(0, 2)}-${booked.slice(2)}`, 'field 61')
}

const SUBFIELD = /\?\d\d/g

/** Adds field 86. German banks begin it with a code of their own, and number its parts. */
function explain(line: BankLine, value: string): void {
  const [, code] = /^(\d{3})\?/.exec(value) ?? []
  const joined = code === undefined ? value : value.slice(3).replaceAll('\n', '').replaceAll(SUBFIELD, ' ')
  line.text = plainText(`${line.text} ${joined}`)
  line.is_return ||= code !== undefined && RETURNED.includes(code)
}
