/** The guide to testing works as written: its commands start a sandbox, and the suites in examples pass against it. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLUSTER } from './cluster.ts'
import { freePort } from './free-port.ts'
import { installClient } from './packed.ts'
import { cloneDatabase, ENVIRONMENT, PROGRAM, type TestDatabase } from './support.ts'

let database: TestDatabase
let project: string
let environment: Record<string, string>
let stop: () => Promise<void>

const run = (file: string, args: string[], env = environment) =>
  promisify(execFile)(file, args, { cwd: project, env: { ...env, PATH: process.env.PATH! } }).catch(
    (error: Error & { stdout: string; stderr: string }) => {
      throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`, { cause: error })
    },
  )

beforeAll(async () => {
  database = await cloneDatabase(2)
  project = await mkdtemp(join(tmpdir(), 'bursar-suites-'))
  await installClient(project)
  const guide = readFileSync('docs/guides/testing.md', 'utf8')
  const [, commands] = /```sh\n([^]*?)```/.exec(guide)!
  const script = commands!.replace('PORT=18400', `PORT=${await freePort()}`)
  const npx = `npx() { shift; exec node ${PROGRAM} "$@"; }`
  // The shell ends and leaves the sandbox running, as a step of a workflow does.
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euc', `${npx}\n${script}\necho; echo "$CREDENTIALS $!"`],
    {
      env: {
        ...ENVIRONMENT,
        PATH: process.env.PATH!,
        DATABASE_URL: database.url,
        BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
        TMPDIR: project,
      },
    },
  )
  const [file, pid] = stdout.trim().split('\n').at(-1)!.split(' ')
  stop = async () => {
    process.kill(Number(pid), 'SIGTERM')
    while (spawnSync('kill', ['-0', pid!]).status === 0) await pause(50)
  }
  environment = { ...(ENVIRONMENT as Record<string, string>), CREDENTIALS: file!, HOME: project }
})
afterAll(async () => {
  await stop()
  await database.drop()
  await rm(project, { recursive: true, force: true })
})

test('the suite of node:test passes', async () => {
  await copyFile('examples/testing/payouts.test.mjs', join(project, 'payouts.test.mjs'))
  // The last test moves the clock of the sandbox. The clock of a distributed database is not moved.
  const isDistributed = CLUSTER.length > 0
  const names = isDistributed ? ['--test-name-pattern=^a payout'] : []
  const { stdout } = await run('node', ['--test', ...names, 'payouts.test.mjs'])
  expect(stdout).toMatch(isDistributed ? /pass 4/ : /pass 5/)
})

const PYTEST = spawnSync('python3', ['-m', 'pytest', '--version']).status === 0
test.skipIf(!PYTEST)('the suite of pytest passes', async () => {
  await copyFile('examples/testing/test_payouts.py', join(project, 'test_payouts.py'))
  const { stdout } = await run('python3', ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_payouts.py'])
  expect(stdout).toMatch(/4 passed/)
})

const GO = spawnSync('go', ['version']).status === 0
// The first run compiles Go's own packages.
test.skipIf(!GO)('the suite of go test passes', { timeout: 300_000 }, async () => {
  await copyFile('examples/testing/payouts_test.go', join(project, 'payouts_test.go'))
  await writeFile(join(project, 'go.mod'), 'module payouts\n\ngo 1.21\n')
  const { stdout } = await run('go', ['test', '-v', './...'], {
    ...environment,
    GOFLAGS: '-mod=mod',
    GOTOOLCHAIN: 'local',
    GOCACHE: execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim(),
    GOPATH: join(project, 'go'),
  })
  expect(stdout).toMatch(/--- PASS: TestPayouts/)
})
