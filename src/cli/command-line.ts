import { originOfUser, type Origin } from '../contract/actor.ts'
import { Problem } from '../contract/problems.ts'
import { userInfo } from 'node:os'
import { pino, type Logger } from 'pino'
import { connect, openParts, type Connected } from '../program/connect.ts'
import { tookTooLong, transaction, withOwner, type Database, type Transaction } from '../db/database.ts'
import { credentialsFile, openCredentials } from '../program/demo/credentials.ts'
import { prepareDatabase, readStamp, requireMode } from '../program/deployment.ts'
import { logOptions, openLog, STANDARD_ERROR } from '../log.ts'
import { Ledger } from '../money/movements/queue.ts'
import { RowMacs, sealRowsWith } from '../audit/sealed-rows.ts'
import { openScreeningOfCommand } from '../rails/screening/open-screening.ts'
import type { Screening } from '../rails/screening/screening.ts'
import { openNetworks } from '../rails/wallets/configured-networks.ts'
import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { NetworkAdapter } from '../networks/network.ts'
import type { RailsContext } from '../rails/context.ts'
import type { OperatorContext, OperatorOperation } from '../resources/operation.ts'
import { OPERATOR_SCOPES, scopesOf } from '../contract/scopes.ts'
import type { OpenContext, Operate } from './define.ts'
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
  pino(options, file).info({ ...on, ...operator() }, did)
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
  applied: string[]
  origin: Origin
  /** Logs what the operator did (`logOperator`). */
  did: (what: string, on: Record<string, unknown>) => void
  /** Throw `SettingsError` where live mode has no master key. */
  keys: () => Promise<MasterKeys>
  rowMacs: () => Promise<RowMacs>
  /** `db`, with connections to each part of the database. */
  allParts: () => Promise<Database>
  networks: () => Promise<ReadonlyMap<CryptoNetwork, NetworkAdapter>>
  /** A real network. Throws an Error when the networks file has no section for it. */
  network: (name: CryptoNetwork) => Promise<NetworkAdapter>
  /**
   * Runs an operation in this process, on this database, with the user of the operating system as its actor. `given` has the members
   * of its path, query and body by their names, which are checked as those of a request, and the customer that it acts for.
   */
  operate: Operate
  /** What crediting deposits takes besides. */
  crediting: () => Promise<
    Pick<RailsContext, 'db' | 'ledger' | 'settings'> & { screening: Screening | undefined }
  >
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
    const ending: (() => Promise<unknown>)[] = []
    try {
      await requireMode(db, settings.mode)
      const applied = migrate ? await prepareDatabase(db, settings, ownerUrl) : []
      const origin = originOfUser(operatorName())
      await recordMigrations(db, origin, applied)
      if (customer !== undefined) await requireCustomer(db, customer)
      const did: AtDatabase['did'] = (what, on) => logOperator(settings, what, on)
      const rowMacs = async () => new RowMacs(await keys())
      const base = { db, settings, log, open, ownerUrl, applied, origin, did, keys, rowMacs }
      const opened = opening(base, (close) => void ending.push(close))
      const operate: Operate = (operation, given) => runOperation({ ...base, ...opened }, operation, given)
      const at = { ...base, ...opened, operate }
      if (as === 'service') return await work(at)
      return await asOwner(ownerUrl, (owner) => work({ ...at, db: owner }))
    } finally {
      for (const end of ending) await end()
      await disconnect()
    }
  } finally {
    close()
  }
}

/** Connections of a command to each other part of the database. */
const PART_CONNECTIONS = 2

/** What a command opens when it needs it. `atEnd` gets what closes it. */
function opening(
  { db, settings, log, open, keys }: Pick<AtDatabase, 'db' | 'settings' | 'log' | 'open' | 'keys'>,
  atEnd: (close: () => Promise<unknown>) => void,
): Pick<AtDatabase, 'allParts' | 'networks' | 'network' | 'crediting'> {
  const networks = async () =>
    new Map([...(await openNetworks(settings, db))].map(([name, { adapter }]) => [name, adapter]))
  return {
    networks,
    async allParts() {
      const parts = await openParts(db, log)
      atEnd(() => parts.close())
      return parts.connect(db, (part) => open(PART_CONNECTIONS, undefined, part))
    },
    async network(name) {
      const adapter = (await networks()).get(name)
      if (adapter === undefined) throw new Error(`${name} has no section in BURSAR_NETWORKS_FILE`)
      return adapter
    },
    async crediting() {
      const screening = await openScreeningOfCommand(db, settings)
      const ledger = new Ledger(db, { macs: new RowMacs(await keys()) })
      atEnd(() => ledger.drain())
      return { db, ledger, settings, screening }
    },
  }
}

async function runOperation<Reply>(
  { settings, origin, keys: openKeys, allParts }: Omit<AtDatabase, 'operate'>,
  operation: OperatorOperation<Reply>,
  given: object,
): Promise<Reply> {
  const { customer: customerId = '' } = given as { customer?: string }
  // What only reads needs no master key, and makes none.
  const keys = operation.method === 'GET' ? undefined : await openKeys()
  const db = await allParts()
  const ledger = keys && new Ledger(db, { macs: new RowMacs(keys) })
  const context = {
    ...{ db, settings, ledger },
    ...(keys && { policies: new Policies(keys), rowMacs: new RowMacs(keys) }),
  } as OperatorContext
  const caller = {
    customerId,
    clientId: origin.actor.id,
    scopes: [...scopesOf(settings.mode), ...OPERATOR_SCOPES],
    origin,
  }
  const { fileValidator } = await import('../http/validation.ts')
  const [params, query, body] = (['params', 'query', 'body'] as const).map((part) => {
    const schema = operation[part]
    if (schema === undefined) return undefined
    const members = Object.entries(given).filter(
      ([name, value]) => Object.hasOwn(schema.properties, name) && value !== undefined,
    )
    const checked = fileValidator(schema)(Object.fromEntries(members))
    if ('error' in checked) throw checked.error
    return checked.value
  })
  try {
    return await operation.run({ ...caller, ...context, params, query, body } as never)
  } finally {
    await ledger?.drain()
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

const door =
  (access: Access): OpenContext<AtDatabase> =>
  (work, { customer }) =>
    withDatabase({ ...access, customer }, work).catch((error: unknown) => {
      throw asFailure(error)
    })

/**
 * Doors to the database (define.ts): as the service's role, as that role after migrating, and as the owner of the schema.
 * Commands that may be the first to use a database migrate it. The customer of the option `--customer` must exist.
 */
export const inDatabase = door({})
export const inMigratedDatabase = door({ migrate: true })
export const inOwnersDatabase = door({ as: 'owner' })

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

const WAY_ON: Record<string, string> = {
  'approval-required': '. After they have approved, run the same command with --approval and its id',
}

/** A refusal as the failure of a command, with the next step for the person, and so a lock that another process holds. */
export function asFailure(error: unknown): Error {
  if (tookTooLong(error))
    return new Error('another process works on the record: nothing was changed; try again', { cause: error })
  if (error instanceof Problem)
    return new Error(`${error.detail}${WAY_ON[error.slug] ?? ''}`, { cause: error })
  return error as Error
}
