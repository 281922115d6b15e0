import { consoleOf, ownProcess } from './own-process.ts'

/** The output of the commands: text for people, JSON for programs. */

/** Prints a string as text for people, and any other value as one line of JSON for programs. */
export function print(value: unknown): void {
  consoleOf().log(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Width of a terminal that does not report its own. */
const WIDTH = 80

/** The destination of standard output. NO_COLOR turns colours off (no-color.org). */
export interface Screen {
  /** Columns of the terminal; undefined for a pipe, which has no limit. */
  width: number | undefined
  hasColour: boolean
}

export function readScreen(): Screen {
  const { stdout, env } = ownProcess()
  return {
    width: stdout.isTTY ? stdout.columns || WIDTH : undefined,
    hasColour: stdout.isTTY && !env.NO_COLOR,
  }
}

export function linesOf(members: object): string {
  const width = Math.max(...Object.keys(members).map((name) => name.length)) + 1
  return Object.entries(members)
    .map(([name, value]) => `${`${name}:`.padEnd(width)} ${value}`)
    .join('\n')
}
