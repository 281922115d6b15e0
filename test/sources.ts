import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** The folders with the source of the program: the core, the families of chains, and the process with the keys. */
export const SOURCE_FOLDERS = ['src', 'chains', 'signer'] as const

/** A source file of the program, without tests. */
export interface Source {
  /** Its path from the root. */
  file: string
  text: string
}

/** The source files of the program, without tests, in the order of their paths. */
export const sources: readonly Source[] = SOURCE_FOLDERS.filter((folder) =>
  // Without families of chains there is only src (core-alone.slow.test.ts).
  existsSync(join(ROOT, folder)),
).flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => join(folder, file))
    .sort()
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') })),
)

/** The folder of a file, at most two deep, as CONTRIBUTING calls rooms: `money/ledger`, `chains/evm`. */
export const roomOf = (file: string): string =>
  file
    .replace(/^src\//, '')
    .split('/')
    .slice(0, -1)
    .slice(0, 2)
    .join('/')
