/**
 * Pages work as written: README's session gives README's answers, and the commands of the guides to webhooks, testing
 * and four eyes run one after the other, with the programs in examples.
 */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CLUSTER } from './cluster.ts'
import { freePort } from './free-port.ts'
import { blocksOf, codeOf, inBash, readPage, ROOT, startSandbox } from './guides.ts'
import { installClient } from './packed.ts'
import { cloneDatabase, ENVIRONMENT, PROGRAM, type TestDatabase } from './support.ts'
import { ownFolder } from './at-end.ts'

const sandbox = await startSandbox()
/** Another team's folder, with the client from its tarball. */
const project = await ownFolder()
await installClient(project)
afterAll(() => sandbox.close())

const output = async (script: string) => (await sandbox.run([script]))[0]!

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

describe('the first session', () => {
  test("README's session gives README's answers", async () => {
    const blocks = blocksOf('README.md', 'A deposit and a withdrawal')
    expect(blocks.map(({ language }) => language)).toEqual(['sh', 'json', 'sh', 'json', 'sh'])
    for (const [index, { language, code }] of blocks.entries()) {
      const shown = blocks[index + 1]
      if (language !== 'sh' || shown === undefined) continue
      expect(comparable(await output(code))).toEqual(comparable(shown.code))
    }
    const last = blocks.at(-1)!.code
    await vi.waitUntil(async () => (await output(last)).includes('"crypto_tx_hash"'), {
      timeout: 30_000,
      interval: 500,
    })
    expect(await output(last)).toContain('"status":"COMPLETED"')
  })

  test('examples/first-session.sh works', async () => {
    const answers = (await output('bash examples/first-session.sh'))
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { items?: object[]; statements?: { status: string }[] })
    expect(answers).toHaveLength(7)
    expect(answers[4]!.items![0]).toMatchObject({ type: 'CRYPTO_WITHDRAWAL', status: 'COMPLETED' })
    expect(answers[5]!.items![0]).toMatchObject({ status: 'COMPLETED', source_amount: '100' })
    expect(answers[6]!.statements!.map(({ status }) => status)).toContain('STATEMENT_STATUS_PAID')
  })
})

describe('the guide to webhooks', () => {
  const PAGE = 'docs/guides/webhooks.md'
  const commands = codeOf(PAGE, 'sh')
  const [create, trigger, deliveries, recover, rotate] = commands as [string, string, string, string, string]
  const shown = /```\n([^]*?)```/.exec(readPage(PAGE).split('The receiver prints')[1]!)![1]!.trim()
  const typesOf = (lines: string[]) => lines.map((line) => line.split(' ')[0]).sort()
  /** The types of what a trigger makes. The order of different records is not promised. */
  const TYPES = typesOf(shown.split('\n'))

  /** Creates the guide's webhook under this name, and starts a receiver of the guide in a project of its own. */
  async function startReceiver(name: string, program: string, file: string) {
    const port = await freePort()
    const [make] = create.replace('guide', name).replaceAll('4000', String(port)).split('\nnode ')
    const secret = (await output(`${make}\necho "$WEBHOOK_SECRET"`)).trim()
    expect(secret).toMatch(/^whsec_/)
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
      ...{ lines, port },
      hasAll: (times: number) =>
        vi.waitUntil(() => lines.length >= times * TYPES.length, { timeout: 20_000 }),
      async end() {
        receiver.kill('SIGTERM')
        await once(receiver, 'exit')
      },
    }
  }

  beforeAll(async () => {
    // The withdrawals and orchestrations of the demo and of the first session end first.
    const pending = "npx bursar api GET '/v2/transfer/transfers?statuses=PENDING'"
    await vi.waitUntil(async () => (await output(pending)).includes('"items":[]'), {
      timeout: 30_000,
      interval: 500,
    })
  })

  test('its commands work, and its receiver gets what it says', async () => {
    expect(commands).toHaveLength(5)
    expect(create.trim().split('\n')[1]).toBe('node examples/webhook-receiver.mjs')
    const receiver = await startReceiver('guide', 'node', 'webhook-receiver.mjs')
    try {
      await output(trigger)
      await receiver.hasAll(1)
      expect(typesOf(receiver.lines)).toEqual(TYPES)
      expect(await output(deliveries)).toContain('DELIVERED')
      await output(recover)
      expect(await output(rotate)).toMatch(/whsec_/)
      // During the grace the receiver verifies with the old secret.
      await output(trigger)
      await receiver.hasAll(2)
    } finally {
      await receiver.end()
    }
  })

  const PYTHON = spawnSync('python3', ['--version']).status === 0
  test.each([
    ['node', 'webhook-receiver.mjs'],
    ...(PYTHON ? [['python3', 'webhook-receiver.py'] as const] : []),
  ] as const)('%s %s takes what is signed, and nothing else', async (program, file) => {
    expect(readPage(PAGE)).toContain(`${program} examples/${file}`)
    const receiver = await startReceiver(program, program, file)
    try {
      await output(trigger)
      await receiver.hasAll(1)
      expect(typesOf(receiver.lines)).toEqual(TYPES)
      const seconds = String(Math.floor(Date.now() / 1000))
      const forged = { 'webhook-id': 'a', 'webhook-timestamp': seconds, 'webhook-signature': 'v1,x v1,é' }
      for (const headers of [{}, forged, { ...forged, 'webhook-timestamp': '²' }]) {
        const body = '{"id":"a","type":"a"}'
        const answer = await fetch(`http://127.0.0.1:${receiver.port}`, { method: 'POST', headers, body })
        expect(answer.status).toBe(400)
      }
      expect(receiver.lines).toHaveLength(TYPES.length)
    } finally {
      await receiver.end()
    }
  })
})

test('the commands of the guide to four eyes work, one after the other', async () => {
  const commands = codeOf('docs/guides/governance.md', 'sh').map((code) =>
    code.replaceAll('.bursar/sandbox-credentials.json', sandbox.credentials),
  )
  expect(commands).toHaveLength(7)
  const read = commands[4]!
  // The worker pays in its own time.
  commands[4] = `for i in $(seq 60); do ${read.trim()} | grep -q '"COMPLETED"' && break; sleep 0.5; done\n${read}`
  const expected = [
    /Ada +APPROVER +ACTIVE[^]*Bob +APPROVER +ACTIVE/,
    /"version": ?1\b/,
    /PENDING_CUSTOMER_APPROVAL/,
    /is APPROVED, 2 of 2/,
    /"status": ?"COMPLETED"/,
    /refused, as it should be[^]*"version": ?2\b/,
    /policy\.set/,
  ].map((pattern) => expect.stringMatching(pattern) as string)
  expect(await sandbox.run(commands, sandbox.folder)).toEqual(expected)
  // Private keys are not written into the checkout, where the commands run.
  const files = readdirSync(sandbox.folder, { recursive: true })
  expect(files.filter((name) => name.includes('.key'))).toEqual([])
  await vi.waitFor(async () => {
    const { rows } = await sandbox.database.db.query<{ rules: number }>(
      `select jsonb_array_length(document -> 'rules') as rules from policies order by version desc limit 1`,
    )
    expect(rows).toEqual([{ rules: 0 }])
  })
})

describe('the guide to testing: its commands start a sandbox, and the suites in examples pass against it', () => {
  let database: TestDatabase
  let env: Record<string, string | undefined>
  let pid: string

  beforeAll(async () => {
    database = await cloneDatabase(2)
    const [commands] = codeOf('docs/guides/testing.md', 'sh')
    const script = commands!.replace('PORT=18400', `PORT=${await freePort()}`)
    // The shell ends and leaves the sandbox running, as a step of a workflow does: `$!` is the program itself.
    const npx = `npx() { shift; exec node ${PROGRAM} "$@"; }`
    const [stdout] = await inBash([`${npx}\n${script}\necho; echo "$CREDENTIALS $!"`], {
      cwd: project,
      env: {
        DATABASE_URL: database.url,
        BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
        TMPDIR: project,
      },
    })
    const [file, id] = stdout!.trim().split('\n').at(-1)!.split(' ')
    pid = id!
    env = { ...ENVIRONMENT, CREDENTIALS: file!, HOME: project }
  })
  afterAll(async () => {
    process.kill(Number(pid), 'SIGTERM')
    while (spawnSync('kill', ['-0', pid]).status === 0) await pause(50)
    await database.drop()
  })

  const run = async (program: string, args: string[], more: Record<string, string> = {}) => {
    const options = { cwd: project, env: { ...env, ...more } }
    const { stdout } = await promisify(execFile)(program, args, options).catch(
      (error: Error & { stdout: string; stderr: string }) => {
        throw new Error(`${error.message}\n${error.stdout}\n${error.stderr}`, { cause: error })
      },
    )
    return stdout
  }
  const suite = (file: string) => copyFile(join(ROOT, 'examples/testing', file), join(project, file))

  test('node:test', async () => {
    await suite('payouts.test.mjs')
    // The last test moves the clock of the sandbox. The clock of a distributed database is not moved.
    const isDistributed = CLUSTER.length > 0
    const names = isDistributed ? ['--test-name-pattern=^a payout'] : []
    expect(await run('node', ['--test', ...names, 'payouts.test.mjs'])).toMatch(
      isDistributed ? /pass 4/ : /pass 5/,
    )
  })

  test.skipIf(spawnSync('python3', ['-m', 'pytest', '--version']).status !== 0)('pytest', async () => {
    await suite('test_payouts.py')
    const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_payouts.py']
    expect(await run('python3', args)).toMatch(/4 passed/)
  })

  // The first run compiles Go's own packages.
  const GO = spawnSync('go', ['version']).status === 0
  test.skipIf(!GO)('go test', { timeout: 300_000 }, async () => {
    await suite('payouts_test.go')
    await writeFile(join(project, 'go.mod'), 'module payouts\n\ngo 1.21\n')
    const stdout = await run('go', ['test', '-v', './...'], {
      ...{ GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', GOPATH: join(project, 'go') },
      GOCACHE: execFileSync('go', ['env', 'GOCACHE'], { encoding: 'utf8' }).trim(),
    })
    expect(stdout).toMatch(/--- PASS: TestPayouts/)
  })
})
