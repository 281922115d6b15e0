import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { transaction } from '../src/db/database.ts'
import { momentAt, readClock } from '../src/db/ids.ts'
import { completeDocument } from '../src/governance/policy/policy-document.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { requireScreening } from '../src/rails/screening/requirement.ts'
import { firstSession } from '../src/program/demo/first-session.ts'
import { makeDemo } from '../src/program/demo/make-demo.ts'
import { EVENT_TYPES } from '../src/contract/event-types.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { verify } from '../src/money/verify/verify.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { SETTINGS } from '../src/settings.ts'
import { setRewardRate } from '../src/resources/statements/reward-rates.ts'
import { CLUSTER, queryNodes } from './cluster.ts'
import { move } from './history.ts'
import {
  ROW_MACS,
  actionsOfCommands,
  asAdmin,
  cloneDatabase,
  createDatabase,
  type Ended,
  everyTable,
  runBursar,
  serveBursar,
  startBursar,
  TEST_ORIGIN,
  type TestDatabase,
  toldIn,
  WEBHOOK_SECRETS,
  withdrawalOf,
  withoutOperators,
  MASTER_KEYS,
  ownDatabase,
} from './support.ts'
import { atEnd } from './at-end.ts'
import { NOBODY } from './matchers.ts'
import { BAD_SETTINGS } from './bad-settings.ts'

// The commands: arguments, settings, output and exit codes.

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

const settingsOf = (environment: Environment): Environment => ({
  DATABASE_URL: database.url,
  BURSAR_DATA_DIR: dataDir,
  BURSAR_SIMULATED_PRICE_DAYS: '0',
  BURSAR_METRICS_PORT: '0',
  ...environment,
})

/** Runs a command to its end, in this process. */
const bursar = (args: string[], environment: Environment = {}): Promise<Ended> =>
  runBursar(args, settingsOf(environment))

/** Runs a command that must succeed and print one line of JSON and nothing else. */
async function json<T = Record<string, unknown>>(args: string[], environment: Environment = {}): Promise<T> {
  const { code, stdout, stderr } = await bursar([...args, '--json'], environment)
  expect({ code, stderr: withoutOperators(stderr) }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^[^\n]+\n$/)
  return JSON.parse(stdout) as T
}

/** A failure exits with 1. An invalid command line exits with 2 and prints `error: …`. */
function expectRefused(ended: Ended, lines: RegExp[]): void {
  const usage = ended.stderr.startsWith('error: ')
  expect(ended).toMatchObject({ code: usage ? 2 : 1, stdout: '' })
  expect(toldIn(ended)).toEqual(lines.map((line) => expect.stringMatching(line) as string))
}

const serve = (environment: Environment = {}) =>
  serveBursar(
    settingsOf({
      BURSAR_SIMULATED_CONFIRMATION_MS: '0',
      BURSAR_WORKER_INTERVAL_MS: '20',
      BURSAR_LOG_LEVEL: 'warn',
      ...environment,
    }),
  )

/** A refused command changes nothing. */
async function expectNoChange({ db, url }: TestDatabase, args: string[], line: RegExp): Promise<void> {
  const before = await everyTable(db)
  expectRefused(await bursar(args, { DATABASE_URL: url }), [line])
  expect(await everyTable(db)).toEqual(before)
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
  test.each<[string, readonly string[]]>([
    ['', ['Exit codes', 'Examples', 'serve', 'rewards', '--version']],
    ['serve', ['--json', ...Object.keys(SETTINGS)]],
    ['doctor', ['--json', 'code 1']],
    ['completion', ['<shell>', 'bash', 'zsh', 'fish']],
    ['trigger', ['<event_type>', '--credentials <file>', ...Object.keys(EVENT_TYPES)]],
    ['client create', ['--customer <id>', '--scopes <scopes>', '--approval <id>', '--json', ...SCOPES]],
    ['operator create', ['--name <name>', '--role <role>', 'APPROVER']],
    ['webhooks test', ['<webhook>', '[type]', '--credentials <file>']],
    ['signer void', ['--nonce <number...>', '--transfer <id...>', '--key <file>', '--socket <path>']],
  ])('of bursar %s', async (name, words) => {
    const { code, stdout, stderr } = await bursar([...name.split(' ').filter(Boolean), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.startsWith(`Usage: bursar${name === '' ? '' : ` ${name}`} `)).toBe(true)
    for (const word of words) expect(stdout).toContain(word)
  })

  test('of bursar serve has a space between each setting and its text', async () => {
    const { stdout } = await bursar(['serve', '--help'], { DATABASE_URL: undefined })
    for (const [name, { desc }] of Object.entries(SETTINGS) as [string, { desc?: string }][])
      expect(stdout).toMatch(new RegExp(`^  ${name} {2,}${desc!.slice(0, 4)}`, 'm'))
  })

  test('prints the version of the package', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect((await bursar(['--version'])).stdout).toBe(`${version}\n`)
  })
})

test.each<[string, string, RegExp]>([
  ['command', 'frobnicate', /^error: unknown command 'frobnicate'/],
  ['subcommand', 'client frobnicate', /^error: unknown command 'frobnicate'/],
  ['option', 'serve --frobnicate', /^error: unknown option '--frobnicate'/],
  ['argument', 'verify frobnicate', /^error: too many arguments for 'verify'/],
])('an unknown %s is refused', async (_, command, line) => {
  expectRefused(await bursar(command.split(' ')), [line])
})

describe('settings', () => {
  test('bad and unknown settings stop the start, with a line for each', async () => {
    const bad = Object.entries(BAD_SETTINGS).filter(([, values]) => values.length > 0)
    const environment = Object.fromEntries(bad.map(([name, values]) => [name, values[0]]))
    const ended = await bursar(['serve'], { ...environment, BURSAR_PROT: '8080' })
    expectRefused(ended, [
      /^BURSAR_PROT: no such setting$/,
      ...bad.map(([name]) => new RegExp(`^${name}: [^{}]{10,}$`)),
    ])
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
    [
      'a folder that no file system takes',
      { DATABASE_URL: undefined, BURSAR_DATA_DIR: '/proc/data' },
      /^BURSAR_DATA_DIR: .+\/proc\/data/,
    ],
  ])('%s stops the start with a line that names the setting', async (_name, environment, line) => {
    const ended = await bursar(['serve'], { BURSAR_MODE: 'live', PORT: '0', ...environment })
    expectRefused(ended, [line])
    expect(ended.stderr).not.toContain('secret-word')
  })

  test('a port in use is reported in one line, and the embedded PostgreSQL is stopped', async () => {
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const PORT = await takenPort()
    // When the test runs as root, the user of the PostgreSQL server must still reach this folder.
    await chmod(folder, 0o755)
    const made = join(folder, 'data')
    const ended = await bursar(['serve'], { PORT, DATABASE_URL: undefined, BURSAR_DATA_DIR: made })
    expectRefused(ended, [new RegExp(`^PORT: .*in use.*:${PORT}$`)])
    expect(ended.stderr).not.toContain('pool')
    // The server had started and has removed its postmaster.pid.
    expect(await readdir(made)).toContain('postgres')
    expect(existsSync(join(made, 'postgres', 'PG_VERSION'))).toBe(true)
    expect(existsSync(join(made, 'postgres', 'postmaster.pid'))).toBe(false)
    expect(existsSync(join(made, 'sandbox-credentials.json'))).toBe(false)
    // No other user can list the folder. When the test runs as root, the server's user can pass through it.
    const modeOf = async (path: string) => (await stat(path)).mode & 0o777
    expect(await modeOf(made)).toBe(process.getuid!() === 0 ? 0o711 : 0o700)
    expect(await modeOf(join(made, 'postgres'))).toBe(0o700)
  })

  test('a worker without the settings of screening does not start, until the owner of the schema waives it', async () => {
    const own = await ownDatabase()
    await requireScreening(own.db, TEST_ORIGIN)
    const alone = { DATABASE_URL: own.url, PORT: '0' }
    expectRefused(await bursar(['serve'], alone), [
      /^BURSAR_SCREENING_URL: payments are screened here since 20.*: bursar screening waive$/,
    ])
    expectRefused(await bursar(['screening', 'waive'], alone), [
      /^BURSAR_MIGRATIONS_DATABASE_URL: only the role/,
    ])
    const owner = { ...alone, BURSAR_MIGRATIONS_DATABASE_URL: own.ownerUrl }
    expect(await json(['screening', 'waive'], owner)).toEqual({
      changed: true,
      required_since: expect.stringMatching(/^20.*Z$/) as string,
    })
    expect(await actionsOfCommands(own.db)).toEqual(['screening.waive'])
    expect((await bursar(['screening', 'waive'], owner)).stdout).toBe('Payments need no screening.\n')
    // It starts, and then finds its port taken.
    expectRefused(await bursar(['serve'], { ...alone, PORT: await takenPort() }), [/^PORT: /])
  })

  test('a port in use leaves no connection to the database and nothing in it', async () => {
    const own = await ownDatabase()
    const PORT = await takenPort()
    expectRefused(await bursar(['serve'], { PORT, DATABASE_URL: own.url }), [/^PORT: /])
    // A cluster has sessions of its own.
    const connections = await queryNodes(
      own.url,
      `select application_name from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name not ilike 'citus%'`,
    )
    expect(connections).toEqual([])
    expect((await own.db.query('select from customers')).rowCount).toBe(0)
  })

  /** Returns a port on which a server listens until the test ends. */
  async function takenPort(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(async () => void server.close())
    return String((server.address() as AddressInfo).port)
  }
})

describe('migrate', () => {
  test('migrates an empty database once, as its owner; the service works on it', async () => {
    const empty = await createDatabase()
    atEnd(empty.drop)
    const alone = { DATABASE_URL: empty.url }
    const environment = { ...alone, BURSAR_MIGRATIONS_DATABASE_URL: empty.ownerUrl }
    const files = (await readdir(join(ROOT, 'migrations'))).filter((name) => /^\d+\.do\./.test(name)).sort()
    expect(files.length).toBeGreaterThan(0)

    // The service's role may not migrate, so neither command may do so with that role.
    for (const command of ['migrate', 'serve'])
      expectRefused(await bursar([command], { ...alone, PORT: '0' }), [
        /^the schema is at version 0, this program needs \d+, .*: run "bursar migrate" with BURSAR_MIGRATIONS_DATABASE_URL/,
      ])
    // The advice is not the command that has just failed.
    for (const command of ['migrate', 'serve'])
      expectRefused(
        await bursar([command], { ...alone, BURSAR_MIGRATIONS_DATABASE_URL: empty.url, PORT: '0' }),
        [/^permission denied for schema public: the role that migrates must own the database/],
      )
    expect(await json(['migrate'], environment)).toEqual({ applied: files })
    expect(await json(['migrate'], environment)).toEqual({ applied: [] })
    expect((await bursar(['migrate'], alone)).stdout).toBe('The schema is up to date.\n')
    const recorded = await bursar(['audit', 'list', '--subject', 'schema', '--json'], alone)
    expect(recorded.stdout.split('\n')).toEqual([expect.stringContaining('"deployment.migrate"'), ''])

    // The commands that write, run as the service's role.
    const { customer_id } = await json<{ customer_id: string }>(
      ['customer', 'create', '--name', 'Acme'],
      alone,
    )
    await json(['client', 'create', '--customer', customer_id, '--scopes', 'all'], alone)
    await json(['rewards', 'rate', 'set', '--from', '2026-01-01', '--rate', '0.04'], alone)
    await json(['statements', 'generate', '--period', '2026-01'], alone)
    expect(await json(['verify'], alone)).toMatchObject({ clean: true, customers: 1 })
  })
})

test.each(['verify', 'verify --json', 'customer list'])(
  'a database without a free connection is reported: %s',
  async (command) => {
    const own = await createDatabase(new URL(inject('templateUrl')).pathname.slice(1))
    atEnd(own.drop)
    const name = new URL(own.url).pathname.slice(1)
    await asAdmin(`alter database ${name} connection limit 0`)
    const run = () => bursar(command.split(' '), { DATABASE_URL: own.url })
    expectRefused(await run(), [
      /^The database accepts no more connections: lower BURSAR_DATABASE_CONNECTIONS of the running processes, or raise max_connections$/,
      new RegExp(`^DATABASE_URL: too many connections for database "${name}"$`),
    ])
    // One connection is enough. On a cluster, nodes also connect to each other, once for each shard.
    await asAdmin(`alter database ${name} connection limit ${CLUSTER.length === 0 ? 1 : -1}`)
    expect(await run()).toMatchObject({ code: 0, stderr: '' })
  },
)

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

  test('a customer is created with its default profile', async () => {
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

  test('a client gets the scopes it was created with, until it is disabled', async () => {
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
    // Customers already exist, so the start makes no demo and prints no path to credentials.
    const console = expect.stringMatching(/\/console\?key=[\w-]{22}$/) as string
    expect(ready).toEqual({ ready: true, address: ready.address, mode: 'sandbox', console })

    expect(await json(['client', 'disable', some.client_id], environment)).toEqual({
      client_id: some.client_id,
      disabled: true,
    })
    expect((await tokenOf(ready.address, some)).status).toBe(401)
    expect((await tokenOf(ready.address, all)).status).toBe(200)
    // Disabling a disabled client succeeds.
    expect((await bursar(['client', 'disable', some.client_id], environment)).stdout).toBe(
      `Client ${some.client_id} is disabled.\n`,
    )
  })

  test('rotation gives a client a new secret; the previous secret stays valid for a while', async () => {
    const client = await createClient('funding:read_profile')
    const { ready } = await serve(environment)
    const rotated = await json<Client>(['client', 'rotate', client.client_id], environment)
    expect((await tokenOf(ready.address, client)).status).toBe(200)
    expect((await tokenOf(ready.address, rotated)).status).toBe(200)
    const again = await bursar(['client', 'rotate', client.client_id, '--grace', '0'], environment)
    expect(again.stdout).toMatch(
      /^client_id: {5}[0-9a-f-]{36}\nclient_secret: [\w-]{43}\nThe previous secret/,
    )
    for (const old of [client, rotated]) expect((await tokenOf(ready.address, old)).status).toBe(401)
    const tooLong = await bursar(['client', 'rotate', client.client_id, '--grace', '604801'], environment)
    expect(tooLong.stderr).toContain('must be a whole number from 0 to 604800')
  })

  test('without --json, the created records are printed as text', async () => {
    const made = await bursar(['customer', 'create', '--name', 'Beta'], environment)
    expect(made.stdout).toMatch(/^customer_id: [0-9a-f-]{36}\nprofile_id: {2}[0-9a-f-]{36}\n$/)
    const options = ['--customer', customer.customer_id, '--scopes', 'all']
    const client = await bursar(['client', 'create', ...options], environment)
    expect(client.stdout).toMatch(/^client_id: {5}[0-9a-f-]{36}\nclient_secret: [\w-]{43}\n$/)
  })

  test('customers and clients are listed, the latter without secrets', async () => {
    const made = await createClient('funding:read_profile')
    await json(['client', 'disable', made.client_id], environment)
    await json(['client', 'rename', made.client_id, 'Payouts'], environment)
    const at = expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]{15}Z$/) as string
    const { customers } = await json<{ customers: Record<string, unknown>[] }>(
      ['customer', 'list'],
      environment,
    )
    expect(customers[0]).toMatchObject({
      customer_id: customer.customer_id,
      name: 'Acme',
      created_at: at,
      disabled_at: null,
      profiles: 1,
    })
    const gone = await json<Customer>(['customer', 'create', '--name', 'Gone'], environment)
    const disabled = async () =>
      (
        await json<{ customers: Record<string, unknown>[] }>(['customer', 'list'], environment)
      ).customers.find(({ customer_id }) => customer_id === gone.customer_id)!.disabled_at
    await json(['customer', 'disable', gone.customer_id], environment)
    expect(await disabled()).toEqual(at)
    await json(['customer', 'enable', gone.customer_id], environment)
    expect(await disabled()).toBeNull()
    const list = ['client', 'list', '--customer', customer.customer_id]
    const { clients } = await json<{ clients: Record<string, unknown>[] }>(list, environment)
    expect(clients.at(-1)).toEqual({
      client_id: made.client_id,
      name: 'Payouts',
      customer_id: customer.customer_id,
      created_at: at,
      last_used_at: null,
      disabled_at: at,
      scopes: ['funding:read_profile'],
    })
    expect(customers[0]!.clients).toBe(clients.filter(({ disabled_at }) => disabled_at === null).length)
    const text = (await bursar(list, environment)).stdout
    expect(text).toMatch(/^client_id +name +customer_id +created_at +last_used_at +disabled_at +scopes\n/)
    expect(text).toContain(`${made.client_id}  Payouts  ${customer.customer_id}  20`)
    expect(JSON.stringify(clients) + text).not.toMatch(/secret/)
    const { stdout } = await bursar(['customer', 'list'], environment)
    expect(stdout).toMatch(/^customer_id +name +created_at +disabled_at +clients +profiles\n/)
    expect(stdout).toContain(`${customer.customer_id}  Acme`)
    expect(stdout + text).not.toMatch(/[\u001b┌│]/)
  })

  test('an operator signs in once with a link, until it is disabled; the audit log has each step', async () => {
    const { ready } = await serve(environment)
    const at = { ...environment, BURSAR_BASE_URL: ready.address }
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' }
      const options = { method: 'POST', headers, body: JSON.stringify(body) }
      const reply = await fetch(`${ready.address}/v2/operators${path}`, options)
      return { status: reply.status, body: (await reply.json()) as Record<string, string> }
    }
    const create = [
      'operator',
      'create',
      '--name',
      'Ada',
      '--role',
      'VIEWER',
      '--customer',
      customer.customer_id,
    ]
    const { operator_id: id } = await json<{ operator_id: string }>(create, at)
    const { link } = await json<{ link: string }>(['operator', 'link', id], at)
    expect(link).toMatch(new RegExp(`^${ready.address}/sign-in#bursar_link_[\\w-]{43}$`))
    const { body: opened } = await post('/sign-in/link', { link })
    expect((await post('/sign-in/link', { link })).status).toBe(401)
    const { session_secret } = opened
    expect((await post('/access-tokens', { session_secret })).body.scope).not.toContain(':write_')
    await json(['operator', 'role', id, 'OPERATOR'], at)
    expect((await post('/access-tokens', { session_secret })).body.scope).toContain(':write_')
    const { sessions } = await json<{ sessions: Record<string, string>[] }>(['operator', 'sessions', id], at)
    expect(sessions).toMatchObject([{ method: 'LINK', status: 'OPEN' }])
    await json(['operator', 'revoke', id, sessions[0]!.session_id!], at)
    const passkey_id = crypto.randomUUID()
    await own.owner.query(
      `insert into operator_passkeys (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
       values ($1, $2, clock_timestamp(), 'Laptop', 'x', '', 0, '{}')`,
      [passkey_id, id],
    )
    const { passkeys } = await json<{ passkeys: object[] }>(['operator', 'passkeys', id], at)
    expect(passkeys).toMatchObject([{ passkey_id, name: 'Laptop', last_used_at: null }])
    expect(await json(['operator', 'revoke', id, passkey_id], at)).toEqual({ passkey_id, revoked: true })
    expect(await json(['operator', 'passkeys', id], at)).toEqual({ passkeys: [] })
    expectRefused(await bursar(['operator', 'revoke', id, crypto.randomUUID()], at), [
      /has no session and no passkey/,
    ])
    expect((await post('/access-tokens', { session_secret })).status).toBe(401)
    await json(['operator', 'disable', id], at)
    expectRefused(await bursar(['operator', 'link', id], at), [/^operator .* is disabled$/])
    await json(['operator', 'enable', id], at)
    await json(['console', 'link', id], at)
    const { operators } = await json<{ operators: object[] }>(['operator', 'list'], at)
    expect(operators).toMatchObject([{ operator_id: id, name: 'Ada', role: 'OPERATOR', disabled_at: null }])
    const { rows } = await own.db.query<{ action: string }>(
      `select action from audit_log where actor_type = 'COMMAND_LINE' and subject_type in ('operator', 'session', 'passkey')
       order by id`,
    )
    expect(rows.map(({ action }) => action)).toEqual([
      ...['operator.create', 'operator.link', 'operator.set_role', 'session.revoke', 'passkey.delete'],
      // The second link is that of the console.
      ...['operator.disable', 'operator.enable', 'operator.link'],
    ])
  })

  test('an operator gets more rights only with approvers, where the policy of its customer requires them', async () => {
    const { customer_id } = await json<Customer>(['customer', 'create', '--name', 'Careful'], environment)
    const create = (name: string) => [
      'operator',
      'create',
      '--name',
      name,
      '--role',
      'VIEWER',
      '--customer',
      customer_id,
    ]
    const { operator_id } = await json<{ operator_id: string }>(create('Ada'), environment)
    await transaction(own.db, async (tx) => {
      const changes = { subjects: ['OPERATORS' as const], approvals: 1 }
      const document = completeDocument({ rules: [], changes })
      await new Policies(MASTER_KEYS).add(tx, customer_id, document, await readClock(tx))
    })
    const role = ['operator', 'role', operator_id, 'ADMIN']
    const waits =
      /^approval ([0-9a-f-]{36}) is PENDING with 0 of 1 approvers; nothing was changed\. After they have approved, run the same command with --approval and its id$/
    const refused = await bursar(role, environment)
    expectRefused(refused, [waits])
    const approval = waits.exec(refused.stderr.trim())![1]!
    expectRefused(await bursar([...role, '--approval', approval], environment), [waits])
    const other = ['operator', 'role', operator_id, 'OPERATOR', '--approval', approval]
    expect(await bursar(other, environment)).toMatchObject({ code: 1, stdout: '' })
    expectRefused(await bursar(create('Eve'), environment), [waits])
    await json(['operator', 'disable', operator_id], environment)
    expectRefused(await bursar(['operator', 'enable', operator_id], environment), [waits])
    const { operators } = await json<{ operators: { customer_id: string }[] }>(
      ['operator', 'list'],
      environment,
    )
    expect(operators.filter((one) => one.customer_id === customer_id)).toMatchObject([
      { operator_id, role: 'VIEWER', disabled_at: expect.any(String) as unknown },
    ])
  })

  test.each<[string, string, RegExp]>([
    ['a link of nobody', `operator link ${NOBODY}`, /^there is no operator /],
    [
      'a role that does not exist',
      'operator create --name Ada --role OWNER',
      /Allowed choices are VIEWER, OPERATOR, APPROVER, ADMIN\.$/,
    ],
    [
      'an OpenID subject without a provider',
      'operator create --name Ada --role ADMIN --openid-subject ada',
      /^BURSAR_OPENID_ISSUER: --openid-subject needs the provider to which it belongs$/,
    ],
    [
      'an operator of nobody',
      `operator create --name Ada --role ADMIN --customer ${NOBODY}`,
      /^there is no customer /,
    ],
    [
      'the scope of an operator for a client',
      'client create --customer CUSTOMER --scopes operators:read_session',
      /unknown scope: operators:read_session\.$/,
    ],
    ['clients of nobody', `client list --customer ${NOBODY}`, /^there is no customer /],
    [
      'an unknown scope',
      'client create --customer CUSTOMER --scopes funding:read_profile,funding:all',
      /unknown scope: funding:all\.$/,
    ],
    [
      'no scope',
      'client create --customer CUSTOMER --scopes ,',
      /'--scopes <scopes>' argument ',' is invalid\. no scope\.$/,
    ],
    [
      'a client of nobody',
      `client create --customer ${NOBODY} --scopes all`,
      new RegExp(`^there is no customer ${NOBODY}$`),
    ],
    [
      'a client of what is no id',
      'client create --customer acme --scopes all',
      /'acme' is invalid\. must be a UUID\.$/,
    ],
    ['to disable nobody', `client disable ${NOBODY}`, new RegExp(`^there is no client ${NOBODY}$`)],
  ])('refused: %s', (_, command, line) =>
    expectNoChange(own, command.replace('CUSTOMER', customer.customer_id).split(' '), line),
  )
})

describe('accounts and withdrawals', () => {
  let own: TestDatabase
  let environment: Environment
  beforeAll(async () => {
    own = await cloneDatabase()
    environment = { DATABASE_URL: own.url }
  })
  afterAll(() => own.drop())

  test('are disabled and enabled, by the administrator and for the API user', async () => {
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const { ready } = await serve({ ...environment, BURSAR_DATA_DIR: folder })
    const demo = JSON.parse(await readFile(ready.credentials_file!, 'utf8')) as {
      client_id: string
      client_secret: string
    }
    const { access_token: token } = await tokenOf(ready.address, demo)
    const identity = await call(`${ready.address}/v2/identity/identities`, token, {
      ref_id: 'acme',
      institution_details: { name: 'Acme' },
    })
    const made = await call(`${ready.address}/v2/identity/accounts`, token, {
      account: { identity_id: identity.body.id },
    })
    const account_id = String(made.body.id)
    const read = async () => (await call(`${ready.address}/v2/identity/accounts/${account_id}`, token)).body

    /** Asserts the command's output, and the flags in the API afterwards. */
    async function expectFlags(args: string[], admin_disabled: boolean, user_disabled: boolean) {
      const summary_status = admin_disabled || user_disabled ? 'DISABLED' : 'PENDING'
      const flags = { admin_disabled, user_disabled, summary_status }
      expect(await json(['account', ...args, account_id], environment)).toEqual({ account_id, ...flags })
      expect(await read()).toMatchObject(flags)
    }
    await expectFlags(['disable'], true, false)
    await expectFlags(['disable', '--user'], true, true)
    await expectFlags(['enable'], false, true)
    expect((await read()).updated_at).not.toBe(made.body.updated_at)

    // Repeating the command succeeds and changes nothing. (The demo changes other tables meanwhile.)
    const before = await read()
    await expectFlags(['enable'], false, true)
    expect(await read()).toEqual(before)

    const enabled = await bursar(['account', 'enable', '--user', account_id.toUpperCase()], environment)
    expect(enabled.stderr).toMatch(/^{"level":30,.*"user":"[^"]+",.*"msg":"enabled an account"}\n$/)
    expect(enabled).toMatchObject({
      code: 0,
      stdout: 'admin_disabled: false\nuser_disabled:  false\nsummary_status: PENDING\n',
    })
    expect(await read()).toMatchObject({ user_disabled: false, summary_status: 'PENDING' })
  })

  test.each<[string, string, RegExp]>([
    [
      'to mark a withdrawal that is unknown',
      `withdrawal mark-paid ${NOBODY} --tx-hash ${'0'.repeat(64)}`,
      new RegExp(`^there is no withdrawal ${NOBODY}$`),
    ],
    [
      'to send a withdrawal again that is unknown',
      `withdrawal resend ${NOBODY}`,
      new RegExp(`^there is no withdrawal ${NOBODY}$`),
    ],
    [
      'to resolve a withdrawal that is unknown',
      `withdrawal resolve ${NOBODY} --outcome paid --evidence x`,
      new RegExp(`^there is no withdrawal ${NOBODY} that was signed$`),
    ],
    [
      'to resolve a withdrawal without evidence',
      `withdrawal resolve ${NOBODY} --outcome paid --evidence \t`,
      /must have 1 to 1000 characters\.$/,
    ],
    [
      'to rescan a network that is none',
      'deposits rescan --network DOGE --from 1 --to 2',
      /must be one of BITCOIN, .*XLAYER\.$/,
    ],
    [
      'to send to cold storage without a reference',
      'treasury send --network LITECOIN --asset LTC --amount 1 --to x',
      /required option '--reference <text>' not specified$/,
    ],
    [
      'to confirm a send of a network that is not configured',
      'treasury confirm --network LITECOIN --asset LTC --amount 1',
      /^LITECOIN has no section in BURSAR_NETWORKS_FILE$/,
    ],
    [
      'to cancel a treasury transfer that is unknown',
      `treasury cancel ${NOBODY}`,
      new RegExp(`^there is no treasury transfer ${NOBODY}$`),
    ],
    ['to disable nobody', `account disable ${NOBODY}`, new RegExp(`^there is no account ${NOBODY}$`)],
    ['to enable no account', 'account enable', /missing required argument 'account_id'$/],
  ])('refused: %s', (_, command, line) => expectNoChange(own, command.split(' '), line))
})

describe('statements and rewards', () => {
  let own: TestDatabase
  let environment: Environment
  beforeAll(async () => {
    own = await cloneDatabase()
    environment = { DATABASE_URL: own.url }
  })
  afterAll(() => own.drop())

  /** Returns the output of a command that must succeed. */
  async function said(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await bursar(args, environment)
    expect({ code, stderr: withoutOperators(stderr) }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  test('rates are set and listed', async () => {
    expect(await said('rewards', 'rate', 'set', '--from', '2024-01-01', '--rate', '.0500')).toBe(
      'The rate is 0.05 from 2024-01-01 on.\n',
    )
    const second = await json(
      ['rewards', 'rate', 'set', '--from', '2024-02-16', '--rate', '0.0376'],
      environment,
    )
    const set_at = expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]{15}Z$/) as string
    expect(second).toEqual({ effective_from: '2024-02-16', rate: '0.0376', set_at })
    expect(await json(['rewards', 'rate', 'list'], environment)).toEqual({
      rates: [{ effective_from: '2024-01-01', rate: '0.05', set_at }, second],
    })
    expect(await said('rewards', 'rate', 'list')).toMatch(
      /^effective_from {4}rate {2}set_at\n2024-01-01 {8}0\.05 {2}20\S+Z\n2024-02-16 {6}0\.0376 {2}20\S+Z\n$/,
    )
  })

  test('statements are generated, listed, explained and paid, once', async () => {
    const { db } = own
    await setRewardRate(db, '2024-01-01', '0.05', TEST_ORIGIN)
    await setRewardRate(db, '2024-02-16', '0.0376', TEST_ORIGIN)
    const { customer_id, profile_id } = await createCustomer(db, 'Holder')
    const at = momentAt('2024-02-12T12:00:00.000000Z')
    await move(db, customer_id, at, { to: profile_id, minor: 1_000_000_000n })
    const ref_id = `USDG_REWARDS-${customer_id}-2024-02`

    const generate = ['statements', 'generate', '--period', '2024-02']
    expect(await json([...generate, '--customer', customer_id], environment)).toEqual({
      generated: [{ customer_id, ref_id, total_amount: '1.921643' }],
    })
    expect(await said(...generate)).toBe('0 statements generated for 2024-02.\n')
    expect(await said('statements', 'generate', '--period', '2024-03')).toBe(
      `USDG_REWARDS-${customer_id}-2024-03  3.193424 USDG\n1 statements generated for 2024-03.\n`,
    )

    const { rows } = await db.query<{ id: string }>('select id from statements order by period_start limit 1')
    const { id } = rows[0]!
    const table = (await said('statements', 'explain', id)).split('\n')
    expect(table.slice(0, 2)).toEqual([
      '       day  average balance    rate  reward (/ 365)',
      '2024-02-01                0    0.05               0',
    ])
    expect(table.slice(11)).toEqual([
      '2024-02-11                0    0.05               0',
      '2024-02-12              500    0.05  0.068493150684',
      ...['13', '14', '15'].map((day) => `2024-02-${day}             1000    0.05  0.136986301369`),
      ...Array.from({ length: 14 }, (_, n) => `2024-02-${n + 16}             1000  0.0376   0.10301369863`),
      '',
      'sum of balance x seconds x rate        60600960',
      'by 86,400 s and 365 days, rounded down 1.921643',
      'total in the statement                 1.921643',
      '',
    ])
    expect(await json(['statements', 'explain', id], environment)).toMatchObject({
      statement: { id, ref_id, status: 'STATEMENT_STATUS_GENERATED', metadata: { total_amount: '1.921643' } },
      method: 'TIME_WEIGHTED',
      derivation: { total: '1.921643', products: '60600960' },
    })

    const pay = ['statements', 'pay']
    const { statements } = await json<{ statements: object[] }>(['statements', 'list'], environment)
    const listed = { customer_id, status: 'GENERATED', asset: 'USDG' }
    expect(statements).toEqual([
      expect.objectContaining({ ...listed, period: '2024-03', total_amount_owed: '3.193424' }),
      {
        ...listed,
        statement_id: id,
        ref_id,
        period: '2024-02',
        total_amount_owed: '1.921643',
        amount_paid: '0',
      },
    ])
    expect(await said('statements', 'list', '--period', '2024-02', '--customer', customer_id)).toBe(
      `statement_id                          customer_id                           period   status     asset      owed  paid\n` +
        `${id}  ${customer_id}  2024-02  GENERATED  USDG   1.921643     0\n`,
    )
    expect(await json([...pay, '--period', '2024-02'], environment)).toEqual({
      paid: [
        {
          customer_id,
          statement_id: id,
          ref_id,
          amount_paid: '1.921643',
          transfer_id: expect.stringMatching(UUID) as string,
        },
      ],
    })
    expect(await said(...pay)).toBe(
      `USDG_REWARDS-${customer_id}-2024-03  3.193424 USDG\n1 statements paid.\n`,
    )
    expect(await verify(db)).toMatchObject({ disagreements: [], transfers: 3 })
    const actions = await actionsOfCommands(db)
    expect(actions).toEqual(expect.arrayContaining(['statement.generate', 'statement.pay']))

    // Make one statement disagree with the ledger.
    await db.query('update statements set total_amount_owed = 2, amount_paid = 2 where id = $1', [id])
    const differs = await bursar(['statements', 'explain', id], environment)
    expect(differs).toMatchObject({ code: 1, stderr: '' })
    expect(differs.stdout).toMatch(
      /\nby 86,400 s and 365 days, rounded down 1\.921643\ntotal in the statement {17}2  DIFFERS\n$/,
    )
  })

  test.each<[string, string, RegExp]>([
    ['no period', 'statements generate', /--period <YYYY-MM>' not specified$/],
    ['a 13th month', 'statements pay --period 2024-13', /'2024-13' is invalid\. must be a month, YYYY-MM\.$/],
    [
      'a month that has not ended',
      'statements generate --period 2999-01',
      /^the period 2999-01 has not ended$/,
    ],
    [
      'a month without a rate',
      'statements generate --period 2023-12',
      /^no reward rate is in force in 2023-12: bursar rewards rate set$/,
    ],
    ['a customer that is no id', 'statements pay --customer acme', /'acme' is invalid\. must be a UUID\.$/],
    ...['generate --period 2024-01', 'pay', 'list'].map((command): [string, string, RegExp] => [
      `${command} for nobody`,
      `statements ${command} --customer ${NOBODY}`,
      new RegExp(`^there is no customer ${NOBODY}$`),
    ]),
    [
      'to explain what is not there',
      `statements explain ${NOBODY}`,
      new RegExp(`^there is no generated statement ${NOBODY}$`),
    ],
    ['no rate', 'rewards rate set --from 2024-01-01', /--rate <rate>' not specified$/],
    [
      'a rate from a day that there is not',
      'rewards rate set --from 2023-02-29 --rate 0.01',
      /'2023-02-29' is invalid\. must be a day, YYYY-MM-DD\.$/,
    ],
    ...['3.76', '0.00000000001'].map((rate): [string, string, RegExp] => [
      `a rate of ${rate}`,
      `rewards rate set --from 2024-01-01 --rate ${rate}`,
      /must be a decimal number from 0 to 1 with at most 10 decimals\.$/,
    ]),
  ])('refused: %s', (_, command, line) => expectNoChange(own, command.split(' '), line))
})

describe('serve', () => {
  test('on an empty database makes a working demo, once; verify finds it clean', async () => {
    const own = await ownDatabase()
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: folder }
    const file = join(folder, 'sandbox-credentials.json')

    // The credentials match the documented fields, and only their owner can read them.
    const first = await serve(environment)
    expect(first.ready).toEqual({
      ready: true,
      address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
      mode: 'sandbox',
      console: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/console\?key=[\w-]{22}$/) as string,
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
      'identity_id',
      'account_id',
      'orchestration_rule_id',
      'orchestration_memo_id',
    ])
    expect(demo).toMatchObject({
      base_url: first.ready.address,
      token_url: `${first.ready.address}/oauth2/token`,
      memo_id: expect.stringMatching(/^[A-Z0-9]{16}$/) as string,
      orchestration_memo_id: expect.stringMatching(/^[A-Z0-9]{16}$/) as string,
    })

    // The credentials get a token, a wire arrives, the balance is credited, and a withdrawal leaves.
    const { access_token: token, scope } = await tokenOf(demo.base_url!, demo)
    expect(scope).toBe(SCOPES.join(' '))
    const wire = async (memo_id: string | undefined) => {
      const deposit = await call(`${demo.base_url}/v2/sandbox/fiat-deposits`, token, {
        amount: '250.00',
        asset: 'USD',
        memo_id,
        fiat_network_instructions: { wire: {} },
      })
      expect(deposit).toEqual({ status: 200, body: {} })
    }
    await wire(demo.memo_id)
    const balance = await call(`${demo.base_url}/v2/profiles/${demo.profile_id}/balances/USD`, token)
    expect(balance.body).toMatchObject({ asset: 'USD', available: '10250' })
    const withdrawal = await call(
      `${demo.base_url}/v2/transfer/crypto-withdrawals`,
      token,
      withdrawalOf({ profile_id: demo.profile_id! }),
    )
    expect(withdrawal.body).toMatchObject({ status: 'PENDING', customer_id: demo.customer_id })
    await expect
      .poll(() => call(`${demo.base_url}/v2/transfer/transfers/${String(withdrawal.body.id)}`, token), {
        timeout: 20_000,
      })
      .toMatchObject({ body: { status: 'COMPLETED' } })
    await expectRecords(demo, token, () => wire(demo.orchestration_memo_id))

    expect(await first.stop()).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^[^\n]+\n$/) as string,
      stderr: '',
    })

    // A second start creates no records, but goes on reading networks and events. The file names the new address.
    const everyRecord = async () => ({
      ...(await everyTable(own.db)),
      network_cursors: undefined,
      webhooks: undefined,
    })
    const before = await everyRecord()
    const second = await serve(environment)
    expect(second.ready.credentials_file).toBe(file)
    // A third one beside it leaves the address of the one that goes on.
    const named = await readFile(file, 'utf8')
    expect((await (await serve(environment)).stop()).code).toBe(0)
    expect(await readFile(file, 'utf8')).toBe(named)
    expect((await second.stop()).code).toBe(0)
    expect(await everyRecord()).toEqual(before)
    const address = second.ready.address
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
      ...demo,
      base_url: address,
      token_url: `${address}/oauth2/token`,
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['sandbox-credentials.json'])

    await verified(own, environment)
    // A link has the port that was served last, whatever PORT is here.
    await json(['operator', 'create', '--name', 'Ada', '--role', 'VIEWER'], environment)
    expect((await json<{ link: string }>(['console', 'link'], environment)).link).toContain(`${address}/`)
  })

  /** The demo's account, its rule, which a wire triggers, and its statements of the last three months. */
  async function expectRecords(demo: Record<string, string>, token: string, wire: () => Promise<void>) {
    const get = async <T>(path: string) => (await call(`${demo.base_url}${path}`, token)).body as T
    const account = await get<Record<string, unknown>>(`/v2/identity/accounts/${demo.account_id}`)
    expect(account).toMatchObject({
      id: demo.account_id,
      identity_id: demo.identity_id,
      summary_status: 'APPROVED',
      profile_id: expect.stringMatching(UUID) as string,
    })
    expect(account.profile_id).not.toBe(demo.profile_id)

    // The demo itself triggered the rule once.
    await wire()
    const orchestrations = `/v2/orchestration/orchestrations?orchestration_rule_id=${demo.orchestration_rule_id}`
    const ended = (source_amount: string) => ({
      orchestration_rule_id: demo.orchestration_rule_id,
      profile_id: account.profile_id,
      source_amount,
      destination_asset: 'USDP',
      status: 'COMPLETED',
    })
    await expect
      .poll(() => get(orchestrations), { timeout: 20_000 })
      .toMatchObject({ items: [ended('250'), ended('100')] })

    const { statements } = await get<{ statements: Record<string, string>[] }>(
      `/v2/statements?customer_id=${demo.customer_id}`,
    )
    expect(statements.map(({ status }) => status)).toEqual(
      ['GENERATED', 'PAID', 'PAID'].map((status) => `STATEMENT_STATUS_${status}`),
    )
    const months = statements.map(({ period_start }) => period_start!.slice(0, 7))
    const [year, month] = new Date().toISOString().split('-').map(Number)
    const monthsAgo = [1, 2, 3].map((ago) =>
      new Date(Date.UTC(year!, month! - 1 - ago)).toISOString().slice(0, 7),
    )
    expect(months).toEqual(monthsAgo)
    for (const { metadata } of statements)
      expect(metadata).toEqual({ total_amount: expect.stringMatching(/^\d+\.\d{1,6}$/) as string })
  }

  /** `verify` reports a clean ledger, and then finds each fault that the test introduces. */
  async function verified(own: TestDatabase, environment: Environment): Promise<void> {
    expect(await json(['verify'], environment)).toEqual({
      clean: true,
      master_key: true,
      customers: 1,
      // Three months of deposits, two rewards, a wire, two conversions to USDP, and the transfers of this test.
      transfers: 14,
      entries: expect.any(Number) as number,
      balances: 3,
      disagreements: [],
      role_faults: [],
    })
    const clean = await bursar(['verify'], environment)
    expect(clean).toMatchObject({ code: 0, stderr: '' })
    expect(clean.stdout).toMatch(/^Clean: 1 customers, 14 transfers, \d+ entries, 3 balances\.\n$/)

    // Entries are append-only for the service's role; a superuser can damage them.
    const damage = `update entries set amount = amount + 1 where account = 'bank' and amount = -100`
    await expect(own.db.query(damage)).rejects.toThrow('permission denied')
    const url = new URL(inject('adminUrl'))
    url.pathname = new URL(own.url).pathname
    const admin = new pg.Client({ connectionString: url.href })
    await admin.connect()
    // A privilege too many is reported, but is not a disagreement in the ledger.
    await admin.query(`grant update on entries to ${new URL(own.url).username}`)
    const warned = await bursar(['verify'], environment)
    expect(warned).toMatchObject({ code: 0, stderr: '' })
    expect(warned.stdout).toMatch(
      /^Warning: the database role \S+ may change ledger entries; bursar migrate as the role .*\.\nClean: /,
    )
    expect(await json(['verify'], environment)).toMatchObject({
      clean: true,
      role_faults: [{ kind: 'EXCESS', says: expect.stringContaining('may change ledger entries') as string }],
    })
    await admin.query(`revoke update on entries from ${new URL(own.url).username}`)
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
    expect(toldBroken.stdout).toMatch(/: not every ledger transaction sums to zero.*USD sums to 1\n/)
    expect(toldBroken.stdout).toMatch(/\n1 disagreements: 1 customers/)
  }

  test('of many simultaneous starts one makes the demo, and the file has its credentials', async () => {
    const own = await ownDatabase()
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const db = own.db
    const context = {
      db,
      ledger: new Ledger(db),
      networks: simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 }),
      rowMacs: ROW_MACS,
      webhookSecrets: WEBHOOK_SECRETS,
    }
    const starts = Array.from({ length: 8 }, () =>
      makeDemo(context, { dataDir: folder, baseUrl: 'http://127.0.0.1:8080' }),
    )
    const made = (await Promise.all(starts)).filter((demo) => demo !== undefined)
    expect(made).toHaveLength(1)
    expect(JSON.parse(await readFile(join(folder, 'sandbox-credentials.json'), 'utf8'))).toEqual(made[0])
    expect((await own.db.query('select id from customers')).rows).toEqual([{ id: made[0]!.customer_id }])
  })

  test('makes no demo when the credentials cannot be written', async () => {
    const own = await ownDatabase()
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'file'), '')
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: join(folder, 'file'), PORT: '0' }
    expectRefused(await bursar(['serve'], environment), [/^BURSAR_DATA_DIR: .*file/])
    expect((await own.db.query('select 1 from customers')).rows).toHaveLength(0)
  })

  test('prints its address and commands to paste', async () => {
    const own = await ownDatabase()
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const environment = {
      DATABASE_URL: own.url,
      BURSAR_DATA_DIR: folder,
      PORT: '0',
      BURSAR_LOG_LEVEL: 'warn',
    }
    const command = startBursar(['serve'], settingsOf(environment))
    atEnd(async () => void (await command.stop()))
    const file = join(folder, 'sandbox-credentials.json')
    const session = firstSession(relative(ROOT, file))
    await command.printed((stdout) => stdout.includes(session))
    const stdout = command.stdout()
    const [first, ...rest] = stdout.split('\n')
    const [, address] = /^Bursar is ready at (http:\/\/127\.0\.0\.1:\d+) \(sandbox mode\)$/.exec(first!)!
    const [, key] = /\?key=([\w-]{22})$/.exec(rest[0]!)!
    expect(rest.slice(0, 4)).toEqual([
      `  console        ${address}/console?key=${key}`,
      `  API reference  ${address}/docs?key=${key}`,
      `  credentials    ${relative(ROOT, file)}`,
      '  stop           Ctrl+C',
    ])
    const { client_secret } = JSON.parse(
      await readFile(join(folder, 'sandbox-credentials.json'), 'utf8'),
    ) as {
      client_secret: string
    }
    expect(stdout).not.toContain(client_secret)
    expect((await command.stop('SIGINT')).code).toBe(0)
  })

  test('in live mode makes no demo, has no sandbox and is connected to no network', async () => {
    const own = await ownDatabase()
    const folder = await temporaryFolder()
    atEnd(() => rm(folder, { recursive: true, force: true }))
    const environment = { DATABASE_URL: own.url, BURSAR_DATA_DIR: folder, BURSAR_MODE: 'live' }
    const { ready, stop } = await serve(environment)
    const console = `${ready.address}/console`
    expect(ready).toEqual({ ready: true, address: ready.address, mode: 'live', console })
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
    const { rows } = await own.db.query<{ scopes: string[] }>('select scopes from api_clients')
    expect(rows).toEqual([{ scopes: SCOPES.filter((scope) => !scope.includes('sandbox')) }])
    const sandbox = 'transfer:write_sandbox_fiat_deposit'
    const refused = await bursar(
      ['client', 'create', '--customer', customer_id, '--scopes', sandbox],
      environment,
    )
    expectRefused(refused, [
      /^--scopes: transfer:write_sandbox_fiat_deposit: no operation of live mode has this scope$/,
    ])
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
      withdrawalOf({ profile_id }),
    )
    expect(withdrawal).toMatchObject({ status: 503, body: { status: 503, title: 'Service Unavailable' } })
    const document = (await (await fetch(`${ready.address}/openapi.json`)).json()) as { paths: object }
    expect(Object.keys(document.paths).filter((path) => path.includes('sandbox'))).toEqual([])
    expect((await stop()).code).toBe(0)
  })
})
