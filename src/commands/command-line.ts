import { AssertionError } from 'node:assert'
import { InvalidArgumentError } from 'commander'
import type { Database } from '../db/database.ts'
import { UUID } from '../http/lists.ts'
import { openLog } from '../log.ts'
import { connect } from '../serve.ts'
import { readSettings, type Settings } from '../settings.ts'

/** What the commands share: arguments, output, the database, how an error is told. */

/** Reads an id. For commander. */
export function uuid(text: string): string {
  if (!UUID.test(text)) throw new InvalidArgumentError('must be a UUID.')
  return text.toLowerCase()
}

/** Text for people as it is, anything else as a line of JSON for programs. */
export function print(value: unknown): void {
  console.log(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Runs a command on the database, which is disconnected from (and stopped, if this started it) in the end. */
export async function withDatabase(work: (db: Database, settings: Settings) => Promise<void>): Promise<void> {
  const settings = { ...readSettings(process.env) }
  const { log } = openLog({ ...settings, logLevel: settings.logLevel === 'info' ? 'warn' : settings.logLevel })
  const { db, close } = await connect(settings, log)
  try {
    await work(db, settings)
  } finally {
    await close()
  }
}

/** What only a mistake of ours throws. */
const BUGS = [TypeError, ReferenceError, RangeError, SyntaxError, AssertionError]

const UNDEFINED_TABLE = '42P01'

/** An error is told by its message. Its stack is for our own mistakes, and for who asks for it. */
export function fail(error: unknown): never {
  const plain = error instanceof Error && !BUGS.some((bug) => error instanceof bug)
  const asked = ['debug', 'trace'].includes(process.env.BURSAR_LOG_LEVEL ?? '')
  if ((error as { code?: string }).code === UNDEFINED_TABLE)
    console.error('The schema is not there: bursar migrate')
  console.error(plain && !asked ? error.message : error)
  process.exit(1)
}
