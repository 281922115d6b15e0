/** The guide to four eyes works as written, from a fresh sandbox to the check of the audit log. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
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
const SEPARATOR = '--- next ---'

let database: TestDatabase
let dataDir: string
let bursar: BursarProcess

beforeAll(async () => {
  database = await cloneDatabase(2)
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-governance-'))
  bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: dataDir })
})
afterAll(async () => {
  await bursar.end('SIGTERM')
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Runs the scripts in one bash, in an empty folder. `npx bursar` starts this program directly. Returns the output of each. */
async function bash(scripts: string[]): Promise<string[]> {
  const npx = `npx() { shift; node ${PROGRAM} "$@"; }`
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euc', [npx, ...scripts].join(`\necho '${SEPARATOR}'\n`)],
    {
      cwd: dataDir,
      env: {
        ...ENVIRONMENT,
        BURSAR_DATA_DIR: dataDir,
        DATABASE_URL: database.url,
        BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
        // The refusal of the guide is on standard error.
        BURSAR_LOG_LEVEL: 'silent',
      },
    },
  ).catch(({ stdout, stderr }: { stdout: string; stderr: string }) => {
    throw new Error(`a command of the guide failed:\n${stdout}\n${stderr}`)
  })
  return stdout.split(`${SEPARATOR}\n`).slice(1)
}

test('the commands of the guide work, one after the other', async () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/governance.md'), 'utf8')
  const commands = [...guide.matchAll(/```sh\n([^]*?)```/g)].map(([, text]) =>
    text!.replaceAll('.bursar/sandbox-credentials.json', credentialsFile(dataDir)),
  )
  expect(commands).toHaveLength(7)
  const read = commands[4]!
  // The worker pays in its own time.
  commands[4] = `for i in $(seq 60); do ${read.trim()} | grep -q '"COMPLETED"' && break; sleep 0.5; done\n${read}`
  const [people, policy, payment, approving, paid, loosened, audit] = (await bash(commands)) as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  expect(people).toMatch(/Ada +APPROVER +ACTIVE[^]*Bob +APPROVER +ACTIVE/)
  expect(policy).toMatch(/"version": ?1\b/)
  expect(payment).toContain('PENDING_CUSTOMER_APPROVAL')
  expect(approving).toMatch(/is APPROVED, 2 of 2/)
  expect(paid).toMatch(/"status": ?"COMPLETED"/)
  expect(loosened).toContain('refused, as it should be')
  expect(loosened).toMatch(/"version": ?2\b/)
  expect(audit).toContain('policy.set')
  // Private keys are not written into the checkout, where the commands run.
  expect(readdirSync(dataDir, { recursive: true }).filter((name) => name.includes('.key'))).toEqual([])
  await vi.waitFor(async () => {
    const { rows } = await database.db.query<{ rules: number }>(
      `select jsonb_array_length(document -> 'rules') as rules from policies order by version desc limit 1`,
    )
    expect(rows).toEqual([{ rules: 0 }])
  })
})
