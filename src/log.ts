import { pino, type Logger } from 'pino'
import type { LogFormat } from './settings.ts'

/** Buffered lines are written when they reach this many characters, or after this time. */
const CHUNK = 16_000
const FLUSH_MS = 100
/** Maximum unwritten bytes while the reader of standard error does not read. More lines are dropped, to bound memory. */
const UNWRITTEN_BYTES_MAX = 8 * 1024 * 1024
export const STANDARD_ERROR = 2

/** Options of the log. Errors are written as `describeError` returns them. */
export const logOptions = (level: string): pino.LoggerOptions => ({
  level,
  serializers: { err: (error: unknown) => describeError(error) },
})

export interface Log {
  log: Logger
  /** Number of lines dropped because the reader did not keep up. */
  dropped: () => number
  /** Writes what is left, and removes its listener: a process that opens one log after the other would keep one for each. */
  close: () => void
}

/** Where the lines of a log go, as pino's destinations take them. */
export type LogFile = Pick<ReturnType<typeof pino.destination>, 'write' | 'flushSync' | 'on'>

const standardError = (): LogFile =>
  pino.destination({ dest: STANDARD_ERROR, sync: false, maxLength: UNWRITTEN_BYTES_MAX })

/**
 * Opens the log on standard error; standard output is for people and for `--json`. Lines are written asynchronously, and
 * at the latest when the process exits. Only SIGKILL loses the last 100 ms.
 */
export async function openLog(
  { logLevel, logFormat }: { logLevel: string; logFormat: LogFormat },
  file: LogFile = standardError(),
): Promise<Log> {
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY)
  const written = isText ? await readable() : (line: string) => line
  let dropped = 0
  file.on('drop', (lines: string) => (dropped += lines.split('\n').length - 1))
  // The reader of standard error closed it: the service continues without a log.
  file.on('error', () => undefined)

  // The destination takes 3 us for each line, because it measures its whole buffer every time (measured: 5 us a line with
  // serialisation; with this buffer: 2 us).
  let chunk = ''
  let flushing: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(flushing)
    if (chunk !== '') file.write(chunk)
    chunk = ''
  }
  const flushSync = () => {
    flush()
    file.flushSync()
  }
  process.on('exit', flushSync)
  const log = pino(logOptions(logLevel), {
    write(line: string) {
      if (chunk === '') flushing = setTimeout(flush, FLUSH_MS).unref()
      chunk += written(line)
      if (chunk.length >= CHUNK) flush()
    },
    // The process exits after a fatal line.
    flushSync,
  } as pino.DestinationStream)
  const close = () => {
    process.off('exit', flushSync)
    flushSync()
  }
  return { log, dropped: () => dropped, close }
}

/** Makes the function that formats a line of JSON for people: time of day, level, message, other members. */
async function readable(): Promise<(line: string) => string> {
  const { default: pretty } = await import('pino-pretty')
  return pretty.prettyFactory({
    colorize: process.stderr.isTTY && !process.env.NO_COLOR,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname',
    singleLine: true,
  }) as (line: string) => string
}

const DEPTH_MAX = 3
const ERRORS_MAX = 10
/** PostgreSQL's class of errors about a value, which their message repeats. */
const ABOUT_A_VALUE = /^22/

/**
 * The loggable members of an error, and no others: errors of PostgreSQL also carry a row's values, and a refusal carries the
 * existing record.
 */
export function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { type: typeof error }
  const { name, code, constraint, table, routine, cause, errors } = error as Error & Record<string, unknown>
  const aboutAValue = typeof code === 'string' && ABOUT_A_VALUE.test(code)
  const withoutValue = (text: string | undefined) =>
    aboutAValue ? text?.replaceAll(/"[^\n]*"/g, '"…"') : text
  return {
    type: name === 'Error' ? error.constructor.name : name,
    message: withoutValue(error.message),
    stack: withoutValue(error.stack),
    code,
    constraint,
    table,
    routine,
    ...(depth < DEPTH_MAX && cause !== undefined && { cause: describeError(cause, depth + 1) }),
    ...(depth < DEPTH_MAX &&
      Array.isArray(errors) && {
        errors: errors.slice(0, ERRORS_MAX).map((error) => describeError(error, depth + 1)),
      }),
  }
}
