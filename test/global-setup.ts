import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** One PostgreSQL for all test files, with one migrated database that each of them clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bursar-test-'))
  const postgres = await EmbeddedPostgres.start({ dataDir, log: () => undefined })
  const template = new URL(postgres.url)
  template.pathname = '/template'
  const admin = new pg.Client({ connectionString: postgres.adminUrl })
  await admin.connect()
  await admin.query('create database template owner bursar')
  await admin.end()
  const db = openDatabase(template.href, { max: 1, onError: () => undefined })
  await migrate(db)
  await db.end()
  project.provide('adminUrl', postgres.adminUrl)
  project.provide('templateUrl', template.href)
  return async () => {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
