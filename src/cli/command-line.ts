import { originOfUser, type Origin } from '../contract/actor.ts'
import { userInfo } from 'node:os'
import { pino, type Logger } from 'pino'
import { connect, openCluster, type Connected } from '../program/connect.ts'
import type { Nodes } from '../db/nodes.ts'
import { tookTooLong, transaction, withOwner, type Database, type Transaction } from '../db/database.ts'
import { credentialsFile, openCredentials } from '../program/demo/credentials.ts'
import { prepareDatabase, readStamp, requireMode } from '../program/deployment.ts'
import { logOptions, openLog, STANDARD_ERROR } from '../log.ts'
import { Ledger } from '../money/movements/queue.ts'
import { RowMacs, sealRowsWith } from '../audit/row-macs.ts'
import { openScreeningOfCommand } from '../rails/screening/open-screening.ts'
import type { Screening } from '../rails/screening/screening.ts'
import type { OpenContext } from './define.ts'
import { ownProcess } from './own-process.ts'
import { readSettings, type Settings } from '../settings.ts'
import { openMasterKeys, type MasterKeys } from '../keys/master-keys.ts'
import { withApprovedChange, type RequestedChange } from '../governance/approvals/approved-change.ts'
import { Policies } from '../governance/policy/policy.ts'
import { recordMigrations } from '../audit/audited.ts'

/** Shared by the commands that work on the database: the connection, the roles, and changes that wait for approvers. */

/** Throws when there is no such customer, so that a mistyped id does not look like a customer without records. */
export async function requireCustomer(db: Database, id: string): Promise<void> {
  const { rowCount } = await db.query('select 1 from customers where id = $1', [id])
  if (rowCount === 0) throw new Error(`there is no customer ${id}`)
}

/**
 * Logs an operator's action: the user of the operating system, what the command did and which records it changed. The level
 * is `info`, which the log of a command otherwise leaves out. Writes synchronously, so that the line survives an exit.
 */
export function logOperator(settings: Settings, did: string, on: Record<string, unknown>): void {
  const options = logOptions(settings.logLevel === 'silent' ? 'silent' : 'info')
  const file = ownProcess().log ?? pino.destination({ dest: STANDARD_ERROR, sync: true })
  pino(options, file).info({ ...operator(), ...on }, did)
}

/** Name of the person who runs the command, from the operating system. Records of manual steps keep it. */
export const operatorName = (): string => {
  const { user, sudo_user } = operator()
  return sudo_user ?? user
}

/** The user that runs this program, and under sudo also the user who called sudo. */
function operator(): { user: string; sudo_user?: string } {
  const { SUDO_USER } = ownProcess().env
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

export interface AtDatabase extends Pick<Connected, 'open' | 'ownerUrl'> {
  db: Database
  settings: Settings
  log: Logger
  /** The migrations that ran. */
  applied: string[]
  origin: Origin
  /** Logs what the operator did (`logOperator`). */
  did: (what: string, on: Record<string, unknown>) => void
  /** Throw `SettingsError` where live mode has no master key. */
  keys: () => Promise<MasterKeys>
  rowMacs: () => Promise<RowMacs>
}

/** The role that a command works as, and whether it migrates the schema first. */
interface Access {
  as?: 'service' | 'owner'
  migrate?: boolean
  /** A customer that must exist. */
  customer?: string | undefined
}

/**
 * Runs a command with a database connection and closes it afterwards. An embedded server that this process started is
 * stopped, too. Throws `SettingsError` when the database belongs to the other mode. Throws an Error as `asOwner` does.
 */
export async function withDatabase<T>(
  { as = 'service', migrate = false, customer }: Access,
  work: (at: AtDatabase) => Promise<T>,
): Promise<T> {
  const settings = readSettings(ownProcess().env)
  const logLevel = settings.logLevel === 'info' ? 'warn' : settings.logLevel
  const { log, close } = await openLog({ ...settings, logLevel }, ownProcess().log)
  try {
    const { db, open, ownerUrl, close: disconnect } = await connect(settings, log)
    const keys = () => openMasterKeys(settings)
    sealRowsWith(keys)
    try {
      await requireMode(db, settings.mode)
      const applied = migrate ? await prepareDatabase(db, settings, ownerUrl) : []
      const origin = originOfUser(operatorName())
      await recordMigrations(db, origin, applied)
      if (customer !== undefined) await requireCustomer(db, customer)
      const did: AtDatabase['did'] = (what, on) => logOperator(settings, what, on)
      const rowMacs = async () => new RowMacs(await keys())
      const at = { db, settings, log, open, ownerUrl, applied, origin, did, keys, rowMacs }
      if (as === 'service') return await work(at)
      return await asOwner(ownerUrl, (owner) => work({ ...at, db: owner }))
    } finally {
      await disconnect()
    }
  } finally {
    close()
  }
}

/**
 * Works in a session of the role that owns the schema. Only this role may make and revoke approvers, waive screening and seal
 * again. Throws an Error when its address is not configured.
 */
export async function asOwner<T>(url: string | undefined, work: (owner: Database) => Promise<T>): Promise<T> {
  if (url === undefined)
    throw new Error(
      'BURSAR_MIGRATIONS_DATABASE_URL: only the role that owns the schema makes and revokes approvers, waives screening and seals again; give its address',
    )
  return withOwner(url, work)
}

/** The address at which operators reach the service: as it is set, as a live database is stamped, or as a sandbox wrote it. */
export const baseUrlOf = async ({ db, settings }: Pick<AtDatabase, 'db' | 'settings'>): Promise<string> =>
  settings.baseUrl ??
  (await readStamp(db))?.issuer ??
  (await openCredentials(credentialsFile(settings.dataDir)).catch(() => undefined))?.base_url ??
  `http://${settings.host}:${settings.port}`

type OfCustomer = Pick<Access, 'customer'>

/**
 * Doors to the database (define.ts): as the service's role, as that role after migrating, and as the owner of the schema.
 * Commands that may be the first to use a database migrate it. The customer of the option `--customer` must exist.
 */
export const inDatabase: OpenContext<AtDatabase, OfCustomer> = (work, { customer }) =>
  withDatabase({ customer }, work)
export const inMigratedDatabase: OpenContext<AtDatabase, OfCustomer> = (work, { customer }) =>
  withDatabase({ customer, migrate: true }, work)
export const inOwnersDatabase: OpenContext<AtDatabase, OfCustomer> = (work, { customer }) =>
  withDatabase({ customer, as: 'owner' }, work)

/** Connections of a command to each node of a cluster besides the coordinator. */
const NODE_CONNECTIONS = 2

/** The same door, with connections to each node of a cluster. */
export const onNodes =
  (door: typeof inDatabase): OpenContext<AtDatabase & { nodes: Nodes }, OfCustomer> =>
  (work, options) =>
    door(async (at) => {
      const cluster = await openCluster(at.db, at.log)
      try {
        const nodes = cluster.nodes(at.db, (node) => at.open(NODE_CONNECTIONS, undefined, node))
        await work({ ...at, nodes })
      } finally {
        await cluster.close()
      }
    }, options)

/** A change that a customer's policy can make dependent on approvers. */
export type AskedChange = Omit<RequestedChange, 'origin' | 'approval_id'> & { approval?: string | undefined }

/** Makes a change in a transaction. Where the customer's policy requires approvers, they must have approved the change. */
export async function approved<T>(
  { db, keys, origin }: AtDatabase,
  { approval: approval_id, ...change }: AskedChange,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { rowCount } = await db.query('select 1 from policies where customer_id = $1 limit 1', [
    change.customer_id,
  ])
  // Without a policy, no change waits for approvers.
  if (rowCount === 0 && approval_id === undefined) return transaction(db, work)
  return withApprovedChange(db, new Policies(await keys()), { ...change, origin, approval_id }, work)
}

/** Turns a lock time-out into an error that says who holds what. */
export const orBusy =
  (busy: string) =>
  (error: unknown): never => {
    throw tookTooLong(error) ? new Error(`${busy}; try again`) : error
  }

/** What commands that credit deposits work with, too. */
export interface CreditingContext {
  ledger: Ledger
  screening: Screening | undefined
}

/** Runs work with a ledger and with screening, and drains the ledger afterwards. */
export async function crediting<At extends AtDatabase>(
  at: At,
  work: (at: At & CreditingContext) => Promise<void>,
): Promise<void> {
  const screening = await openScreeningOfCommand(at.db, at.settings)
  const ledger = new Ledger(at.db, { macs: new RowMacs(await at.keys()) })
  try {
    await work({ ...at, ledger, screening })
  } finally {
    await ledger.drain()
  }
}
