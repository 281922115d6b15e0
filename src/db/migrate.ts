import { fileURLToPath } from 'node:url'
import Postgrator from 'postgrator'
import { transaction, type Database, type Transaction } from './database.ts'

const MIGRATIONS = fileURLToPath(new URL('../../migrations/*.sql', import.meta.url))
const ADVISORY_LOCK = 7_311_001

/** By the number of a migration: what SQL cannot do for it. Runs right behind its file, once, in its transaction. */
export type DataSteps = ReadonlyMap<number, (tx: Transaction) => Promise<void>>

/**
 * Brings the schema up to date: numbered, forward-only SQL files, all in one transaction. Processes that start
 * together wait for each other. Throws when the database is newer than this program, or a file was changed
 * after it ran. Gives the names of what ran.
 */
export async function migrate(db: Database, steps: DataSteps): Promise<string[]> {
  return transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const postgrator = new Postgrator({
      migrationPattern: MIGRATIONS,
      driver: 'pg',
      schemaTable: 'schema_version',
      execQuery: (query) => tx.query(query),
    })
    const known = await postgrator.getMaxVersion()
    const current = await postgrator.getDatabaseVersion()
    if (current > known)
      throw new Error(`the database is at version ${current}, this program knows ${known}: update it`)
    const applied: Postgrator.Migration[] = []
    for (const [version, step] of [...steps].sort(([a], [b]) => a - b)) {
      if (version <= current) continue
      applied.push(...(await postgrator.migrate(String(version))))
      await step(tx)
    }
    applied.push(...(await postgrator.migrate()))
    return applied.map((migration) => migration.filename.split('/').at(-1)!)
  })
}

/** How far the schema of the database is, and how far this program knows one. Changes nothing. */
export async function schemaVersions(db: Database): Promise<{ current: number; known: number }> {
  return transaction(
    db,
    async (tx) => {
      const found = await tx.query<{ there: boolean }>(
        `select to_regclass('schema_version') is not null as there`,
      )
      const { rows } = found.rows[0]!.there
        ? await tx.query<{ version: string | null }>('select max(version) as version from schema_version')
        : { rows: [] }
      const known = await new Postgrator({ migrationPattern: MIGRATIONS, driver: 'pg' }).getMaxVersion()
      return { current: Number(rows[0]?.version ?? 0), known }
    },
    'isolation level repeatable read read only',
  )
}
