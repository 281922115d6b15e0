/** The guide to webhooks works as written: its commands, and the receiver in examples. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { credentialsFile } from '../src/program/demo/credentials.ts'
import { installClient } from './packed.ts'
import { freePort } from './free-port.ts'
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
/** Another team's folder, with the client from its tarball. */
let project: string
let bursar: BursarProcess

beforeAll(async () => {
  database = await cloneDatabase(2)
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-webhooks-'))
  project = await mkdtemp(join(tmpdir(), 'bursar-receiver-'))
  await installClient(project)
  bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: dataDir })
})
afterAll(async () => {
  await bursar.end('SIGTERM')
  await database.drop()
  for (const folder of [dataDir, project]) await rm(folder, { recursive: true, force: true })
})

const environment = () => ({
  ...ENVIRONMENT,
  BURSAR_DATA_DIR: dataDir,
  CREDENTIALS: credentialsFile(dataDir),
})

/** Runs a script in bash and returns its output. `npx bursar` starts this program directly. */
async function bash(script: string): Promise<string> {
  const npx = `npx() { shift; node ${PROGRAM} "$@"; }`
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${npx}\n${script}`], {
    cwd: ROOT,
    env: environment(),
  })
  return stdout
}

/** A receiver of the guide in a project of its own, as another team has it. */
async function startReceiver(program: string, file: string, port: number, secret: string) {
  await copyFile(join(ROOT, 'examples', file), join(project, file))
  const receiver = spawn(program, [file], {
    cwd: project,
    env: { ...ENVIRONMENT, WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  createInterface(receiver.stdout).on('line', (line) => lines.push(line))
  await vi.waitUntil(() => lines.length > 0, { timeout: 60_000 })
  expect(lines.shift()).toBe(`listening on http://127.0.0.1:${port}`)
  return {
    lines,
    async end() {
      receiver.kill('SIGTERM')
      await once(receiver, 'exit')
    },
  }
}

const guide = readFileSync(join(ROOT, 'docs/guides/webhooks.md'), 'utf8')
const commands = [...guide.matchAll(/```sh\n([^]*?)```/g)].map(([, text]) => text!)
const [create, trigger, deliveries, recover, rotate] = commands as [string, string, string, string, string]
const shown = /```\n([^]*?)```/.exec(guide.slice(guide.indexOf('The receiver prints')))![1]!.trim()
const typesOf = (lines: string[]) => lines.map((line) => line.split(' ')[0]).sort()
/** The types of what a trigger makes. The order of different records is not promised. */
const TYPES = typesOf(shown.split('\n'))

/** Creates the guide's webhook under this name, and returns its secret. */
async function newSecret(name: string, port: number): Promise<string> {
  const [make] = create.replace('guide', name).replaceAll('4000', String(port)).split('\nnode ')
  const secret = (await bash(`${make}\necho "$WEBHOOK_SECRET"`)).trim()
  expect(secret).toMatch(/^whsec_/)
  return secret
}

beforeAll(async () => {
  // The demo's own withdrawal and orchestration end first.
  await vi.waitUntil(
    async () =>
      (await bash("npx bursar api GET '/v2/transfer/transfers?statuses=PENDING'")).includes('"items":[]'),
    { timeout: 30_000, interval: 500 },
  )
})

test('the commands of the guide work, and its receiver gets what it says', async () => {
  expect(commands).toHaveLength(5)
  const port = await freePort()
  const [, start] = create.trim().split('\n')
  expect(start).toBe('node examples/webhook-receiver.mjs')
  const receiver = await startReceiver('node', 'webhook-receiver.mjs', port, await newSecret('guide', port))
  try {
    await bash(trigger)
    await vi.waitUntil(() => receiver.lines.length >= TYPES.length, { timeout: 20_000 })
    expect(typesOf(receiver.lines)).toEqual(TYPES)

    expect(await bash(deliveries)).toContain('DELIVERED')
    await bash(recover)
    const rotated = await bash(rotate)
    expect(rotated).toMatch(/whsec_/)
    // During the grace the receiver verifies with the old secret.
    await bash(trigger)
    await vi.waitUntil(() => receiver.lines.length >= 2 * TYPES.length, { timeout: 20_000 })
  } finally {
    await receiver.end()
  }
})

const PYTHON = spawnSync('python3', ['--version']).status === 0
const RECEIVERS = [
  ['node', 'webhook-receiver.mjs'],
  ['python3', 'webhook-receiver.py'],
] as const

describe.each(RECEIVERS)('%s %s', (program, file) => {
  test.skipIf(program === 'python3' && !PYTHON)(
    `takes what is signed, and nothing else, for which ${program} is needed`,
    async () => {
      expect(guide).toContain(`${program} examples/${file}`)
      const port = await freePort()
      const receiver = await startReceiver(program, file, port, await newSecret(program, port))
      try {
        await bash(trigger)
        await vi.waitUntil(() => receiver.lines.length >= TYPES.length, { timeout: 20_000 })
        expect(typesOf(receiver.lines)).toEqual(TYPES)
        const seconds = String(Math.floor(Date.now() / 1000))
        const send = (headers: Record<string, string>) =>
          fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers, body: '{"id":"a","type":"a"}' })
        const forged = { 'webhook-id': 'a', 'webhook-timestamp': seconds, 'webhook-signature': 'v1,x v1,é' }
        for (const headers of [{}, forged, { ...forged, 'webhook-timestamp': '²' }])
          expect((await send(headers as Record<string, string>)).status).toBe(400)
        expect(receiver.lines).toHaveLength(TYPES.length)
      } finally {
        await receiver.end()
      }
    },
  )
})
