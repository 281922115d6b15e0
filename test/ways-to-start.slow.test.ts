/**
 * Every way to start is a row of this list: a place of the database, how many roles it has, a mode, and what happened to the
 * database before. In each, Bursar migrates, starts and works, and its tables are in the schema `public`. What the list leaves
 * out does not exist: an embedded PostgreSQL with one role or another version than 18, and a reset or a moved clock in live mode.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Postgrator from 'postgrator'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { openDatabase, transaction, type Database } from '../src/db/database.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { runAs, serverUser, type OsUser } from '../src/db/embedded/placement.ts'
import { PRIVILEGES } from '../src/db/tables.ts'
import { advanceClock } from '../src/db/sandbox-clock.ts'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { CLUSTER } from './cluster.ts'
import { partOf } from './seed.ts'
import { InstalledPostgres, POSTGRES_PROGRAMS } from './installed-postgres.ts'
import { outputOf, PROGRAM, remoteCaller, runBursar, serveBursar, spawnBursar } from './support.ts'
import { atEnd } from './at-end.ts'

const PLACES = [
  'embedded',
  'this server, one role',
  'this server, two roles',
  'installed server, one role',
  'installed server, two roles',
] as const
type Place = (typeof PLACES)[number]
type Mode = 'sandbox' | 'live'
type State = 'fresh' | 'old' | 'old with a moved clock' | 'moved clock' | 'reset'

/** What happens to one database, in order. */
const HISTORIES: [Mode, State[]][] = [
  ['sandbox', ['fresh', 'moved clock', 'reset']],
  ['sandbox', ['old']],
  ['sandbox', ['old with a moved clock', 'reset']],
  ['live', ['fresh']],
  ['live', ['old']],
]
/** Where the first history of a mode is served. All others run by the commands that migrate and reset: a start costs a second. */
const SERVED: Partial<Record<Place, Mode[]>> = {
  embedded: ['sandbox'],
  'this server, one role': ['sandbox', 'live'],
  'installed server, one role': ['sandbox'],
}
const MIGRATIONS = fileURLToPath(new URL('../migrations/*.sql', import.meta.url))
const isRoot = process.getuid?.() === 0

let installed: InstalledPostgres | undefined
beforeAll(async () => {
  if (CLUSTER.length === 0 && POSTGRES_PROGRAMS !== undefined)
    installed = await InstalledPostgres.start({ fsync: 'off' })
})
afterAll(() => installed?.remove())

/** Makes the place where a database may be: the settings to serve on it, and the address of the role that owns it. */
async function makeGround(place: Place, mode: Mode, owner?: OsUser) {
  const folder = await mkdtemp(join(tmpdir(), 'bursar-start-'))
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid)
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const environment: Record<string, string> = {
    BURSAR_MODE: mode,
    BURSAR_DATA_DIR: folder,
    BURSAR_SIMULATED_PRICE_DAYS: '0',
  }
  if (place === 'embedded') {
    const withOwner = async (work: (url: string) => Promise<void>) => {
      const server = await EmbeddedPostgres.start({ dataDir: folder, log: () => undefined })
      try {
        await work(server.ownerUrl)
      } finally {
        await server.stop()
      }
    }
    return { folder, environment, withOwner }
  }
  const adminUrl = place.startsWith('installed') ? installed!.adminUrl : inject('adminUrl')
  const name = `start_${randomBytes(8).toString('hex')}`
  const addressOf = (role: string) =>
    Object.assign(new URL(adminUrl), { username: role, password: 'x', pathname: `/${name}` }).href
  const roles = place.endsWith('two roles') ? [`${name}_owner`, name] : [name]
  const asAdmin = (...statements: string[]) =>
    onDatabase(adminUrl, async (admin) => {
      for (const statement of statements) await admin.query(statement)
    })
  await asAdmin(
    ...roles.map((role) => `create role ${role} login password 'x'`),
    `create database ${name} owner ${roles[0]} template template0`,
  )
  atEnd(() => asAdmin(`drop database ${name} with (force)`, ...roles.map((role) => `drop role ${role}`)))
  environment.DATABASE_URL = addressOf(name)
  // One of the places is reached over a socket.
  if (place === 'installed server, one role')
    environment.DATABASE_URL = `postgres://${name}:x@/${name}?host=${installed!.folder}&port=${installed!.port}`
  if (roles.length > 1) environment.BURSAR_MIGRATIONS_DATABASE_URL = addressOf(roles[0]!)
  return {
    folder,
    environment,
    withOwner: (work: (url: string) => Promise<void>) => work(addressOf(roles[0]!)),
  }
}

/** Leaves the database as the first version made it, perhaps with a moved clock. */
const makeOld = ({ withOwner }: Ground, moved: boolean) =>
  withOwner((url) =>
    onDatabase(url, async (owner) => {
      await transaction(owner, (tx) =>
        new Postgrator({
          ...{ migrationPattern: MIGRATIONS, driver: 'pg', schemaTable: 'schema_version' },
          execQuery: (query) => tx.query(query),
        }).migrate('1'),
      )
      if (moved) await advanceClock(owner, undefined, 'P1D')
    }),
  )

async function onDatabase(url: string, work: (db: Database) => Promise<void>): Promise<void> {
  const db = openDatabase(url, { max: 1, onError: () => undefined, applicationName: 'test' })
  try {
    await work(db)
  } finally {
    await db.end()
  }
}

/** Requires all tables of Bursar to be in the schema `public`. */
const requireInPublic = ({ withOwner }: Ground) =>
  withOwner((url) =>
    onDatabase(url, async (owner) => {
      const { rows } = await owner.query<{ place: string }>(
        `select distinct relnamespace::regnamespace::text as place from pg_class
         where relname = any ($1) and relkind in ('r', 'p')`,
        [Object.keys(PRIVILEGES)],
      )
      expect(rows).toEqual([{ place: 'public' }])
    }),
  )

type Ground = Awaited<ReturnType<typeof makeGround>>

/** How a database is brought up to date, its clock moved and everything in it deleted. */
interface Means {
  start: () => Promise<void>
  moveClock: () => Promise<void>
  reset: () => Promise<void>
}

/** By the commands. */
const byCommands = ({ environment, withOwner }: Ground): Means => ({
  start: async () => void (await outputOf(['migrate'], environment)),
  moveClock: () =>
    withOwner((url) => onDatabase(url, async (owner) => void (await advanceClock(owner, undefined, 'P1D')))),
  reset: async () => {
    const asked = await runBursar(['sandbox', 'reset', '--json'], environment)
    const { database } = JSON.parse(asked.stdout) as { database: string }
    await outputOf(['sandbox', 'reset', '--confirm', database], environment)
  },
})

/** By the service and its API. `serve` returns its address. */
function byService(
  ground: Ground,
  mode: Mode,
  serve: () => Promise<{ address: string; stop: () => Promise<unknown> }>,
): Means {
  let service: Awaited<ReturnType<typeof serve>>
  const use = async (path?: string, body?: object) => {
    await expect
      .poll(
        () =>
          fetch(`${service.address}/health/ready`).then(
            ({ status }) => status,
            () => 0,
          ),
        { timeout: 60_000 },
      )
      .toBe(200)
    if (mode === 'live') return
    const demo = JSON.parse(await readFile(credentialsFile(ground.folder), 'utf8')) as SandboxCredentials
    const call = await remoteCaller(service.address, {
      client_id: demo.client_id,
      client_secret: demo.client_secret,
    })
    const { status } =
      path === undefined
        ? await call('GET', `/v2/profiles/${demo.profile_id}`)
        : await call('POST', path, body)
    expect(status).toBe(200)
  }
  const start = async () => {
    service = await serve()
    await use()
  }
  return {
    start,
    moveClock: async () => {
      await use('/v2/sandbox/clock', { advance: 'P1D' })
      await service.stop()
      await start()
    },
    reset: async () => {
      await use('/v2/sandbox/reset')
      await use()
    },
  }
}

const REACH: Record<State, (means: Means, ground: Ground) => Promise<void>> = {
  fresh: (means) => means.start(),
  old: (means, ground) => makeOld(ground, false).then(means.start),
  'old with a moved clock': (means, ground) => makeOld(ground, true).then(means.start),
  'moved clock': (means) => means.moveClock(),
  reset: (means) => means.reset(),
}

const isServedOn = (place: Place, mode: Mode, [first]: State[]) =>
  first === 'fresh' && SERVED[place]?.includes(mode) === true
/** What is served, and a part of the other histories. */
const historiesOn = (place: Place) => [
  ...HISTORIES.filter(([mode, states]) => isServedOn(place, mode, states)),
  ...partOf(
    HISTORIES.filter(([mode, states]) => !isServedOn(place, mode, states)),
    3,
  ),
]

describe.skipIf(CLUSTER.length > 0).each(PLACES)('%s', (place) => {
  const isThere = !place.startsWith('installed') || POSTGRES_PROGRAMS !== undefined
  test.skipIf(!isThere).each(historiesOn(place))('%s: %j', async (mode, states) => {
    const ground = await makeGround(place, mode)
    const serve = async () => {
      const { ready, stop } = await serveBursar({ ...ground.environment, BURSAR_LOG_LEVEL: 'warn' })
      return { address: ready.address, stop }
    }
    const means = isServedOn(place, mode, states) ? byService(ground, mode, serve) : byCommands(ground)
    for (const state of states) {
      await REACH[state](means, ground)
      await requireInPublic(ground)
    }
  })
})

// The user matters to files and to the embedded server, so these are programs. A test that is not root tries the others above.
describe.skipIf(!isRoot || CLUSTER.length > 0)('by another user than root', () => {
  test.each(['embedded', 'this server, one role'] as const)('%s', async (place) => {
    const user = serverUser(readFileSync('/etc/passwd', 'utf8'))
    const ground = await makeGround(place, 'sandbox', user)
    const { start, reset } = byService(ground, 'sandbox', async () => {
      const { address, end } = await spawnBursar(
        { ...ground.environment, HOME: ground.folder },
        PROGRAM,
        runAs(user),
      )
      const stop = () => end('SIGTERM')
      atEnd(stop)
      return { address, stop }
    })
    await start()
    await reset()
    await requireInPublic(ground)
  })
})
