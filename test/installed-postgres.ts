import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { appendFile, chmod, chown, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { ENVIRONMENT, runAs, serverUser } from '../src/db/embedded/placement.ts'
import { freePort } from './free-port.ts'

const DEBIAN = '/usr/lib/postgresql'
const START_MS_MAX = 300_000
const STOP_MS_MAX = 120_000

const PROGRAMS = ['postgres', 'initdb', 'pg_dump', 'pg_restore', 'pg_basebackup', 'psql']

/** The folders that may have the programs of a PostgreSQL. TEST_CITUS_BIN names one more. */
const FOLDERS = [
  ...[process.env.TEST_CITUS_BIN, ...(process.env.PATH ?? '').split(delimiter)].filter(Boolean),
  ...(existsSync(DEBIAN) ? readdirSync(DEBIAN) : []).map((version) => join(DEBIAN, version, 'bin')),
].filter((folder) => PROGRAMS.every((program) => existsSync(join(folder!, program)))) as string[]

/** A folder with the server and tools of one PostgreSQL (Debian: postgresql). The embedded PostgreSQL has no tools. */
export const POSTGRES_PROGRAMS = FOLDERS[0]

/** The same for a PostgreSQL that has Citus. */
export const CITUS_PROGRAMS = FOLDERS.find((folder) =>
  ['lib', 'lib/postgresql'].some((libraries) => existsSync(join(folder, '..', libraries, 'citus.so'))),
)

/** A server of an installed PostgreSQL, with its own folder and port. Stop it in `afterAll`. */
export class InstalledPostgres {
  /** Contains all files of this server. The server's user may write here. */
  readonly folder: string
  readonly data: string
  readonly port: number
  readonly #password: string
  readonly #programs: string
  readonly #user = process.getuid?.() === 0 ? serverUser(readFileSync('/etc/passwd', 'utf8')) : undefined
  #process: ChildProcess | undefined

  private constructor(folder: string, port: number, password: string, programs: string) {
    this.folder = folder
    this.data = join(folder, 'data')
    this.port = port
    this.#password = password
    this.#programs = programs
  }

  /**
   * Starts a server on a new, empty cluster. With `trust`, connections of this machine need no password: the nodes of a Citus
   * cluster connect to each other so.
   */
  static async start(
    settings: Record<string, string> = {},
    { programs = POSTGRES_PROGRAMS!, trust = false } = {},
  ): Promise<InstalledPostgres> {
    const server = await InstalledPostgres.#place(randomBytes(12).toString('hex'), programs)
    const passwordFile = join(server.folder, 'password')
    await writeFile(passwordFile, server.#password, { mode: 0o644 })
    await server.run('initdb', [
      '-D',
      server.data,
      '-U',
      'postgres',
      `--pwfile=${passwordFile}`,
      `--auth=${trust ? 'trust' : 'scram-sha-256'}`,
    ])
    await server.configure(settings)
    await server.launch()
    return server
  }

  /** A server on a backup that `pg_basebackup` made from another server. It is not started yet. */
  static async onBackup(backup: string, of: InstalledPostgres): Promise<InstalledPostgres> {
    const server = await InstalledPostgres.#place(of.#password, of.#programs)
    await cp(backup, server.data, { recursive: true, preserveTimestamps: true })
    await chmod(server.data, 0o700)
    if (server.#user) await promisify(execFile)('chown', ['-R', server.#user.name, server.data])
    return server
  }

  static async #place(password: string, programs: string): Promise<InstalledPostgres> {
    const folder = await mkdtemp(join(tmpdir(), 'bursar-postgres-'))
    const server = new InstalledPostgres(folder, await freePort(), password, programs)
    if (server.#user) await chown(folder, server.#user.uid, server.#user.gid)
    await chmod(folder, 0o755)
    return server
  }

  /** The connection string of the superuser. */
  get adminUrl(): string {
    return `postgres://postgres:${this.#password}@127.0.0.1:${this.port}/postgres`
  }

  /** Adds to postgresql.conf. */
  async configure(settings: Record<string, string>): Promise<void> {
    const lines = Object.entries(settings).map(
      ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
    )
    await appendFile(join(this.data, 'postgresql.conf'), lines.join(''))
  }

  /** Makes the next launch replay the archived log from `restore_command` to its end. */
  async recover(): Promise<void> {
    const signal = join(this.data, 'recovery.signal')
    await writeFile(signal, '')
    if (this.#user) await chown(signal, this.#user.uid, this.#user.gid)
  }

  /** Creates a folder that the server may write to. */
  async folderFor(name: string): Promise<string> {
    const path = join(this.folder, name)
    await mkdir(path)
    if (this.#user) await chown(path, this.#user.uid, this.#user.gid)
    return path
  }

  /** Runs a program of this PostgreSQL as the server's user. Throws with the output if the program fails. */
  async run(program: string, args: string[], env: Record<string, string> = {}): Promise<string> {
    const { stdout } = await promisify(execFile)(join(this.#programs, program), args, {
      ...runAs(this.#user),
      env: {
        ...ENVIRONMENT,
        PGUSER: 'postgres',
        PGPASSWORD: this.#password,
        PGHOST: '127.0.0.1',
        PGPORT: String(this.port),
        ...env,
      },
      cwd: '/',
      maxBuffer: 64 * 1024 * 1024,
    })
    return stdout
  }

  /** Starts the server and waits until it accepts connections that write: recovery has then ended. */
  async launch(): Promise<void> {
    const options = {
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.folder,
      logging_collector: 'off',
    }
    const log = join(this.folder, 'log')
    const child = spawn(
      join(this.#programs, 'postgres'),
      ['-D', this.data, ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      { ...runAs(this.#user), env: ENVIRONMENT, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] },
    )
    this.#process = child
    process.once('exit', () => child.kill('SIGQUIT'))
    child.stderr.on('data', (text: Buffer) => void appendFile(log, text))
    const deadline = Date.now() + START_MS_MAX
    while (Date.now() < deadline && child.exitCode === null) {
      if (await this.#isPrimary()) return
      await pause(50)
    }
    throw new Error(`PostgreSQL does not start:\n${await readFile(log, 'utf8').catch(() => '')}`)
  }

  async #isPrimary(): Promise<boolean> {
    return this.query('select pg_is_in_recovery() as recovering').then(
      ([row]) => row!.recovering === false,
      () => false,
    )
  }

  /** Runs a statement as superuser, on the database `postgres` unless another name is given. */
  async query(statement: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const url = new URL(this.adminUrl)
    url.pathname = `/${database}`
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows
    } finally {
      await client.end()
    }
  }

  /** SIGINT stops it cleanly. SIGQUIT stops it at once, as a crash would. */
  async end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    const tooLong = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
    await ended
    clearTimeout(tooLong)
  }

  async remove(): Promise<void> {
    await this.end('SIGQUIT')
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
