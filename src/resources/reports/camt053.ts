import { createHash } from 'node:crypto'
import type { BookEntry } from '../../money/books/read-entries.ts'
import type { Sums } from '../../money/books/sums.ts'

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'
/** The longest reference, and the longest line of what a payment is for. */
const REFERENCE_MAX = 35
const LINE = /.{1,140}/gsu

/** A profile's statement: each balance at the beginning and the end of a time, and the entries of each asset. */
export interface Statement {
  profileId: string
  from: string
  to: string
  balances: readonly Pick<Sums, 'asset' | 'opening' | 'closing'>[]
  entriesOf: (asset: string) => AsyncIterable<readonly BookEntry[]>
}

/**
 * Writes a bank statement of ISO 20022, camt.053.001.08, in parts: a `Stmt` for each asset, which must be a currency of ISO
 * 4217 with at most 5 decimals. References have at most 35 characters, so ids are without their hyphens, and a longer ref_id is in
 * `AddtlTxInf`. A refund is a reversal.
 */
export async function* camt053Of({
  profileId,
  from,
  to,
  balances,
  entriesOf,
}: Statement): AsyncGenerator<string> {
  const now = new Date().toISOString()
  const account = referenceOf(profileId)
  yield `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="${NAMESPACE}"><BkToCstmrStmt><GrpHdr><MsgId>${digestOf(account, now)}</MsgId><CreDtTm>${now}</CreDtTm></GrpHdr>\n`
  for (const { asset, opening, closing } of balances) {
    yield `<Stmt><Id>${digestOf(account, asset, from, to)}</Id><CreDtTm>${now}</CreDtTm>
<FrToDt><FrDtTm>${from}</FrDtTm><ToDtTm>${to}</ToDtTm></FrToDt>
<Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>${asset}</Ccy></Acct>
${balanceOf('OPBD', opening, asset, from)}\n${balanceOf('CLBD', closing, asset, to)}\n`
    for await (const entries of entriesOf(asset)) yield entries.map(entryOf).join('')
    yield '</Stmt>\n'
  }
  yield '</BkToCstmrStmt></Document>\n'
}

const amountOf = (amount: string, asset: string) =>
  `<Amt Ccy="${asset}">${amount.replace('-', '')}</Amt><CdtDbtInd>${amount.startsWith('-') ? 'DBIT' : 'CRDT'}</CdtDbtInd>`

const balanceOf = (code: string, amount: string, asset: string, at: string) =>
  `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${amountOf(amount, asset)}<Dt><DtTm>${at}</DtTm></Dt></Bal>`

function entryOf({ amount, asset, created_at, event, memo, ref_id, transfer_id, type }: BookEntry): string {
  const reference = `<AcctSvcrRef>${referenceOf(transfer_id)}</AcctSvcrRef>`
  const time = `<DtTm>${created_at}</DtTm>`
  const isShort = [...(ref_id ?? '')].length <= REFERENCE_MAX
  const lines = (memo?.match(LINE) ?? []).map((line) => element('Ustrd', line)).join('')
  return `<Ntry>${amountOf(amount, asset)}${event === 'REFUNDED' ? '<RvslInd>true</RvslInd>' : ''}<Sts><Cd>BOOK</Cd></Sts>
<BookgDt>${time}</BookgDt><ValDt>${time}</ValDt>${reference}<BkTxCd><Prtry><Cd>${type}</Cd></Prtry></BkTxCd>
<NtryDtls><TxDtls><Refs>${reference}${isShort ? element('EndToEndId', ref_id) : ''}</Refs>${lines && `<RmtInf>${lines}</RmtInf>`}${isShort ? '' : element('AddtlTxInf', ref_id)}</TxDtls></NtryDtls></Ntry>\n`
}

const referenceOf = (id: string) => id.replaceAll('-', '').toLowerCase()
const digestOf = (...parts: string[]) =>
  createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 32)

/** An element with text of a client, if there is any. XML cannot have most control characters, not even escaped. */
const element = (name: string, text = '') =>
  text &&
  `<${name}>${text
    .replaceAll(/[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll(/[&<>\r]/g, (character) => `&#${character.charCodeAt(0)};`)}</${name}>`
