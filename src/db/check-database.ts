import { failed, ok, orElse, warn, type Finding } from '../finding.ts'
import type { Database } from './database.ts'
import { readHorizon, type Horizon } from './horizon.ts'
import { schemaVersions, UPDATE_ADVICE } from './migrate.ts'
import { faultsOfRole } from './privileges.ts'

/** The checks of the database server, its schema and the service's role. They change nothing. */

const POSTGRES_VERSION_MIN = 15
const SKEW_MS_WARN = 1_000
/** The clock tolerance of access tokens (access/tokens/access-tokens.ts). */
const SKEW_MS_MAX = 5_000
const HORIZON_SECONDS_WARN = 60

/** Whether the server answers, and is new enough. */
export async function checkServer(db: Database): Promise<Finding> {
  const { rows } = await db.query<{ version: string; number: number; role: string; name: string }>(
    `select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
            current_user as role, current_database() as name`,
  )
  const { version, number, role, name } = rows[0]!
  const about = `PostgreSQL ${version} answers, database ${name}, role ${role}`
  return number < POSTGRES_VERSION_MIN * 10_000
    ? failed(`${about}: too old`, `use PostgreSQL ${POSTGRES_VERSION_MIN} or newer`)
    : ok(about)
}

export async function checkSchema(db: Database): Promise<Finding> {
  const { current, known } = await schemaVersions(db)
  if (current === 0)
    return warn('there is no schema yet', 'bursar migrate creates it, and so does bursar serve')
  if (current < known) return warn(`version ${current}, this program needs ${known}`, 'bursar migrate')
  if (current > known) return failed(`version ${current}, this program only knows ${known}`, UPDATE_ADVICE)
  return ok(`version ${current}, up to date`)
}

/** Whether the service's role has exactly the privileges it needs (privileges.ts). */
export async function checkRole(db: Database): Promise<Finding[]> {
  const { current, known } = await schemaVersions(db)
  // Migrations grant privileges, so missing ones are no fault while migrations are pending.
  const faults = (await faultsOfRole(db)).filter(({ kind }) => kind === 'EXCESS' || current >= known)
  const found = faults.map(({ kind, says, advice }) => (kind === 'MISSING' ? failed : warn)(says, advice))
  return orElse(found, 'it owns no table, and cannot change ledger entries')
}

export async function checkClock(db: Database): Promise<Finding> {
  const sentAt = Date.now()
  // A sandbox's own clock may be ahead.
  const { rows } = await db.query<{ ms: string }>(
    'select extract(epoch from pg_catalog.clock_timestamp()) * 1000 as ms',
  )
  const skewMs = Math.abs(Math.round(Number(rows[0]!.ms) - (sentAt + Date.now()) / 2))
  const says = `the clocks of this machine and of the database are ${skewMs} ms apart`
  const advice = 'synchronise both clocks with NTP'
  if (skewMs > SKEW_MS_MAX) return failed(`${says}: tokens are refused`, advice)
  return skewMs > SKEW_MS_WARN ? warn(says, advice) : ok(says)
}

export const checkHorizon = async (db: Database): Promise<Finding> => judgeHorizon(await readHorizon(db))

/** Judges whether ascending lists reach the present: they end where the oldest transaction under way began. */
export function judgeHorizon({ micros, text, readAt }: Horizon): Finding {
  const seconds = Math.round((readAt.micros - micros) / 1_000_000)
  return seconds > HORIZON_SECONDS_WARN
    ? warn(
        `ascending lists and lists of events end ${seconds} s ago, webhooks go on: a transaction has been open since ${text}`,
        'find it: select pid, application_name, query from pg_stat_activity where datname = current_database() order by xact_start',
      )
    : ok('they reach the present')
}

export const BACKUP_GUIDE = 'see docs/guides/backup.md#log-archiving'

/** Whether the server archives its write-ahead log: without an archive, a disaster loses all transfers since the last dump. */
export async function checkBackups(db: Database): Promise<Finding> {
  const { rows } = await db.query<LogArchiving>(`
    select current_setting('archive_mode') as archive_mode, last_archived_time as archived_at,
           last_failed_time as failed_at, coalesce(last_failed_time > last_archived_time, true) as failed_last
    from pg_stat_archiver`)
  return judgeBackups(rows[0]!)
}

interface LogArchiving {
  archive_mode: string
  archived_at: string | null
  failed_at: string | null
  /** Whether the last attempt failed. Meaningful with `failed_at` only. */
  failed_last: boolean
}

/** Judges whether the server archives its write-ahead log. Other copies of the log, such as a standby's, are not visible here. */
export function judgeBackups({ archive_mode, archived_at, failed_at, failed_last }: LogArchiving): Finding {
  if (archive_mode === 'off')
    return warn(
      'archive_mode is off: unless something else copies the log, a disaster loses everything since the last dump',
      BACKUP_GUIDE,
    )
  if (failed_at !== null && failed_last)
    return warn(`the log is not archived since a failure at ${failed_at}`, 'see the log of PostgreSQL')
  if (archived_at === null)
    return warn(`archive_mode is ${archive_mode}, but nothing has been archived yet`, BACKUP_GUIDE)
  return ok(`the log is archived, last at ${archived_at}`)
}
