/*
 * Invariants of reading bank statements:
 * 1. a statement that is written in a format and read again is equal, to the cent;
 * 2. a file with any fault is refused with the fault's name, whatever its size, and costs no more memory than its text.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bai2Of, camtOf, mt940Of } from '../../../test/bank-statements.ts'
import { runs } from '../../../test/seed.ts'
import { Refusal } from '../../contract/refusal.ts'
import { FILE_BYTES_MAX, readStatements } from './read.ts'
import type { BankLine, BankStatement } from './statement.ts'

const read = (text: string) => readStatements(Buffer.from(text))
const line = (amount: bigint, more: Partial<BankLine> = {}): BankLine => ({
  ...{
    date: '2026-01-30',
    amount,
    text: 'rent',
    code: 'PMNT/RCDT/XBCT',
    is_reversal: false,
    is_return: false,
  },
  ...more,
})
const statement = (lines: BankLine[], more: Partial<BankStatement> = {}): BankStatement => ({
  ...{
    format: 'CAMT_053',
    account: '000123456789',
    currency: 'USD',
    id: 'S1',
    number: 7,
    date: '2026-01-30',
  },
  ...{ opening: 10_000n, closing: lines.reduce((sum, { amount }) => sum + amount, 10_000n), lines },
  ...more,
})

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

describe('the samples of', () => {
  test('a Swiss bank, version 4: a batch becomes its transactions, a pending entry is none, charges are kept', async () => {
    const [found] = await read(`<?xml version="1.0" encoding="UTF-8"?>
<ns2:Document xmlns:ns2="urn:iso:std:iso:20022:tech:xsd:camt.053.001.04"><ns2:BkToCstmrStmt><ns2:Stmt>
<ns2:Id>2026-01-30/CH</ns2:Id><ns2:ElctrncSeqNb>30</ns2:ElctrncSeqNb>
<ns2:FrToDt><ns2:FrDtTm>2026-01-30T00:00:00</ns2:FrDtTm><ns2:ToDtTm>2026-01-30T23:59:59</ns2:ToDtTm></ns2:FrToDt>
<ns2:Acct><ns2:Id><ns2:IBAN>CH5604835012345678009</ns2:IBAN></ns2:Id><ns2:Ccy>USD</ns2:Ccy></ns2:Acct>
<ns2:Bal><ns2:Tp><ns2:CdOrPrtry><ns2:Cd>PRCD</ns2:Cd></ns2:CdOrPrtry></ns2:Tp><ns2:Amt Ccy="USD">5</ns2:Amt><ns2:CdtDbtInd>DBIT</ns2:CdtDbtInd><ns2:Dt><ns2:Dt>2026-01-29</ns2:Dt></ns2:Dt></ns2:Bal>
<ns2:Bal><ns2:Tp><ns2:CdOrPrtry><ns2:Cd>CLBD</ns2:Cd></ns2:CdOrPrtry></ns2:Tp><ns2:Amt Ccy="USD">295.50</ns2:Amt><ns2:CdtDbtInd>CRDT</ns2:CdtDbtInd><ns2:Dt><ns2:DtTm>2026-01-30T23:59:59+01:00</ns2:DtTm></ns2:Dt></ns2:Bal>
<ns2:Ntry><ns2:Amt Ccy="USD">300.50</ns2:Amt><ns2:CdtDbtInd>CRDT</ns2:CdtDbtInd><ns2:Sts>BOOK</ns2:Sts><ns2:BookgDt><ns2:Dt>2026-01-30</ns2:Dt></ns2:BookgDt><ns2:AcctSvcrRef>CH77</ns2:AcctSvcrRef>
<ns2:BkTxCd><ns2:Domn><ns2:Cd>PMNT</ns2:Cd><ns2:Fmly><ns2:Cd>RCDT</ns2:Cd><ns2:SubFmlyCd>VCOM</ns2:SubFmlyCd></ns2:Fmly></ns2:Domn></ns2:BkTxCd>
<ns2:Chrgs><ns2:TtlChrgsAndTaxAmt Ccy="USD">0.60</ns2:TtlChrgsAndTaxAmt></ns2:Chrgs>
<ns2:NtryDtls><ns2:Btch><ns2:NbOfTxs>2</ns2:NbOfTxs></ns2:Btch>
<ns2:TxDtls><ns2:Refs><ns2:EndToEndId>E1</ns2:EndToEndId></ns2:Refs><ns2:Amt Ccy="USD">100.25</ns2:Amt><ns2:CdtDbtInd>CRDT</ns2:CdtDbtInd><ns2:RmtInf><ns2:Strd><ns2:CdtrRefInf><ns2:Ref>210000000003139471430009017</ns2:Ref></ns2:CdtrRefInf></ns2:Strd></ns2:RmtInf></ns2:TxDtls>
<ns2:TxDtls><ns2:Refs><ns2:AcctSvcrRef>CH78</ns2:AcctSvcrRef></ns2:Refs><ns2:Amt Ccy="USD">200.25</ns2:Amt><ns2:RmtInf><ns2:Ustrd>two &amp; </ns2:Ustrd><ns2:Ustrd>more</ns2:Ustrd></ns2:RmtInf></ns2:TxDtls></ns2:NtryDtls></ns2:Ntry>
<ns2:Ntry><ns2:Amt Ccy="USD">9</ns2:Amt><ns2:CdtDbtInd>CRDT</ns2:CdtDbtInd><ns2:Sts>PDNG</ns2:Sts></ns2:Ntry>
</ns2:Stmt></ns2:BkToCstmrStmt></ns2:Document>`)
    expect(found).toMatchObject({
      account: 'CH5604835012345678009',
      number: 30,
      from: '2026-01-30',
      opening: -500n,
      closing: 29_550n,
    })
    const common = { code: 'PMNT/RCDT/VCOM', date: '2026-01-30' }
    expect(found!.lines).toMatchObject([
      {
        ...common,
        amount: 10_025n,
        reference: 'CH77/1',
        customer_reference: 'E1',
        text: '210000000003139471430009017',
      },
      { ...common, amount: 20_025n, reference: 'CH78', text: 'two & more' },
    ])
  })

  test('a German bank, version 2: a batch without amounts, or whose amounts do not sum, is one line with all text', async () => {
    for (const second of ['<AmtDtls><TxAmt><Amt Ccy="USD">21</Amt></TxAmt></AmtDtls>', '']) {
      const made = camtOf([statement([line(3_000n, { reference: 'DE1' })])], '02').replace(
        /<NtryDtls>[\s\S]*<\/NtryDtls>/,
        `<NtryDtls><TxDtls><AmtDtls><TxAmt><Amt Ccy="USD">10</Amt></TxAmt></AmtDtls><RmtInf><Ustrd>a</Ustrd></RmtInf></TxDtls>
         <TxDtls>${second}<RmtInf><Ustrd>b</Ustrd></RmtInf></TxDtls></NtryDtls><AddtlNtryInf>SAMMLER</AddtlNtryInf>`,
      )
      const [found] = await read(made)
      expect(found!.lines).toMatchObject([{ amount: 3_000n, reference: 'DE1', text: 'a b SAMMLER' }])
    }
  })

  test('a Nordic bank, version 8: a return by its code, a reversal, and a proprietary code', async () => {
    const returned = line(1_900n, {
      code: 'PMNT/ICDT/RRTN',
      reference: 'N1',
      text: 'RETURN OF 20260131B1QGC01R000002',
    })
    const [found] = await read(
      camtOf([statement([returned, line(-5n, { is_reversal: true, reference: 'N2' })])]),
    )
    expect(found!.lines).toMatchObject([
      { is_return: true, amount: 1_900n },
      { is_reversal: true, is_return: false, amount: -5n },
    ])
    const proprietary = camtOf([statement([line(1n)])]).replace(
      /<Domn>.*<\/Domn>/s,
      '<Prtry><Cd>NTRF</Cd></Prtry>',
    )
    expect((await read(proprietary))[0]!.lines[0]!.code).toBe('NTRF')
  })

  test('a German bank, MT940: subfields, a return by its code, an entry in the next year, Latin letters of one byte', async () => {
    const [found] = await readStatements(
      Buffer.from(
        `:20:STARTUMSE\r\n:25:10010010/12345678\r\n:28C:00012/001\r\n:60F:C251230USD1000,\r\n` +
          `:61:2512310102DD12,34NMSCKREF+//0801\r\n:86:177?00ÜBERWEISUNG?20SVWZ+rent for De?21zember?32Müller\r\n` +
          `:61:260102C19,NTRFNONREF//0802\r\n:86:159?00RETOURE?20SVWZ+gift\r\n` +
          `:61:260102RC1,NCHGNONREF\r\n/CHGS/USD0,50/\r\n:62F:C260102USD1005,66\r\n:64:C260102USD1005,66\r\n-\r\n`,
        'latin1',
      ),
    )
    expect(found).toMatchObject({
      account: '10010010/12345678',
      number: 12,
      opening: 100_000n,
      closing: 100_566n,
    })
    expect(found!.lines).toMatchObject([
      {
        date: '2026-01-02',
        amount: -1_234n,
        reference: '0801',
        customer_reference: 'KREF+',
        text: 'ÜBERWEISUNG SVWZ+rent for De zember Müller',
      },
      { amount: 1_900n, is_return: true, reference: '0802' },
      { amount: -100n, is_reversal: true },
    ])
  })

  test("MT940 from a stranger who puts a reference of the bank into his own: the bank's is the last", async () => {
    const [found] = await read(
      ':20:X\n:25:1\n:60F:C260130USD1,\n:61:260130C1,NTRFX//OTHERS//OWN\n:62F:C260130USD2,\n-',
    )
    expect(found!.lines).toMatchObject([{ reference: 'OWN', customer_reference: 'X//OTHERS' }])
  })

  test('a Dutch bank, MT940: an envelope, pages of one statement, structured text over lines', async () => {
    const page = (number: number, [open, opening]: string[], body: string, [close, closing]: string[]) =>
      `{1:F01RABONL2UAXXX0000000000}{2:I940X}{4:\n:20:940S260130\n:25:NL29RABO0123456789\n:28C:26030/${number}\n:60${open}:C260129USD${opening}\n${body}\n:62${close}:C260130USD${closing}\n-}`
    const first = page(1, ['F', '10,00'], ':61:260130C5,00N541EREF//OO9T1\n:86:/EREF/X1/REMI/one\n two/', [
      'M',
      '15,00',
    ])
    const second = (opening: string) => page(2, ['M', opening], ':61:260130D1,00NRTIEREF', ['F', '14,00'])
    const found = await read(`${first}\n${second('15,00')}`)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({ opening: 1_000n, closing: 1_400n, number: 26_030, id: '940S260130' })
    expect(found[0]!.lines).toMatchObject([
      { text: '/EREF/X1/REMI/one two/', reference: 'OO9T1' },
      { is_return: true },
    ])
    await expect(read(`${first}\n${second('16,00')}`)).rejects.toThrow(
      'the pages of a statement do not follow',
    )
    await expect(read(first)).rejects.toThrow('truncated')
  })

  test('BAI2 of today without balances, without an opening, and of a test or a part of a day', async () => {
    const group = (status: string, modifier: string, record: string, total: bigint) =>
      [
        `01,BANK,ACME,260131,0600,55,80,,2/\n02,ACME,BANK,${status},260130,2359,USD,${modifier}/`,
        `03,1,USD,${record}\n16,195,250,Z,IMAD1,,/\n49,${total},3/`,
        `03,2,USD,,,,/\n49,0,2/\n98,${total},2,9/\n99,${total},1,11/`,
      ].join('\n')
    const [found, ...others] = await read(group('1', '2', '015,1000,,/', 1250n))
    expect(found).toMatchObject({ account: '1', opening: 750n, closing: 1_000n })
    expect(others).toEqual([])
    for (const [status, modifier] of [
      ['4', '2'],
      ['2', ''],
      ['1', '1'],
      ['1', '3'],
    ] as const)
      await expect(read(group(status, modifier, '015,1000,,/', 1250n))).rejects.toThrow('the group')
  })

  test('an American bank, BAI2: continuations, funds types, summaries, a return and a reversal', async () => {
    const [found] = await read(
      [
        ...['01,021000021,ACME,260131,0600,55,80,,2/', '02,ACME,021000021,1,260130,2359,USD,2/'],
        ...['03,000123456789,,010,10000,,,100,25000,1,S,25000,0,0/', '88,015,31000,,/'],
        ...['16,195,25000,S,25000,0,0,IMAD20260130,CUST1,WIRE FROM GRACE, HOPPER', '88,MEMO ABCD/'],
        ...[
          '16,495,1000,V,260130,1200,OMAD1,/',
          '88,RENT',
          '16,557,3000,Z,B3,,RETURNED/',
          '16,252,500,,,/',
          '16,698,500,D,1,0,500,,/',
          '16,890,,,,,A NOTE/',
        ],
        ...['49,96000,10/', '98,96000,1,12/', '99,96000,1,14/', ''],
      ].join('\n'),
    )
    expect(found).toMatchObject({
      account: '000123456789',
      date: '2026-01-30',
      opening: 10_000n,
      closing: 31_000n,
    })
    expect(found!.lines).toMatchObject([
      {
        amount: 25_000n,
        reference: 'IMAD20260130',
        customer_reference: 'CUST1',
        text: 'WIRE FROM GRACE, HOPPER MEMO ABCD',
        code: '195',
      },
      { amount: -1_000n, reference: 'OMAD1', text: 'RENT' },
      { amount: -3_000n, is_return: true, text: 'RETURNED' },
      { amount: 500n, is_reversal: true },
      { amount: -500n, code: '698' },
    ])
  })
})

const word = fc.stringMatching(/^[A-Za-z0-9+.]{1,20}$/)
const text = fc.array(word, { minLength: 1, maxLength: 30 }).map((words) => words.join(' '))
const reference = fc.stringMatching(/^[A-Z1-9]{4,16}$/).filter((found) => found !== 'NONREF')
const FORMATS = {
  CAMT_053: [camtOf, fc.constantFrom('PMNT/RCDT/XBCT', 'ACMT/MDOP/FEES')],
  MT940: [mt940Of, fc.constantFrom('NTRF', 'S103', 'NCHG')],
  BAI2: [bai2Of, fc.constantFrom('195', '495')],
} as const

describe.each(Object.entries(FORMATS))('%s', (format, [write, codes]) => {
  const anyLine = fc
    .record({
      cents: fc.bigInt(1n, 10n ** 12n),
      isOut: fc.boolean(),
      reference,
      customer_reference: reference,
      text,
      code: codes,
      is_reversal: fc.boolean(),
    })
    .map(({ cents, isOut, ...made }) => {
      const out = format === 'BAI2' ? made.code === '495' : isOut
      return line(out ? -cents : cents, { ...made, is_reversal: format !== 'BAI2' && made.is_reversal })
    })
  const any = fc
    .record({
      lines: fc.array(anyLine, { maxLength: 8 }),
      opening: fc.bigInt(-(10n ** 12n), 10n ** 12n),
      id: reference,
    })
    .map(({ lines, opening, id }) => {
      const closing = lines.reduce((sum, { amount }) => sum + amount, opening)
      const made = statement(lines, {
        format: format as 'BAI2',
        opening,
        closing,
        id: format === 'BAI2' ? '260131-1-2026-01-30' : id,
      })
      if (format === 'BAI2') delete made.number
      return made
    })

  test('a made statement is read as it was made, with lines that end in any way', async () => {
    await fc.assert(
      fc.asyncProperty(any, fc.boolean(), async (made, isDos) => {
        const file = write([made])
        const [found, ...others] = await read(isDos ? file.replaceAll('\n', '\r\n') : file)
        const lines = found!.lines.map(({ is_single: _, ...line }) => line)
        expect([{ ...found, lines }, ...others]).toEqual([made])
      }),
      runs(400),
    )
  })

  test('a file that ends anywhere is refused, or is whole', async () => {
    const whole = write([
      statement(
        [
          line(500n, {
            reference: 'R1',
            code: codes === FORMATS.BAI2[1] ? '195' : format === 'MT940' ? 'NTRF' : 'PMNT/RCDT/XBCT',
          }),
        ],
        { format: format as 'BAI2' },
      ),
    ])
    const [made] = await read(whole)
    for (let length = 0; length < whole.length; length++) {
      const found = await read(whole.slice(0, length)).catch((error: unknown) => error)
      if (!(found instanceof Refusal))
        expect(found, String(length)).toMatchObject([{ closing: made!.closing, lines: made!.lines }])
    }
  })

  test('a file that is changed in any place is refused, or balances', async () => {
    const change = fc.record({
      place: fc.nat(5_000),
      cut: fc.nat(40),
      put: fc.stringMatching(/^[<>:,/0-9A-Z\n&;"-]{0,6}$/),
    })
    await fc.assert(
      fc.asyncProperty(any, fc.array(change, { minLength: 1, maxLength: 3 }), async (made, changes) => {
        const file = changes.reduce(
          (text, { place, cut, put }) => {
            const start = place % text.length
            return `${text.slice(0, start)}${put}${text.slice(start + cut)}`
          },
          write([made]),
        )
        const found = await read(file).catch((error: unknown) => error)
        if (found instanceof Refusal) return
        for (const { opening, closing, lines } of found as BankStatement[])
          expect(lines.reduce((sum, { amount }) => sum + amount, opening)).toBe(closing)
      }),
      runs(4_000),
    )
  })

  test('a changed amount, another currency and an amount below a cent are refused', async () => {
    const code = { CAMT_053: 'A/B/C', MT940: 'NTRF', BAI2: '195' }[format]!
    const file = write([statement([line(98_765n, { code, reference: 'R1' })], { format: format as 'BAI2' })])
    await expect(read(file.replace(/98765|987[.,]65/, (found) => found.replace('9', '8')))).rejects.toThrow(
      Refusal,
    )
    await expect(read(file.replaceAll('USD', 'EUR'))).rejects.toThrow('currency "EUR" is not USD')
    await expect(read(file.replace(/(98765|987[.,]65)/, '$15'))).rejects.toThrow(Refusal)
  })
})

describe('refused is', () => {
  const good = camtOf([statement([line(500n)])])
  test.each([
    ['an unknown format', 'date,amount\n1,2', 'unknown format'],
    ['an empty file', '', 'unknown format'],
    [
      'a DOCTYPE',
      good.replace('<Document', '<!DOCTYPE Document SYSTEM "http://x/y.dtd"><Document'),
      'DOCTYPE or an entity',
    ],
    [
      'an entity',
      good.replace('<Document', '<!DOCTYPE D [<!ENTITY a "aa">]><Document'),
      'DOCTYPE or an entity',
    ],
    ['an entity of HTML', good.replace('rent', '&nbsp;'), 'no well-formed XML'],
    ['an unknown entity', good.replace('rent', '&xxe;'), 'no well-formed XML'],
    [
      'a style sheet',
      good.replace('<Document', '<?xml-stylesheet href="http://x"?><Document'),
      'processing instruction',
    ],
    ['another message', good.replaceAll('camt.053.001.08', 'camt.054.001.08'), 'is not that of camt.053'],
    [
      'a version of the future',
      good.replaceAll('camt.053.001.08', 'camt.053.001.13'),
      'is not that of camt.053',
    ],
    ['a second root', `${good}${good.slice(good.indexOf('<Document'))}`, 'the namespace'],
    ['deep nesting', good.replace('rent', '<a>'.repeat(100)), 'nested more than 32 deep'],
    [
      'many attributes',
      good.replace('<Ntry>', `<Ntry ${Array.from({ length: 99 }, (_, at) => `a${at}="1"`).join(' ')}>`),
      'more than 32 attributes',
    ],
    ['no closing balance', good.replace('CLBD', 'ITBD'), 'has no balance CLBD'],
    [
      'a balance that does not follow',
      good.replace('>105.00<', '>106.00<'),
      'do not make its closing balance 106',
    ],
    ['no statement', good.replace(/<Stmt>.*<\/Stmt>/s, ''), 'the file has no statement'],
    ['a day that is not in the calendar', good.replaceAll('2026-01-30', '2026-02-30'), 'is no date'],
    [
      'a total of BAI2',
      bai2Of([statement([line(5n, { code: '195' })])]).replace('49,20010', '49,20011'),
      'control total',
    ],
  ])('%s', async (_, file, why) => {
    await expect(read(file)).rejects.toThrow(why)
  })

  test('a file, a text and a number of lines above their limits, and bombs, with flat memory', async () => {
    const most = FILE_BYTES_MAX - 10_000
    const within = (text: string) => text.repeat(Math.floor(most / text.length))
    const [head] = good.split('<Ntry>')
    const bombs: [() => string, RegExp][] = [
      [() => ' '.repeat(FILE_BYTES_MAX + 1), /larger than/],
      [() => `${head}<Ntry>${within('<a/>')}`, /more than 200000 elements/],
      [() => `${head}<Ntry><x>${within('a')}`, /Refusal|truncated|well-formed|characters/],
      [() => `${head}<Ntry ${within('a="" ')}`, /more than 32 attributes|well-formed/],
      [
        () => `${head}${within('<Ntry><Amt Ccy="USD">1</Amt><CdtDbtInd>CRDT</CdtDbtInd></Ntry>')}`,
        /more than 100000 lines/,
      ],
      [() => `:20:X\n:25:1\n:60F:C260130USD1,\n${within(':61:260130C1,NTRFX\n')}`, /more than 100000 lines/],
      [
        () => `:20:X\n:25:1\n:60F:C260130USD1,\n:61:260130C1,NTRFX\n:86:${within('a\n')}`,
        /more than 20000 characters/,
      ],
      [() => `:20:X\n:86:${within('a')}`, /more than 65536 characters/],
      [() => `01,a,b,260131,,1/\n02,a,b,1,260130,,USD/\n03,1,USD${within(',')}/`, /characters/],
      [
        () => `01,a,b,260131,,1/\n02,a,b,1,260130,,USD/\n03,1,USD/\n16,195,1,Z,,,\n${within('88,a\n')}`,
        /more than 1000 continuations/,
      ],
    ]
    const collect = collector()
    for (const [file, why] of bombs) {
      const bytes = Buffer.from(file())
      collect()
      const before = process.memoryUsage().rss
      await expect(readStatements(bytes)).rejects.toThrow(why)
      expect((process.memoryUsage().rss - before) / 2 ** 20, `MiB: ${why}`).toBeLessThan(160)
    }
  })
})
