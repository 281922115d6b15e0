import { AssertionError } from 'node:assert'
import { userInfo } from 'node:os'
import { InvalidArgumentError, type Command } from 'commander'
import { pino } from 'pino'
import { connect, type Connected } from '../connect.ts'
import type { Database } from '../db/database.ts'
import { UUID } from '../db/ids.ts'
import { prepareDatabase, requireMode } from '../deployment.ts'
import { logOptions, openLog, STANDARD_ERROR } from '../log.ts'
import { readSettings, type Settings } from '../settings.ts'

/** What the commands share: arguments, exit codes, the database, how an error is told. */

/** Reads an id. For commander. */
export function uuid(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError('must be a UUID.')
  return text.toLowerCase()
}

/** What a command exits with. `docs/command-line.md` and `bursar --help` say the same. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const

/** For the program's root, before its commands are made: a command line that makes no sense is told from one that fails. */
export function exitCodes(program: Command): Command {
  return program.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? EXIT.done : EXIT.usage))
}

/** Throws when there is no such customer, so that a mistyped id is not taken for one with nothing to do. */
export async function requireCustomer(db: Database, id: string): Promise<void> {
  const { rowCount } = await db.query('select 1 from customers where id = $1', [id])
  if (rowCount === 0) throw new Error(`there is no customer ${id}`)
}

/**
 * Writes who did what to the log: the operating system's user, the command and what it acted on. At the level of
 * `info`, which the commands' own log leaves out; synchronously, so that no end of the process loses it.
 */
export function logOperator(settings: Settings, did: string, on: Record<string, unknown>): void {
  const options = logOptions(settings.logLevel === 'silent' ? 'silent' : 'info')
  pino(options, pino.destination({ dest: STANDARD_ERROR, sync: true })).info({ ...operator(), ...on }, did)
}

/** The person who runs a command, by the name on the operating system: for records that say who did it. */
export const operatorName = (): string => {
  const { user, sudo_user } = operator()
  return sudo_user ?? user
}

/** The user that runs this program; behind sudo also the one who asked for it. */
function operator(): { user: string; sudo_user?: string } {
  const { SUDO_USER } = process.env
  return { user: userName(), ...(SUDO_USER && { sudo_user: SUDO_USER }) }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container the user may have a number and no name.
    return String(process.getuid?.())
  }
}

/**
 * Runs a command on the database, which is disconnected from (and stopped, if this started it) in the end. Throws
 * `SettingsError` when the database belongs to the other mode.
 */
export const withDatabase = (work: (db: Database, settings: Settings) => Promise<void>): Promise<void> =>
  connected(({ db }, settings) => work(db, settings))

/**
 * The same, once the schema is up to date: for the commands that write, which may be the first that a database sees. The
 * work is done as the service's role; `applied` names the migrations that ran.
 */
export const withMigratedDatabase = (
  work: (db: Database, settings: Settings, applied: string[]) => void | Promise<void>,
): Promise<void> =>
  connected(async (database, settings) => {
    const applied = await prepareDatabase(database.db, settings, await database.ownerUrl())
    await work(database.db, settings, applied)
  })

async function connected(work: (database: Connected, settings: Settings) => Promise<void>): Promise<void> {
  const settings = { ...readSettings(process.env) }
  const { log } = await openLog({
    ...settings,
    logLevel: settings.logLevel === 'info' ? 'warn' : settings.logLevel,
  })
  const database = await connect(settings, log)
  try {
    await requireMode(database.db, settings.mode)
    await work(database, settings)
  } finally {
    await database.close()
  }
}

/** What only a mistake of ours throws. */
const BUGS = [TypeError, ReferenceError, RangeError, SyntaxError, AssertionError]

/** Of many failures, as many are told as show a pattern. */
const REASONS_MAX = 10

const UNDEFINED_TABLE = '42P01'
const INSUFFICIENT_PRIVILEGE = '42501'
const TOO_MANY_CONNECTIONS = '53300'

/** An error is told by its message. Its stack is for our own mistakes, and for who asks for it. */
export function fail(error: unknown): never {
  const plain = error instanceof Error && !BUGS.some((bug) => error instanceof bug)
  const asked = ['debug', 'trace'].includes(process.env.BURSAR_LOG_LEVEL ?? '')
  // What a setting is blamed for has the database's own error as its cause.
  const { code = (error as { cause?: { code?: string } }).cause?.code } = error as { code?: string }
  if (code === UNDEFINED_TABLE) console.error('The schema is not there: bursar migrate')
  if (code === INSUFFICIENT_PRIVILEGE)
    console.error("The service's database role lacks a privilege: bursar migrate, then bursar doctor")
  if (code === TOO_MANY_CONNECTIONS)
    console.error(
      'The database takes no more connections: lower BURSAR_DATABASE_CONNECTIONS of the running processes, or raise its limit',
    )
  console.error(plain && !asked ? error.message || String(code ?? error.name) : error)
  if (plain && !asked && error instanceof AggregateError)
    for (const { message } of (error.errors as Error[]).slice(0, REASONS_MAX)) console.error(`- ${message}`)
  process.exit(EXIT.failed)
}
