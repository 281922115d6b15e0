import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The kinds of test files, by what they need; `npx vitest run --project unit` runs one kind.
 * unit: nothing but Node. database: a PostgreSQL. program: also the built program. chains: also nodes of real chains.
 */
export const PROJECTS = ['unit', 'database', 'program', 'chains'] as const
export type ProjectName = (typeof PROJECTS)[number]

/** A file with this mark takes long: `npm run test:all` runs it, `npm test` does not. */
const SLOW = /^\/\/ @slow\b/m

/** Each kind, with the names by which its files or their imported test modules are recognised. The first match wins. */
const NEEDS: [ProjectName, RegExp][] = [
  ['chains', /@foundry-rs\/anvil|litecoind|bitcoind|\banvil\b/],
  ['program', /\bPROGRAM\b|\b(?:spawn|exec)Bursar\b|\.\/dist\/|'npm'/],
  ['database', /\bcloneDatabase\b|\b(?:start|shared)TestService\b|\bEmbeddedPostgres\b/],
]

/** Imports of modules that only tests use: an import of the program does not show the needs of a test. */
const IMPORT =
  /from '(\.[^']*\/(?:support|anvil|bitcoin-node|real-networks|killed-worker|browser|installed-postgres)\.ts)'/g

/** Returns the kind of a test file. */
export function projectOf(file: string): ProjectName {
  const text = readFileSync(file, 'utf8')
  // test/support.ts serves all kinds: the names that a file imports from it show the file's needs.
  const imported = [...text.matchAll(IMPORT)]
    .map(([, path]) => join(dirname(file), path!))
    .filter((path) => !path.endsWith('/support.ts'))
    .map(projectOf)
  const needed = NEEDS.find(([, pattern]) => pattern.test(text))?.[0] ?? 'unit'
  const own = needed !== 'chains' && SLOW.test(text) ? 'program' : needed
  return [own, ...imported].reduce((most, kind) =>
    PROJECTS.indexOf(kind) > PROJECTS.indexOf(most) ? kind : most,
  )
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Returns all test files, as absolute paths. */
export const testFiles = (): string[] =>
  ['src', 'client', 'test'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
      .map((name) => join(ROOT, folder, name)),
  )
