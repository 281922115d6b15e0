import { AsyncLocalStorage } from 'node:async_hooks'
import { Console } from 'node:console'
import type { LogFile } from '../log.ts'

/** The process as commands see it: their environment, streams and exit. This module loads nothing of the service. */
export interface OwnProcess extends Pick<NodeJS.Process, 'env' | 'stdout' | 'stderr' | 'exitCode'> {
  exit: (code: number) => void
  on: (signal: 'SIGINT' | 'SIGTERM', listener: () => void) => unknown
  /** Destination of the log; standard error if there is none. */
  log?: LogFile
}

/** The `OwnProcess` of the running command. Only tests set it, because they run several commands in one process. */
export const given = new AsyncLocalStorage<OwnProcess>()

export const ownProcess = (): OwnProcess => given.getStore() ?? process

/** Prints a line on standard error. Like the global console, it ignores a reader that has gone. */
export function printError(...error: unknown[]): void {
  consoleOf().error(...error)
}

/** The console of the command's own streams. */
export function consoleOf(): Console {
  const own = ownProcess()
  return own === process ? console : new Console(own.stdout, own.stderr)
}
