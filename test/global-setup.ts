import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { openDatabase } from '../src/db/database.ts'
import { EmbeddedPostgres } from '../src/db/embedded/server.ts'
import { distribute } from '../src/db/distribution.ts'
import { migrate } from '../src/db/migrate.ts'
import { closeTemplate, CLUSTER, createOnNodes, joinNodes, onWorkers } from './cluster.ts'
import { SOURCE_FOLDERS } from './sources.ts'
import { undeclaredTables } from './undeclared-tables.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The address of a role that may create and drop databases. */
    adminUrl: string
    /** The address of the migrated template for the service's role. */
    templateUrl: string
    /** The address of the template for the role that owns it. */
    templateOwnerUrl: string
  }
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Builds the program, the console and the client again where their sources are newer. Tests run the built program, because
 * it starts in a third of the time.
 */
async function buildWhatIsNewer(): Promise<void> {
  const build = (...args: string[]) => promisify(execFile)('npm', ['run', ...args], { cwd: ROOT })
  if (SOURCE_FOLDERS.some((folder) => isNewer(folder, 'dist/main.js'))) await build('build:server')
  if (isNewer('console', 'dist/console/index.html')) await build('build:console')
  if (isNewer('client/src', 'client/dist/index.js')) await build('build', '-w', 'client')
}

/** Returns whether a source in the folder is newer than its build. */
function isNewer(folder: string, built: string): boolean {
  const builtAt = statSync(join(ROOT, built), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }).some(
    (file) =>
      file.isFile() &&
      !file.name.endsWith('.test.ts') &&
      statSync(join(file.parentPath, file.name)).mtimeMs > builtAt,
  )
}

/** The set-up that all projects of one run share, started by the first and awaited by each. */
interface Shared {
  built?: Promise<void>
  database?: Promise<
    Pick<TestServer, 'adminUrl' | 'stop'> & { templateUrl: string; templateOwnerUrl: string }
  >
  users: number
}
const KEY = Symbol.for('bursar: what the tests share')
const shared = ((globalThis as { [KEY]?: Shared })[KEY] ??= { users: 0 })

/**
 * Starts one PostgreSQL for all test files, with a migrated database that each of them clones, and builds the
 * program.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (project.name !== 'database') await (shared.built ??= buildWhatIsNewer())
  shared.users += 1
  const { adminUrl, templateUrl, templateOwnerUrl, stop } = await (shared.database ??= migratedTemplate())
  project.provide('adminUrl', adminUrl)
  project.provide('templateUrl', templateUrl)
  project.provide('templateOwnerUrl', templateOwnerUrl)
  return async () => {
    shared.users -= 1
    if (shared.users > 0) return
    delete shared.database
    await stop()
  }
}

/** Two on each of two nodes. There are so few because each test copies all shards. */
const TEST_SHARDS = 4

async function migratedTemplate() {
  const given = CLUSTER[0] ?? process.env.TEST_DATABASE_URL
  const server = given === undefined || given === '' ? await embeddedServer() : await givenServer(given)
  const addressOf = ({ name, password }: TestRole) => {
    const url = new URL(server.adminUrl)
    url.username = name
    url.password = password
    url.pathname = `/${server.template}`
    return url.href
  }
  await asAdmin(server.adminUrl, async (admin) => {
    // No test kills this server: tests that kill a server start their own, with writes that wait for the disk.
    for (const { name } of [server.service, server.owner])
      await admin.query(`alter role ${name} set synchronous_commit = off`)
    if (CLUSTER.length === 0)
      await admin.query(`create database ${server.template} owner ${server.owner.name}`)
  })
  if (CLUSTER.length > 0) {
    await createOnNodes(server.template, server.owner.name)
    await joinNodes(server.template)
  }
  const owner = openDatabase(addressOf(server.owner), { max: 1, onError: () => undefined })
  await migrate(owner, server.service.name)
  if (CLUSTER.length > 0) await distribute(owner, server.service.name, TEST_SHARDS)
  const [undeclared] = await undeclaredTables(owner)
  await owner.end()
  await closeTemplate(server.template)
  if (undeclared !== undefined) {
    await server.stop()
    throw new Error(`table ${undeclared} is not in src/db/tables.ts: say what the service may do`)
  }
  const { adminUrl, stop } = server
  return { adminUrl, stop, templateUrl: addressOf(server.service), templateOwnerUrl: addressOf(server.owner) }
}

interface TestRole {
  name: string
  password: string
}

interface TestServer {
  adminUrl: string
  /** The service's role: tests run as this role, so they show that its privileges suffice. */
  service: TestRole
  /** The role that owns the databases of the tests. */
  owner: TestRole
  /** The name of the database that is cloned. */
  template: string
  stop: () => Promise<void>
}

async function embeddedServer(): Promise<TestServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bursar-test-'))
  // No test switches the machine off. With fsync, a database that is dropped waits a second for the disk.
  const postgres = await EmbeddedPostgres.start({
    dataDir,
    log: () => undefined,
    settings: { fsync: 'off', full_page_writes: 'off' },
  })
  const roleOf = (address: string): TestRole => {
    const { username, password } = new URL(address)
    return { name: username, password }
  }
  return {
    adminUrl: postgres.adminUrl,
    service: roleOf(postgres.url),
    owner: roleOf(postgres.ownerUrl),
    template: 'template',
    async stop() {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/**
 * The server that TEST_DATABASE_URL names, as a superuser. Roles and template get unique names, so that several runs
 * can share the server. The end removes them, with everything that the owner role owns.
 */
async function givenServer(adminUrl: string): Promise<TestServer> {
  const name = `bursar_test_${randomBytes(6).toString('hex')}`
  const newRole = (role: string): TestRole => ({ name: role, password: randomBytes(12).toString('hex') })
  const [service, owner] = [newRole(name), newRole(`${name}_owner`)]
  const create = [service, owner].map((role) => `create role ${role.name} login password '${role.password}'`)
  await asAdmin(adminUrl, async (admin) => {
    for (const statement of create) await admin.query(statement)
  })
  await onWorkers(create)
  return {
    adminUrl,
    service,
    owner,
    template: name,
    stop: () =>
      asAdmin(adminUrl, async (admin) => {
        const { rows } = await admin.query<{ name: string }>(
          'select datname as name from pg_database where datdba = $1::regrole',
          [owner.name],
        )
        const drop = [
          ...rows.map(({ name }) => `drop database if exists ${name} with (force)`),
          ...[service, owner].map((role) => `drop role ${role.name}`),
        ]
        for (const statement of drop) await admin.query(statement)
        await onWorkers(drop)
      }),
  }
}

async function asAdmin(adminUrl: string, work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl })
  await admin.connect()
  try {
    await work(admin)
  } finally {
    await admin.end()
  }
}
