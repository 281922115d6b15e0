import { pino, type Logger } from 'pino'
import type { LogFormat } from './settings.ts'

/** Lines are written together once there are so many characters of them, and otherwise after this time. */
const CHUNK = 16_000
const FLUSH_MS = 100
/** What may wait for a reader of standard error who does not read: more is dropped, or memory would grow. */
const UNWRITTEN_BYTES_MAX = 8 * 1024 * 1024
export const STANDARD_ERROR = 2

/** What a line looks like: of an error it has what `describeError` gives, and no more. */
export const logOptions = (level: string): pino.LoggerOptions => ({
  level,
  serializers: { err: (error: unknown) => describeError(error) },
})

export interface Log {
  log: Logger
  /** Lines that were dropped, because whoever reads them did not. */
  dropped: () => number
}

/**
 * Lines on standard error: standard output is for people and for `--json`. They are written behind the back of
 * what logs them, at the latest when the process exits; only SIGKILL loses the last tenth of a second.
 */
export async function openLog({
  logLevel,
  logFormat,
}: {
  logLevel: string
  logFormat: LogFormat
}): Promise<Log> {
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY)
  const written = isText ? await readable() : (line: string) => line
  let dropped = 0
  const file = pino.destination({ dest: STANDARD_ERROR, sync: false, maxLength: UNWRITTEN_BYTES_MAX })
  file.on('drop', (lines: string) => (dropped += lines.split('\n').length - 1))
  // Whoever read standard error is gone: the service goes on, as it would without a reader.
  file.on('error', () => undefined)

  // The destination itself takes 3 us for a line, because it measures what it holds anew for each (measured: 5 us a
  // line with its serialisation; this: 2).
  let chunk = ''
  const flush = () => {
    if (chunk !== '') file.write(chunk)
    chunk = ''
  }
  setInterval(flush, FLUSH_MS).unref()
  const flushSync = () => {
    flush()
    file.flushSync()
  }
  process.on('exit', flushSync)
  const log = pino(logOptions(logLevel), {
    write(line: string) {
      chunk += written(line)
      if (chunk.length >= CHUNK) flush()
    },
    // A fatal line is followed by the end of the process.
    flushSync,
  } as pino.DestinationStream)
  return { log, dropped: () => dropped }
}

/** What makes a line of JSON one for people: the time of day, the level, the message, and the rest behind it. */
async function readable(): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  return prettyFactory({
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
 * What the log says of an error: where it comes from and which it is. Only what is named here, since errors carry
 * along what they are about: PostgreSQL's a row's values, a refusal the record that is there already.
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
        errors: errors.slice(0, ERRORS_MAX).map((one) => describeError(one, depth + 1)),
      }),
  }
}
