import { formatAmount } from '../src/contract/assets/amount.ts'
import type { BankLine, BankStatement } from '../src/rails/bank-statements/statement.ts'

/** Statements as banks write them. Each format keeps what it has a place for. */

const amount = (minor: bigint) => {
  const [whole, cents = ''] = formatAmount(minor < 0n ? -minor : minor, 2).split('.')
  return { point: `${whole}.${cents.padEnd(2, '0')}`, comma: `${whole},${cents}` }
}
const short = (date: string) => date.slice(2).replaceAll('-', '')
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const chunks = (text: string, length: number): string[] =>
  text.match(new RegExp(`.{1,${length}}(?: |$)`, 'g')) ?? []

export function camtOf(statements: readonly BankStatement[], version = '08'): string {
  const sign = (minor: bigint) => (minor < 0n ? 'DBIT' : 'CRDT')
  const money = (minor: bigint) =>
    `<Amt Ccy="USD">${amount(minor).point}</Amt><CdtDbtInd>${sign(minor)}</CdtDbtInd>`
  const balance = (code: string, minor: bigint, date: string) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${money(minor)}<Dt><Dt>${date}</Dt></Dt></Bal>`
  const entry = (line: BankLine) => {
    const [domain, family, sub] = line.code.split('/')
    return `<Ntry>${money(line.amount)}${line.is_reversal ? '<RvslInd>true</RvslInd>' : ''}
<Sts>${version >= '08' ? '<Cd>BOOK</Cd>' : 'BOOK'}</Sts><BookgDt><Dt>${line.date}</Dt></BookgDt>
${line.reference ? `<AcctSvcrRef>${escaped(line.reference)}</AcctSvcrRef>` : ''}
<BkTxCd><Domn><Cd>${domain}</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>${sub}</SubFmlyCd></Fmly></Domn></BkTxCd>
<NtryDtls><TxDtls><Refs><EndToEndId>${escaped(line.customer_reference ?? 'NOTPROVIDED')}</EndToEndId></Refs>
<RmtInf>${chunks(line.text, 140)
      .map((part) => `<Ustrd>${escaped(part)}</Ustrd>`)
      .join('')}</RmtInf>
${line.is_return ? '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>' : ''}</TxDtls></NtryDtls></Ntry>`
  }
  const all = statements.map(
    (
      statement,
    ) => `<Stmt><Id>${escaped(statement.id)}</Id>${statement.number === undefined ? '' : `<ElctrncSeqNb>${statement.number}</ElctrncSeqNb>`}
<Acct><Id><Othr><Id>${escaped(statement.account)}</Id></Othr></Id><Ccy>${statement.currency}</Ccy></Acct>
${balance('OPBD', statement.opening, statement.date)}${balance('CLBD', statement.closing, statement.date)}
${statement.lines.map(entry).join('\n')}</Stmt>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.${version}"><BkToCstmrStmt><GrpHdr><MsgId>M</MsgId></GrpHdr>
${all.join('\n')}</BkToCstmrStmt></Document>`
}

export const mt940Of = (statements: readonly BankStatement[]): string =>
  statements
    .map(({ id, account, number, date, currency, opening, closing, lines }) => {
      const balance = (minor: bigint) =>
        `${minor < 0n ? 'D' : 'C'}${short(date)}${currency}${amount(minor).comma}`
      const line = (at: BankLine) => {
        const mark = at.is_reversal ? (at.amount < 0n ? 'RC' : 'RD') : at.amount < 0n ? 'D' : 'C'
        const references = `${at.customer_reference ?? 'NONREF'}${at.reference ? `//${at.reference}` : ''}`
        return `:61:${short(at.date)}${short(at.date).slice(2)}${mark}D${amount(at.amount).comma}${at.code}${references}
:86:${chunks(at.text, 65).join('\n')}`
      }
      return `{1:F01BANKUS33AXXX0000000000}{4:
:20:${id}
:25:${account}
:28C:${number ?? 0}/1
:60F:${balance(opening)}
${lines.map(line).join('\n')}
:62F:${balance(closing)}
-}`
    })
    .join('\n')

export function bai2Of(statements: readonly BankStatement[]): string {
  let total = 0n
  const groups = statements.map(({ account, date, currency, opening, closing, lines }) => {
    const sum = lines.reduce(
      (all, line) => all + (line.amount < 0n ? -line.amount : line.amount),
      opening + closing,
    )
    total += sum
    const records = lines.map(({ amount: minor, code, reference = '', customer_reference = '', text }) => {
      const [first = '', ...others] = chunks(text, 60)
      const cents = minor < 0n ? -minor : minor
      return [
        `16,${code},${cents},Z,${reference},${customer_reference},${first}`,
        ...others.map((part) => `88,${part}`),
      ].join('\n')
    })
    return `02,ACME,BANK,1,${short(date)},0000,${currency},2/
03,${account},${currency},010,${opening},,,015,${closing},,/
${records.join('\n')}
49,${sum},${lines.length + 2}/
98,${sum},1,${lines.length + 4}/`
  })
  return `01,BANK,ACME,260131,0600,1,80,1,2/\n${groups.join('\n')}\n99,${total},${statements.length},9/\n`
}
