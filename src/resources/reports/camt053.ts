import { createHash } from 'node:crypto'
import type { StatementBalance, StatementEntry, StatementOf } from './read-statement.ts'

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'
/** The longest reference, and the longest line of what a payment is for. */
const REFERENCE_MAX = 35
const LINE_MAX = 140

/**
 * Writes a bank statement of ISO 20022, camt.053.001.08, in parts: a `Stmt` for each asset, which must be a currency of ISO
 * 4217 with at most 5 decimals. References have at most 35 characters, so ids are without their hyphens, and a longer ref_id is in
 * `AddtlTxInf`. A refund is a reversal.
 */
export async function* camt053Of(
  statement: StatementOf,
  balances: readonly StatementBalance[],
  entriesOf: (asset: string) => AsyncIterable<readonly StatementEntry[]>,
): AsyncGenerator<string> {
  const now = new Date().toISOString()
  const account = withoutHyphens(statement.profileId)
  const header = element('GrpHdr', element('MsgId', digestOf(account, now)) + element('CreDtTm', now))
  yield `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="${NAMESPACE}"><BkToCstmrStmt>${header}\n`
  for (const { asset, opening, closing } of balances) {
    const { from, to } = statement
    const period = element('FrToDt', element('FrDtTm', from) + element('ToDtTm', to))
    const owned = element(
      'Acct',
      element('Id', element('Othr', element('Id', account))) + element('Ccy', asset),
    )
    const [first, last] = [balanceOf('OPBD', opening, asset, from), balanceOf('CLBD', closing, asset, to)]
    const id = element('Id', digestOf(account, asset, from, to))
    yield `<Stmt>${id}${element('CreDtTm', now)}${period}${owned}${first}${last}\n`
    for await (const entries of entriesOf(asset)) yield entries.map(entryOf).join('')
    yield '</Stmt>\n'
  }
  yield '</BkToCstmrStmt></Document>\n'
}

const element = (name: string, content: string) => `<${name}>${content}</${name}>`

const amountOf = (amount: string, asset: string) =>
  `<Amt Ccy="${asset}">${amount.replace('-', '')}</Amt>${element('CdtDbtInd', amount.startsWith('-') ? 'DBIT' : 'CRDT')}`

const balanceOf = (code: string, amount: string, asset: string, at: string) =>
  element(
    'Bal',
    `${element('Tp', element('CdOrPrtry', element('Cd', code)))}${amountOf(amount, asset)}${element('Dt', element('DtTm', at))}`,
  )

function entryOf({
  amount,
  asset,
  created_at,
  event,
  memo,
  ref_id,
  transfer_id,
  type,
}: StatementEntry): string {
  const time = element('DtTm', created_at)
  const isShort = ref_id !== undefined && lengthOf(ref_id) <= REFERENCE_MAX
  const references = [
    element('AcctSvcrRef', withoutHyphens(transfer_id)),
    ...(isShort ? [element('EndToEndId', textOf(ref_id))] : []),
  ]
  const lines = memo === undefined ? [] : linesOf(memo).map((line) => element('Ustrd', textOf(line)))
  const details = [
    element('Refs', references.join('')),
    ...(lines.length === 0 ? [] : [element('RmtInf', lines.join(''))]),
    ...(ref_id === undefined || isShort ? [] : [element('AddtlTxInf', textOf(ref_id))]),
  ]
  return `${element(
    'Ntry',
    [
      amountOf(amount, asset),
      ...(event === 'REFUNDED' ? [element('RvslInd', 'true')] : []),
      element('Sts', element('Cd', 'BOOK')),
      ...[element('BookgDt', time), element('ValDt', time)],
      element('AcctSvcrRef', withoutHyphens(transfer_id)),
      element('BkTxCd', element('Prtry', element('Cd', type))),
      element('NtryDtls', element('TxDtls', details.join(''))),
    ].join(''),
  )}\n`
}

const withoutHyphens = (id: string) => id.replaceAll('-', '').toLowerCase()
const digestOf = (...parts: string[]) =>
  createHash('sha256')
    .update(parts.join(' '))
    .digest('hex')
    .slice(0, REFERENCE_MAX - 3)

const lengthOf = (text: string) => [...text].length
const linesOf = (text: string) => text.match(new RegExp(`.{1,${LINE_MAX}}`, 'gsu')) ?? []

/** Text of a client. XML cannot have most control characters, not even escaped. */
const textOf = (text: string) =>
  text
    .replaceAll(/[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll(/[&<>\r]/g, (character) => `&#${character.charCodeAt(0)};`)
