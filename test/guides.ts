import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { credentialsFile } from '../src/program/demo/credentials.ts'
import { cloneDatabase, ENVIRONMENT, PROGRAM, spawnBursar } from './support.ts'

// Runs the code blocks of pages as a reader does.

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
export const readPage = (page: string) => readFileSync(join(ROOT, page), 'utf8')

/** Returns the code blocks of a page, or of its part under a heading, with their languages. */
export function blocksOf(page: string, under?: string): { language: string; code: string }[] {
  const text = readPage(page)
  const part = under === undefined ? text : text.split(`\n## ${under}`)[1]!.split('\n## ')[0]!
  return [...part.matchAll(/^```(\w*)\n([^]*?)^```/gm)].map(([, language, code]) => ({
    language: language!,
    code: code!,
  }))
}

/** Returns the blocks of one language. */
export const codeOf = (page: string, language: string, under?: string): string[] =>
  blocksOf(page, under).flatMap((block) => (block.language === language ? block.code : []))

const NEXT = '--- next ---'

/** Runs scripts in one bash, and returns the output of each. `npx bursar` is the built program: npx itself costs a second. */
export async function inBash(
  scripts: string[],
  { cwd, env }: { cwd: string; env: Record<string, string | undefined> },
): Promise<string[]> {
  const npx = `npx() { shift; node ${PROGRAM} "$@"; }`
  const script = [npx, ...scripts].join(`\necho '${NEXT}'\n`)
  const options = { cwd, env: { ...ENVIRONMENT, ...env } }
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], options).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`a command failed:\n${stdout}\n${stderr}`)
    },
  )
  return stdout.split(`${NEXT}\n`).slice(1)
}

/** A sandbox with its demo, and a folder of its own. */
export async function startSandbox() {
  const database = await cloneDatabase(2)
  const folder = await mkdtemp(join(tmpdir(), 'bursar-guides-'))
  const bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: folder })
  const credentials = credentialsFile(folder)
  const env = {
    BURSAR_DATA_DIR: folder,
    CREDENTIALS: credentials,
    DATABASE_URL: database.url,
    BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
    // A refusal that a guide shows is on standard error.
    BURSAR_LOG_LEVEL: 'silent',
  }
  return {
    ...{ database, folder, credentials },
    /** Runs scripts in the checkout, or in another folder. */
    run: (scripts: string[], cwd = ROOT) => inBash(scripts, { cwd, env }),
    async close() {
      await bursar.end('SIGTERM')
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
