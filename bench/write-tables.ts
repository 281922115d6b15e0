import { cpus } from 'node:os'

/** The parts of the benchmark: `--only` names them, and docs/performance.md has a table for each. */
export const PARTS = ['writes', 'customers', 'mixed', 'growth', 'idle', 'peers'] as const
export type Part = (typeof PARTS)[number]

/** Rows of one table. The columns are the members of the first row; a member that is an object becomes its values. */
export type TableRow = Record<string, unknown>

/** Formats the line below a table, which describes the run. `repeated` says how long the run was. */
export const runOf = (at: string, repeated: string): string =>
  `Measured ${at.slice(0, 10)} with Node ${process.version} on ${cpus().length} cores, ${repeated}.`

/**
 * Replaces the tables of the page, between `<!-- bench:<part> -->` and `<!-- end -->`, each with the line of `runOf` below
 * it. Text and tables of parts that were not measured stay. Throws when the page has no place for a table.
 */
export function withTables(
  page: string,
  tables: Partial<Record<Part, TableRow[]>>,
  run: (part: Part) => string,
): string {
  let text = page
  for (const part of PARTS) {
    const rows = tables[part]
    if (rows === undefined) continue
    const place = new RegExp(`(<!-- bench:${part} -->\\n)[^]*?(<!-- end -->)`)
    if (!place.test(text)) throw new Error(`the page has no place for the table of ${part}`)
    text = text.replace(
      place,
      (_, begin: string, end: string) => `${begin}\n${markdown(rows)}\n\n${run(part)}\n\n${end}`,
    )
  }
  return text
}

function markdown(rows: TableRow[]): string {
  const columns = Object.keys(rows[0] ?? {})
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => cell(row[column])))),
  ].join('\n')
}

function cell(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en-US', { maximumFractionDigits: 2 })
  if (typeof value === 'object' && value !== null) return Object.values(value).map(cell).join(' / ')
  return typeof value === 'string' ? value : JSON.stringify(value ?? '')
}
