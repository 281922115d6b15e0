import sax from 'sax'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'
import {
  centsIn,
  dateIn,
  partsOf,
  plainText,
  referenceIn,
  refuse,
  requireCurrency,
  requireLines,
  shown,
  type BankLine,
  type BankStatement,
} from './statement.ts'

/** camt.053 (ISO 20022), versions 2 to 8. An entry is a tree until it is read; the file never is one. */

const NAMESPACE = /^urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.0[2-8]$/
/** Only the five entities of XML itself. The types do not know the option. */
const OPTIONS = { trim: false, strictEntities: true }
const DEPTH_MAX = 32
const ATTRIBUTES_MAX = 32
/** Most elements of an entry, or of a statement without its entries. */
const ELEMENTS_MAX = 200_000
/** Codes of the bank for a payment that came back. */
const RETURNED = /\b(?:RRTN|RPCR)$/

interface Element {
  name: string
  attributes: Record<string, string>
  text: string
  children: Element[]
}

const allAt = (element: Element, path: string): Element[] =>
  path
    .split('/')
    .reduce(
      (found, step) => found.flatMap(({ children }) => children.filter(({ name }) => name === step)),
      [element],
    )
const textAt = (element: Element, ...paths: string[]): string | undefined =>
  paths.map((path) => allAt(element, path)[0]?.text.trim()).find((text) => text !== undefined && text !== '')

/** Reads the statements of a file. Throws a Refusal that names what is wrong with it. */
export async function readCamt053(text: string): Promise<BankStatement[]> {
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text))
    refuse('the file has a DOCTYPE or an entity: no bank statement needs one')
  const statements: BankStatement[] = []
  const path: Element[] = []
  let lines: BankLine[] = []
  let [lineCount, elements, attributes, isRoot] = [0, 0, 0, true]
  const parser = sax.parser(true, OPTIONS)
  parser.onerror = ({ message }) =>
    refuse(`the file is no well-formed XML: ${shown(message.split('\n')[0]!)}`)
  parser.onprocessinginstruction = ({ name }) => {
    if (name !== 'xml') refuse(`the file has the processing instruction ${shown(name)}`)
  }
  parser.onattribute = () => {
    if (++attributes > ATTRIBUTES_MAX) refuse(`an element has more than ${ATTRIBUTES_MAX} attributes`)
  }
  parser.onopentag = ({ name: full, attributes: given }) => {
    const [name = '', prefix] = full.split(':').reverse()
    attributes = 0
    const values = given as Record<string, string>
    if (path.length === 0) {
      const namespace = values[prefix === undefined ? 'xmlns' : `xmlns:${prefix}`] ?? ''
      if (!isRoot || name !== 'Document' || !NAMESPACE.test(namespace))
        refuse(`the namespace ${shown(namespace)} is not that of camt.053.001.02 to 08`)
      isRoot = false
    }
    if (path.length >= DEPTH_MAX) refuse(`elements are nested more than ${DEPTH_MAX} deep`)
    if (++elements > ELEMENTS_MAX) refuse(`an entry has more than ${ELEMENTS_MAX} elements`)
    const element: Element = { name, attributes: values, text: '', children: [] }
    path.at(-1)?.children.push(element)
    path.push(element)
  }
  parser.ontext = parser.oncdata = (text) => {
    const element = path.at(-1)
    if (element !== undefined && element.children.length === 0) element.text += text
  }
  parser.onclosetag = () => {
    const element = path.pop()!
    if (element.name !== 'Ntry' && element.name !== 'Stmt') return
    if (element.name === 'Stmt') {
      statements.push(statementOf(element, lines))
      lines = []
    } else {
      const read = linesOfEntry(element)
      requireLines((lineCount += read.length))
      for (const line of read) lines.push(line)
    }
    elements = 0
    path.at(-1)?.children.pop()
  }
  for await (const part of partsOf(text)) parser.write(part)
  parser.close()
  return statements
}

function statementOf(statement: Element, lines: BankLine[]): BankStatement {
  const id = textAt(statement, 'Id') ?? ''
  const balanceOf = (...codes: string[]) => {
    const ofCode = (code: string) =>
      allAt(statement, 'Bal').find((balance) => textAt(balance, 'Tp/CdOrPrtry/Cd') === code)
    const balance = codes.map(ofCode).find((found) => found !== undefined)
    return balance ?? refuse(`statement ${shown(id)} has no balance ${codes.join(' or ')}`)
  }
  const closing = balanceOf('CLBD')
  const amount = allAt(closing, 'Amt')[0]?.attributes.Ccy ?? ''
  const date = dayAt(closing, 'Dt') ?? refuse(`statement ${shown(id)} has no date`)
  const number = textAt(statement, 'ElctrncSeqNb', 'LglSeqNb')
  const from = textAt(statement, 'FrToDt/FrDtTm')?.slice(0, 10)
  return {
    format: 'CAMT_053',
    account:
      textAt(statement, 'Acct/Id/IBAN', 'Acct/Id/Othr/Id') ??
      refuse(`statement ${shown(id)} names no account`),
    currency: requireCurrency(textAt(statement, 'Acct/Ccy') ?? amount),
    id,
    ...(number !== undefined && /^\d{1,9}$/.test(number) && { number: Number(number) }),
    ...(from !== undefined && { from: dateIn(from, 'FrDtTm') }),
    date,
    opening: signedOf(balanceOf('OPBD', 'PRCD')),
    closing: signedOf(closing),
    lines: lines.map((line) => (line.date === '' ? { ...line, date } : line)),
  }
}

const dayAt = (element: Element, member: string): string | undefined => {
  const text = textAt(element, `${member}/Dt`, `${member}/DtTm`)?.slice(0, 10)
  return text === undefined ? undefined : dateIn(text, member)
}

/** The amount with the sign of its indicator, which is that of the booking itself where a reversal has one, too. */
function signedOf(
  element: Element,
  amount = allAt(element, 'Amt')[0],
  sign = textAt(element, 'CdtDbtInd'),
): bigint {
  requireCurrency(amount?.attributes.Ccy ?? '')
  const minor = centsIn(amount!.text.trim(), 'Amt')
  if (sign !== 'CRDT' && sign !== 'DBIT') refuse('an amount has no CdtDbtInd')
  return sign === 'CRDT' ? minor : -minor
}

function linesOfEntry(entry: Element): BankLine[] {
  if ((textAt(entry, 'Sts/Cd', 'Sts') ?? 'BOOK') !== 'BOOK') return []
  const amount = signedOf(entry)
  if (amount === 0n) return []
  const parts = allAt(entry, 'NtryDtls/TxDtls')
  const sign = textAt(entry, 'CdtDbtInd')
  const amounts = parts.map((part) => {
    const own = allAt(part, 'Amt')[0] ?? allAt(part, 'AmtDtls/TxAmt/Amt')[0]
    if (own?.attributes.Ccy !== WIRE_ASSET) return undefined
    return signedOf(part, own, textAt(part, 'CdtDbtInd') ?? sign)
  })
  const isSplit = parts.length > 1 && amounts.reduce<bigint>((sum, part) => sum + (part ?? 0n), 0n) === amount
  if (!isSplit || amounts.includes(undefined))
    return [lineOf(entry, parts, amount, textAt(entry, 'AcctSvcrRef'))]
  const shared = textAt(entry, 'AcctSvcrRef')
  return parts.flatMap((part, index) => {
    const own = textAt(part, 'Refs/AcctSvcrRef')
    const reference = own === undefined || own === shared ? shared && `${shared}/${index + 1}` : own
    return amounts[index] === 0n ? [] : lineOf(entry, [part], amounts[index]!, reference)
  })
}

const [REMITTANCE, STRUCTURED] = ['RmtInf/Ustrd', 'RmtInf/Strd']
const TEXTS = [
  REMITTANCE,
  `${STRUCTURED}/CdtrRefInf/Ref`,
  `${STRUCTURED}/AddtlRmtInf`,
  'AddtlTxInf',
  'AddtlNtryInf',
]

function lineOf(entry: Element, parts: Element[], amount: bigint, reference: string | undefined): BankLine {
  const elements = [...parts, entry]
  const [only] = parts.length === 1 ? parts : []
  const code = (element: Element) =>
    ['Cd', 'Fmly/Cd', 'Fmly/SubFmlyCd'].map((path) => textAt(element, `BkTxCd/Domn/${path}`)).join('/')
  const texts = elements.flatMap((element) =>
    TEXTS.flatMap((path) => allAt(element, path).map(({ text }) => text)),
  )
  const codes = elements.map(code)
  const fees = elements
    .flatMap((element) => {
      const [total] = allAt(element, 'Chrgs/TtlChrgsAndTaxAmt')
      return total ?? [...allAt(element, 'Chrgs/Rcrd/Amt'), ...allAt(element, 'Chrgs/Amt')]
    })
    .filter(({ attributes }) => attributes.Ccy === WIRE_ASSET)
  const ends = only && textAt(only, 'Refs/EndToEndId', 'Refs/UETR', 'Refs/InstrId')
  return {
    date: dayAt(entry, 'BookgDt') ?? dayAt(entry, 'ValDt') ?? '',
    amount,
    ...referenceIn('reference', reference ?? (only && textAt(only, 'Refs/AcctSvcrRef'))),
    ...referenceIn('customer_reference', ends),
    text: plainText(texts.join(' ')),
    code: plainText(codes.find((text) => text !== '//') ?? textAt(entry, 'BkTxCd/Prtry/Cd') ?? ''),
    is_reversal: ['true', '1'].includes(textAt(entry, 'RvslInd') ?? ''),
    is_return:
      codes.some((text) => RETURNED.test(text)) || parts.some((part) => allAt(part, 'RtrInf').length > 0),
    ...(fees.length > 0 && {
      charges: fees.reduce((sum, { text }) => sum + centsIn(text.trim(), 'Chrgs'), 0n),
    }),
  }
}
