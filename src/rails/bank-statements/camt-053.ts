import { setImmediate } from 'node:timers/promises'
import sax from 'sax'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'
import { centsIn, PART, refuse, shown, type BankLine, type Statements } from './statement.ts'

/** camt.053 (ISO 20022), versions 2 to 8. An entry is a tree until it is read; the file never is one. */

const ROOT = /^Document urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.0[2-8]$/
/** Most elements of an entry, or of a statement without its entries; most levels; most attributes of one. */
const [ELEMENTS_MAX, DEPTH_MAX, ATTRIBUTES_MAX] = [200_000, 32, 32]
const CODES = ['Cd', 'Fmly/Cd', 'Fmly/SubFmlyCd'].map((path) => `BkTxCd/Domn/${path}`)
const REMITTANCE = ['RmtInf/Ustrd', 'RmtInf/Strd/CdtrRefInf/Ref', 'RmtInf/Strd/AddtlRmtInf']
const RETURNED = ['RRTN', 'RPCR']
const TEXTS = [...REMITTANCE, 'AddtlTxInf', 'AddtlNtryInf', 'Refs/UETR', 'Refs/ClrSysRef']
type Element = { name: string; currency?: string | undefined; text: string; children: Element[] }

/** Reads the statements of a file. Throws a Refusal that names what is wrong with it. */
export async function readCamt053(text: string, statements: Statements): Promise<void> {
  if (/<!(?:DOCTYPE|ENTITY)|<\?(?!xml\s)/i.test(text))
    refuse('the file has a DOCTYPE or an entity, or a processing instruction: no bank statement needs one')
  const path: Element[] = [{ name: '', text: '', children: [] }]
  let [elements, attributes] = [0, 0]
  // Only the five entities of XML itself. The types do not know the option.
  const parser = sax.parser(true, { strictEntities: true } as object)
  parser.onerror = ({ message }) => refuse(`the file is no well-formed XML: ${shown(message.split('\n')[0])}`)
  parser.onattribute = () => {
    if (++attributes > ATTRIBUTES_MAX) refuse(`an element has more than ${ATTRIBUTES_MAX} attributes`)
  }
  parser.onopentag = ({ name: full, attributes: given }) => {
    attributes = 0
    const [name = '', prefix] = full.split(':').reverse()
    const values = given as Record<string, string>
    const urn = values[prefix === undefined ? 'xmlns' : `xmlns:${prefix}`] ?? ''
    const isRoot = path[0]!.children.length === 0 && ROOT.test(`${name} ${urn}`)
    if (path.length === 1 && !isRoot) refuse(`the namespace ${shown(urn)} is not that of camt.053, 02 to 08`)
    if (path.length > DEPTH_MAX) refuse(`elements are nested more than ${DEPTH_MAX} deep`)
    if (++elements > ELEMENTS_MAX) refuse(`an entry has more than ${ELEMENTS_MAX} elements`)
    if (name === 'Stmt') statements.begin('CAMT_053', {})
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
    if (element.name === 'Ntry') return linesOf(element).forEach((line) => statements.add(line))
    statements.finish(headOf([element]))
  }
  for (let start = 0; start < text.length; start += PART) {
    parser.write(text.slice(start, start + PART))
    await setImmediate()
  }
  parser.close()
}

const childrenOf = (elements: Element[], wanted: string): Element[] =>
  elements.flatMap(({ children }) => children.filter(({ name }) => [name, '*'].includes(wanted)))
const allAt = (elements: Element[], ...paths: string[]): Element[] =>
  paths.flatMap((path) => path.split('/').reduce(childrenOf, elements))
/** The first text at these paths that says something. */
const textAt = (elements: Element[], ...paths: string[]): string =>
  allAt(elements, ...paths).find(({ text }) => /^(?!NOTPROVIDED$)[^]/.test(text))?.text ?? ''

function headOf(statement: Element[]) {
  const balances = (code: string) =>
    allAt(statement, 'Bal').filter((balance) => textAt([balance], 'Tp/CdOrPrtry/Cd') === code)
  const [opening, closing] = [[...balances('OPBD'), ...balances('PRCD')], balances('CLBD')]
  return {
    ...{ id: textAt(statement, 'Id'), number: textAt(statement, 'ElctrncSeqNb', 'LglSeqNb') },
    account: textAt(statement, 'Acct/Id/IBAN', 'Acct/Id/Othr/Id'),
    currency: textAt(statement, 'Acct/Ccy'),
    ...{ from: textAt(statement, 'FrToDt/FrDtTm'), date: textAt(closing, 'Dt/*') },
    opening: opening[0] && signedOf(opening),
    closing: closing[0] && signedOf(closing),
  }
}

/** The amount with the sign of its indicator, which is that of the booking itself where a reversal has one, too. */
function signedOf(elements: Element[], [amount] = allAt(elements, 'Amt')): bigint {
  const [cents, sign] = [centsIn(amount?.text, amount?.currency ?? ''), textAt(elements, 'CdtDbtInd')]
  return sign === 'CRDT' ? cents : sign === 'DBIT' ? -cents : refuse('an amount has no CdtDbtInd')
}

/** A line, or one for each transaction where their amounts sum to that of the entry. */
function linesOf(element: Element): BankLine[] {
  const entry = [{ ...element, children: element.children.filter(({ name }) => name !== 'NtryDtls') }]
  if (!['', 'BOOK'].includes(textAt(entry, 'Sts/Cd', 'Sts'))) return []
  const [whole, parts] = [signedOf(entry), allAt([element], 'NtryDtls/TxDtls')]
  const amounts = parts.flatMap((part) => {
    const own = allAt([part], 'Amt', 'AmtDtls/TxAmt/Amt').slice(0, 1)
    return own[0]?.currency === WIRE_ASSET ? signedOf([part, ...entry], own) : []
  })
  const sum = amounts.reduce((total, amount) => total + amount, 0n)
  const count = textAt([element], 'NtryDtls/Btch/NbOfTxs')
  const isBatch = parts.length > 1 && parts.length === amounts.length && sum === whole
  return (isBatch ? parts.map((part) => [part]) : [parts]).map((group, index) => {
    const [elements, only] = [[...group, ...entry], group.length === 1 ? group : []]
    const [own, shared] = [textAt(only, 'Refs/AcctSvcrRef'), textAt(entry, 'AcctSvcrRef')]
    const numbered = shared && isBatch ? `${shared}/${index + 1}` : shared
    const texts = allAt(isBatch ? group : elements, ...TEXTS).map(({ text }) => text)
    const codes = CODES.map((path) => textAt(elements, path))
    return {
      date: textAt(entry, 'BookgDt/*', 'ValDt/*'),
      amount: isBatch ? amounts[index]! : whole,
      reference: isBatch && own !== shared ? own || numbered : numbered || own,
      customer_reference: textAt(only, 'Refs/EndToEndId', 'Refs/UETR', 'Refs/InstrId'),
      text: texts.join(' '),
      code: codes.some(Boolean) ? codes.join('/') : textAt(elements, 'BkTxCd/Prtry/Cd'),
      is_reversal: ['true', '1'].includes(textAt(entry, 'RvslInd')),
      is_return:
        allAt(elements, CODES[2]!).some(({ text }) => RETURNED.includes(text)) ||
        allAt(group, 'RtrInf').length > 0,
      is_single: parts.length < 2 && (amounts.length === 0 || sum === whole) && ['', '1'].includes(count),
    }
  })
}
