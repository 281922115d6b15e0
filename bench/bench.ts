import { originOfLoop } from '../src/contract/actor.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createCustomer } from '../src/access/customers/create-customer.ts'
import { openDatabase, transaction, type Database } from '../src/db/database.ts'
import { readClock } from '../src/db/ids.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { migrate } from '../src/db/migrate.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { openMasterKeys } from '../src/keys/master-keys.ts'
import { RowMacs, sealRowsWith } from '../src/audit/row-macs.ts'
import { onPlatform, onProfile } from '../src/money/ledger/entries.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { verify } from '../src/money/verify/verify.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { completeDocument, type NewPolicyDocument } from '../src/governance/policy/policy-document.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { insertProfile } from '../src/money/records/profile.ts'
import { readSettings } from '../src/settings.ts'
import { createCryptoWithdrawal } from '../src/resources/transfers/create-crypto-withdrawal.ts'
import { httpLoad, type LoadResult } from './http-load.ts'
import { measureFirstSession } from './clone.ts'
import { TICKS_A_SECOND, ticksOf } from './cpu.ts'
import { measureGrowth } from './growth.ts'
import { measureIdle } from './idle.ts'
import { measureLanes } from './lanes.ts'
import { measureDeliveries } from './deliveries.ts'
import { measureOrchestrationReads, measureOrchestrationRuns } from './orchestrations.ts'
import { measureStatements } from './statements.ts'
import { measurePrices } from './prices.ts'
import { measureReads, type ReadFigure } from './reads.ts'
import { measureRecovery } from './recovery.ts'
import { measureShapes, measureSteady, peakMiB as readPeakMemory } from './shapes.ts'
import { bursar, connectPeers, measurePeers } from './peers.ts'
import { PARTS, runOf, withTables, type Part, type TableRow } from './write-tables.ts'

/**
 * `npm run bench` measures the figures of docs/performance.md. A run uses one PostgreSQL with durable commits. The compared
 * programs take turns in each round, because the machine's load varies: compare the ratios.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '1000000' },
    /** How long the steady load runs: 600 seconds, or 3600 for the hour that Mojaloop publishes. */
    'steady-seconds': { type: 'string', default: '600' },
    /** How long an idle service is observed. */
    'idle-seconds': { type: 'string', default: '60' },
    /** Milliseconds by which each durable commit is delayed, to imitate a slower disk. */
    'slower-disk': { type: 'string', default: '0' },
    /** Other ledgers that run: `formance=http://...,blnk=http://...,pgledger=postgres://...,tigerbeetle=tcp://...`. */
    peers: { type: 'string', default: '' },
    /** The parts to run. The default omits the slow ones, and those that need something: packages to fetch, or other ledgers. */
    only: {
      type: 'string',
      default: PARTS.filter(
        (part) => !['steady', 'growth', 'clone', 'idle', 'peers', 'lanes'].includes(part),
      ).join(','),
    },
    /** The page into which the tables are written: docs/performance.md. */
    write: { type: 'string' },
  },
})
const SECONDS = Number(options.seconds)
const ROUNDS = Number(options.rounds)
const PROFILES = 100
const TEXTBOOK_ACCOUNTS = 1000
const TEXTBOOK_CONNECTIONS = 32
const CALLERS = [1, 32, 256, 1024]
/** The numbers of customers among whom the ledger's callers are divided. */
const CUSTOMERS = [1, 2, 8, 100]
const PORT = 18_080
/** Makes the textbook's ref_ids unique over all rounds. */
let textbookCalls = 0
/** The stated duration of each part that does not run in rounds of `SECONDS`. */
const REPEATED: Partial<Record<Part, string>> = {
  runs: 'one run',
  statements: 'one run',
  orchestrations: 'one run',
  prices: 'one run',
  shapes: `${SECONDS} s each`,
  steady: 'one run',
  recovery: `${ROUNDS} rounds`,
  growth: 'one run',
  clone: `${ROUNDS} rounds`,
  idle: `${ROUNDS} rounds`,
  lanes: 'one run',
}
/** The measured tables, for `--write`. */
const tables: Partial<Record<Part, TableRow[]>> = {}
/** Ten rules that match none of the benchmark's withdrawals. */
const RULES: NewPolicyDocument['rules'] = Array.from({ length: 10 }, (_, n) => ({
  match: { transfer_types: ['CRYPTO_WITHDRAWAL'], client_ids: [`client ${n}`], assets: ['USDP', 'USDG'] },
  limit: { amount: `${n + 1}000`, asset: 'USD', period_seconds: 0 },
  action: 'BLOCK',
}))
/** Limits that are never reached. */
const WINDOWS: NewPolicyDocument['rules'] = (['PROFILE', 'CUSTOMER'] as const).map((per) => ({
  limit: { amount: '1000000000', asset: 'USDP', period_seconds: 86_400, per },
  action: 'BLOCK',
}))

/** Prints a table, and keeps it for `--write`. */
function show(part: Part, rows: TableRow[]): void {
  console.table(rows)
  tables[part] = rows
}

const dataDir = await mkdtemp(join(tmpdir(), 'bursar-bench-'))
const postgres = await EmbeddedPostgres.start({ dataDir, log: () => undefined })
const admin = new pg.Client(postgres.adminUrl)
await admin.connect()
await slowDown(admin, Number(options['slower-disk']))
// The owner's role, for the benchmark's own tables and for `vacuum`; the HTTP service uses its own role.
const ownerUrl = postgres.ownerUrl
const db = openDatabase(ownerUrl, { max: 10, onError: () => undefined })
await migrate(db, 'bursar')
sealRowsWith(() => openMasterKeys({ ...readSettings({}), dataDir }))
// The service must see the transactions of the owner's role, with which this process writes at the same time.
await admin.query('grant pg_read_all_stats to bursar')
await admin.query('grant pg_checkpoint to bursar_owner')
await admin.end()
const report: Record<string, unknown> = {
  at: new Date().toISOString(),
  node: process.version,
  seconds: SECONDS,
  slowerDiskMs: Number(options['slower-disk']),
}
try {
  if (options.only.includes('writes')) {
    report.writes = await measureWrites(db)
    // `verify` runs before the reads, because the reads' rows have no entries.
    const { disagreements, transfers } = await verify(db)
    console.log(`verify: ${transfers} transfers, ${disagreements.length} disagreements`)
  }
  if (options.only.includes('bulk')) {
    report.bulk = await withApi(db, measureBulk)
    const { disagreements, transfers } = await verify(db)
    console.log(`verify: ${transfers} transfers, ${disagreements.length} disagreements`)
  }
  if (options.only.includes('customers')) {
    report.customers = await measureCustomers(db)
    console.log('\nThe ledger without HTTP, by the number of customers to whom the callers belong')
    show('customers', report.customers as TableRow[])
  }
  if (options.only.includes('policy')) {
    report.policy = await withApi(db, (api) => measurePolicies(db, api))
    console.log('\nWithdrawals a second under a policy; "times" is relative to no policy')
    show('policy', report.policy as TableRow[])
  }
  if (options.only.includes('shapes')) {
    report.shapes = await withApi(db, (api) => measureShapes(db, api, SECONDS))
    console.log('\nThe shapes of others')
    show('shapes', report.shapes as TableRow[])
  }
  if (options.only.includes('steady')) {
    report.steady = await withApi(db, (api) => measureSteady(db, api, Number(options['steady-seconds'])))
    console.log('\nA thousand withdrawals a second, offered whether or not the last are answered')
    show('steady', report.steady as TableRow[])
  }
  if (options.only.includes('recovery')) {
    let owner: Owner | undefined
    const start = async () => {
      const api = await startApi({ BURSAR_WORKER: 'true', BURSAR_SIMULATED_CONFIRMATION_MS: '0' })
      owner ??= await newOwner(db, api.baseUrl)
      return { ...owner, ...api }
    }
    report.recovery = await measureRecovery(start, ROUNDS)
    console.log('\nFrom kill -9 to the next answer and the next paid withdrawal')
    show('recovery', report.recovery as TableRow[])
  }
  if (options.only.includes('growth')) {
    report.growth = await measureGrowth(db, Number(options.rows), {
      newCustomer: () => newFundedCustomer(db),
      measure: (customers, callers, prefix) => measureLedger(db, customers, callers, prefix),
      async start() {
        const begunAt = performance.now()
        const { process: child } = await startApi({ BURSAR_WORKER: 'true' })
        const seconds = (performance.now() - begunAt) / 1000
        child.kill('SIGTERM')
        await once(child, 'exit')
        return seconds
      },
      async copy() {
        await db.query('checkpoint')
        const folder = `${dataDir}-copy`
        await cp(join(dataDir, 'postgres'), folder, { recursive: true })
        await rm(folder, { recursive: true })
      },
    })
    console.log('\nA database that grows tenfold')
    show('growth', report.growth as TableRow[])
  }
  if (options.only.includes('clone')) {
    report.clone = await measureFirstSession(ROUNDS)
    console.log('\nSeconds from a clone to the first paid withdrawal')
    show('clone', report.clone as TableRow[])
  }
  if (options.only.includes('idle')) {
    report.idle = await measureIdle(ROUNDS, Number(options['idle-seconds']))
    console.log('\nA service that nobody uses')
    show('idle', report.idle as TableRow[])
  }
  if (options.only.includes('peers')) {
    const peers = await connectPeers(options.peers)
    report.peers = await withApi(db, ({ baseUrl, token, profileIds }) =>
      measurePeers([bursar(baseUrl, token, profileIds), ...peers], ROUNDS, SECONDS),
    )
    console.log('\nTransfers between accounts, beside other ledgers')
    show('peers', report.peers as TableRow[])
  }
  if (options.only.includes('lanes')) {
    report.lanes = await measureLanes(db, ownerUrl, async (count) => {
      const { address: destination } = privateKeyToAccount(generatePrivateKey())
      const owner = await newFundedCustomer(db)
      const withdraw = withdrawing(db, [owner], destination, destination)
      for (let n = 0; n < count; n += 500)
        await Promise.all(Array.from({ length: 500 }, (_, i) => withdraw(n + i)))
      return { destination, customerIds: [owner.customerId] }
    })
    console.log('\nQueued withdrawals over one EVM node')
    show('lanes', report.lanes as TableRow[])
  }
  if (options.only.includes('traces')) {
    report.traces = await measureTraces(db)
    console.log('\nWithdrawals with OpenTelemetry')
    show('traces', report.traces as TableRow[])
  }
  if (options.only.includes('deliveries')) {
    const masterKeys = await openMasterKeys({ ...readSettings({}), dataDir })
    report.deliveries = await withApi(db, (api) =>
      measureDeliveries({
        api,
        databaseUrl: postgres.url,
        masterKeys,
        rounds: ROUNDS,
        seconds: SECONDS,
      }),
    )
    console.log('\nDeliveries of events to webhooks')
    show('deliveries', report.deliveries as TableRow[])
  }
  if (options.only.includes('runs')) {
    report.runs = await measureOrchestrationRuns(db)
    console.log('\nOrchestrations from deposit to COMPLETED, by the number under way at once')
    show('runs', report.runs as TableRow[])
  }
  if (options.only.includes('statements')) {
    report.statements = await measureStatements(db, Number(options.rows))
    console.log('\nGenerating the statement of a month, of one customer')
    show('statements', report.statements as TableRow[])
  }
  if (options.only.includes('orchestrations')) {
    const figures = await withApi(db, (api) => measureOrchestrationReads(db, api, Number(options.rows)))
    report.orchestrations = figures
    console.log('\nList Orchestrations, pages of 100; "times" is p99 relative to the small size')
    const small = new Map(figures.map(({ what, p99Ms }) => [what, p99Ms] as const).reverse())
    show(
      'orchestrations',
      figures.map((figure) => ({
        ...figure,
        times: Number((figure.p99Ms / small.get(figure.what)!).toFixed(2)),
      })),
    )
  }
  if (options.only.includes('reads')) {
    report.reads = await withApi(db, (api) => measureReads(db, api, Number(options.rows)))
    printReads(report.reads as ReadFigure[])
  }
  if (options.only.includes('prices')) {
    const { imported, simulated, disk, reads } = await measurePrices(db, {
      databaseUrl: postgres.url,
      dataDir,
    })
    report.prices = { imported, simulated, disk, reads }
    console.log(
      '\nMarket history: import of five years of minutes, simulation of 30 days of all others, size',
    )
    console.log(imported, simulated, disk)
    console.log('\nList Historical Prices; "times" is p99 relative to looking up as many rows by their keys')
    show('prices', reads as unknown as TableRow[])
  }
} finally {
  await db.end()
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}
await mkdir(new URL('results/', import.meta.url), { recursive: true })
const file = new URL(`results/${String(report.at).replaceAll(':', '-')}.json`, import.meta.url)
await writeFile(file, `${JSON.stringify(report, null, 2)}\n`)
console.log(`Saved to ${file.pathname}`)
if (options.write !== undefined) {
  const run = (part: Part) => runOf(String(report.at), REPEATED[part] ?? `${ROUNDS} rounds of ${SECONDS} s`)
  await writeFile(options.write, withTables(await readFile(options.write, 'utf8'), tables, run))
  console.log(`Wrote the tables to ${options.write}`)
}

/**
 * Delays every flush of the write-ahead log, as on a slower disk. This machine's disk may be battery-backed or virtual and
 * flush in 0.2 ms; an ordinary disk takes some milliseconds.
 */
async function slowDown(admin: pg.Client, milliseconds: number): Promise<void> {
  if (milliseconds === 0) return
  await admin.query(`alter system set commit_delay = ${milliseconds * 1000}`)
  await admin.query('alter system set commit_siblings = 0')
  await admin.query('select pg_reload_conf()')
}

interface Row {
  what: string
  callers: number
  perSecond: number[]
  p50Ms: number[]
  p99Ms: number[]
}

/** Measures withdrawals over HTTP, of the textbook ledger, of the ledger without HTTP, and of one hot profile. */
async function measureWrites(db: Database) {
  await db.query(await readFile(new URL('textbook.sql', import.meta.url), 'utf8'))
  await db.query(
    `insert into textbook_accounts (id, balance) select gen_random_uuid(), 1e12 from generate_series(1, $1)`,
    [TEXTBOOK_ACCOUNTS],
  )
  const rows = new Map<string, Row>()
  const note = (what: string, callers: number, seen: Pick<LoadResult, 'perSecond' | 'p50Ms' | 'p99Ms'>) => {
    const key = `${what} ${callers}`
    const row = rows.get(key) ?? { what, callers, perSecond: [], p50Ms: [], p99Ms: [] }
    rows.set(key, row)
    row.perSecond.push(Math.round(seen.perSecond))
    row.p50Ms.push(seen.p50Ms)
    row.p99Ms.push(seen.p99Ms)
    console.log(`  ${key}: ${Math.round(seen.perSecond)}/s`)
  }
  const peakMiB = await withApi(db, async (api) => {
    for (let round = 1; round <= ROUNDS; round++) {
      console.log(`Round ${round} of ${ROUNDS}`)
      note('textbook', 1, await measureTextbook(1))
      note('textbook', TEXTBOOK_CONNECTIONS, await measureTextbook(TEXTBOOK_CONNECTIONS))
      for (const clients of CALLERS) {
        const prefix = `a${round}-${clients}`
        note('http', clients, await httpLoad({ ...api, clients, seconds: SECONDS, prefix }))
      }
      const [hot] = api.profileIds
      const prefix = `d${round}`
      note(
        'http, one hot profile',
        256,
        await httpLoad({ ...api, profileIds: [hot!], clients: 256, seconds: SECONDS, prefix }),
      )
      for (const callers of [1, 256])
        note('ledger', callers, await measureLedger(db, [api], callers, `c${round}-${callers}`))
    }
    return readPeakMemory(api.process)
  })
  printWrites([...rows.values()], peakMiB)
  return { rows: [...rows.values()], peakMiB }
}

/** Withdrawals a second: single requests against requests of many, in turns. */
async function measureBulk(api: Api) {
  const rows = [
    { what: 'single requests', clients: TEXTBOOK_CONNECTIONS },
    { what: '100 in a request', clients: 4, itemsEach: 100 },
    { what: '1,000 in a request', clients: 1, itemsEach: 1_000 },
    { what: '1,000 in a request', clients: 4, itemsEach: 1_000 },
  ].map((row) => ({ ...row, seen: [] as LoadResult[] }))
  for (let round = 1; round <= ROUNDS; round++)
    for (const [index, { clients, itemsEach, seen }] of rows.entries()) {
      const prefix = `bulk${round}-${index}`
      seen.push(
        await httpLoad({ ...api, clients, seconds: SECONDS, prefix, ...(itemsEach && { itemsEach }) }),
      )
    }
  const rateOf = ({ seen }: { seen: LoadResult[] }) => median(seen.map(({ perSecond }) => perSecond))
  console.log('\nWithdrawals a second; "times" is relative to single requests')
  show(
    'bulk',
    rows.map((row) => ({
      what: row.what,
      connections: row.clients,
      'per second': Math.round(rateOf(row)),
      times: Number((rateOf(row) / rateOf(rows[0]!)).toFixed(2)),
      refused: row.seen.reduce((sum, { refused }) => sum + refused, 0),
    })),
  )
  return rows
}

/** The CPU of withdrawals at 256 clients without OpenTelemetry, as it is set by itself, and with everything traced, in turns. */
async function measureTraces(db: Database): Promise<TableRow[]> {
  const collector = createServer((request, response) => request.resume().on('end', () => response.end()))
  collector.listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  const sent = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
  const variants: { what: string; environment: Record<string, string> }[] = [
    { what: 'without', environment: {} },
    { what: 'a hundredth is traced, the default', environment: sent },
    // Tells how much of a difference is the machine's.
    { what: 'without, once more', environment: {} },
    { what: 'everything is traced', environment: { ...sent, OTEL_TRACES_SAMPLER: 'always_on' } },
  ]
  const rows: {
    what: string
    api: Api
    seen: { node: number; all: number; perSecond: number }[]
  }[] = []
  try {
    // All are there all the time, so that each is as warm as the others.
    for (const [index, { what, environment }] of variants.entries()) {
      const port = PORT + index
      const api = await startApi({ PORT: String(port), BURSAR_METRICS_PORT: '0', ...environment })
      rows.push({ what, api: { ...api, ...(await newOwner(db, api.baseUrl)) }, seen: [] })
    }
    // There and back, because a shared machine drifts.
    for (let round = 0; round <= ROUNDS; round++)
      for (const { api, seen } of round % 2 === 0 ? rows : rows.toReversed()) {
        const before = [await ticksOf(api.process.pid!), await ticksOf(process.pid)] as const
        const { perSecond } = await httpLoad({
          ...api,
          clients: 256,
          seconds: SECONDS,
          prefix: `traces${round}`,
        })
        const after = [await ticksOf(api.process.pid!), await ticksOf(process.pid)] as const
        const [node, all] = after.map(
          (ticks, index) => ((ticks - before[index]!) * 1e6) / TICKS_A_SECOND / (perSecond * SECONDS),
        )
        // The first round warms up.
        if (round > 0) seen.push({ node: node!, all: all!, perSecond })
      }
  } finally {
    for (const { api } of rows) {
      api.process.kill('SIGTERM')
      await once(api.process, 'exit')
    }
    collector.closeAllConnections()
    collector.close()
  }
  type Seen = (typeof rows)[number]['seen']
  const of = (seen: Seen, what: 'node' | 'all' | 'perSecond') => median(seen.map((one) => one[what]))
  const without = rows[0]!.seen
  const times = (seen: Seen, what: 'node' | 'all') =>
    Number(median(seen.map((one, index) => one[what] / without[index]![what])).toFixed(3))
  return rows.map(({ what, seen }) => ({
    what,
    'per second': Math.round(of(seen, 'perSecond')),
    'CPU us of Node': Math.round(of(seen, 'node')),
    times: times(seen, 'node'),
    'CPU us of all, the load with it': Math.round(of(seen, 'all')),
    'times of all': times(seen, 'all'),
  }))
}

/** Withdrawals a second of customers without a policy and with ten rules, in turns. */
async function measurePolicies(db: Database, api: Api): Promise<TableRow[]> {
  const policies = new Policies(await openMasterKeys({ ...readSettings({}), dataDir }))
  const governed = async (rules: NewPolicyDocument['rules']) => {
    const owner = await newOwner(db, api.baseUrl)
    await transaction(db, async (tx) =>
      policies.add(tx, owner.customerId, completeDocument({ rules }), await readClock(tx)),
    )
    return owner
  }
  const rows = [
    { what: 'no policy', owner: api },
    { what: 'ten rules', owner: await governed(RULES) },
    { what: 'ten rules, two with windows', owner: await governed([...RULES.slice(2), ...WINDOWS]) },
  ].map((row) => ({ ...row, seen: [] as number[] }))
  for (let round = 0; round <= ROUNDS; round++)
    for (const { owner, seen } of rows) {
      const load = { ...owner, baseUrl: api.baseUrl, clients: 256, seconds: SECONDS, prefix: `p${round}` }
      const { perSecond, refused } = await httpLoad(load)
      if (refused > 0) throw new Error(`${refused} withdrawals were refused`)
      // The first round warms up.
      if (round > 0) seen.push(perSecond)
    }
  const none = median(rows[0]!.seen)
  return rows.map(({ what, seen }) => ({
    what,
    'per second': Math.round(median(seen)),
    times: Number((median(seen) / none).toFixed(2)),
  }))
}

/** A customer with funded profiles and an access token. */
interface Owner {
  token: string
  customerId: string
  profileIds: string[]
}

interface Api extends Owner {
  baseUrl: string
  process: ChildProcess
}

/** Starts the built `bursar serve` in a separate process, without its worker, which would add load. */
async function startApi(
  environment: Record<string, string> = {},
): Promise<{ baseUrl: string; process: ChildProcess }> {
  // The command of `npm start`.
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: { start: string } }
  const [, ...startArguments] = scripts.start.split(' ')
  const child = spawn(process.execPath, [...startArguments, '--json'], {
    env: {
      ...process.env,
      DATABASE_URL: postgres.url,
      BURSAR_DATA_DIR: dataDir,
      PORT: String(PORT),
      BURSAR_WORKER: 'false',
      BURSAR_LOG_LEVEL: 'warn',
      BURSAR_RATE_LIMIT_PER_SECOND: '0',
      // Longer than the hour of a steady load.
      BURSAR_TOKEN_TTL_SECONDS: '86400',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(createInterface(child.stdout), 'line')
  return { baseUrl: `http://127.0.0.1:${environment.PORT ?? PORT}`, process: child }
}

async function withApi<T>(db: Database, work: (api: Api) => Promise<T>): Promise<T> {
  const { baseUrl, process: child } = await startApi()
  try {
    return await work({ baseUrl, process: child, ...(await newOwner(db, baseUrl)) })
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
}

async function newFundedCustomer(db: Database): Promise<Omit<Owner, 'token'>> {
  const { customer_id: customerId } = await createCustomer(db, 'Bench')
  const profileIds: string[] = []
  for (let n = 0; n < PROFILES; n++) {
    const profile = await insertProfile(db, customerId, { type: 'NORMAL', nickname: `Bench ${n}` })
    profileIds.push(profile.id)
  }
  await fundProfiles(db, customerId, profileIds)
  return { customerId, profileIds }
}

async function newOwner(db: Database, baseUrl: string): Promise<Owner> {
  const { customerId, profileIds } = await newFundedCustomer(db)
  const macs = new RowMacs(await openMasterKeys({ ...readSettings({}), dataDir }))
  const client = await createApiClient(db, macs, customerId, SCOPES)
  const reply = await fetch(`${baseUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
  })
  const { access_token: token } = (await reply.json()) as { access_token: string }
  return { token, customerId, profileIds }
}

async function fundProfiles(db: Database, customer_id: string, profileIds: string[]): Promise<void> {
  const ledger = new Ledger(db)
  const minor = 10n ** 30n
  await Promise.all(
    profileIds.map((profile_id) =>
      ledger.submit(customer_id, {
        origin: originOfLoop('bench'),
        balances: [{ profile_id, asset: 'USDP' }],
        decide: ({ now, newId }) => ({
          transfer: {
            id: newId(),
            customer_id,
            profile_id,
            type: 'CRYPTO_DEPOSIT',
            direction: 'CREDIT',
            status: 'COMPLETED',
            asset: 'USDP',
            amount: '1000000000000',
            fee: '0',
            total: '1000000000000',
            created_at: now.text,
            updated_at: now.text,
          },
          entries: [onPlatform('custody:ETHEREUM', 'USDP', -minor), onProfile(profile_id, 'USDP', minor)],
        }),
      }),
    ),
  )
}

/** Calls `work` from this many callers at once, each as soon as its last call is answered. */
async function measureCallers(callers: number, work: (n: number) => Promise<unknown>) {
  const latencies: number[] = []
  const start = performance.now()
  const end = start + SECONDS * 1000
  let sent = 0
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < end) {
        const before = performance.now()
        await work(sent++)
        latencies.push(performance.now() - before)
      }
    }),
  )
  latencies.sort((a, b) => a - b)
  const at = (share: number) => Number(latencies[Math.floor(latencies.length * share)]!.toFixed(2))
  return {
    perSecond: latencies.length / ((performance.now() - start) / 1000),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  }
}

async function measureTextbook(connections: number) {
  const pool = new pg.Pool({ connectionString: ownerUrl, max: connections })
  const { rows } = await pool.query<{ id: string }>('select id from textbook_accounts')
  const anyAccount = () => rows[Math.floor(Math.random() * rows.length)]!.id
  const call = () => {
    const debit = anyAccount()
    let credit = anyAccount()
    while (credit === debit) credit = anyAccount()
    const values = [debit, credit, '1.25', `textbook-${textbookCalls++}`]
    return pool.query({ name: 'textbook', text: 'select textbook_transfer($1, $2, $3, $4)', values })
  }
  try {
    return await measureCallers(connections, call)
  } finally {
    await pool.end()
  }
}

/** Measures withdrawals of these customers in turn, without HTTP. */
async function measureLedger(
  db: Database,
  owners: readonly Omit<Owner, 'token'>[],
  callers: number,
  prefix: string,
) {
  const withdraw = withdrawing(db, owners, prefix, '0x52908400098527886E0F7030069857D2E4169EE7')
  return measureCallers(callers, withdraw)
}

/** Makes withdrawals of these customers in turn, without HTTP, to one address. */
function withdrawing(
  db: Database,
  owners: readonly Omit<Owner, 'token'>[],
  prefix: string,
  destination_address: string,
) {
  const ledger = new Ledger(db)
  const settings = readSettings({})
  const networks = simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })
  const { run } = createCryptoWithdrawal
  const origin = originOfLoop('bench')
  return (n: number) => {
    const { customerId, profileIds } = owners[n % owners.length]!
    const body = {
      profile_id: profileIds[Math.floor(n / owners.length) % PROFILES],
      asset: 'USDP',
      crypto_network: 'ETHEREUM',
      amount: '1.25',
      destination_address,
      ref_id: `${prefix}-${n}`,
    }
    return run({
      ...{ db, shared: db, ledger, networks, settings, customerId },
      origin,
      query: {},
      body,
    } as never)
  }
}

/** Measures the ledger without HTTP for each number of customers in turn, with the CPU time of all processes. */
async function measureCustomers(db: Database): Promise<TableRow[]> {
  const all: Omit<Owner, 'token'>[] = []
  for (let n = 0; n < Math.max(...CUSTOMERS); n++) all.push(await newFundedCustomer(db))
  const rows = CUSTOMERS.map((customers) => ({
    customers,
    seen: [] as { perSecond: number; cpuUs: number; p99Ms: number }[],
  }))
  for (let round = 0; round <= ROUNDS; round++)
    for (const { customers, seen } of rows) {
      const prefix = `customers${round}-${customers}`
      const before = await ticksOf(process.pid)
      const { perSecond, p99Ms } = await measureLedger(db, all.slice(0, customers), 512, prefix)
      const seconds = ((await ticksOf(process.pid)) - before) / TICKS_A_SECOND
      // The first round warms up.
      if (round > 0) seen.push({ perSecond, p99Ms, cpuUs: (seconds * 1e6) / (perSecond * SECONDS) })
    }
  return rows.map(({ customers, seen }) => {
    const rate = median(seen.map(({ perSecond }) => perSecond))
    const cpuUs = median(seen.map((one) => one.cpuUs))
    return {
      customers,
      'per second': Math.round(rate),
      'p99 ms': median(seen.map(({ p99Ms }) => p99Ms)),
      'CPU us of a movement': Math.round(cpuUs),
      '% of both cores': Math.round((rate * cpuUs) / 2e4),
    }
  })
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function printWrites(rows: Row[], peakMiB: number | undefined): void {
  const base = median(
    rows.find((row) => row.what === 'textbook' && row.callers === TEXTBOOK_CONNECTIONS)!.perSecond,
  )
  console.log(
    `\nMedians of ${ROUNDS} rounds of ${SECONDS} s; "times" is relative to the textbook over ${TEXTBOOK_CONNECTIONS} connections`,
  )
  show(
    'writes',
    rows.map((row) => ({
      what: row.what,
      callers: row.callers,
      'per second': median(row.perSecond),
      times: Number((median(row.perSecond) / base).toFixed(2)),
      'p50 ms': median(row.p50Ms),
      'p99 ms': median(row.p99Ms),
    })),
  )
  console.log(`Peak memory of the API process: ${peakMiB ?? 'unknown'} MiB`)
}

function printReads(figures: ReadFigure[]): void {
  console.log('\nReads, one request at a time; "times" is relative to the first page of the small customer')
  const base = figures.find((figure) => figure.what === 'first page')!.p50Ms
  show(
    'reads',
    figures.map((figure) => ({ ...figure, times: Number((figure.p50Ms / base).toFixed(2)) })),
  )
}
