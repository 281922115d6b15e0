import { stripVTControlCharacters, styleText } from 'node:util'
import Table from 'cli-table3'
import { readable, readScreen, type Screen } from './output.ts'

/** Columns are two spaces apart. No borders, and no rules between rows: each would double the height of a table. */
const NO_BORDERS = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' },
}

/** `Screen` has decided about colours, so the check of the stream is off. */
const bold = (text: string): string => styleText('bold', text, { validateStream: false })

type Cell = string | number | boolean | null | undefined

/** A column of a list: a member of the rows, or a name with what it shows. `>` aligns it to the right. */
export type Column<Row, Context = undefined> =
  | (keyof Row & string)
  | `>${keyof Row & string}`
  | readonly [name: string, cell: (row: Row, context: Context) => Cell]

export const tableOf = <Row, Context>(
  rows: readonly Row[],
  columns: readonly Column<Row, Context>[],
  context: Context,
): string =>
  table(
    columns.map((column) => (typeof column === 'string' ? column : column[0])),
    rows.map((row) =>
      columns.map((column) =>
        typeof column === 'string'
          ? (row[column.replace(/^>/, '') as keyof Row] as Cell)
          : column[1](row, context),
      ),
    ),
  )

/**
 * A table for people. Columns whose name begins with `>` are aligned to the right. A table that is wider than the
 * terminal becomes one block of `name: value` lines for each row: wrapped columns cannot be read.
 */
export function table(
  columns: readonly string[],
  rows: readonly (readonly Cell[])[],
  { width, hasColour }: Screen = readScreen(),
): string {
  const names = columns.map((name) => name.replace(/^>/, ''))
  const cells = rows.map((row) =>
    row.map((cell) => (cell === undefined || cell === null ? '' : readable(String(cell)))),
  )
  const heading = (name: string) => (hasColour ? bold(name) : name)
  const made = new Table({
    head: names.map(heading),
    colAligns: columns.map((name) => (name.startsWith('>') ? 'right' : 'left')),
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    chars: NO_BORDERS,
  })
  made.push(...cells)
  const lines = made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
  const widest = Math.max(...lines.map((line) => stripVTControlCharacters(line).length))
  if (width === undefined || widest <= width || cells.length === 0) return lines.join('\n')

  const nameWidth = Math.max(...names.map((name) => name.length)) + 1
  const block = (row: string[]) =>
    row.flatMap((cell, i) => {
      const name = `${names[i]!}:`
      return cell === '' ? [] : [`${heading(name)}${' '.repeat(nameWidth - name.length)} ${cell}`]
    })
  return cells.map((row) => block(row).join('\n')).join('\n\n')
}
