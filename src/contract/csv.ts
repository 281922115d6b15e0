/** Files for spreadsheets (RFC 4180), with a byte order mark: without it, Excel takes UTF-8 for another character set. */

/** Whether a character begins a formula in some spreadsheet. Spreadsheets accept its full-width and other forms, too. */
const beginsFormula = (character: string) => /^[=+\-@\u2212]/.test(character.normalize('NFKC'))

/** Matches text that a spreadsheet turns into a number, a date or a logical value, and so loses zeros and digits. */
const LOOKS_LIKE_A_VALUE =
  /^\s*(?:[\d\s.,:/+\-()%$€£]*\d[\d\s.,:/+\-()%$€£]*(?:e[+-]?\d+)?|(?:\d{1,4}[\s./-]*)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s./-]*(?:\d{1,4})?|true|false)\s*$/i

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
  const kept = LOOKS_LIKE_A_VALUE.test(text) && !guarded.startsWith("'") ? `'${guarded}` : guarded
  return `"${kept.replaceAll('"', '""')}"`
}

const lineOf = (cells: readonly string[]) => `${cells.join(',')}\r\n`

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
  const value = (row as Record<string, unknown>)[name] ?? ''
  const text = Array.isArray(value) ? value.join(' ') : String(value as string | number | boolean)
  return isNumber ? text : textCell(text)
}
