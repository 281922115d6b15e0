import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { AssetSymbol, Timestamp, Uuid } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { problem } from '../../contract/problems.ts'
import { readEntries, readProfileSums, type BookEntry, type Time } from '../../money/books/book.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { Figure, PERIOD, report, type AskedReport } from './report.ts'

/** A statement as a bank sends it: asset after asset, each in the order of its entries. */
export const getProfileStatement = report({
  url: '/v2/profiles/:id/statement',
  summary: 'Get Profile Statement',
  description:
    'For each asset of a profile: its balance at the beginning of a time (OPENING), each change, and its balance at the end (CLOSING). With `Accept: application/xml` a bank statement (camt.053.001.08) of the fiat assets: its amounts have at most 5 decimals, and its currencies are those of ISO 4217.',
  example: { params: { id: EXAMPLE.profile_id }, query: { asset: 'USD' } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  query: { ...PERIOD, asset: Type.Optional(AssetSymbol) },
  line: {
    created_at: Timestamp('Time of the change; of OPENING and CLOSING, that of the balance.'),
    asset: AssetSymbol,
    type: Type.String({ description: 'Type of the transfer, or OPENING or CLOSING.' }),
    event: Type.Optional(Type.String({ description: 'CREATED, or REFUNDED: the money came back.' })),
    amount: Type.Optional(Figure('Change of the balance: negative for a debit.')),
    balance: Figure('Balance after the change.'),
    ref_id: Type.Optional(Type.String({ description: 'Of the transfer.' })),
    memo: Type.Optional(Type.String({ description: 'Of the transfer.' })),
    transfer_id: Type.Optional(Uuid('Transfer that changed the balance.')),
  },
  problems: ['not-found'],
  read: async (asked) => ({ lines: linesOf(asked.time, await balancesOf(asked)) }),
  async xml(asked) {
    const balances = await balancesOf(asked)
    const fiat = balances.filter(({ asset }) => findAsset(asset)!.kind === 'fiat')
    if (fiat.length === 0)
      throw problem.badRequest('asset: a bank statement has fiat assets only; CSV has all', 'asset')
    return camt053Of(asked.params!.id, asked.time, fiat)
  },
})

/** Reads a profile's balances and their entries, by ticker: of the assets that it held, or of the one that is asked for. */
async function balancesOf({ book, customerId, params, query, time }: AskedReport<{ asset?: string }>) {
  requireKnownAssets('asset', query.asset === undefined ? undefined : [query.asset])
  const { id: profileId } = await requireProfile(book.db, customerId, params!.id)
  const balances = []
  for await (const page of readProfileSums(book, { ...time, profileId, asset: query.asset }))
    balances.push(...page)
  if (query.asset !== undefined && balances.length === 0)
    balances.push({ asset: query.asset, opening: '0', closing: '0' })
  return balances.map(({ asset, opening, closing }) => {
    return { asset, opening, closing, entries: readEntries(book, { ...time, profileId, asset }) }
  })
}
type Balance = Awaited<ReturnType<typeof balancesOf>>[number]

async function* linesOf({ from, to }: Time, balances: readonly Balance[]) {
  for (const { asset, opening, closing, entries } of balances) {
    yield [{ created_at: from.text, asset, type: 'OPENING', balance: opening }]
    yield* entries
    yield [{ created_at: to.text, asset, type: 'CLOSING', balance: closing }]
  }
}

/** The longest reference, and the longest line of what a payment is for. */
const REFERENCE_MAX = 35
const LINE = /.{1,140}/gsu

/**
 * Writes a bank statement of ISO 20022, camt.053.001.08, in parts: a `Stmt` for each asset, which must be a currency of ISO
 * 4217 with at most 5 decimals. References have at most 35 characters, so ids are without their hyphens, and a longer ref_id is in
 * `AddtlTxInf`. A refund is a reversal.
 */
async function* camt053Of(profileId: string, { from, to }: Time, balances: readonly Balance[]) {
  const now = new Date().toISOString()
  const account = referenceOf(profileId)
  yield `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr><MsgId>${digestOf(account, now)}</MsgId><CreDtTm>${now}</CreDtTm></GrpHdr>\n`
  for (const { asset, opening, closing, entries } of balances) {
    yield `<Stmt><Id>${digestOf(account, asset, from.text, to.text)}</Id><CreDtTm>${now}</CreDtTm>
<FrToDt><FrDtTm>${from.text}</FrDtTm><ToDtTm>${to.text}</ToDtTm></FrToDt>
<Acct><Id><Othr><Id>${account}</Id></Othr></Id><Ccy>${asset}</Ccy></Acct>
${balanceOf('OPBD', opening, asset, from.text)}\n${balanceOf('CLBD', closing, asset, to.text)}\n`
    for await (const page of entries) yield page.map(entryOf).join('')
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
