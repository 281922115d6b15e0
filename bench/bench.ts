import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { sealRowsWith } from '../src/audit/sealed-rows.ts'
import { openDatabase } from '../src/db/database.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { migrate } from '../src/db/migrate.ts'
import { openMasterKeys } from '../src/keys/master-keys.ts'
import { verify } from '../src/money/verify/verify.ts'
import { readSettings } from '../src/settings.ts'
import { measureCustomers } from './customers.ts'
import { measureGrowth } from './growth.ts'
import { measureIdle } from './idle.ts'
import { measureMixed } from './mixed.ts'
import { measurePeers } from './measure-peers.ts'
import { bursar, connectPeers } from './peers.ts'
import { startService, stopService, withApi, type Bench } from './service.ts'
import { PARTS, runOf, withTables, type Part, type TableRow } from './write-tables.ts'
import { measureWrites } from './writes.ts'

/**
 * `npm run bench` measures the figures of docs/performance.md. A run uses one PostgreSQL with durable commits. The compared
 * programs take turns in each round, because the machine's load varies: compare the ratios.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '1000000' },
    /** How long an idle service is observed. */
    'idle-seconds': { type: 'string', default: '60' },
    /** Milliseconds by which each durable commit is delayed, to imitate a slower disk. */
    'slower-disk': { type: 'string', default: '0' },
    /** Other ledgers that run: `formance=http://...,blnk=http://...,pgledger=postgres://...,tigerbeetle=tcp://...`. */
    peers: { type: 'string', default: '' },
    /** The parts to run. The default omits the slow ones, and `peers`, which needs other ledgers. */
    only: { type: 'string', default: 'writes,customers' },
    /** The page into which the tables are written: docs/performance.md. */
    write: { type: 'string' },
  },
})
const only = options.only.split(',')
const unknown = only.filter((part) => !PARTS.some((known) => known === part))
if (unknown.length > 0) throw new Error(`--only knows ${PARTS.join(', ')}, not ${unknown.join(', ')}`)
const SECONDS = Number(options.seconds)
const ROUNDS = Number(options.rounds)
/** The stated duration of each part that does not run in rounds of `SECONDS`. */
const REPEATED: Partial<Record<Part, string>> = { growth: 'one run', idle: `${ROUNDS} rounds` }
/** The measured tables, for `--write`. */
const tables: Partial<Record<Part, TableRow[]>> = {}

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
const bench: Bench = { db, ownerUrl, databaseUrl: postgres.url, dataDir, rounds: ROUNDS, seconds: SECONDS }
const report: Record<string, unknown> = {
  at: new Date().toISOString(),
  node: process.version,
  seconds: SECONDS,
  slowerDiskMs: Number(options['slower-disk']),
}

const MEASURES: Record<Part, { title: string; run: () => Promise<TableRow[]> }> = {
  writes: {
    title: `Withdrawals, medians of ${ROUNDS} rounds of ${SECONDS} s`,
    async run() {
      const { rows, table, peakMiB } = await measureWrites(bench)
      report.writes = { rows, peakMiB }
      console.log(`Peak memory of the API process: ${peakMiB ?? 'unknown'} MiB`)
      const { disagreements, transfers } = await verify(db)
      console.log(`verify: ${transfers} transfers, ${disagreements.length} disagreements`)
      return table
    },
  },
  customers: {
    title: 'The ledger without HTTP, by the number of customers to whom the callers belong',
    run: () => measureCustomers(bench),
  },
  mixed: {
    title: 'Reads of a customer over 4 connections, alone and while it withdraws over 256',
    run: () => measureMixed(bench),
  },
  growth: {
    title: 'A database that grows tenfold',
    run: () => measureGrowth(bench, Number(options.rows), { start: secondsUntilReady, copy: copyDatabase }),
  },
  idle: {
    title: 'A service that nobody uses',
    run: () => measureIdle(ROUNDS, Number(options['idle-seconds'])),
  },
  peers: {
    title: 'Transfers between accounts, beside other ledgers',
    async run() {
      const peers = await connectPeers(options.peers)
      return withApi(bench, ({ baseUrl }) =>
        measurePeers([bursar(bench, baseUrl), ...peers], ROUNDS, SECONDS),
      )
    },
  },
}

try {
  for (const part of PARTS) {
    if (!only.includes(part)) continue
    const { title, run } = MEASURES[part]
    const rows = await run()
    report[part] ??= rows
    tables[part] = rows
    console.log(`\n${title}`)
    console.table(rows)
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

/** Starts a service with its worker on the database and stops it. Returns the seconds until it was ready. */
async function secondsUntilReady(): Promise<number> {
  const begunAt = performance.now()
  const { process: child } = await startService(bench, { BURSAR_WORKER: 'true' })
  const seconds = (performance.now() - begunAt) / 1000
  await stopService(child)
  return seconds
}

/** Copies the folder of the database, as a backup does. */
async function copyDatabase(): Promise<void> {
  await db.query('checkpoint')
  const folder = `${dataDir}-copy`
  await cp(join(dataDir, 'postgres'), folder, { recursive: true })
  await rm(folder, { recursive: true })
}
