import { fileURLToPath } from 'node:url'
import Postgrator from 'postgrator'
import { distributeNewTables, isDistributed, onePerNode } from './distribution.ts'
import { lacksPrivilege, transaction, withOwner, type Database } from './database.ts'
import { applyPrivileges, faultsOfRole } from './privileges.ts'
import { PRIVILEGES } from './tables.ts'
import { takeLock } from './locks.ts'
import { ROOT } from '../package.ts'

const MIGRATIONS = fileURLToPath(new URL('migrations/*.sql', ROOT))

/**
 * Brings the schema up to date as the role that owns it: numbered, forward-only SQL files and the privileges of the
 * service's role (privileges.ts), all in one transaction. On a distributed database it also places the tables that a
 * migration made (distribution.ts). Processes that start together wait for each other. Throws when the database is newer
 * than this program, a file was changed after it ran, another role owns the tables, or this role may not create any. Returns
 * the names of the migrations that ran.
 */
export async function migrate(owner: Database, serviceRole: string): Promise<string[]> {
  return transaction(owner, async (tx) => {
    await takeLock(tx, 'migrate')
    // PostgreSQL makes tables in the first schema of the path: a sandbox's sessions have others before `public`.
    await tx.query('set local search_path = public')
    const { rows } = await tx.query<{ role: string; others: string }>(
      `select distinct current_user as role, pg_get_userbyid(relowner) as others
       from pg_class
       where relnamespace = 'public'::regnamespace and relname = any ($1) and not pg_has_role(relowner, 'usage')`,
      [Object.keys(PRIVILEGES)],
    )
    if (rows[0] !== undefined) {
      const { role, others } = rows[0]
      throw new Error(
        `the tables belong to the database role ${others}, not to ${role}: as a superuser, in this database, ` +
          `"reassign owned by ${others} to ${role}" hands them over (docs/guides/database-roles.md)`,
      )
    }
    const postgrator = new Postgrator({
      migrationPattern: MIGRATIONS,
      driver: 'pg',
      schemaTable: 'schema_version',
      execQuery: (query) => tx.query(query),
    })
    const known = await postgrator.getMaxVersion()
    const current = await postgrator.getDatabaseVersion()
    if (current > known) throw newerDatabase(current, known)
    const distributed = await isDistributed(tx)
    if (distributed) await onePerNode(tx)
    const applied = await postgrator.migrate()
    if (distributed) await distributeNewTables(tx)
    await applyPrivileges(tx, serviceRole)
    return applied.map((migration) => migration.filename.split('/').at(-1)!)
  }).catch((error: Error) => {
    if (lacksPrivilege(error))
      throw new Error(
        `${error.message}: the role that migrates must own the database (docs/guides/database-roles.md)`,
      )
    const [, other] = /^MD5 checksum failed for migration \[(\d+)\]/.exec(error.message) ?? []
    if (other === undefined) throw error
    throw new Error(
      `another version of Bursar made the schema, with a migration ${other} that differs: ${UPDATE_ADVICE}`,
    )
  })
}

/** What to do about a schema that this program does not know. */
export const UPDATE_ADVICE =
  'update this program; a database from before the first release: docs/upgrading.md'

const newerDatabase = (current: number, known: number) =>
  new Error(`the database is at version ${current}, this program only knows ${known}: ${UPDATE_ADVICE}`)

/**
 * Brings the schema up to date for the service. `ownerUrl` is the address of the same database for the role that owns
 * the schema. Without `ownerUrl`, the service's role migrates itself if it owns the schema. Returns the names of the
 * migrations that ran. Throws when work remains that neither role may do.
 */
export async function bringUpToDate(service: Database, ownerUrl: string | undefined): Promise<string[]> {
  const { rows } = await service.query<{ role: string; owns: boolean }>(`
    select current_user as role,
           coalesce((select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass('public.schema_version')),
                    has_schema_privilege('public', 'create')) as owns`)
  const { role, owns } = rows[0]!
  if (ownerUrl === undefined) {
    if (owns) return migrate(service, role)
    await requireUpToDate(service, MIGRATE_AS_OWNER)
    return []
  }
  const applied = await withOwner(ownerUrl, (owner) => migrate(owner, role))
  await requireUpToDate(service, 'DATABASE_URL and BURSAR_MIGRATIONS_DATABASE_URL must name one database')
  return applied
}

const MIGRATE_AS_OWNER =
  'run "bursar migrate" with BURSAR_MIGRATIONS_DATABASE_URL, the address for the role that owns the schema'

/** Throws, with advice, when the service's role cannot work with the schema as it is. */
async function requireUpToDate(service: Database, advice: string): Promise<void> {
  const { rows } = await service.query<{ role: string; reads: boolean | null }>(
    `select current_user as role, has_table_privilege(to_regclass('public.schema_version'), 'select') as reads`,
  )
  const { role, reads } = rows[0]!
  if (reads === false)
    throw new Error(`the database role ${role} may not read the schema's version: ${advice}`)
  const { current, known } = await schemaVersions(service)
  if (current > known) throw newerDatabase(current, known)
  if (current < known)
    throw new Error(
      `the schema is at version ${current}, this program needs ${known}, and the database role ${role} does not own it: ${advice}`,
    )
  const missing = (await faultsOfRole(service)).find(({ kind }) => kind === 'MISSING')
  if (missing !== undefined) throw new Error(`${missing.says}: ${advice}`)
}

/** Returns the version of the database's schema and the newest version that this program knows. Changes nothing. */
export async function schemaVersions(db: Database): Promise<{ current: number; known: number }> {
  return transaction(
    db,
    async (tx) => {
      const { rows: found } = await tx.query<{ there: boolean }>(
        `select to_regclass('schema_version') is not null as there`,
      )
      const { rows } = found[0]!.there
        ? await tx.query<{ version: string | null }>('select max(version) as version from schema_version')
        : { rows: [] }
      const known = await new Postgrator({ migrationPattern: MIGRATIONS, driver: 'pg' }).getMaxVersion()
      return { current: Number(rows[0]?.version ?? 0), known }
    },
    'isolation level repeatable read read only',
  )
}
