/** Files for spreadsheets (RFC 4180), with a byte order mark: without it, Excel takes UTF-8 for another character set. */

/** Whether a character begins a formula in some spreadsheet. Spreadsheets accept its full-width and other forms, too. */
const beginsFormula = (character: string) => /^[=+\-@\u2212]/.test(character.normalize('NFKC'))

const PART_OF_NUMBER = String.raw`[\s\p{Nd}.,:/+\-()%\p{Sc}年月日]{0,60}`
const DATES = String.raw`(?:\p{Nd}{1,4}[\s.,/-]*)?(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}{0,9}|(?=.*\p{Nd})\p{L}{2,12}\.?\s)[\s.,/-]*(?:\p{Nd}{1,4}[\s.,/-]*){0,2}`
/** Text that a spreadsheet of some language turns into a number, date or logical value, and so loses zeros and digits. */
const LOOKS_LIKE_A_VALUE = new RegExp(
  `^\\s*(?:${PART_OF_NUMBER}\\p{Nd}${PART_OF_NUMBER}(?:e[+-]?\\p{Nd}+|[ap]\\.?m\\.?)?|${DATES}|true|false|wahr|falsch|vrai|faux)\\s*$`,
  'iu',
)

/**
 * Text as a cell. Clients choose ref_ids and memos, so an apostrophe goes before each place that begins like a formula. Such
 * a place may also follow a character that some spreadsheet takes for the separator. Text that would become a number or a
 * date gets an apostrophe, too.
 */
export function textCell(text: string | undefined): string {
  if (text === undefined || text === '') return ''
  const guarded = text.replace(/(?<=^|[,;\t\r\n])(?=[\s"']*(\S))/gu, (_, next: string) =>
    beginsFormula(next) ? "'" : '',
  )
  const kept =
    LOOKS_LIKE_A_VALUE.test(text.normalize('NFKC')) && !guarded.startsWith("'") ? `'${guarded}` : guarded
  return `"${kept.replaceAll('"', '""')}"`
}

/** Where a point separates thousands, 7412.277 would be read as millions: 7412.2770 is no number there. */
const numberOf = (cell: string) => cell.replace(/^-?\d+\.\d{3}$/, '$&0')
const lineOf = (cells: readonly string[]) => `${cells.map(numberOf).join(',')}\r\n`

/** The file of these rows, each of cells. */
export const csvOf = (rows: readonly (readonly string[])[]): string => `\ufeff${rows.map(lineOf).join('')}`

/** A file of these columns, a part at a time. `numbers` are the columns whose cells are numbers, all others are text. */
export async function* csvIn(
  columns: readonly string[],
  parts: AsyncIterable<readonly object[]>,
  numbers: readonly string[] = [],
): AsyncGenerator<string> {
  yield csvOf([columns])
  for await (const rows of parts)
    yield rows.map((row) => lineOf(columns.map((name) => cellOf(row, name, numbers.includes(name))))).join('')
}

function cellOf(row: object, name: string, isNumber: boolean): string {
  const value = (row as Record<string, string | number | boolean | string[] | null | undefined>)[name] ?? ''
  const text = Array.isArray(value) ? value.join(' ') : String(value)
  return isNumber ? text : textCell(text)
}
