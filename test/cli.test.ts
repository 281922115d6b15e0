import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { curlSession, makeDemo } from '../src/demo.ts'
import { SCOPES } from '../src/http/scopes.ts'
import { readSettings, SETTINGS, SettingsError } from '../src/settings.ts'
import { asAdmin, atEnd, cloneDatabase, everyTable, withdrawalOf, type TestDatabase } from './support.ts'

// The program as it is started from a shell: its arguments, settings, output, exit codes and signals.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

let database: TestDatabase
let dataDir: string

beforeAll(async () => {
  database = await cloneDatabase()
  dataDir = await temporaryFolder()
})
afterAll(async () => {
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

const temporaryFolder = () => mkdtemp(join(tmpdir(), 'bursar-cli-'))

type Environment = Record<string, string | undefined>

function start(args: string[], environment: Environment = {}): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', 'src/main.ts', ...args], {
    cwd: ROOT,
    // Nothing of this process's settings but what the test sets.
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATABASE_URL: database.url,
      BURSAR_DATA_DIR: dataDir,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 55_000,
  })
}

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a command to its end. */
async function bursar(args: string[], environment: Environment = {}): Promise<Ended> {
  const child = start(args, environment)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

/** Runs a command that must succeed and say nothing but one line of JSON. */
async function json<T = Record<string, unknown>>(args: string[], environment: Environment = {}): Promise<T> {
  const { code, stdout, stderr } = await bursar([...args, '--json'], environment)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^[^\n]+\n$/)
  return JSON.parse(stdout) as T
}

/** What is said to people: standard error without the log, which is JSON lines. */
const told = ({ stderr }: Ended) =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{"level"'))

function expectRefused(ended: Ended, lines: RegExp[]): void {
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(told(ended)).toEqual(lines.map((line) => expect.stringMatching(line) as string))
}

interface Ready {
  ready: boolean
  address: string
  mode: string
  credentials_file?: string
}

/** Starts `serve --json` and waits until it is ready. `stop` sends SIGTERM and gives the exit code. */
async function serve(environment: Environment = {}) {
  const child = start(['serve', '--json'], {
    PORT: '0',
    BURSAR_SIMULATED_CONFIRMATION_MS: '0',
    BURSAR_WORKER_INTERVAL_MS: '20',
    BURSAR_LOG_LEVEL: 'warn',
    ...environment,
  })
  let stdout = ''
  const stderr = text(child.stderr!)
  const closed = once(child, 'close') as Promise<[number | null]>
  const stop = async () => {
    child.kill('SIGTERM')
    const [code] = await closed
    return code
  }
  atEnd(async () => void (await stop()))
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
  while (!stdout.includes('\n')) {
    const ended = await Promise.race([once(child.stdout!, 'data').then(() => false), closed.then(() => true)])
    if (ended && !stdout.includes('\n')) throw new Error(`serve ended: ${await stderr}`)
  }
  return { ready: JSON.parse(stdout) as Ready, stop, stdout: () => stdout, stderr }
}

async function tokenOf(address: string, client: { client_id: string; client_secret: string }) {
  const reply = await fetch(`${address}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${client.client_id}:${client.client_secret}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const body = (await reply.json()) as { access_token: string; scope: string }
  return { status: reply.status, ...body }
}

async function call(url: string, token: string, body?: unknown) {
  const reply = await fetch(url, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
  })
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> }
}

describe('help', () => {
  test.each<[string, string[], string[]]>([
    ['bursar', [], ['serve', 'migrate', 'customer', 'client', 'verify', '--version']],
    ['bursar serve', ['serve'], ['--json', ...Object.keys(SETTINGS)]],
    ['bursar migrate', ['migrate'], ['--json']],
    ['bursar customer', ['customer'], ['create']],
    ['bursar customer create', ['customer', 'create'], ['--name <name>', '--json']],
    ['bursar client', ['client'], ['create', 'disable']],
    [
      'bursar client create',
      ['client', 'create'],
      ['--customer <id>', '--scopes <scopes>', '--json', ...SCOPES],
    ],
    ['bursar client disable', ['client', 'disable'], ['<client_id>', '--json']],
    ['bursar verify', ['verify'], ['--json', 'exit code 1']],
  ])('of %s', async (name, command, expected) => {
    const { code, stdout, stderr } = await bursar([...command, '--help'], { DATABASE_URL: undefined })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^Usage: ${name} `))
    for (const word of expected) expect(stdout).toContain(word)
  })

  test('the version is that of the package', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect((await bursar(['--version'])).stdout).toBe(`${version}\n`)
  })
})

test.each<[string, string[], RegExp]>([
  ['command', ['frobnicate'], /^error: unknown command 'frobnicate'/],
  ['subcommand', ['client', 'frobnicate'], /^error: unknown command 'frobnicate'/],
  ['option', ['serve', '--frobnicate'], /^error: unknown option '--frobnicate'/],
  ['argument', ['verify', 'frobnicate'], /^error: too many arguments for 'verify'/],
])('an unknown %s is refused', async (_kind, args, line) => {
  expectRefused(await bursar(args), [line])
})

describe('settings', () => {
  const BAD: Record<keyof typeof SETTINGS, string[]> = {
    DATABASE_URL: ['secret-word', 'http://secret-word@host/db', 'postgres://'],
    HOST: ['not a host', 'http://127.0.0.1'],
    PORT: ['http', '-1', '65536', '80.5', '1e3', '0x50'],
    BURSAR_DATA_DIR: [], // Any text names a folder; one that cannot be made is told when it is needed, see below.
    BURSAR_MODE: ['production', 'LIVE'],
    BURSAR_BASE_URL: ['bursar.example', 'ftp://bursar.example', 'https://', 'https://bursar.example/?a=b'],
    BURSAR_WORKER: ['maybe', '2'],
    BURSAR_WORKER_INTERVAL_MS: ['9', '60001', '1s'],
    BURSAR_SIMULATED_CONFIRMATION_MS: ['-1', '3600001'],
    BURSAR_SIMULATED_HOLD_MS: ['-1', '3600001'],
    BURSAR_FEE_QUOTE_TTL_SECONDS: ['0', '86401'],
    BURSAR_TOKEN_TTL_SECONDS: ['0', '86401', 'NaN'],
    BURSAR_OAUTH_ISSUER: ['issuer', 'mailto:issuer@example.com', 'https://issuer.example/#a'],
    BURSAR_DATABASE_CONNECTIONS: ['1', '501'],
    BURSAR_LOG_LEVEL: ['loud', 'INFO'],
  }

  test.each(Object.entries(BAD).flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
    '%s=%s is refused',
    (name, value) => {
      const read = () => readSettings({ [name]: value })
      expect(read).toThrow(SettingsError)
      expect(read).toThrow(new RegExp(`^${name}: [^\n]+$`))
      if (name === 'DATABASE_URL') expect(read).not.toThrow('secret-word')
    },
  )

  test('bad ones, and unknown ones, stop the start with a line for each', async () => {
    const bad = Object.entries(BAD).filter(([, values]) => values.length > 0)
    const environment = Object.fromEntries(bad.map(([name, values]) => [name, values[0]]))
    const ended = await bursar(['serve'], { ...environment, BURSAR_PROT: '8080' })
    expectRefused(ended, [
      /^BURSAR_PROT: no such setting$/,
      ...bad.map(([name]) => new RegExp(`^${name}: [^{}]{10,}$`)),
    ])
  })

  test('empty ones count as not set', () => {
    const empty = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, '']))
    expect(readSettings(empty)).toEqual(readSettings({}))
  })

  test.each<[string, Environment, RegExp]>([
    [
      'a database that does not answer',
      { DATABASE_URL: 'postgres://u:secret-word@127.0.0.1:1/d' },
      /^DATABASE_URL: .+/,
    ],
    ['a host that is not here', { HOST: '192.0.2.1' }, /^HOST: .+192\.0\.2\.1/],
    [
      'a folder that cannot be made',
      { DATABASE_URL: undefined, BURSAR_DATA_DIR: join(ROOT, 'package.json', 'data') },
      /^BURSAR_DATA_DIR: .+package\.json/,
    ],
  ])('%s stops the start with a line that names the setting', async (_name, environment, line) => {
    const ended = await bursar(['serve'], { BURSAR_MODE: 'live', PORT: '0', ...environment })
    expectRefused(ended, [line])
    expect(ended.stderr).not.toContain('secret-word')
  })

  test('a port in use is told in a line, and the embedded PostgreSQL is stopped', async () => {
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const PORT = await takenPort()
    const ended = await bursar(['serve'], { PORT, DATABASE_URL: undefined, BURSAR_DATA_DIR: folder })
    expectRefused(ended, [new RegExp(`^PORT: .*in use.*:${PORT}$`)])
    // It had been started, and has removed the file with its process id.
    expect(await readdir(folder)).toContain('postgres')
    expect(existsSync(join(folder, 'postgres', 'PG_VERSION'))).toBe(true)
    expect(existsSync(join(folder, 'postgres', 'postmaster.pid'))).toBe(false)
    expect(existsSync(join(folder, 'sandbox-credentials.json'))).toBe(false)
  })

  test('a port in use leaves no connection to the database and nothing in it', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const PORT = await takenPort()
    expectRefused(await bursar(['serve'], { PORT, DATABASE_URL: own.url }), [/^PORT: /])
    const { rows } = await own.db.query<{ connections: string; customers: string }>(
      `select (select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid())
                as connections,
              (select count(*) from customers) as customers`,
    )
    expect(rows).toEqual([{ connections: '0', customers: '0' }])
  })

  /** A port that somebody listens on until the test ends. */
  async function takenPort(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(async () => void server.close())
    return String((server.address() as AddressInfo).port)
  }
})

describe('migrate', () => {
  test('brings an empty database up to date, once', async () => {
    await asAdmin('create database cli_empty owner bursar')
    atEnd(() => asAdmin('drop database cli_empty with (force)'))
    const url = new URL(database.url)
    url.pathname = '/cli_empty'
    const environment = { DATABASE_URL: url.href }
    const files = (await readdir(join(ROOT, 'migrations'))).filter((name) => /^\d+\.do\./.test(name)).sort()
    expect(files.length).toBeGreaterThan(0)

    expect(await json(['migrate'], environment)).toEqual({ applied: files })
    expect(await json(['migrate'], environment)).toEqual({ applied: [] })
    expect((await bursar(['migrate'], environment)).stdout).toBe('The schema is up to date.\n')
  })
})

describe('customers and clients', () => {
  interface Customer {
    customer_id: string
    profile_id: string
  }
  interface Client {
    client_id: string
    client_secret: string
  }
  let own: TestDatabase
  let environment: Environment
  let customer: Customer
  beforeAll(async () => {
    own = await cloneDatabase()
    environment = { DATABASE_URL: own.url }
    customer = await json<Customer>(['customer', 'create', '--name', 'Acme'], environment)
  })
  afterAll(() => own.drop())

  const createClient = (scopes: string) =>
    json<Client>(['client', 'create', '--customer', customer.customer_id, '--scopes', scopes], environment)

  test('a customer is made with its default profile', async () => {
    expect(customer).toEqual({
      customer_id: expect.stringMatching(UUID) as string,
      profile_id: expect.stringMatching(UUID) as string,
    })
    const { rows } = await own.db.query(
      `select name, type, nickname, p.id as profile_id from customers c join profiles p on p.customer_id = c.id
       where c.id = $1`,
      [customer.customer_id],
    )
    expect(rows).toEqual([
      { name: 'Acme', type: 'DEFAULT', nickname: 'Default', profile_id: customer.profile_id },
    ])
  })

  test('a client gets the scopes it is made with, until it is disabled', async () => {
    const some = await createClient('funding:read_profile, transfer:read_transfer')
    const all = await createClient('all')
    expect(some).toEqual({
      client_id: expect.stringMatching(UUID) as string,
      client_secret: expect.stringMatching(/^[\w-]{43}$/) as string,
    })

    const { ready } = await serve(environment)
    expect(await tokenOf(ready.address, all)).toMatchObject({ status: 200, scope: SCOPES.join(' ') })
    const granted = await tokenOf(ready.address, some)
    expect(granted).toMatchObject({ status: 200, scope: 'funding:read_profile transfer:read_transfer' })
    const profiles = await call(`${ready.address}/v2/profiles`, granted.access_token)
    expect(profiles.body).toMatchObject({ items: [{ id: customer.profile_id }] })
    // There were customers, so none was made for a demo, and no file is pointed to.
    expect(ready).toEqual({ ready: true, address: ready.address, mode: 'sandbox' })

    expect(await json(['client', 'disable', some.client_id], environment)).toEqual({
      client_id: some.client_id,
      disabled: true,
    })
    expect((await tokenOf(ready.address, some)).status).toBe(401)
    expect((await tokenOf(ready.address, all)).status).toBe(200)
    // Disabling it again is no mistake.
    expect((await bursar(['client', 'disable', some.client_id], environment)).stdout).toBe(
      `Client ${some.client_id} is disabled.\n`,
    )
  })

  test('without --json, what was made is told to people', async () => {
    const made = await bursar(['customer', 'create', '--name', 'Beta'], environment)
    expect(made.stdout).toMatch(/^customer_id: [0-9a-f-]{36}\nprofile_id: {2}[0-9a-f-]{36}\n$/)
    const options = ['--customer', customer.customer_id, '--scopes', 'all']
    const client = await bursar(['client', 'create', ...options], environment)
    expect(client.stdout).toMatch(/^client_id: {5}[0-9a-f-]{36}\nclient_secret: [\w-]{43}\n$/)
  })

  const NOBODY = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'

  test.each<[string, () => string[], RegExp]>([
    ['a customer without a name', () => ['customer', 'create'], /--name <name>' not specified$/],
    [
      'an unknown scope',
      () => [
        'client',
        'create',
        '--customer',
        customer.customer_id,
        '--scopes',
        'funding:read_profile,funding:all',
      ],
      /unknown scope: funding:all\.$/,
    ],
    [
      'no scope',
      () => ['client', 'create', '--customer', customer.customer_id, '--scopes', ','],
      /'--scopes <scopes>' argument ',' is invalid\. no scope\.$/,
    ],
    [
      'a client without scopes',
      () => ['client', 'create', '--customer', customer.customer_id],
      /'--scopes <scopes>' not specified$/,
    ],
    [
      'a client of nobody',
      () => ['client', 'create', '--customer', NOBODY, '--scopes', 'all'],
      new RegExp(`^there is no customer ${NOBODY}$`),
    ],
    [
      'a client of what is no id',
      () => ['client', 'create', '--customer', 'acme', '--scopes', 'all'],
      /'acme' is invalid\. must be a UUID\.$/,
    ],
    ['to disable nobody', () => ['client', 'disable', NOBODY], new RegExp(`^there is no client ${NOBODY}$`)],
    ['to disable what is no id', () => ['client', 'disable', 'x'], /must be a UUID\.$/],
  ])('refused: %s', async (_name, args, line) => {
    const before = await everyTable(own.db)
    expectRefused(await bursar(args(), environment), [line])
    expect(await everyTable(own.db)).toEqual(before)
  })
})

describe('serve', () => {
  test('on an empty database makes a demo that works, once; what it did is verified', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: folder }
    const file = join(folder, 'sandbox-credentials.json')

    // The credentials are what the issue says, for their owner only.
    const first = await serve(environment)
    expect(first.ready).toEqual({
      ready: true,
      address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
      mode: 'sandbox',
      credentials_file: file,
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const written = await readFile(file, 'utf8')
    const demo = JSON.parse(written) as Record<string, string> & { client_id: string; client_secret: string }
    expect(Object.keys(demo)).toEqual([
      'base_url',
      'token_url',
      'client_id',
      'client_secret',
      'customer_id',
      'profile_id',
      'memo_id',
    ])
    expect(demo).toMatchObject({
      base_url: first.ready.address,
      token_url: `${first.ready.address}/oauth2/token`,
      memo_id: expect.stringMatching(/^[A-Z0-9]{16}$/) as string,
    })

    // They get a token, the wire arrives, the balance is there, a withdrawal leaves.
    const { access_token: token, scope } = await tokenOf(demo.base_url!, demo)
    expect(scope).toBe(SCOPES.join(' '))
    const deposit = await call(`${demo.base_url}/v2/sandbox/fiat-deposits`, token, {
      amount: '250.00',
      asset: 'USD',
      memo_id: demo.memo_id,
      fiat_network_instructions: { wire: {} },
    })
    expect(deposit).toEqual({ status: 200, body: {} })
    const balance = await call(`${demo.base_url}/v2/profiles/${demo.profile_id}/balances/USD`, token)
    expect(balance.body).toMatchObject({ asset: 'USD', available: '250' })
    const withdrawal = await call(
      `${demo.base_url}/v2/transfer/crypto-withdrawals`,
      token,
      withdrawalOf({ profile_id: demo.profile_id! } as never),
    )
    expect(withdrawal.body).toMatchObject({ status: 'PENDING', customer_id: demo.customer_id })
    await expect
      .poll(() => call(`${demo.base_url}/v2/transfer/transfers/${String(withdrawal.body.id)}`, token), {
        timeout: 20_000,
      })
      .toMatchObject({ body: { status: 'COMPLETED' } })

    expect(await first.stop()).toBe(0)
    expect(first.stdout()).toMatch(/^[^\n]+\n$/)
    expect(await first.stderr).toBe('')

    // A second start makes nothing new; at another address, the file says so.
    const before = await everyTable(own.db)
    const second = await serve(environment)
    expect(second.ready.credentials_file).toBe(file)
    expect(await second.stop()).toBe(0)
    expect(await everyTable(own.db)).toEqual(before)
    const address = second.ready.address
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
      ...demo,
      base_url: address,
      token_url: `${address}/oauth2/token`,
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['sandbox-credentials.json'])

    await verified(own, environment)
  })

  /** `verify` says clean of what is clean, and finds what is broken afterwards. */
  async function verified(own: TestDatabase, environment: Environment): Promise<void> {
    expect(await json(['verify'], environment)).toEqual({
      clean: true,
      customers: 1,
      transfers: 2,
      entries: expect.any(Number) as number,
      balances: 1,
      disagreements: [],
    })
    const clean = await bursar(['verify'], environment)
    expect(clean).toMatchObject({ code: 0, stderr: '' })
    expect(clean.stdout).toMatch(/^Clean: 1 customers, 2 transfers, \d+ entries, 1 balances\.\n$/)

    // Entries are append-only for the service's role; a superuser may break anything.
    const damage = `update entries set amount = amount + 1 where account = 'bank'`
    await expect(own.db.query(damage)).rejects.toThrow('permission denied')
    const url = new URL(inject('adminUrl'))
    url.pathname = new URL(own.url).pathname
    const admin = new pg.Client({ connectionString: url.href })
    await admin.connect()
    await admin.query(damage)
    await admin.end()

    const broken = await bursar(['verify', '--json'], environment)
    expect(broken).toMatchObject({ code: 1, stderr: '' })
    expect(JSON.parse(broken.stdout)).toMatchObject({
      clean: false,
      disagreements: [
        { customer_id: expect.stringMatching(UUID) as string, rule: expect.any(String) as string },
      ],
    })
    const toldBroken = await bursar(['verify'], environment)
    expect(toldBroken.code).toBe(1)
    expect(toldBroken.stdout).toMatch(/: not every ledger transaction sums to zero.*USD is off by 1\n/)
    expect(toldBroken.stdout).toMatch(/\n1 disagreements: 1 customers/)
  }

  test('of many that start together one makes the demo, and its credentials are the ones written', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const starts = Array.from({ length: 8 }, () =>
      makeDemo(own.db, { dataDir: folder, baseUrl: 'http://127.0.0.1:8080' }),
    )
    const made = (await Promise.all(starts)).filter((demo) => demo !== undefined)
    expect(made).toHaveLength(1)
    expect(JSON.parse(await readFile(join(folder, 'sandbox-credentials.json'), 'utf8'))).toEqual(made[0])
    expect((await own.db.query('select id from customers')).rows).toEqual([{ id: made[0]!.customer_id }])
  })

  test('makes no demo whose credentials cannot be written', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'file'), '')
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: join(folder, 'file'), PORT: '0' }
    expectRefused(await bursar(['serve'], environment), [/^BURSAR_DATA_DIR: .*file/])
    expect((await own.db.query('select 1 from customers')).rows).toHaveLength(0)
  })

  test('tells people where it is and what to paste', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const child = start(['serve'], {
      DATABASE_URL: own.url,
      BURSAR_DATA_DIR: folder,
      PORT: '0',
      BURSAR_LOG_LEVEL: 'warn',
    })
    const closed = once(child, 'close')
    atEnd(async () => void (child.kill('SIGKILL') && (await closed)))
    let stdout = ''
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    const file = join(folder, 'sandbox-credentials.json')
    const session = curlSession(relative(ROOT, file))
    await expect.poll(() => stdout, { timeout: 20_000 }).toContain(session)
    expect(stdout).toMatch(/^Bursar is ready at http:\/\/127\.0\.0\.1:\d+ \(sandbox mode\)\n/)
    expect(stdout).toContain(`credentials are in ${file}`)
    const { client_secret } = JSON.parse(
      await readFile(join(folder, 'sandbox-credentials.json'), 'utf8'),
    ) as {
      client_secret: string
    }
    expect(stdout).not.toContain(client_secret)
    child.kill('SIGINT')
    expect(await closed).toEqual([0, null])
  })

  test('stops in order when it is told to while it starts, with the embedded PostgreSQL', async () => {
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const postmaster = join(folder, 'postgres', 'postmaster.pid')
    const child = start(['serve'], { DATABASE_URL: undefined, BURSAR_DATA_DIR: folder, PORT: '0' })
    const closed = once(child, 'close')
    await expect.poll(() => existsSync(postmaster), { timeout: 20_000 }).toBe(true)
    child.kill('SIGTERM')
    expect(await closed).toEqual([0, null])
    expect(existsSync(postmaster)).toBe(false)
  })

  test('in live mode makes no demo, has no sandbox and is connected to no network', async () => {
    const own = await cloneDatabase()
    atEnd(own.drop)
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: folder, BURSAR_MODE: 'live' }
    const { ready, stop } = await serve(environment)
    expect(ready).toEqual({ ready: true, address: ready.address, mode: 'live' })
    expect(await readdir(folder)).toEqual([])
    expect((await own.db.query('select 1 from customers')).rows).toHaveLength(0)

    const { customer_id, profile_id } = await json<{ customer_id: string; profile_id: string }>(
      ['customer', 'create', '--name', 'Acme'],
      environment,
    )
    const client = await json<{ client_id: string; client_secret: string }>(
      ['client', 'create', '--customer', customer_id, '--scopes', 'all'],
      environment,
    )
    const { access_token: token } = await tokenOf(ready.address, client)
    const deposit = await call(`${ready.address}/v2/sandbox/fiat-deposits`, token, {
      amount: '250.00',
      asset: 'USD',
      memo_id: 'ABCDEFGHIJKLMNOP',
      fiat_network_instructions: { wire: {} },
    })
    expect(deposit.status).toBe(404)
    expect(deposit.body.detail).toBe('POST /v2/sandbox/fiat-deposits not found')
    const withdrawal = await call(
      `${ready.address}/v2/transfer/crypto-withdrawals`,
      token,
      withdrawalOf({ profile_id } as never),
    )
    expect(withdrawal).toMatchObject({ status: 503, body: { status: 503, title: 'Unavailable' } })
    const document = (await (await fetch(`${ready.address}/openapi.json`)).json()) as { paths: object }
    expect(Object.keys(document.paths).filter((path) => path.includes('sandbox'))).toEqual([])
    expect(await stop()).toBe(0)
  })
})
