import { AssertionError } from 'node:assert'
import { ownProcess, printError } from './own-process.ts'

/** How a command ends. This module loads nothing of the service, so that the start of every command is fast. */

/** The exit codes, also listed in `docs/command-line.md` and `bursar --help`. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const

/** A command line that does not fit together. */
export class UsageError extends Error {}

/** Error types that only a bug in Bursar throws. */
const BUGS = [TypeError, ReferenceError, RangeError, SyntaxError, AssertionError]

/** Most causes of an `AggregateError` that are printed: enough to show a pattern. */
const REASONS_MAX = 10

const UNDEFINED_TABLE = '42P01'
const INSUFFICIENT_PRIVILEGE = '42501'
const TOO_MANY_CONNECTIONS = '53300'

/** Prints an error and exits with 1. Prints the stack only for bugs and with BURSAR_LOG_LEVEL=debug or trace. */
export function fail(error: unknown): void {
  if (error instanceof UsageError) {
    printError(`error: ${error.message}`)
    return ownProcess().exit(EXIT.usage)
  }
  const plain = error instanceof Error && !BUGS.some((bug) => error instanceof bug)
  const asked = ['debug', 'trace'].includes(ownProcess().env.BURSAR_LOG_LEVEL ?? '')
  // A `SettingsError` has the database's own error as its cause.
  const { code = (error as { cause?: { code?: string } }).cause?.code } = error as { code?: string }
  if (code === UNDEFINED_TABLE) printError('The database has no schema: run bursar migrate')
  if (code === INSUFFICIENT_PRIVILEGE)
    printError("The service's database role lacks a privilege: run bursar migrate, then bursar doctor")
  if (code === TOO_MANY_CONNECTIONS)
    printError(
      'The database accepts no more connections: lower BURSAR_DATABASE_CONNECTIONS of the running processes, or raise max_connections',
    )
  printError(plain && !asked ? error.message || String(code ?? error.name) : error)
  if (plain && !asked && error instanceof AggregateError)
    for (const { message } of (error.errors as Error[]).slice(0, REASONS_MAX)) printError(`- ${message}`)
  ownProcess().exit(EXIT.failed)
}

/** Returns a signal that the first SIGINT or SIGTERM aborts. The second ends the process. */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    ownProcess().on(signal, () => {
      if (stopping.signal.aborted) ownProcess().exit(130)
      stopping.abort()
    })
  return stopping.signal
}
