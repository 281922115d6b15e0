import type { Logger } from 'pino'
import { Changes } from '../db/changes.ts'
import { openDatabase, type Database, type Limits } from '../db/database.ts'
import { ServerCheck } from '../db/server-check.ts'
import { EmbeddedPostgres } from '../db/embedded/server.ts'
import { addressOn, Cluster } from '../db/nodes.ts'
import { requireOwnSessions } from '../db/own-sessions.ts'
import { makeFolder } from '../keys/secret-file.ts'
import { blame, type Settings } from '../settings.ts'

export interface Connected {
  db: Database
  /** URL of the same database for the role that owns the schema, if known. For migrations only. */
  ownerUrl: string | undefined
  /** Another pool on the same database, or on another part of it (`<host>:<port>`). */
  open: (max: number, limits?: Limits, part?: string) => Database
  /** Ends all pools, and stops the embedded server if no other process is attached. */
  close: () => Promise<void>
}

/**
 * Connects to DATABASE_URL, or starts the embedded server. `db` has at most `max` connections. With `checked`, connections
 * to a server that does not answer are ended (`ServerCheck`): for a service, which goes on without them. A process without
 * `checked` is a command, and notifies other processes of its changes. `changes` gets what this process commits and what
 * others tell.
 */
export async function connect(
  settings: Settings,
  log: Logger,
  {
    max,
    limits,
    checked = false,
    changes = new Changes(),
  }: { max: number; limits?: Limits; checked?: boolean; changes?: Changes } = {
    max: settings.databaseConnections,
  },
): Promise<Connected> {
  let embedded: EmbeddedPostgres | undefined
  if (settings.databaseUrl === undefined) {
    // Under root, the embedded server runs as another user, which must be able to enter the folder.
    const mode = process.getuid?.() === 0 ? 0o711 : 0o700
    await makeFolder(settings.dataDir, mode).catch(blame('BURSAR_DATA_DIR'))
    embedded = await EmbeddedPostgres.start({
      dataDir: settings.dataDir,
      log: (message) => log.info(message),
      // The service cannot work without its database, so it exits and its supervisor notices.
      onLost: (error) => {
        log.fatal({ err: error }, 'the embedded PostgreSQL is gone')
        process.exit(1)
      },
    })
  }
  const pools: Database[] = []
  const checks = new Map<string, ServerCheck>()
  const checkOf = (url: string) => {
    const known = checks.get(url)
    if (known !== undefined) return known
    const { host, searchParams } = new URL(url)
    const server = searchParams.get('host') ?? host
    const onChange = (isSilent: boolean) =>
      isSilent
        ? log.error({ server }, 'the database server does not answer; its connections are ended')
        : log.info({ server }, 'the database server answers again')
    const made = new ServerCheck(url, { onChange, onTold: changes.hear })
    checks.set(url, made)
    return made
  }
  const open = (max: number, limits?: Limits, node?: string) => {
    const url = addressOn(settings.databaseUrl ?? embedded!.url, node)
    const pool = openDatabase(url, {
      max,
      sandbox: settings.mode === 'sandbox',
      socket: checked ? checkOf(url).socket : undefined,
      onChange: changes.note,
      onError: (error) => log.warn({ err: error }, 'an idle database connection was lost'),
      ...(limits && { limits }),
    })
    pools.push(pool)
    return pool
  }
  const db = open(max, limits)
  const ownerUrl = embedded === undefined ? settings.migrationsDatabaseUrl : embedded.ownerUrl
  const close = async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await Promise.all([...checks.values()].map((check) => check.stop()))
    await embedded?.stop()
  }
  try {
    // A busy server may take longer for the first connection than a request may wait for one.
    const first = () => db.query('select')
    await first()
      .catch((error: Error) => (/timeout/.test(error.message) ? first() : Promise.reject(error)))
      .catch(blame('DATABASE_URL'))
    if (!checked) changes.tellOthers(db, (err) => log.debug({ err }, NOT_TOLD))
    return { db, open, ownerUrl, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A worker's transaction may wait for nodes, a request's only for the database. */
export const BACKGROUND_LIMITS: Limits = { idleInTransactionMs: 15 * 60_000 }

/** What a service connects with first: its pool for the worker and other background work. */
export interface ServiceConnected extends Connected {
  changes: Changes
  /** The number of connections of the pool. The others are for requests: requests and background work do not block each other. */
  share: number
}

/** Connects a service, which goes on without its database. */
export async function connectService(settings: Settings, log: Logger): Promise<ServiceConnected> {
  const share = Math.max(2, Math.min(6, Math.floor(settings.databaseConnections / 3)))
  const changes = new Changes()
  const options = { max: share, limits: BACKGROUND_LIMITS, checked: true, changes }
  const connected = await connect(settings, log, options)
  try {
    if (settings.databaseUrl !== undefined)
      await requireOwnSessions(connected.db).catch(blame('DATABASE_URL'))
  } catch (error) {
    await connected.close()
    throw error
  }
  return { share, changes, ...connected }
}

/** What a process logs when it could not notify others of a change. Their workers find the change a little later. */
export const NOT_TOLD = 'the workers of other processes were not told of a change'

/** Reads which part of the database has which customer. */
export const openParts = (db: Database, log: Logger): Promise<Cluster> =>
  Cluster.open(db, (err) =>
    log.warn({ err }, 'the places of the customers cannot be read; those read before stay in use'),
  )
