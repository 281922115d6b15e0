import { originOfUser, type Origin } from '../contract/actor.ts'
import { userInfo } from 'node:os'
import { InvalidArgumentError } from 'commander'
import { pino, type Logger } from 'pino'
import { connect, type Connected } from '../connect.ts'
import { openDatabase, OWNER, type Database } from '../db/database.ts'
import { UUID } from '../db/ids.ts'
import { Cluster, type Nodes } from '../db/nodes.ts'
import { prepareDatabase, requireMode } from '../deployment.ts'
import { logOptions, openLog, STANDARD_ERROR } from '../log.ts'
import { readSettings, type Settings } from '../settings.ts'
import { sealBalancesWith } from '../ledger/balance-macs.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { recordMigrations } from '../records/audited.ts'
import { RowMacs } from '../records/row-macs.ts'

/** Shared by the commands: arguments, exit codes, the database connection, error messages. */

/** Reads an id. For commander. */
export function uuid(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError('must be a UUID.')
  return text.toLowerCase()
}

/** Reads a whole number in a range. For commander. */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    if (!/^\d{1,10}$/.test(text) || Number(text) < min || Number(text) > max)
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`)
    return Number(text)
  }

/** Throws when there is no such customer, so that a mistyped id does not look like a customer without records. */
export async function requireCustomer(db: Database, id: string): Promise<void> {
  const { rowCount } = await db.query('select 1 from customers where id = $1', [id])
  if (rowCount === 0) throw new Error(`there is no customer ${id}`)
}

/**
 * Logs an operator's action: the user of the operating system, the command and the records it changed. The level is
 * `info`, which the log of a command otherwise leaves out. Writes synchronously, so that the line survives an exit.
 */
export function logOperator(settings: Settings, did: string, on: Record<string, unknown>): void {
  const options = logOptions(settings.logLevel === 'silent' ? 'silent' : 'info')
  pino(options, pino.destination({ dest: STANDARD_ERROR, sync: true })).info({ ...operator(), ...on }, did)
}

/** Name of the person who runs the command, from the operating system. Records of manual steps keep it. */
export const operatorName = (): string => {
  const { user, sudo_user } = operator()
  return sudo_user ?? user
}

/** Makes the MACs of rows. Throws `SettingsError` where live mode has no master key. */
export const openRowMacs = async (settings: Settings): Promise<RowMacs> =>
  new RowMacs(await openMasterKeys(settings))

/** The origin of the changes that a command makes. */
export const originOfCommand = (): Origin => originOfUser(operatorName())

/** The user that runs this program, and under sudo also the user who called sudo. */
function operator(): { user: string; sudo_user?: string } {
  const { SUDO_USER } = process.env
  return { user: userName(), ...(SUDO_USER && { sudo_user: SUDO_USER }) }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the user may have an id but no name.
    return String(process.getuid?.())
  }
}

/**
 * Runs a command with a database connection and closes it afterwards. An embedded server that this process started is
 * stopped too. Throws `SettingsError` when the database belongs to the other mode.
 */
export const withDatabase = (work: (db: Database, settings: Settings) => Promise<void>): Promise<void> =>
  connected(({ db }, settings) => work(db, settings))

/**
 * Migrates the schema, then runs a command as `withDatabase` does. For commands that write: they may be the first to use
 * a database. The command runs as the service's role; `applied` names the migrations that ran.
 */
export const withMigratedDatabase = (
  work: (db: Database, settings: Settings, applied: string[]) => void | Promise<void>,
): Promise<void> =>
  connected(async (database, settings) => {
    const applied = await prepareDatabase(database.db, settings, await database.ownerUrl())
    await recordMigrations(database.db, originOfCommand(), applied)
    await work(database.db, settings, applied)
  })

/** Connections of a command to each node of a cluster besides the coordinator. */
const NODE_CONNECTIONS = 2

/** Runs a command as `withMigratedDatabase` does, with a way to each node of a cluster. */
export const withNodes = (work: (nodes: Nodes, settings: Settings) => Promise<void>): Promise<void> =>
  connected(async ({ db, open, ownerUrl }, settings, log) => {
    await recordMigrations(db, originOfCommand(), await prepareDatabase(db, settings, await ownerUrl()))
    const cluster = await Cluster.open(db, (err) =>
      log.warn({ err }, 'the places of the customers cannot be read; those read before stay in use'),
    )
    try {
      await work(
        cluster.nodes(db, (node) => open(NODE_CONNECTIONS, undefined, node)),
        settings,
      )
    } finally {
      await cluster.close()
    }
  })

/** Runs a command as `withDatabase` does, with the address for the role that owns the schema, where that is another one. */
export const withBothRoles = (
  work: (db: Database, settings: Settings, ownerUrl: string | undefined) => Promise<void>,
): Promise<void> =>
  connected(async (database, settings) => work(database.db, settings, await database.ownerUrl()))

/**
 * Runs a command as the role that owns the schema: only that role may make and revoke approvers, waive screening and seal again. Throws an Error where its
 * address is not configured.
 */
export const withOwnersDatabase = (
  work: (owner: Database, settings: Settings) => Promise<void>,
): Promise<void> =>
  connected(async (database, settings) => {
    const url = await database.ownerUrl()
    if (url === undefined)
      throw new Error(
        'BURSAR_MIGRATIONS_DATABASE_URL: only the role that owns the schema makes and revokes approvers, waives screening and seals again; give its address',
      )
    const owner = openDatabase(url, { max: 1, onError: () => undefined, applicationName: OWNER })
    try {
      await work(owner, settings)
    } finally {
      await owner.end()
    }
  })

/**
 * Migrates the schema, closes the service's sessions, and then runs a command as the role that owns the schema, while no
 * other session of this program is open. Throws an Error where the owner's address is not configured.
 */
export async function withOwnerAlone(
  work: (
    owner: Database,
    settings: Settings,
    done: { serviceRole: string; applied: string[] },
  ) => Promise<void>,
): Promise<void> {
  let prepared: { url: string; settings: Settings; serviceRole: string; applied: string[] } | undefined
  await connected(async (database, settings) => {
    const url = await database.ownerUrl()
    if (url === undefined || settings.databaseUrl === undefined)
      throw new Error(
        'BURSAR_MIGRATIONS_DATABASE_URL, DATABASE_URL: only the role that owns the schema distributes it; give the addresses of both roles',
      )
    const applied = await prepareDatabase(database.db, settings, url)
    await recordMigrations(database.db, originOfCommand(), applied)
    const { rows } = await database.db.query<{ role: string }>('select current_user as role')
    prepared = { url, settings, serviceRole: rows[0]!.role, applied }
  })
  const { url, settings, ...done } = prepared!
  const owner = openDatabase(url, { max: 1, onError: () => undefined, applicationName: OWNER })
  try {
    await work(owner, settings, done)
  } finally {
    await owner.end()
  }
}

async function connected(
  work: (database: Connected, settings: Settings, log: Logger) => Promise<void>,
): Promise<void> {
  const settings = { ...readSettings(process.env) }
  const { log, close } = await openLog({
    ...settings,
    logLevel: settings.logLevel === 'info' ? 'warn' : settings.logLevel,
  })
  try {
    const database = await connect(settings, log)
    sealBalancesWith(() => openMasterKeys(settings))
    try {
      await requireMode(database.db, settings.mode)
      await work(database, settings, log)
    } finally {
      await database.close()
    }
  } finally {
    close()
  }
}
