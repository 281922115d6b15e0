import { advanceClock } from '../src/db/sandbox-clock.ts'
import { originOfLoop } from '../src/contract/actor.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, InjectOptions } from 'fastify'
import pg from 'pg'
import { pino, type Logger } from 'pino'
import { inject } from 'vitest'
import { given, type OwnProcess } from '../src/cli/own-process.ts'
import { runProgram } from '../src/cli/program.ts'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import {
  inOrder,
  openDatabase,
  OWNER,
  setCoordinator,
  transaction,
  type Database,
} from '../src/db/database.ts'
import { PLACES } from '../src/db/tables.ts'
import { idsAt, PLATFORM_ID, readClock } from '../src/db/ids.ts'
import { addressOn, Cluster } from '../src/db/nodes.ts'
import { setParts } from '../src/db/parts.ts'
import { SCOPES, type ClientScope } from '../src/contract/scopes.ts'
import { onPlatform, onProfile } from '../src/money/ledger/entries.ts'
import { masterKeysOf } from '../src/keys/master-keys.ts'
import type { Market } from '../src/contract/markets.ts'
import { lockMarket, writePrices } from '../src/money/records/write-prices.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { RowMacs, sealRowsWith } from '../src/audit/sealed-rows.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import type { Networks } from '../src/networks/network.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { WebhookSecrets } from '../src/money/records/webhook-secrets.ts'
import { openBank } from '../src/rails/wires/bank.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { openSigningKeys } from '../src/access/tokens/signing-keys.ts'
import { readSettings, type Settings } from '../src/settings.ts'
import { atEnd, endWithWorker } from './at-end.ts'
import {
  CLUSTER,
  copyOnWorkers,
  createOnNodes,
  dropOnNode,
  joinNodes,
  onWorkers,
  optionsOf,
} from './cluster.ts'
import { governBy } from '../src/governance/policy/judge-payments.ts'
import { buildApp } from '../src/program/build-app.ts'

/** A separate database: a clone of the migrated template. */
export interface TestDatabase {
  /** For the service's role, which runs everything under test. */
  url: string
  db: Database
  /** For the role that owns the schema: statements that the service may not make (src/db/tables.ts). */
  ownerUrl: string
  owner: Database
  /** Closes the pools and drops the database. */
  drop: () => Promise<void>
}

export async function cloneDatabase(max = 10): Promise<TestDatabase> {
  // Test files share a process: an earlier file may have posted with other keys.
  sealRowsWith(() => Promise.resolve(MASTER_KEYS))
  const { url, ownerUrl, drop } = await createDatabase(new URL(inject('templateUrl')).pathname.slice(1))
  const [db, owner] = [
    openDatabase(url, { max, onError: () => undefined }),
    openDatabase(ownerUrl, { max: 2, onError: () => undefined, applicationName: OWNER }),
  ]
  return {
    url,
    db,
    ownerUrl,
    owner,
    async drop() {
      await Promise.all([db.end(), owner.end()])
      await drop()
    },
  }
}

/** A database of the test, or of the file that calls this outside of its tests: it is dropped at the end. */
export async function ownDatabase(max?: number): Promise<TestDatabase> {
  const database = await cloneDatabase(max)
  atEnd(() => database.drop())
  return database
}

/** A database that belongs to the owner's role. It is empty without a template. */
export async function createDatabase(template?: string) {
  const name = `test_${randomBytes(8).toString('hex')}`
  const addressOf = (address: string) => {
    const url = new URL(address)
    url.pathname = `/${name}`
    return url.href
  }
  const ownerUrl = addressOf(inject('templateOwnerUrl'))
  const { username } = new URL(ownerUrl)
  // Copying the files takes a third of the CPU of writing them to the write-ahead log.
  const like = template === undefined ? '' : `template ${template} strategy file_copy`
  const create = `create database ${name} owner ${username} ${like}`
  // An empty database exists on the coordinator alone.
  if (template !== undefined) await copyOnWorkers(name, create)
  await asAdmin([
    create,
    // A clone does not have the privileges on the database itself.
    `revoke temporary on database ${name} from public`,
    ...(template === undefined ? [] : optionsOf(name)),
  ])
  return {
    url: addressOf(inject('templateUrl')),
    ownerUrl,
    drop: () => dropDatabase(name),
  }
}

/** An empty database on every node of the cluster, with Citus. `join` makes a cluster of them. */
export async function createClusterDatabase() {
  const name = `test_${randomBytes(8).toString('hex')}`
  const addressOf = (address: string) => Object.assign(new URL(address), { pathname: `/${name}` }).href
  const ownerUrl = addressOf(inject('templateOwnerUrl'))
  await createOnNodes(name, new URL(ownerUrl).username)
  return {
    url: addressOf(inject('templateUrl')),
    ownerUrl,
    join: () => joinNodes(name),
    drop: () => dropDatabase(name),
  }
}

async function dropDatabase(name: string): Promise<void> {
  for (const address of [inject('adminUrl'), ...CLUSTER.slice(1)]) await dropOnNode(address, name)
}

/** Runs statements as a superuser on every node, in its default database. A role belongs to a node, not to the cluster. */
export async function onEveryNode(statements: string | string[]): Promise<void> {
  await asAdmin(statements)
  await onWorkers([statements].flat())
}

/** SQL: a time column moved by this interval, in a form that Citus accepts, too. */
export const movedBy = (column: string, interval: string): string =>
  `(${column} at time zone 'UTC' + interval '${interval}') at time zone 'UTC'`

/** Runs statements as a superuser, in the database of this address or in the server's default database. */
export async function asAdmin(statements: string | string[], of?: string): Promise<void> {
  const url = new URL(inject('adminUrl'))
  if (of !== undefined) url.pathname = new URL(of).pathname
  const admin = new pg.Client({ connectionString: url.href })
  await admin.connect()
  try {
    for (const statement of [statements].flat()) await admin.query(statement)
  } finally {
    await admin.end()
  }
}

/** Who makes the changes that a test makes without a request. */
export const TEST_ORIGIN = originOfLoop('test')

/** So long that services of tests record refused requests only when they close, never between two reads of the tables. */
const REFUSALS_EVERY_MS = 3_600_000

export const BASE_URL = 'http://127.0.0.1:8080'

export const testSettings = (environment: Record<string, string> = {}): Settings =>
  readSettings({
    BURSAR_SIMULATED_CONFIRMATION_MS: '0',
    BURSAR_SIMULATED_HOLD_MS: '50',
    BURSAR_RATE_LIMIT_PER_SECOND: '0',
    ...environment,
  })

/** The master key of every service and program in the tests, unless a test sets another. */
export const MASTER_KEY = '8f1c3b5d7e9a0b2c4d6f8192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6'
export const MASTER_KEYS = masterKeysOf([MASTER_KEY], 'BURSAR_MASTER_KEY')
export const WEBHOOK_SECRETS = new WebhookSecrets(MASTER_KEYS)
export const ROW_MACS = new RowMacs(MASTER_KEYS)
sealRowsWith(() => Promise.resolve(MASTER_KEYS))

/** The first service's signing key, which later services reuse: making a key takes 0.1 s of CPU. */
let signingKey: { id: string; encrypted_jwk: string } | undefined

type Query = (this: pg.ClientBase, ...given: unknown[]) => unknown
const ON_COORDINATOR = Object.keys(PLACES).filter((table) => PLACES[table] === 'COORDINATOR')
const NAMES_COORDINATOR = new RegExp(`\\b(from|join|into|update)\\s+(${ON_COORDINATOR.join('|')})\\b`)

/**
 * A plain database as a cluster has it: the pool of the customers takes no statement about a table that only the coordinator
 * of a cluster has. So each test on a plain database finds a statement that would fail on a cluster.
 */
function asOnCluster(shared: Database, pool: Database): void {
  pool.on('connect', (session) => {
    session.query = ((asked: string | pg.QueryConfig, ...others: unknown[]) => {
      const table = NAMES_COORDINATOR.exec(typeof asked === 'string' ? asked : asked.text)?.[2]
      if (table !== undefined)
        throw new Error(`relation "${table}" does not exist on the nodes of a cluster: ask the coordinator`)
      // Tests watch the statements of all sessions at the prototype.
      return (pg.Client.prototype.query as Query).call(session, asked, ...others)
    }) as typeof session.query
  })
  setCoordinator(pool, shared)
  const part = { name: '', db: pool }
  const list = [part]
  setParts(shared, { of: () => part, list: () => list, refresh: async () => undefined })
}

/** The service as production builds it, on a separate database. Close it. */
export async function startTestService(
  environment: Record<string, string> = {},
  { baseUrl = BASE_URL, log = pino({ level: 'silent' }) }: { baseUrl?: string; log?: Logger } = {},
) {
  const settings = testSettings(environment)
  const { url, db, ownerUrl, owner, drop } = await cloneDatabase()
  // On a cluster, requests go to the nodes of their customers, as in the program.
  const cluster = await Cluster.open(db, () => undefined)
  const pools: Database[] = []
  const open = (node?: string) => {
    const pool = openDatabase(addressOn(url, node), { max: 10, onError: () => undefined })
    pools.push(pool)
    return pool
  }
  if (CLUSTER.length > 0) cluster.connect(db, open)
  else asOnCluster(db, open())
  const ledger = new Ledger(db, {
    macs: new RowMacs(MASTER_KEYS),
    govern: governBy(new Policies(MASTER_KEYS, { sandbox: settings.mode === 'sandbox' })),
  })
  const networks: Networks =
    settings.mode === 'sandbox'
      ? simulatedNetworks(db, {
          confirmationMs: settings.simulatedConfirmationMs,
          holdMs: settings.simulatedHoldMs,
        })
      : new Map((await bankOf(settings)).map((bank) => ['WIRE', bank]))
  if (signingKey !== undefined)
    await db.query(
      `insert into signing_keys (id, encrypted_jwk, created_at, signs_from)
       values ($1, $2, clock_timestamp(), clock_timestamp())`,
      [signingKey.id, signingKey.encrypted_jwk],
    )
  const app = await buildApp({
    db,
    ledger,
    networks,
    settings,
    masterKeys: MASTER_KEYS,
    baseUrl,
    log,
    refusalsEveryMs: REFUSALS_EVERY_MS,
    advanceClock: async (duration) => (await advanceClock(db, ownerUrl, duration)).text,
  })
  await app.ready()
  signingKey ??= (await db.query<typeof signingKey & object>('select id, encrypted_jwk from signing_keys'))
    .rows[0]!
  return {
    url,
    db,
    ownerUrl,
    owner,
    app,
    ledger,
    macs: ledger.macs!,
    networks,
    settings,
    async close() {
      await app.close()
      await ledger.drain()
      await cluster.close()
      await Promise.all(pools.map((pool) => pool.end()))
      await drop()
    },
  }
}

/** A service of the test, or of the file that calls this outside of its tests: it is closed at the end. */
export async function ownTestService(...given: Parameters<typeof startTestService>): Promise<TestService> {
  const service = await startTestService(...given)
  atEnd(() => service.close())
  return service
}

let shared: Promise<Omit<TestService, 'close'>> | undefined

/**
 * A service that the test files of a Vitest worker share. It is for tests that need only their own customer, because its
 * tables have the records of other files, too. The service ends with the worker.
 */
export function sharedTestService(): Promise<Omit<TestService, 'close'>> {
  sealRowsWith(() => Promise.resolve(MASTER_KEYS))
  return (shared ??= startTestService())
}

/**
 * Does some work while an address counts as a customer's deposit address. The withdrawals that the work makes imitate earlier
 * versions, which paid any address of a wallet.
 */
export async function ownedAsDepositAddress(
  { owner }: { owner: Database },
  { customer_id, profile_id }: TestCustomer,
  network: CryptoNetwork,
  address: string,
  work: () => Promise<void>,
): Promise<void> {
  const id = randomUUID()
  await owner.query(
    `insert into deposit_addresses (customer_id, id, created_at, profile_id, crypto_network, address, conversion_target_asset)
     values ($1, $2, clock_timestamp(), $3, $4, $5, 'NO_CONVERSION')`,
    [customer_id, id, profile_id, network, address],
  )
  await ROW_MACS.seal(owner, 'deposit_addresses', customer_id, id)
  await work()
  await owner.query('delete from deposit_addresses where customer_id = $1 and id = $2', [customer_id, id])
}

/** Makes a real price, of that age, the newest of a market. */
export const setPrice = (
  db: Database,
  market: Market,
  price: string,
  { minutesAgo = 1 }: { minutesAgo?: number } = {},
): Promise<number> =>
  transaction(db, async (tx) => {
    await tx.query('delete from price_minutes where market_id = (select id from markets where market = $1)', [
      market,
    ])
    await tx.query('update markets set source = null, newest_minute = null where market = $1', [market])
    return writePrices(tx, (await lockMarket(tx, market, 'REAL'))!, {
      coversMinutes: 1,
      minute: [Math.floor(Date.now() / 60_000) - minutesAgo],
      second: [0],
      prices: [[price]],
    })
  })

/** Does some work while the database refuses the rows of a table that break a condition, to imitate a faulty record. */
export async function refusing(
  { owner }: { owner: Database },
  table: string,
  condition: string,
  work: () => Promise<void>,
): Promise<void> {
  await owner.query(`alter table ${table} add constraint odd_record check (${condition}) not valid`)
  try {
    await work()
  } finally {
    await owner.query(`alter table ${table} drop constraint odd_record`)
  }
}

const bankOf = async (settings: Settings) => {
  const bank = await openBank(settings)
  return bank === undefined ? [] : [bank]
}

/** The key that signs the tokens of a service on this database, and its published key set. */
export async function signerOf(db: Database) {
  const keys = await openSigningKeys(db, MASTER_KEYS)
  keys.close()
  return { ...keys.signer, jwks: keys.jwks }
}
export type TestService = Awaited<ReturnType<typeof startTestService>>

/** A customer with a client, a token with all scopes (or the given ones) and its default profile. */
export async function newCustomer(
  service: Pick<TestService, 'db' | 'app'>,
  scopes: readonly ClientScope[] = SCOPES,
) {
  const { customer_id, profile_id } = await createCustomer(service.db, 'Test')
  const client = await createApiClient(service.db, ROW_MACS, customer_id, scopes)
  const token = await fetchToken(service.app, client)
  return { customer_id, profile_id, ...client, token, call: caller(service.app, token) }
}
export type TestCustomer = Awaited<ReturnType<typeof newCustomer>>

export async function fetchToken(
  app: FastifyInstance,
  client: { client_id: string; client_secret: string },
): Promise<string> {
  const reply = await app.inject({
    method: 'POST',
    url: '/oauth2/token',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64')}`,
    },
    payload: 'grant_type=client_credentials',
  })
  if (reply.statusCode !== 200) throw new Error(`no token: ${reply.body}`)
  return reply.json<{ access_token: string }>().access_token
}

/** A reply with its body read as JSON. */
export interface Answer<T = Record<string, unknown>> {
  status: number
  headers: Record<string, unknown>
  body: T
}

/** Calls the API with a token; a body is sent as JSON. */
export function caller(app: FastifyInstance, token: string) {
  return async <T = Record<string, unknown>>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    body?: unknown,
    options: InjectOptions = {},
  ): Promise<Answer<T>> => {
    const reply = await app.inject({
      method,
      url,
      ...(body !== undefined && { payload: body as object }),
      ...options,
      headers: { authorization: `Bearer ${token}`, ...options.headers },
    })
    return { status: reply.statusCode, headers: reply.headers, body: reply.json<T>() }
  }
}

/** How another API client of the customer calls, which has these scopes. */
export async function callerWith(
  { app, db }: Pick<TestService, 'app' | 'db'>,
  { customer_id }: { customer_id: string },
  scopes: readonly ClientScope[] = SCOPES,
) {
  return caller(app, await fetchToken(app, await createApiClient(db, ROW_MACS, customer_id, scopes)))
}

/** Wires USD to a profile, through deposit instructions of its own. */
export async function fund(
  customer: TestCustomer,
  amount: string,
  profile_id = customer.profile_id,
): Promise<void> {
  const instructions = await customer.call<{ memo_id: string }>(
    'POST',
    '/v2/transfer/fiat-deposit-instructions',
    { profile_id, fiat_network: 'WIRE' },
  )
  const deposit = await customer.call('POST', '/v2/sandbox/fiat-deposits', {
    amount,
    asset: 'USD',
    memo_id: instructions.body.memo_id,
    fiat_network_instructions: { wire: {} },
  })
  if (deposit.status !== 200) throw new Error(`not funded: ${JSON.stringify(deposit.body)}`)
}

/** Credits a profile with an asset that no wire carries, as a deposit does. */
export async function credit(
  ledger: Ledger,
  { customer_id, profile_id }: { customer_id: string; profile_id: string },
  asset: string,
  amount: string,
  origin = originOfLoop('test'),
): Promise<Transfer> {
  const minor = parseAmount(amount, decimalsOf(asset))!
  const { transfer } = await ledger.submit(customer_id, {
    origin,
    balances: [{ profile_id, asset }],
    decide: ({ now, newId }) => ({
      transfer: {
        id: newId(),
        customer_id,
        profile_id,
        type: 'WIRE_DEPOSIT',
        direction: 'CREDIT',
        status: 'COMPLETED',
        asset,
        balance_asset: asset,
        amount,
        fee: '0',
        total: amount,
        created_at: now.text,
        updated_at: now.text,
      },
      entries: [onPlatform('bank', asset, -minor), onProfile(profile_id, asset, minor)],
    }),
  })
  return transfer
}

/** Verifies an identity through the sandbox: only an APPROVED identity may withdraw. */
export async function approve({ call }: Pick<TestCustomer, 'call'>, identityId: string): Promise<void> {
  const path = `/v2/identity/identities/${identityId}/sandbox-status`
  const answer = await call('PUT', path, { status: 'APPROVED' })
  if (answer.status !== 200) throw new Error(`not approved: ${JSON.stringify(answer.body)}`)
}

/** Creates a profile without money. Returns its id. */
export async function newProfile({ call }: Pick<TestCustomer, 'call'>): Promise<string> {
  const { body } = await call<{ id: string }>('POST', '/v2/profiles', { nickname: randomUUID() })
  return body.id
}

/** Creates a person, who is PENDING. Returns its id. */
export async function newIdentity({ call }: Pick<TestCustomer, 'call'>): Promise<string> {
  const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
  const identity = { ref_id: randomUUID(), person_details }
  return (await call<{ id: string }>('POST', '/v2/identity/identities', identity)).body.id
}

/** Creates an approved identity with an account. */
export async function newHolder(of: TestCustomer): Promise<{ identity_id: string; account_id: string }> {
  const id = await newIdentity(of)
  await approve(of, id)
  const account = { identity_id: id }
  const { body } = await of.call<{ id: string }>('POST', '/v2/identity/accounts', { account })
  return { identity_id: id, account_id: body.id }
}

export const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

/** A withdrawal body that is accepted, paid from USD. */
export const withdrawalOf = (
  customer: Pick<TestCustomer, 'profile_id'>,
  changes: Record<string, unknown> = {},
) => ({
  profile_id: customer.profile_id,
  asset: 'USDP',
  balance_asset: 'USD',
  crypto_network: 'ETHEREUM',
  amount: '10',
  destination_address: DESTINATION,
  ...changes,
})

/** Orders the withdrawal of `withdrawalOf` with these changes. Returns the transfer. Throws where the service refuses it. */
export async function withdraw(
  customer: { profile_id: string; call: RemoteCaller },
  changes: Record<string, unknown> = {},
): Promise<Transfer> {
  const { status, body } = await customer.call<Transfer>(
    'POST',
    '/v2/transfer/crypto-withdrawals',
    withdrawalOf(customer, changes),
  )
  if (status !== 200) throw new Error(`not withdrawn: ${JSON.stringify(body)}`)
  return body
}

/** The built program (test/global-setup.ts). */
export const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url))
/** The environment that a program needs, without the settings of this process. */
export const ENVIRONMENT = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  TMPDIR: process.env.TMPDIR,
  BURSAR_MASTER_KEY: MASTER_KEY,
}

/** How a process ended, with all its output. */
export interface Ended {
  /** Null when a signal ended it. */
  code: number | null
  stdout: string
  stderr: string
}

/** Waits for the end of a process whose output is a pipe. */
export async function endOf(child: ChildProcess): Promise<Ended> {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, stdout, stderr }
}

/** Runs a command of the built program to its end, in a process of its own: for what Node reads at its start. */
export const execBursar = (
  args: string[],
  environment: Record<string, string | undefined> = {},
): Promise<Ended> =>
  endOf(
    spawn(process.execPath, [PROGRAM, ...args], {
      env: { ...ENVIRONMENT, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )

/** A command that runs in this process. */
export interface Command {
  stdout: () => string
  stderr: () => string
  /** Waits until `isEnough` accepts the standard output, or the command has ended. */
  printed: (isEnough: (stdout: string) => boolean) => Promise<void>
  /** Sends a signal to the command alone, and waits for its end. */
  stop: (signal?: 'SIGINT' | 'SIGTERM') => Promise<Ended>
  ended: Promise<Ended>
}

/** Starts a command of the program in this process, with these settings only, and with streams and signals of its own. */
export function startBursar(args: string[], environment: Record<string, string | undefined> = {}): Command {
  const events = new EventEmitter()
  const output = { stdout: '', stderr: '' }
  const write = (name: keyof typeof output, text: string) => {
    output[name] += text
    events.emit('output')
  }
  const streamOf = (name: keyof typeof output) =>
    new Writable({
      decodeStrings: false,
      write(text: string, _, done) {
        write(name, text)
        done()
      },
    }) as NodeJS.WriteStream & { fd: 1 & 2 }
  let exit!: (code: number) => void
  const exited = new Promise<number>((resolve) => (exit = resolve))
  const own: OwnProcess = {
    env: { ...ENVIRONMENT, ...environment },
    stdout: streamOf('stdout'),
    stderr: streamOf('stderr'),
    log: {
      write: (text: string) => write('stderr', text),
      flushSync: () => undefined,
      on: () => undefined,
    } as never,
    exitCode: undefined,
    exit,
    on: (signal, listener) => events.on(signal, listener),
  }
  const run = async () => {
    await given.run(own, () => runProgram(args))
    // `serve` goes on until a signal.
    if (args[0] !== 'serve') exit(Number(own.exitCode ?? 0))
    const code = await exited
    // The command may have had other keys.
    sealRowsWith(() => Promise.resolve(MASTER_KEYS))
    events.emit('output')
    return { code, ...output }
  }
  const ended = run()
  let hasEnded = false
  void exited.then(() => (hasEnded = true))
  return {
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    async printed(isEnough) {
      while (!isEnough(output.stdout) && !hasEnded) await once(events, 'output')
    },
    stop(signal = 'SIGTERM') {
      given.run(own, () => events.emit(signal))
      return ended
    },
  }
}

/** Runs a command of the program to its end in this process, with these settings only. */
export const runBursar = (
  args: string[],
  environment: Record<string, string | undefined> = {},
): Promise<Ended> => startBursar(args, environment).ended

/** Runs a command in this process. Returns its standard output. Throws an Error with its standard error where it fails. */
export async function outputOf(
  args: string[],
  environment: Record<string, string | undefined>,
): Promise<string> {
  const { stdout, stderr, code } = await runBursar(args, { BURSAR_LOG_LEVEL: 'silent', ...environment })
  if (code !== 0) throw new Error(stderr.trimEnd())
  return stdout.trimEnd()
}

/** Runs `bursar serve` in this process, on a free port, and waits until it is ready. It is stopped when the test ends. */
export async function serveBursar(environment: Record<string, string | undefined>) {
  const command = startBursar(['serve', '--json'], { PORT: '0', BURSAR_METRICS_PORT: '0', ...environment })
  atEnd(async () => void (await command.stop()))
  await command.printed((stdout) => stdout.includes('\n'))
  if (command.stdout() === '') throw new Error(`serve ended: ${command.stderr()}`)
  const ready = JSON.parse(command.stdout()) as {
    ready: boolean
    address: string
    mode: string
    credentials_file?: string
  }
  return { ready, stop: command.stop }
}

/** The lines of standard error that are text, without the JSON lines of the log. */
export const toldIn = ({ stderr }: Ended): string[] =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{"level"'))

/** Standard error without the log lines that name the operator. */
export const withoutOperators = (stderr: string): string =>
  stderr.replaceAll(/^{"level":30,.*"user":".*}\n/gm, '')

/** The log's lines on standard error. */
export const loggedIn = ({ stderr }: Ended): Record<string, unknown>[] =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{"level"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const START_MS_MAX = 300_000

export interface BursarProcess {
  address: string
  /** The console's address with the proof that a browser is at this machine, where there is one. */
  console: string
  pid: number
  /** The log so far. */
  log: () => string
  /** Sends the signal if the process still runs, and waits for its end. */
  end: (signal: 'SIGTERM' | 'SIGKILL') => Promise<void>
  /** Null while the process runs, and after a signal ended it. */
  exitCode: () => number | null
}

/** Runs `bursar serve` on a free port and waits until it is ready. End it. */
export async function spawnBursar(
  environment: Record<string, string>,
  program = PROGRAM,
  user: { uid?: number; gid?: number } = {},
): Promise<BursarProcess> {
  const child = spawn(process.execPath, [program, 'serve', '--json'], {
    env: {
      ...ENVIRONMENT,
      PORT: '0',
      BURSAR_SIMULATED_PRICE_DAYS: '0',
      BURSAR_METRICS_PORT: '0',
      BURSAR_RATE_LIMIT_PER_SECOND: '0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  })
  endWithWorker(child)
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const ended = once(child, 'exit')
  const tooLong = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
  const [line] = (await Promise.race([once(createInterface(child.stdout), 'line'), ended])) as [unknown]
  clearTimeout(tooLong)
  if (typeof line !== 'string') throw new Error(`Bursar did not start:\n${log}`)
  return {
    ...(JSON.parse(line) as { address: string; console: string }),
    pid: child.pid!,
    log: () => log,
    async end(signal) {
      if (!hasEnded()) child.kill(signal)
      await ended
    },
    exitCode: () => child.exitCode,
  }
}

/** A process of the test, or of the file that calls this outside of its tests: it is ended at the end. */
export async function ownBursar(...given: Parameters<typeof spawnBursar>): Promise<BursarProcess> {
  const bursar = await spawnBursar(...given)
  atEnd(() => bursar.end('SIGTERM'))
  return bursar
}

/** Calls a service in another process, with a separate token. Throws when the connection fails. */
export async function remoteCaller(address: string, client: { client_id: string; client_secret: string }) {
  const token = await fetch(`${address}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
  })
  const { access_token } = (await token.json()) as { access_token: string }
  return async <T = Record<string, unknown>>(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: T }> => {
    const reply = await fetch(`${address}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${access_token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: reply.status, body: (await reply.json()) as T }
  }
}
export type RemoteCaller = Awaited<ReturnType<typeof remoteCaller>>

/** Inserts three statements of a customer, one month each: PAID, GENERATED and INITIATED. Returns their ids. */
export async function insertStatements(db: Database, customer_id: string): Promise<string[]> {
  const newId = idsAt(await transaction(db, readClock))
  const ids = ['PAID', 'GENERATED', 'INITIATED'].map(newId)
  await db.query(
    `
    insert into statements (customer_id, id, ref_id, type, product, status, asset, total_amount_owed, amount_paid,
                            period_start, period_end, created_at, generated_at, paid_at)
    select $1::uuid, id, concat_ws('-', 'USDG_REWARDS', $1::uuid::text, month), 'STATEMENT_TYPE_USDG_REWARD', 'USDG_REWARDS',
           'STATEMENT_STATUS_' || status, 'USDG', total, paid, (month || '-01')::timestamptz,
           (month || '-01')::timestamptz + interval '1 month' - interval '1 microsecond', now(),
           case when total is not null then now() end, case status when 'PAID' then now() end
    from unnest($2::uuid[], '{2026-01,2026-02,2026-03}'::text[], '{PAID,GENERATED,INITIATED}'::text[],
                '{1.5,0.25,null}'::numeric[], '{1.5,0,null}'::numeric[]) as s (id, month, status, total, paid)`,
    [customer_id, ids],
  )
  return ids
}

/** The posted entries of a transfer: event, account, asset and amount. */
export async function entriesOf(db: Database, transferId: string): Promise<string[]> {
  const { rows } = await db.query<{ entry: string }>(
    `select concat_ws(' ', event, account, asset, amount) as entry from entries where transfer_id = $1
     order by event, position`,
    [transferId],
  )
  return rows.map(({ entry }) => entry)
}

/**
 * Reads every table, to show that nothing changed. Uses one connection, because each further one would have to be opened and
 * to read the catalogue again.
 */
export async function everyTable(db: Database): Promise<Record<string, string[]>> {
  const client = await db.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       order by 1`,
    )
    const contents = await inOrder(
      rows.map(async ({ name }) => {
        // When a client was last used is written after the answer, once for many requests.
        const table = await client.query<{ row: string }>(
          `select (to_jsonb(t) - 'last_used_at')::text as row from ${name} t order by 1`,
        )
        return [name, table.rows.map(({ row }) => row)] as const
      }),
    )
    return Object.fromEntries(contents)
  } finally {
    client.release()
  }
}

/**
 * Records which tables are empty in a clone. Returns a function that empties them again, for another run on the
 * clone. A clone for each run creates and removes hundreds of files, which may cost more than the run.
 */
export async function emptier({ url, db }: TestDatabase): Promise<() => Promise<void>> {
  const tables = Object.entries(await everyTable(db)).flatMap(([name, rows]) =>
    rows.length === 0 ? name : [],
  )
  const { rows } = await db.query<{ hash: string }>(
    `select encode(hash, 'hex') as hash from audit_heads where customer_id = $1 and position = 0`,
    [PLATFORM_ID],
  )
  const firstHash = rows[0]!.hash
  // The service's role may not delete everything.
  const admin = new URL(inject('adminUrl'))
  admin.pathname = new URL(url).pathname
  // This setting disables the triggers that enforce foreign keys, but not on other nodes. So parents are deleted last.
  const last = ['profiles', 'accounts', 'identities', 'customers']
  const statements = [
    'set session_replication_role = replica',
    ...tables
      .toSorted((a, b) => last.indexOf(a) - last.indexOf(b))
      .map((name) => `delete from public.${name}`),
    // The platform has a chain from the start. The chain's links are deleted, so the chain begins again.
    `delete from public.audit_heads where customer_id <> '${PLATFORM_ID}'`,
    `update public.audit_heads set position = 0, hash = '\\x${firstHash}'`,
  ]
  return async () => {
    const client = new pg.Client({ connectionString: admin.href })
    await client.connect()
    try {
      await client.query(statements.join(';'))
    } finally {
      await client.end()
    }
  }
}

/** Returns the actions that commands of this user have recorded in the audit log. */
export async function actionsOfCommands(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ action: string }>(
    `select distinct action from audit_log where actor_type = 'COMMAND_LINE' and actor_id = $1 order by action`,
    [userInfo().username],
  )
  return rows.map(({ action }) => action)
}
