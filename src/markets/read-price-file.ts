import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CsvError, parse } from 'csv-parse'
import { Temporal } from 'temporal-polyfill'
import { DAY } from './increments.ts'
import { COVERS_MINUTES_MAX, type PriceRecords } from './write-prices.ts'

/** The column layouts of files without a header, by name. A header may list its columns in any order. */
const LAYOUTS = {
  /** Kraken's public OHLCVT download. */
  kraken: ['timestamp', 'open', 'high', 'low', 'close', 'volume', 'trades'],
  /** Coinbase's candles. */
  coinbase: ['time', 'low', 'high', 'open', 'close', 'volume'],
  price: ['timestamp', 'price'],
} as const
export type LayoutName = keyof typeof LAYOUTS
export const LAYOUT_NAMES = Object.keys(LAYOUTS) as LayoutName[]

const TIME_NAMES = ['timestamp', 'time', 'date', 'datetime', 'unix', 'open_time']
const CANDLE_NAMES = ['open', 'high', 'low', 'close']

/** A fault in a price file, with its line and column. */
export class PriceFileError extends Error {}

export interface PriceFileOptions {
  /** Overrides the layout that follows from the header or the number of columns. */
  layout?: LayoutName | undefined
  /** Overrides the candle length that follows from the file's name or from the spacing of its records. */
  intervalMinutes?: number | undefined
  /** The current minute: candles that have not ended by then are left out. */
  now: number
  /** Number of records at the beginning that were imported before. */
  skip: number
  /** Called with the number of bytes read. */
  onBytes: (bytes: number) => void
}

export interface PriceBatch {
  records: PriceRecords
  /** Number of records read so far, including skipped and omitted records. */
  read: number
  /** Number of records that need not be read again: the records before the first that had not ended. */
  done: number
  /** Of the records since the last batch, those that had not ended. */
  unfinished: number
}

/** Limits a batch in memory and in a statement: this many minutes, or one record that covers more. */
const BATCH_MINUTES_MAX = 20_000
/** Most records used to determine the candle length. */
const HEAD_RECORDS_MAX = 1_000
/** In a file with gaps, fewer records could all have a wider spacing by chance. */
const HEAD_RECORDS_MIN = 20
const RECORD_BYTES_MAX = 4_096

/** Streams a CSV file, gzipped or not (detected by content), as batches of prices. Throws `PriceFileError`. */
export async function* readPriceFile(path: string, options: PriceFileOptions): AsyncGenerator<PriceBatch> {
  const name = basename(path)
  const parser = parse({
    bom: true,
    trim: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: RECORD_BYTES_MAX,
  })
  const source = createReadStream(path, { highWaterMark: 256 * 1024 })
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      options.onBytes(chunk.length)
      done(null, chunk)
    },
  })
  const unpack = (await isGzip(path)) ? [createGunzip()] : []
  // A failure of the pipeline destroys the parser, and reading from the parser throws it.
  pipeline([source, count, ...unpack, parser], () => undefined)
  try {
    yield* batches(name, parser as AsyncIterable<Line>, options)
  } catch (error) {
    if (error instanceof PriceFileError) throw error
    const line =
      error instanceof CsvError ? `, line ${String(error.lines)}` : `, after line ${parser.info.lines}`
    throw new PriceFileError(`${name}${line}: ${(error as Error).message}`, { cause: error })
  } finally {
    source.destroy()
  }
}

const GZIP = Buffer.from([0x1f, 0x8b])

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0)
    return buffer.subarray(0, bytesRead).equals(GZIP)
  } finally {
    await file.close()
  }
}

interface Line {
  info: { lines: number }
  record: string[]
}

interface Row {
  line: number
  minute: number
  second: number
  prices: string[]
}

async function* batches(
  name: string,
  lines: AsyncIterable<Line>,
  { layout, intervalMinutes, now, skip }: PriceFileOptions,
): AsyncGenerator<PriceBatch> {
  let columns: Columns | undefined
  /** Read but not yet in a batch: the head of the file, until the candle length is known. */
  const waiting: Row[] = []
  let covers: number | undefined
  let first: number | undefined
  let batch = new Batch()
  let read = 0
  let unfinished = 0
  let firstUnfinished: number | undefined

  const add = (row: Row, covers: number) => {
    read += 1
    if (read <= skip) return
    if (row.minute > now) throw fault(name, row.line, columns!, columns!.time, 'is in the future')
    if ((row.minute - (first ?? row.minute)) % covers !== 0)
      throw fault(
        name,
        row.line,
        columns!,
        columns!.time,
        `is not a multiple of ${covers} minutes from the first`,
      )
    if (row.minute + covers <= now) return batch.add(row)
    unfinished += 1
    firstUnfinished ??= read - 1
  }
  const take = (covers: number): PriceBatch => {
    const taken = { records: batch.records(covers), read, done: firstUnfinished ?? read, unfinished }
    batch = new Batch()
    unfinished = 0
    return taken
  }
  function* full(): Generator<PriceBatch> {
    covers ??= intervalOf(name, waiting, columns, intervalMinutes)
    for (const row of waiting.splice(0)) {
      first ??= row.minute
      add(row, covers)
      if (batch.length * covers >= BATCH_MINUTES_MAX) yield take(covers)
    }
  }

  for await (const { info, record } of lines) {
    if (columns === undefined) {
      columns = columnsOf(name, record, layout)
      if (columns.header) continue
    }
    waiting.push(rowOf(name, info.lines, record, columns))
    if (covers !== undefined || waiting.length === HEAD_RECORDS_MAX) yield* full()
  }
  yield* full()
  yield take(covers ?? 1)
}

/** Collects rows as columns. */
class Batch {
  #minute: number[] = []
  #second: number[] = []
  #prices: string[][] = [[], [], [], []]

  get length(): number {
    return this.#minute.length
  }

  add({ minute, second, prices }: Row): void {
    this.#minute.push(minute)
    this.#second.push(second)
    for (let column = 0; column < prices.length; column++) this.#prices[column]!.push(prices[column]!)
  }

  records(coversMinutes: number): PriceRecords {
    const [open, high, low, close] = this.#prices as [string[], string[], string[], string[]]
    return {
      coversMinutes,
      minute: this.#minute,
      second: this.#second,
      prices: high.length === 0 ? [open] : [open, high, low, close],
    }
  }
}

/** The positions of the columns in a line. */
interface Columns {
  header: boolean
  names: readonly string[]
  time: number
  prices: number[]
}

function columnsOf(name: string, first: string[], layout: LayoutName | undefined): Columns {
  const header = timeOf(first[0] ?? '') === undefined && first.some((field) => /[a-z]/i.test(field))
  if (layout !== undefined) return columnsNamed(LAYOUTS[layout], header)!
  if (header) {
    const found = columnsNamed(
      first.map((field) => field.toLowerCase()),
      true,
    )
    if (found !== undefined) return found
    throw new PriceFileError(
      `${name}, line 1: the header must contain a time (${TIME_NAMES.join(', ')}) and a price, or open, high, low and close; it has ${first.join(', ')}`,
    )
  }
  // Coinbase's six columns differ from the usual six only in that low and open change places, which `rowOf` sees.
  const found = LAYOUT_NAMES.find((one) => LAYOUTS[one].length === first.length)
  if (found !== undefined) return columnsNamed(LAYOUTS[found], false)!
  throw new PriceFileError(
    `${name}, line 1: ${first.length} columns match no layout; specify the layout: ${LAYOUT_NAMES.join(', ')}`,
  )
}

function columnsNamed(names: readonly string[], header: boolean): Columns | undefined {
  const time = names.findIndex((one) => TIME_NAMES.includes(one))
  const candle = CANDLE_NAMES.map((one) => names.indexOf(one))
  const prices = candle.includes(-1) ? [names.indexOf('price')] : candle
  return time === -1 || prices.includes(-1) ? undefined : { header, names, time, prices }
}

// At most 20 digits and 18 decimals.
const PRICE = /^[0-9]{1,20}(?:\.[0-9]{1,18})?$/
const ZERO = /^[0.]+$/

/** Whether a text is a price: a decimal number above 0. */
export const isPrice = (text: unknown): text is string =>
  typeof text === 'string' && PRICE.test(text) && !ZERO.test(text)

function rowOf(name: string, line: number, record: string[], columns: Columns): Row {
  if (record.length < columns.names.length)
    throw new PriceFileError(
      `${name}, line ${line}: ${record.length} columns where ${columns.names.length} are due (${columns.names.join(', ')})`,
    )
  const time = timeOf(record[columns.time]!)
  if (time === undefined)
    throw fault(name, line, columns, columns.time, `is not a time: ${quoted(record[columns.time]!)}`)
  const candle = columns.prices.length > 1
  if (candle && time.second !== 0)
    throw fault(name, line, columns, columns.time, 'is not the start of a minute, which a candle needs')
  const prices = columns.prices.map((column) => {
    const price = record[column]!
    if (!isPrice(price))
      throw fault(name, line, columns, column, `is not a decimal number above 0: ${quoted(price)}`)
    return price
  })
  // Six columns may be in Coinbase's order or in the usual one: an open is never below the low.
  if (candle && columns.names === LAYOUTS.coinbase && isBelow(prices[0]!, prices[2]!))
    [prices[0], prices[2]] = [prices[2]!, prices[0]!]
  return { line, ...time, prices }
}

/** Whether a price is below another, exactly. */
function isBelow(one: string, other: string): boolean {
  const [whole, fraction = ''] = one.replace(/^0+/, '').split('.') as [string, string?]
  const [otherWhole, otherFraction = ''] = other.replace(/^0+/, '').split('.') as [string, string?]
  if (whole.length !== otherWhole.length) return whole.length < otherWhole.length
  if (whole !== otherWhole) return whole < otherWhole
  const decimals = Math.max(fraction.length, otherFraction.length)
  return fraction.padEnd(decimals, '0') < otherFraction.padEnd(decimals, '0')
}

function fault(name: string, line: number, columns: Columns, column: number, what: string) {
  return new PriceFileError(`${name}, line ${line}, column ${column + 1} (${columns.names[column]!}) ${what}`)
}

const quoted = (text: string) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

const UNIX_SECONDS = /^([0-9]{1,10})(?:\.[0-9]{1,9})?$/
const UNIX_MILLISECONDS = /^([0-9]{10})[0-9]{3}$/
const ISO_TIME =
  /^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.[0-9]{1,9})?)?)?(?: ?(?:Z|UTC)|([+-])([01][0-9]):?([0-5][0-9]))?$/

/** Parses a time: Unix seconds or milliseconds, or ISO 8601, in UTC unless it has an offset. */
export function timeOf(text: string): { minute: number; second: number } | undefined {
  const unix = UNIX_SECONDS.exec(text) ?? UNIX_MILLISECONDS.exec(text)
  if (unix !== null) {
    const seconds = Number(unix[1])
    return { minute: Math.floor(seconds / 60), second: seconds % 60 }
  }
  const [, day, hours = '0', minutes = '0', seconds = '0', sign, offsetHours = '0', offsetMinutes = '0'] =
    ISO_TIME.exec(text) ?? []
  const midnight = day === undefined ? undefined : midnightOf(day)
  if (midnight === undefined) return undefined
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -1 : 1)
  const minute = midnight + Number(hours) * 60 + Number(minutes) - offset
  return minute < 0 ? undefined : { minute, second: Number(seconds) }
}

// Files have millions of times, and most are of the same day as the time before. So the last day is cached.
let lastDay: { text: string; minute: number | undefined } = { text: '', minute: undefined }

/** Returns the first minute of a day; undefined for an invalid day. */
function midnightOf(text: string): number | undefined {
  if (lastDay.text !== text) {
    const [year, month, day] = text.split('-').map(Number) as [number, number, number]
    const there =
      month >= 1 && month <= 12 && day >= 1 && day <= new Temporal.PlainYearMonth(year, month).daysInMonth
    const since = new Temporal.PlainDate(1970, 1, 1)
    lastDay = {
      text,
      minute: there ? since.until(new Temporal.PlainDate(year, month, day)).days * DAY : undefined,
    }
  }
  return lastDay.minute
}

/** The candle lengths that exchanges publish, in minutes. */
const CANDLE_MINUTES = [1, 5, 15, 30, 60, 120, 240, 360, 720, 1440, 10_080, COVERS_MINUTES_MAX]

/**
 * Determines the length of each record: as given, else by the name of Kraken's files, else by the spacing of candles.
 */
function intervalOf(
  name: string,
  head: Row[],
  columns: Columns | undefined,
  told: number | undefined,
): number {
  if (told !== undefined) return told
  if (columns === undefined || columns.prices.length === 1) return 1
  const named = Number(/_([0-9]{1,5})\.csv(?:\.gz)?$/i.exec(name)?.[1])
  const apart = head.reduce((found, { minute }) => greatestDivisor(found, minute - head[0]!.minute), 0)
  const divides = (length: number) => apart % length === 0
  if (CANDLE_MINUTES.includes(named) && divides(named)) return named
  if (apart === 1) return 1
  if (head.length < HEAD_RECORDS_MIN)
    throw new PriceFileError(
      `${name}: ${head.length} candles are too few to determine their length: specify the interval`,
    )
  return CANDLE_MINUTES.filter(divides).at(-1)!
}

function greatestDivisor(a: number, b: number): number {
  let [x, y] = [Math.abs(a), Math.abs(b)]
  // Euclid's algorithm: each step at least halves one of the numbers.
  for (let step = 0; y !== 0 && step < 64; step++) [x, y] = [y, x % y]
  return x
}
