import { basename } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { parse as parseNow } from 'csv-parse/sync'
import { DAY } from '../../contract/increments.ts'
import { openPriceFile, PriceFileError } from './open-price-file.ts'
import {
  clockOf,
  columnsNamed,
  delimiterOf,
  isAmbiguousDate,
  isCandle,
  LAYOUT_NAMES,
  LAYOUTS,
  PREAMBLE_LINES_MAX,
  readPrice,
  styleOf,
  TIME_NAMES,
  timeOf,
  withoutClock,
  type Columns,
  type LayoutName,
  type Style,
} from './price-layouts.ts'
import { COVERS_MINUTES_MAX, type PriceRecords } from '../../money/records/write-prices.ts'

export interface PriceFileOptions {
  /** Overrides the layout that follows from the header or the number of columns. */
  layout?: LayoutName | undefined
  /** The names or positions, from 1, of the columns time and price, or time, open, high, low and close. */
  columns?: ReadonlyMap<string, string> | undefined
  /** Overrides the candle length that follows from the file's name or from the spacing of its records. */
  intervalMinutes?: number | undefined
  /** The current minute: candles that have not ended by then are left out. */
  now: number
  /** Number of records at the beginning that were imported before. */
  skip: number
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
  /** Of the records since the last batch, those with the minute of an earlier record of the file, which they replace. */
  overwritten: number
}

/** Limits a batch in memory and in a statement: this many minutes, or one record that covers more. */
const BATCH_MINUTES_MAX = 20_000
/** Most records used to determine the candle length. */
const HEAD_RECORDS_MAX = 1_000
/** In a file with gaps, fewer records could all have a wider spacing by chance. */
const HEAD_RECORDS_MIN = 20
const RECORD_BYTES_MAX = 4_096

const PARSING = {
  bom: true,
  trim: true,
  relax_column_count: true,
  skip_empty_lines: true,
  comment: '#',
  comment_no_infix: true,
  max_record_size: RECORD_BYTES_MAX,
} as const

/** Streams a CSV file, plain, gzipped or zipped (detected by content), as batches of prices. Throws `PriceFileError`. */
export async function* readPriceFile(path: string, options: PriceFileOptions): AsyncGenerator<PriceBatch> {
  const name = basename(path)
  let lines = (): string => ', line 1'
  let close = () => undefined as unknown
  try {
    const file = await openPriceFile(path, name, options.onBytes)
    close = () => file.close()
    const isUtf16 = file.head[0] === 0xff && file.head[1] === 0xfe
    const head = file.head.toString(isUtf16 ? 'utf16le' : 'utf8').replace(/^\ufeff/, '')
    const delimiter = delimiterOf(head)
    const parser = parse({ ...PARSING, info: true, delimiter })
    lines = () => `, after line ${parser.info.lines}`
    // A failure of the pipeline destroys the parser, and reading from the parser throws it.
    pipeline([Readable.from(file.text(), { objectMode: false }), parser], () => undefined)
    yield* batches(name, parser as AsyncIterable<Line>, firstRows(head, delimiter), options)
  } catch (error) {
    if (error instanceof PriceFileError || (error as NodeJS.ErrnoException).code === 'ENOENT') throw error
    const line = error instanceof CsvError ? `, line ${String(error.lines)}` : lines()
    throw new PriceFileError(`${name}${line}: ${(error as Error).message}`, { cause: error })
  } finally {
    close()
  }
}

/** The complete rows at the start of the file; empty if they have a fault, which the parser reports later with its line. */
function firstRows(head: string, delimiter: Style['delimiter']): string[][] {
  const lines = head.split(/(?<=\n)/).slice(0, HEAD_RECORDS_MAX)
  if (lines.length > 1 && !head.endsWith('\n')) lines.pop()
  try {
    return parseNow(lines.join(''), { ...PARSING, delimiter, relax_quotes: true })
  } catch {
    return []
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

/** What the start of a file tells about all its records. */
interface Format extends Pick<Style, 'decimal' | 'dates'> {
  name: string
  columns: Columns
}

async function* batches(
  name: string,
  lines: AsyncIterable<Line>,
  head: string[][],
  options: PriceFileOptions,
): AsyncGenerator<PriceBatch> {
  let format: Format | undefined
  let collector: Collector | undefined
  /** The head of the file, until it tells the candle length. */
  const waiting: Row[] = []
  const begin = () =>
    new Collector(format, intervalOf(name, waiting, format, options.intervalMinutes), options)
  let before = preambleOf(head)
  const rows = head.slice(before)
  const clock = clockOf(rows)
  for await (const { info, record } of lines) {
    if (before-- > 0) continue
    const fields = withoutClock(record, clock)
    if (format === undefined) {
      const columns = columnsOf(
        name,
        fields,
        rows.map((row) => withoutClock(row, clock)),
        options,
      )
      format = { name, columns, ...styleOf(columns.header ? rows.slice(1) : rows, columns) }
      if (columns.header) continue
    }
    const row = rowOf(format, info.lines, fields)
    if (row !== undefined) waiting.push(row)
    if (collector === undefined && waiting.length < HEAD_RECORDS_MAX) continue
    collector ??= begin()
    yield* collector.add(waiting.splice(0))
  }
  collector ??= begin()
  yield* collector.add(waiting)
  yield collector.take()
}

/** Checks the records in their order, and collects them as columns. */
class Collector {
  readonly #format: Format | undefined
  readonly #covers: number
  readonly #options: PriceFileOptions
  readonly #seen = new Seen()
  #first: number | undefined
  #read = 0
  #firstUnfinished: number | undefined
  #batch = emptyBatch()

  constructor(format: Format | undefined, coversMinutes: number, options: PriceFileOptions) {
    this.#format = format
    this.#covers = coversMinutes
    this.#options = options
  }

  *add(rows: Row[]): Generator<PriceBatch> {
    for (const row of rows) {
      this.#push(row)
      if (this.#batch.minute.length * this.#covers >= BATCH_MINUTES_MAX) yield this.take()
    }
  }

  #push({ line, minute, second, prices }: Row): void {
    const { now, skip } = this.#options
    this.#first ??= minute
    this.#read += 1
    // Several prices within a minute are usual; several candles of one minute are not.
    const again = second === 0 && this.#seen.add(minute)
    if (this.#read <= skip) return
    if (again) this.#batch.overwritten += 1
    if (minute > now) throw this.#faultOfTime(line, 'is in the future')
    if ((minute - this.#first) % this.#covers !== 0)
      throw this.#faultOfTime(line, `is not a multiple of ${this.#covers} minutes from the first`)
    if (minute + this.#covers > now) {
      this.#batch.unfinished += 1
      this.#firstUnfinished ??= this.#read - 1
      return
    }
    this.#batch.minute.push(minute)
    this.#batch.second.push(second)
    prices.forEach((price, column) => this.#batch.prices[column]!.push(price))
  }

  #faultOfTime(line: number, what: string): PriceFileError {
    const format = this.#format!
    return fault(format, line, format.columns.time, what)
  }

  /** Takes what was added since the last batch. */
  take(): PriceBatch {
    const { minute, second, prices, ...counts } = this.#batch
    this.#batch = emptyBatch()
    const [open, high] = prices
    const records = {
      coversMinutes: this.#covers,
      minute,
      second,
      prices: high!.length === 0 ? [open!] : prices,
    }
    return {
      records: records as PriceRecords,
      read: this.#read,
      done: this.#firstUnfinished ?? this.#read,
      ...counts,
    }
  }
}

const emptyBatch = () => ({
  minute: [] as number[],
  second: [] as number[],
  prices: [[], [], [], []] as string[][],
  unfinished: 0,
  overwritten: 0,
})

/** The minutes for which a file had a record, as one bit for each minute of a day. */
class Seen {
  #days = new Map<number, Uint8Array>()

  /** Adds a minute. Returns whether it was added before. */
  add(minute: number): boolean {
    const day = Math.floor(minute / DAY)
    const bits = this.#days.get(day) ?? new Uint8Array(DAY / 8)
    this.#days.set(day, bits)
    const [byte, bit] = [Math.floor((minute % DAY) / 8), 1 << (minute % 8)]
    const before = (bits[byte]! & bit) !== 0
    bits[byte]! |= bit
    return before
  }
}

/** How many rows come before a header: a title, or the address of the site that has the data. */
function preambleOf(head: string[][]): number {
  const first = head.slice(0, PREAMBLE_LINES_MAX)
  const isData = first.findIndex(([field = '']) => timeOf(field) !== undefined)
  const header = first.findIndex((row) => columnsNamed(row, true) !== undefined)
  return header === -1 || (isData !== -1 && isData < header) ? 0 : header
}

function columnsOf(
  name: string,
  first: string[],
  rows: string[][],
  { layout, columns }: Pick<PriceFileOptions, 'layout' | 'columns'>,
): Columns {
  const header = timeOf(first[0] ?? '') === undefined && first.some((field) => /[a-z]/i.test(field))
  if (layout !== undefined) return { ...columnsNamed(LAYOUTS[layout], false)!, header }
  if (header || columns !== undefined) {
    const found = columnsNamed(first, header, columns)
    if (found !== undefined) return found
    throw new PriceFileError(
      `${name}, line 1: the header must contain a time (${TIME_NAMES.join(', ')}) and a price, or open, high, low and close; it has ${first.join(', ')}; name them by --columns time=...,price=...`,
    )
  }
  const known = LAYOUT_NAMES.filter((name) => LAYOUTS[name].length === first.length)
  const read = new Map<string, LayoutName>()
  for (const name of known.toReversed()) {
    const prices = pricesAs(columnsNamed(LAYOUTS[name], false)!, rows)
    if (prices !== undefined) read.set(prices, name)
  }
  // Where no order of the prices can be true, the line that cannot be is named.
  const found = read.size === 0 ? known[0] : [...read.values()].at(-1)
  if (found !== undefined && read.size <= 1) return columnsNamed(LAYOUTS[found], false)!
  throw new PriceFileError(
    found === undefined
      ? `${name}, line 1: ${first.length} columns match no layout; specify the layout: ${LAYOUT_NAMES.join(', ')}; or the columns`
      : `${name}: the columns may be those of ${[...read.values()].join(' or ')}; specify the layout`,
  )
}

/**
 * What the rows say when they are read in these columns; undefined where one of them would be no candle. A row that cannot be read
 * is left out: it is refused later, by its line.
 */
function pricesAs(columns: Columns, rows: string[][]): string | undefined {
  const { decimal } = styleOf(rows, columns)
  const read = rows.flatMap((row) => {
    const prices = columns.prices.flatMap((column) => readPrice(row[column] ?? '', decimal) ?? [])
    return prices.length === columns.prices.length ? [prices] : []
  })
  return read.every((prices) => prices.length === 1 || isCandle(prices)) ? JSON.stringify(read) : undefined
}

const NO_PRICE = /^(?:nan|null|n\/a)?$/i

/** Reads a row; undefined for a minute without trades, whose prices are all empty or NaN. */
function rowOf(format: Format, line: number, record: string[]): Row | undefined {
  const { name, columns, decimal, dates } = format
  if (record.length < columns.names.length)
    throw new PriceFileError(
      `${name}, line ${line}: ${record.length} columns where ${columns.names.length} are due (${columns.names.join(', ')})`,
    )
  if (columns.prices.every((column) => NO_PRICE.test(record[column]!))) return undefined
  const written = record[columns.time]!
  const time = timeOf(written, dates)
  if (time === undefined)
    throw fault(
      format,
      line,
      columns.time,
      isAmbiguousDate(written, dates)
        ? `is ambiguous: ${quoted(written)}, and no date at the start of the file tells days from months; write 2024-12-31`
        : `is not a time: ${quoted(written)}`,
    )
  const candle = columns.prices.length > 1
  if (candle && time.second !== 0)
    throw fault(format, line, columns.time, 'is not the start of a minute, which a candle needs')
  const prices = columns.prices.map((column) => {
    const text = record[column]!
    if (decimal === undefined && text.includes(','))
      throw fault(
        format,
        line,
        column,
        `is ambiguous: ${quoted(text)}, and no number at the start of the file tells thousands from decimals`,
      )
    const price = readPrice(text, decimal)
    if (price === undefined)
      throw fault(format, line, column, `is not a decimal number above 0: ${quoted(text)}`)
    return price
  })
  if (candle && !isCandle(prices)) {
    const [open, high, low, close] = prices
    throw new PriceFileError(
      `${name}, line ${line}: open ${open}, high ${high}, low ${low} and close ${close} are no candle; are the columns in another order? Specify the layout or the columns`,
    )
  }
  return { line, ...time, prices }
}

function fault({ name, columns }: Format, line: number, column: number, what: string) {
  return new PriceFileError(`${name}, line ${line}, column ${column + 1} (${columns.names[column]!}) ${what}`)
}

const quoted = (text: string) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** The candle lengths that exchanges publish, in minutes. */
const CANDLE_MINUTES = [1, 5, 15, 30, 60, 120, 240, 360, 720, 1440, 10_080, COVERS_MINUTES_MAX]

/** Determines the length of each record: as given, else by the name of Kraken's files, else by the spacing of candles. */
function intervalOf(name: string, head: Row[], format: Format | undefined, told: number | undefined): number {
  if (told !== undefined) return told
  if (format === undefined || format.columns.prices.length === 1) return 1
  const named = Number(/_([0-9]{1,5})\.csv(?:\.gz|\.zip)?$/i.exec(name)?.[1])
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
