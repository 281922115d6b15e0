/*
 * The core stands without families of chains: without the folders chains and signer (which signs for EVM), src type-checks and its
 * unit tests pass. Its tests on a database always run so (`coreAlone` in projects.ts). Its networks are the simulated ones then.
 */
import { execFile } from 'node:child_process'
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ownFolder } from './at-end.ts'
import { EVERY_STEP } from './every-step.ts'
import { SEED } from './seed.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** What src and its tests read. */
const COPIED = ['src', 'test', 'migrations', 'package.json', 'vitest.config.ts', 'openapi.json']
const LINKED = ['node_modules', 'client', 'console', 'docs', 'docs-page', 'dist']
/** The two tables that name what is taken away, and the line's beginning up to the import. */
const TABLES = [
  ['src/networks/families.ts', /^ {2}\w+: \(\) => import\('.*\/chains\/.*\n/gm],
  ['src/cli/program.ts', /^ {2}\[\['signer'\].*\n/gm],
] as const
const SIGNER_COMMANDS = 'src/cli/signer.ts'

const core = await ownFolder()
for (const path of COPIED) await cp(join(ROOT, path), join(core, path), { recursive: true })
for (const path of LINKED) await symlink(join(ROOT, path), join(core, path))
for (const [path, lines] of TABLES) {
  const text = await readFile(join(core, path), 'utf8')
  expect(text).toMatch(lines)
  await writeFile(join(core, path), text.replaceAll(lines, ''))
}
await rm(join(core, SIGNER_COMMANDS))
const { compilerOptions } = JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8')) as {
  compilerOptions: object
}
const include = ['src', 'test/global-setup.ts']
await writeFile(join(core, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
// The linter checks types in half the time of the compiler.
const typesOnly = { options: { typeAware: true, typeCheck: true }, categories: { correctness: 'off' } }
await writeFile(join(core, '.oxlintrc.json'), JSON.stringify(typesOnly))

/** Runs a program of a package there. Its output is the message of the error where it fails. */
async function run(program: string, ...args: string[]): Promise<string> {
  const running = promisify(execFile)(join(core, 'node_modules/.bin', program), args, {
    cwd: core,
    maxBuffer: 64 * 1024 * 1024,
  })
  const { stdout } = await running.catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${error.stdout}\n${error.stderr}`)
  })
  return stdout
}

// No import leads from src or its tests to a family, not even for a type: the module would be missed.
test('src type-checks', () => run('oxlint', 'src'))

/** By day a quarter of them, drawn by the seed. */
const SHARD = EVERY_STEP ? [] : [`--shard=${1 + (Math.abs(SEED) % 4)}/4`]
test('its unit tests pass', () => run('vitest', 'run', '--project', 'unit', 'src', ...SHARD))
