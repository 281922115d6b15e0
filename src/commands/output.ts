import { styleText } from 'node:util'
import { SingleBar } from 'cli-progress'
import Table from 'cli-table3'

/** What the commands print: text and tables for people, JSON for programs. */

/** Text for people as it is, anything else as a line of JSON for programs. */
export function print(value: unknown): void {
  console.log(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Without lines and colours: what a pipe is given. */
const NO_LINES = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' },
}

/** A terminal gets lines; colours too, unless NO_COLOR says otherwise (no-color.org). */
export interface Screen {
  isTerminal: boolean
  hasColour: boolean
}

export const screen = (): Screen => ({
  isTerminal: process.stdout.isTTY,
  hasColour: process.stdout.isTTY && !process.env.NO_COLOR,
})

/** In a colour, whatever the libraries below think of this terminal: `Screen` has decided. */
const inStyle = (style: 'bold' | 'gray', text: string): string =>
  styleText(style, text, { validateStream: false })

/** A table for people. Columns whose name begins with `>` are aligned to the right. */
export function table(
  columns: readonly string[],
  rows: readonly (readonly (string | number | boolean | null | undefined)[])[],
  { isTerminal, hasColour }: Screen = screen(),
): string {
  const made = new Table({
    head: columns
      .map((name) => name.replace(/^>/, ''))
      .map((name) => (hasColour ? inStyle('bold', name) : name)),
    colAligns: columns.map((name) => (name.startsWith('>') ? 'right' : 'left')),
    style: { head: [], border: [], ...(!isTerminal && { 'padding-left': 0, 'padding-right': 0 }) },
    ...(!isTerminal && { chars: NO_LINES }),
  })
  made.push(
    ...rows.map((row) => row.map((cell) => (cell === undefined || cell === null ? '' : String(cell)))),
  )
  const text = made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
  return hasColour ? text.replace(/[\u2500-\u257f]+/g, (lines) => inStyle('gray', lines)) : text
}

export interface Progress {
  /** So much more is done. */
  step: (by?: number) => void
  stop: () => void
}

/** A bar on standard error while there is a terminal to see it, and nothing otherwise. */
export function progress(total: number, { quiet = false }: { quiet?: boolean | undefined } = {}): Progress {
  if (quiet || !process.stderr.isTTY) return { step: () => undefined, stop: () => undefined }
  const bar = new SingleBar({
    format: '{bar} {percentage} % | {eta_formatted} left',
    stream: process.stderr,
    clearOnComplete: true,
    stopOnComplete: false,
  })
  bar.start(total, 0)
  return { step: (by = 1) => bar.increment(by), stop: () => bar.stop() }
}
