/** The guide to webhooks works as written: its commands, and the receiver in examples. */
import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { credentialsFile } from '../src/demo/credentials.ts'
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
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-webhooks-'))
  bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: dataDir })
})
afterAll(async () => {
  await bursar.end('SIGTERM')
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

const environment = () => ({
  ...ENVIRONMENT,
  BURSAR_DATA_DIR: dataDir,
  CREDENTIALS: credentialsFile(dataDir),
})

/** Runs a script in bash and returns its output. `npx bursar` starts this program directly. */
async function bash(script: string): Promise<string> {
  const npx = `npx() { shift; node ${PROGRAM.join(' ')} "$@"; }`
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${npx}\n${script}`], {
    cwd: ROOT,
    env: environment(),
  })
  return stdout
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

test('the commands of the guide work, and its receiver gets what it says', { timeout: 120_000 }, async () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/webhooks.md'), 'utf8')
  const commands = [...guide.matchAll(/```sh\n([^]*?)```/g)].map(([, text]) => text!)
  expect(commands).toHaveLength(5)
  const [create, trigger, deliveries, recover, rotate] = commands as [string, string, string, string, string]
  const port = await freePort()
  // The demo's own withdrawal and orchestration end first.
  await vi.waitUntil(
    async () =>
      (await bash("npx bursar api GET '/v2/transfer/transfers?statuses=PENDING'")).includes('"items":[]'),
    { timeout: 30_000, interval: 500 },
  )

  const [makeSecret] = create.replaceAll('4000', String(port)).split('\nnode ')
  const secret = (await bash(`${makeSecret}\necho "$WEBHOOK_SECRET"`)).trim()
  expect(secret).toMatch(/^whsec_/)

  const receiver = spawn(process.execPath, ['examples/webhook-receiver.mjs'], {
    cwd: ROOT,
    env: { ...ENVIRONMENT, WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  createInterface(receiver.stdout).on('line', (line) => lines.push(line))
  try {
    await vi.waitUntil(() => lines.length > 0, { timeout: 10_000 })
    await bash(trigger)
    const shown = /```\n([^]*?)```/.exec(guide.slice(guide.indexOf('The receiver prints')))![1]!.trim()
    const types = shown.split('\n').map((line) => line.split(' ')[0])
    await vi.waitUntil(() => lines.length > types.length, { timeout: 20_000 })
    // The order of different records is not promised.
    expect(
      lines
        .slice(1)
        .map((line) => line.split(' ')[0])
        .sort(),
    ).toEqual([...types].sort())

    expect(await bash(deliveries)).toContain('DELIVERED')
    await bash(recover)
    const rotated = await bash(rotate)
    expect(rotated).toMatch(/whsec_/)
    // During the grace the receiver verifies with the old secret.
    await bash(trigger)
    await vi.waitUntil(() => lines.length > 2 * types.length, { timeout: 20_000 })
  } finally {
    receiver.kill('SIGTERM')
    await once(receiver, 'exit')
  }
})
