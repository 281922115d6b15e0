import { once } from 'node:events'
import { consoleOf, ownProcess } from './own-process.ts'

/** The output of the commands: text for people, JSON for programs. */

/** Prints a string as text for people, and any other value as one line of JSON for programs. */
export function print(value: unknown): void {
  consoleOf().log(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Prints a part of a file as it is, and waits for a slow reader. */
export async function printPart(text: string): Promise<void> {
  const { stdout } = ownProcess()
  if (!stdout.write(text)) await once(stdout, 'drain')
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

/** Characters that would make lines of their own, or give the terminal orders: names come from clients and providers. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu
export const readable = (text: string): string =>
  text.replaceAll(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Each member as a line of its own. Of entries, several may have one name. */
export function linesOf(members: object | [name: string, value: string][]): string {
  const entries = (Array.isArray(members) ? members : Object.entries(members)) as [string, unknown][]
  const width = Math.max(...entries.map(([name]) => name.length)) + 1
  return entries
    .map(([name, value]) => `${`${readable(name)}:`.padEnd(width)} ${readable(String(value))}`)
    .join('\n')
}
