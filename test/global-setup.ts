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
import { EmbeddedPostgres } from '../src/db/embedded-postgres.ts'
import { migrate } from '../src/db/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** May make and drop databases. */
    adminUrl: string
    /** An ordinary role's address of the migrated template. */
    templateUrl: string
  }
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Tests that run the program run what is built, which starts in a third of the time: it is built anew when the sources
 * are newer.
 */
async function buildWhatIsNewer(): Promise<void> {
  const built = statSync(join(ROOT, 'dist/main.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
  const isNewer = sources.some(
    (file) =>
      file.isFile() &&
      !file.name.endsWith('.test.ts') &&
      statSync(join(file.parentPath, file.name)).mtimeMs > built,
  )
  if (isNewer) await promisify(execFile)('npm', ['run', 'build'], { cwd: ROOT })
}

/** One PostgreSQL for all test files, with one migrated database that each of them clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await buildWhatIsNewer()
  const given = process.env.TEST_DATABASE_URL
  const server = given === undefined || given === '' ? await embeddedServer() : await givenServer(given)
  const template = new URL(server.adminUrl)
  template.username = server.role
  template.password = server.password
  template.pathname = `/${server.template}`
  await asAdmin(server.adminUrl, async (admin) => {
    // Nobody kills this server: the tests that kill one have their own, which waits for its disk.
    await admin.query(`alter role ${server.role} set synchronous_commit = off`)
    await admin.query(`create database ${server.template} owner ${server.role}`)
  })
  const db = openDatabase(template.href, { max: 1, onError: () => undefined })
  await migrate(db, new Map())
  await db.end()
  project.provide('adminUrl', server.adminUrl)
  project.provide('templateUrl', template.href)
  return server.stop
}

interface TestServer {
  adminUrl: string
  /** The ordinary role that owns the databases of the tests. */
  role: string
  password: string
  /** The name of the database that is cloned. */
  template: string
  stop: () => Promise<void>
}

async function embeddedServer(): Promise<TestServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bursar-test-'))
  const postgres = await EmbeddedPostgres.start({ dataDir, log: () => undefined })
  const { username, password } = new URL(postgres.url)
  return {
    adminUrl: postgres.adminUrl,
    role: username,
    password,
    template: 'template',
    async stop() {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/**
 * The server that TEST_DATABASE_URL names, as a superuser. Role and template have names of their own, so that several
 * runs may share it, and are removed at the end with all that the role owns.
 */
async function givenServer(adminUrl: string): Promise<TestServer> {
  const role = `bursar_test_${randomBytes(6).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  await asAdmin(adminUrl, (admin) => admin.query(`create role ${role} login password '${password}'`))
  return {
    adminUrl,
    role,
    password,
    template: role,
    stop: () =>
      asAdmin(adminUrl, async (admin) => {
        const { rows } = await admin.query<{ name: string }>(
          'select datname as name from pg_database where datdba = $1::regrole',
          [role],
        )
        for (const { name } of rows) await admin.query(`drop database ${name} with (force)`)
        await admin.query(`drop role ${role}`)
      }),
  }
}

async function asAdmin(adminUrl: string, work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl })
  await admin.connect()
  await work(admin).finally(() => admin.end())
}
