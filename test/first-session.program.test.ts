/**
 * The first sessions in the documentation work unchanged: README's commands give README's answers, and
 * examples/first-session.sh runs.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { credentialsFile } from '../src/program/demo/credentials.ts'
import {
  cloneDatabase,
  ENVIRONMENT,
  PROGRAM,
  spawnBursar,
  type BursarProcess,
  type TestDatabase,
} from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

let database: TestDatabase
let dataDir: string
let bursar: BursarProcess

beforeAll(async () => {
  database = await cloneDatabase(2)
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-first-session-'))
  bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: dataDir })
})
afterAll(async () => {
  await bursar.end('SIGTERM')
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Runs a script in bash and returns its output. `npx bursar` starts this program directly: npx itself costs a second. */
async function bash(script: string): Promise<string> {
  const npx = `npx() { shift; node ${PROGRAM} "$@"; }`
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${npx}\n${script}`], {
    cwd: ROOT,
    env: { ...ENVIRONMENT, BURSAR_DATA_DIR: dataDir, CREDENTIALS: credentialsFile(dataDir) },
  })
  return stdout
}

const ANY = [
  [/"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g, '"<id>"'],
  [/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"<time>"'],
] as const

/** Returns a sequence of JSON values, one a line, with one placeholder for all ids and times. */
const comparable = (text: string): unknown[] =>
  ANY.reduce((all, [pattern, name]) => all.replaceAll(pattern, name), text)
    .replaceAll(/\n(?=[ }])/g, '')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)

test("README's session gives README's answers", async () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, session] = /## A deposit and a withdrawal\n([^]*?)\n## /.exec(readme)!
  const blocks = [...session!.matchAll(/```(sh|json)\n([^]*?)```/g)].map(([, kind, text]) => ({
    kind,
    text: text!,
  }))
  expect(blocks.map(({ kind }) => kind)).toEqual(['sh', 'json', 'sh', 'json', 'sh'])
  for (const [index, { kind, text }] of blocks.entries()) {
    const shown = blocks[index + 1]
    if (kind !== 'sh' || shown === undefined) continue
    expect(comparable(await bash(text))).toEqual(comparable(shown.text))
  }
  await vi.waitUntil(async () => (await bash(blocks.at(-1)!.text)).includes('"crypto_tx_hash"'), {
    timeout: 30_000,
    interval: 500,
  })
  expect(await bash(blocks.at(-1)!.text)).toContain('"status":"COMPLETED"')
})

test('examples/first-session.sh works', async () => {
  const stdout = await bash('bash examples/first-session.sh')
  const answers = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { items?: { status?: string }[]; statements?: { status: string }[] })
  expect(answers).toHaveLength(7)
  expect(answers[4]!.items![0]).toMatchObject({ type: 'CRYPTO_WITHDRAWAL', status: 'COMPLETED' })
  expect(answers[5]!.items![0]).toMatchObject({ status: 'COMPLETED', source_amount: '100' })
  expect(answers[6]!.statements!.map(({ status }) => status)).toContain('STATEMENT_STATUS_PAID')
})
