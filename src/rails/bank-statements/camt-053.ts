import { setImmediate } from 'node:timers/promises'
import sax from 'sax'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'
import { centsIn, refuse, requireCurrency, shown, type BankLine, type Statements } from './statement.ts'

/** camt.053 (ISO 20022), versions 2 to 8. An entry is a tree until it is read; the file never is one. */

const NAMESPACE = /^urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.0[2-8]$/
/** Most elements of an entry, or of a statement without its entries. */
const ELEMENTS_MAX = 200_000
const [DEPTH_MAX, ATTRIBUTES_MAX] = [32, 32]
/** How much is read before other work of the process has its turn. */
const PART = 64 * 1024
const CODES = ['Cd', 'Fmly/Cd', 'Fmly/SubFmlyCd'].map((path) => `BkTxCd/Domn/${path}`)
const REMITTANCE = ['RmtInf/Ustrd', 'RmtInf/Strd/CdtrRefInf/Ref', 'RmtInf/Strd/AddtlRmtInf']
const TEXTS = [...REMITTANCE, 'AddtlTxInf', 'AddtlNtryInf', 'Refs/UETR', 'Refs/ClrSysRef']
const CHARGES = ['Chrgs/TtlChrgsAndTaxAmt', 'Chrgs/Rcrd/Amt', 'Chrgs/Amt']

type Element = { name: string; currency: string | undefined; text: string; children: Element[] }

/** Reads the statements of a file. Throws a Refusal that names what is wrong with it. */
export async function readCamt053(text: string, statements: Statements): Promise<void> {
  if (/<!(?:DOCTYPE|ENTITY)|<\?(?!xml\s)/i.test(text))
    refuse('the file has a DOCTYPE or an entity, or a processing instruction: no bank statement needs one')
  const root = { name: '', currency: undefined, text: '', children: [] }
  const path: Element[] = [root]
  let elements = 0
  // Only the five entities of XML itself. The types do not know the option.
  const parser = sax.parser(true, { strictEntities: true } as object)
  parser.onerror = ({ message }) => refuse(`the file is no well-formed XML: ${shown(message.split('\n')[0])}`)
  parser.onattribute = () => {
    if (Object.keys(parser.tag.attributes).length > ATTRIBUTES_MAX)
      refuse(`an element has more than ${ATTRIBUTES_MAX} attributes`)
  }
  parser.onopentag = ({ name: full, attributes }) => {
    const [name = '', prefix] = full.split(':').reverse()
    const values = attributes as Record<string, string>
    const namespace = values[prefix === undefined ? 'xmlns' : `xmlns:${prefix}`] ?? ''
    if (
      path.length === 1 &&
      !(root.children.length === 0 && name === 'Document' && NAMESPACE.test(namespace))
    )
      refuse(`the namespace ${shown(namespace)} is not that of camt.053.001.02 to 08`)
    if (path.length > DEPTH_MAX) refuse(`elements are nested more than ${DEPTH_MAX} deep`)
    if (++elements > ELEMENTS_MAX) refuse(`an entry has more than ${ELEMENTS_MAX} elements`)
    if (name === 'Stmt') statements.begin({ format: 'CAMT_053' })
    const element = { name, currency: values.Ccy, text: '', children: [] }
    path.at(-1)!.children.push(element)
    path.push(element)
  }
  parser.ontext = parser.oncdata = (part) => {
    path.at(-1)!.text += part
  }
  parser.onclosetag = () => {
    const element = path.pop()!
    element.text = element.text.trim()
    if (element.name !== 'Ntry' && element.name !== 'Stmt') return
    path.at(-1)!.children.pop()
    elements = 0
    if (element.name === 'Ntry') return linesOf([element]).forEach((line) => statements.add(line))
    Object.assign(statements.draft!, headOf([element]))
    statements.finish()
  }
  for (let start = 0; start < text.length; start += PART) {
    parser.write(text.slice(start, start + PART))
    await setImmediate()
  }
  parser.close()
}

const childrenOf = (elements: Element[], wanted: string): Element[] =>
  elements.flatMap(({ children }) => children.filter(({ name }) => [name, '*'].includes(wanted)))
const allAt = (elements: Element[], path: string) => path.split('/').reduce(childrenOf, elements)
/** The first text at these paths that says something. */
const textAt = (elements: Element[], ...paths: string[]): string | undefined =>
  paths.flatMap((path) => allAt(elements, path)).find(({ text }) => !['', 'NOTPROVIDED'].includes(text))?.text

function headOf(statement: Element[]) {
  const balances = (code: string) =>
    allAt(statement, 'Bal').filter((balance) => textAt([balance], 'Tp/CdOrPrtry/Cd') === code)
  const [opening] = [...balances('OPBD'), ...balances('PRCD')]
  const [closing] = balances('CLBD')
  requireCurrency(textAt(statement, 'Acct/Ccy') ?? WIRE_ASSET)
  return {
    id: textAt(statement, 'Id'),
    account: textAt(statement, 'Acct/Id/IBAN', 'Acct/Id/Othr/Id'),
    number: textAt(statement, 'ElctrncSeqNb', 'LglSeqNb'),
    from: textAt(statement, 'FrToDt/FrDtTm'),
    date: closing && textAt([closing], 'Dt/*'),
    opening: opening && signedOf([opening]),
    closing: closing && signedOf([closing]),
  }
}

/** The amount with the sign of its indicator, which is that of the booking itself where a reversal has one, too. */
function signedOf(elements: Element[], [amount] = allAt(elements, 'Amt')): bigint {
  requireCurrency(amount?.currency)
  const [cents, sign] = [centsIn(amount!.text), textAt(elements, 'CdtDbtInd')]
  return sign === 'CRDT' ? cents : sign === 'DBIT' ? -cents : refuse('an amount has no CdtDbtInd')
}

/** A line, or one for each transaction where their amounts sum to that of the entry. */
function linesOf(entry: Element[]): BankLine[] {
  if ((textAt(entry, 'Sts/Cd', 'Sts') ?? 'BOOK') !== 'BOOK') return []
  const [whole, shared] = [signedOf(entry), textAt(entry, 'AcctSvcrRef')]
  const parts = allAt(entry, 'NtryDtls/TxDtls')
  const amounts = parts.flatMap((part) => {
    const own = [...allAt([part], 'Amt'), ...allAt([part], 'AmtDtls/TxAmt/Amt')]
    return own[0]?.currency === WIRE_ASSET ? signedOf([part, ...entry], own) : []
  })
  const isBatch = parts.length > 1 && amounts.length === parts.length && whole !== 0n
  if (!isBatch || amounts.reduce((sum, amount) => sum + amount) !== whole)
    return [lineOf(entry, parts, whole, shared)]
  return parts.map((part, index) => {
    const own = textAt([part], 'Refs/AcctSvcrRef') ?? shared
    return lineOf(entry, [part], amounts[index]!, own && own === shared ? `${own}/${index + 1}` : own)
  })
}

function lineOf(entry: Element[], parts: Element[], amount: bigint, reference: string | undefined): BankLine {
  const [elements, only] = [[...parts, ...entry], parts.length === 1 ? parts : []]
  const codes = CODES.map((path) => textAt(elements, path))
  const charges = CHARGES.map((path) =>
    allAt(elements, path).filter(({ currency }) => currency === WIRE_ASSET),
  )
  return {
    date: textAt(entry, 'BookgDt/*', 'ValDt/*') ?? '',
    amount,
    reference: reference ?? textAt(only, 'Refs/AcctSvcrRef'),
    customer_reference: textAt(only, 'Refs/EndToEndId', 'Refs/UETR', 'Refs/InstrId'),
    text: TEXTS.flatMap((path) => allAt(elements, path).map(({ text }) => text)).join(' '),
    code: codes.some(Boolean) ? codes.join('/') : (textAt(entry, 'BkTxCd/Prtry/Cd') ?? ''),
    is_reversal: ['true', '1'].includes(textAt(entry, 'RvslInd') ?? ''),
    is_return: ['RRTN', 'RPCR'].includes(codes[2] ?? '') || allAt(parts, 'RtrInf').length > 0,
    charges: charges.find(({ length }) => length > 0)?.reduce((sum, { text }) => sum + centsIn(text), 0n),
  }
}
