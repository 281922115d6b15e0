import { Temporal } from 'temporal-polyfill'
import { DAY } from '../../contract/increments.ts'

/**
 * The column layouts of files without a header, by name. Of those with the file's number of columns, the one in which every
 * candle can be true is taken. A header may list its columns in any order.
 */
export const LAYOUTS = {
  /** Kraken's public OHLCVT download. Older ones have the average price before the volume. */
  kraken: ['timestamp', 'open', 'high', 'low', 'close', 'volume', 'trades'],
  'kraken-vwap': ['timestamp', 'open', 'high', 'low', 'close', 'vwap', 'volume', 'trades'],
  /** Binance's public klines, of spot markets and of futures. */
  binance: [
    ...['open_time', 'open', 'high', 'low', 'close', 'volume', 'close_time', 'quote_volume', 'count'],
    ...['taker_buy_volume', 'taker_buy_quote_volume', 'ignore'],
  ],
  ohlcv: ['time', 'open', 'high', 'low', 'close', 'volume'],
  coinbase: ['time', 'low', 'high', 'open', 'close', 'volume'],
  bitfinex: ['time', 'open', 'close', 'high', 'low', 'volume'],
  kucoin: ['time', 'open', 'close', 'high', 'low', 'volume', 'turnover'],
  gateio: ['timestamp', 'volume', 'close', 'high', 'low', 'open', 'amount'],
  htx: ['time', 'open', 'close', 'low', 'high', 'amount', 'volume', 'count'],
  price: ['timestamp', 'price'],
} as const satisfies Record<string, readonly string[]>
export type LayoutName = keyof typeof LAYOUTS
export const LAYOUT_NAMES = Object.keys(LAYOUTS) as LayoutName[]

/**
 * The names of the time's column in a header, the best first: the time at which a candle opened. CoinGecko has `snapped_at`,
 * CoinMarketCap `timeOpen` and, for the end, `timestamp`.
 */
export const TIME_NAMES = [
  'open_time',
  'timeopen',
  'timestamp',
  'time',
  'date',
  'datetime',
  'unix',
  'snapped_at',
]
const CANDLE_NAMES = ['open', 'high', 'low', 'close']
const TIME_WORDS = /^(?:date|datetime|times?|timestamps?|ts)$/
/** A candle's time is the one at which it opened. */
const END_WORDS = /^(?:close|closed|end)$/

export interface Columns {
  header: boolean
  names: readonly string[]
  time: number
  prices: number[]
}

/**
 * Finds the columns by their names, or by a word inside that no other column has: `startTime`, `mid.o`, `price_open`. `told` has
 * the name or the position, from 1, of the time and of the price or the four prices. Undefined without a time, or without a
 * price or a candle.
 */
export function columnsNamed(
  names: readonly string[],
  header: boolean,
  told?: ReadonlyMap<string, string>,
): Columns | undefined {
  const plain = names.map((name) =>
    name
      .toLowerCase()
      .trim()
      .replace(/^<(.*)>$/, '$1')
      .replaceAll(' ', '_'),
  )
  const words = names.map((name) =>
    name
      .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z0-9]+/),
  )
  const isTime = (column: number) => words[column]!.some((word) => TIME_WORDS.test(word))
  const placeOf = (column: string) => {
    const named = told?.get(column)?.toLowerCase()
    if (told !== undefined)
      return named !== undefined && /^\d+$/.test(named) ? Number(named) - 1 : plain.indexOf(named ?? '')
    const exact = plain.indexOf(column)
    if (exact !== -1 || column === 'price') return exact
    const inside = words.flatMap((parts, at) =>
      !isTime(at) && parts.some((word) => word === column || word === column[0]) ? [at] : [],
    )
    return inside.length === 1 ? inside[0]! : -1
  }
  const time =
    told !== undefined
      ? placeOf('time')
      : (TIME_NAMES.map((name) => plain.indexOf(name)).find((column) => column !== -1) ??
        words.findIndex((parts, column) => isTime(column) && !parts.some((word) => END_WORDS.test(word))))
  const price = placeOf('price')
  // In investing.com's candles, the close is called `Price`.
  const candle = CANDLE_NAMES.map((name) => {
    const column = placeOf(name)
    return name === 'close' && column === -1 ? price : column
  })
  const prices = candle.includes(-1) ? [price] : candle
  return [time, ...prices].some((column) => column < 0 || column >= names.length)
    ? undefined
    : { header, names: header ? plain : names, time, prices }
}

/** How a file writes its fields. The start of the file decides it. */
export interface Style {
  delimiter: ',' | ';' | '\t'
  /** The other of the two may separate thousands. Undefined if the file has numbers such as `1,234`, and none that decides. */
  decimal: '.' | ',' | undefined
  /** Of dates such as 01/02/2026. Undefined where the start of the file does not decide. */
  dates: 'MDY' | 'DMY' | undefined
}

/** The separator is a semicolon or tab where the first line that is separated has one outside quotes. */
export function delimiterOf(text: string): Style['delimiter'] {
  const lines = text.trimStart().split(/\r\n|\r|\n/, PREAMBLE_LINES_MAX)
  const bare =
    lines.map((line) => line.replace(/"[^"]*"/g, '')).find((line) => /^[^#].*[,;\t]/.test(line)) ?? ''
  return bare.includes(';') ? ';' : bare.includes('\t') ? '\t' : ','
}

/** Lines before a header that are passed over, such as the address of the data's site. */
export const PREAMBLE_LINES_MAX = 20

/** What the first rows say about numbers and dates. */
export function styleOf(rows: readonly string[][], columns: Columns): Pick<Style, 'decimal' | 'dates'> {
  const prices = rows.flatMap((row) => columns.prices.map((column) => withoutSign(row[column] ?? '')))
  const days = rows.map((row) => SLASHED.exec(row[columns.time] ?? '')).filter((found) => found !== null)
  return {
    decimal: prices.some((text) => COMMA_DECIMAL.test(text))
      ? ','
      : prices.some((text) => text.includes(',')) && !prices.some((text) => POINT_DECIMAL.test(text))
        ? undefined
        : '.',
    dates: days.some(([, first]) => Number(first) > 12)
      ? 'DMY'
      : days.some(([, , second]) => Number(second) > 12)
        ? 'MDY'
        : undefined,
  }
}

/** A comma that can only be a decimal comma: after grouped thousands, or before other than three digits. */
const COMMA_DECIMAL = /^(?:\d{1,3}(?:[. ]\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,}))$/
/** A number whose point, in a file with commas, can only be a decimal point, or whose commas only group thousands. */
const POINT_DECIMAL = /^(?:\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}|\d+\.(?:\d{1,2}|\d{4,}))$/

/** Without the sign of a currency, and with plain spaces. */
const withoutSign = (text: string) =>
  text.replace(/^[$€£]\s*|\s*[$€£]$/g, '').replace(/[\u00a0\u202f'’]/g, ' ')

// At most 20 digits and 18 decimals.
const PRICE = /^[0-9]{1,20}(?:\.[0-9]{1,18})?$/
const ZERO = /^[0.]+$/

/** Whether a text is a price: a decimal number above 0. */
export const isPrice = (text: unknown): text is string =>
  typeof text === 'string' && PRICE.test(text) && !ZERO.test(text)

export function readPrice(text: string, decimal: Style['decimal']): string | undefined {
  if (decimal !== ',' && isPrice(text)) return text
  const bare = withoutSign(text)
  const grouped = decimal === ',' ? /^\d{1,3}(?:[. ]\d{3})+(?:,\d+)?$/ : /^\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?$/
  const thousands = decimal === ',' ? /[. ]/g : /[, ]/g
  const plain = grouped.test(bare) ? bare.replace(thousands, '') : bare
  const pointed = decimal === ',' ? plain.replace(/^(\d+),(\d+)$/, '$1.$2') : plain
  return isPrice(pointed) ? pointed : undefined
}

/** Whether prices can be those of a candle, in the order open, high, low, close: no price is outside of low and high. */
export const isCandle = ([open, high, low, close]: readonly string[]): boolean =>
  [open!, close!].every((price) => !isBelow(price, low!) && !isBelow(high!, price))

/** Whether a price is below another, exactly. */
function isBelow(a: string, b: string): boolean {
  const [whole, fraction = ''] = a.replace(/^0+/, '').split('.') as [string, string?]
  const [otherWhole, otherFraction = ''] = b.replace(/^0+/, '').split('.') as [string, string?]
  if (whole.length !== otherWhole.length) return whole.length < otherWhole.length
  if (whole !== otherWhole) return whole < otherWhole
  const decimals = Math.max(fraction.length, otherFraction.length)
  return fraction.padEnd(decimals, '0') < otherFraction.padEnd(decimals, '0')
}

const UNIX_SECONDS = /^([0-9]{1,10})(?:\.[0-9]{1,9})?$/
/** Milliseconds, microseconds (Binance since 2025) or nanoseconds. */
const UNIX_FINER = /^([0-9]{10})(?:[0-9]{3}){1,3}$/
const CLOCK =
  '(?:[DT ](\\d{1,2}):([0-5]\\d)(?::([0-5]\\d)(?:\\.\\d{1,9})?)?)?(?: ?(?:Z|UTC)|([+-])([01]\\d):?([0-5]\\d))?$'
const ISO_TIME = new RegExp(`^(\\d{4})[-/.](\\d{2})[-/.](\\d{2})${CLOCK}`)
const SLASHED = new RegExp(`^(\\d{1,2})/(\\d{1,2})/(\\d{4})${CLOCK}`)
const DOTTED = new RegExp(`^(\\d{1,2})\\.(\\d{1,2})\\.(\\d{4})${CLOCK}`)

const COMPACT = /^((?:19|20)\d\d)(\d\d)(\d\d)(?: (\d\d)(\d\d)(\d\d))?$/
const WORDED = /^([A-Z][a-z]{2}) (\d{1,2}), (\d{4})$/
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'

/** `20250101 000000` and `Jan 01, 2025` in the form of ISO 8601. */
function isoOf(text: string): string {
  const [, year, month, day, hours = '00', minutes = '00', seconds = '00'] = COMPACT.exec(text) ?? []
  if (year !== undefined) return `${year}-${month!}-${day!} ${hours}:${minutes}:${seconds}`
  const [, name, date, yearAfter] = WORDED.exec(text) ?? []
  const place = name === undefined ? -1 : MONTHS.indexOf(name)
  return place === -1
    ? text
    : `${yearAfter!}-${String(place / 3 + 1).padStart(2, '0')}-${date!.padStart(2, '0')}`
}

/** Whether two columns are a day and its time of day, as MetaTrader and Stooq write them. `name` is the second column's. */
const isDayAndClock = (day: string, clock: string, name = ''): boolean =>
  /^(?:\d{4}([-/.])\d\d\1\d\d|\d{8}|\d{1,2}([./])\d{1,2}\2\d{4})$/.test(day) &&
  (/^\d{1,2}:\d\d(?::\d\d)?$/.test(clock) || (/^\d{6}$/.test(clock) && /^<?time>?$/i.test(name)))

/**
 * Parses a time: Unix seconds or finer, ISO 8601, `20241231 235900`, `Dec 31, 2024`, `31.12.2024`, or `12/31/2024` where the file
 * tells days from months. In UTC unless it has an offset.
 */
export function timeOf(
  written: string,
  dates?: Style['dates'],
): { minute: number; second: number } | undefined {
  const text = isoOf(written)
  const unix = UNIX_SECONDS.exec(text) ?? UNIX_FINER.exec(text)
  if (unix !== null) {
    const seconds = Number(unix[1])
    return { minute: Math.floor(seconds / 60), second: seconds % 60 }
  }
  const found = ISO_TIME.exec(text) ?? DOTTED.exec(text) ?? (dates === undefined ? null : SLASHED.exec(text))
  if (found === null) return undefined
  const [
    ,
    one = '',
    two = '',
    three = '',
    hours = '0',
    minutes = '0',
    seconds = '0',
    sign,
    zoneHours = '0',
    zoneMinutes = '0',
  ] = found
  const [year, month, day] =
    one.length === 4
      ? [one, two, three]
      : text.includes('/') && dates === 'MDY'
        ? [three, one, two]
        : [three, two, one]
  const midnight = Number(hours) > 23 ? undefined : midnightOf(`${year}-${month}-${day}`)
  if (midnight === undefined) return undefined
  const offset = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === '-' ? -1 : 1)
  const minute = midnight + Number(hours) * 60 + Number(minutes) - offset
  return minute < 0 ? undefined : { minute, second: Number(seconds) }
}

/** Whether a text is a date whose day and month cannot be told apart: the file has no day above 12. */
export const isAmbiguousDate = (text: string, dates: Style['dates']): boolean =>
  dates === undefined && SLASHED.test(text)

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

/** The column of the time of day, where the day has a column of its own before it. */
export function clockOf([first = [], second = first]: string[][]): number | undefined {
  const column = second.findIndex(
    (field, place) => place > 0 && isDayAndClock(second[place - 1]!, field, first[place]),
  )
  return column === -1 ? undefined : column
}

/** The fields of a row with its day and its time of day in one column, which keeps the name of the day's. */
export function withoutClock(record: string[], clock: number | undefined): string[] {
  if (clock === undefined) return record
  const [day = '', time = ''] = record.slice(clock - 1)
  const compact = time.replace(/^(\d\d)(\d\d)(\d\d)$/, '$1:$2:$3').replace(/^(?=\d:)/, '0')
  const dated = day.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3')
  return record.toSpliced(clock - 1, 2, /^\d/.test(time) ? `${dated} ${compact}` : day)
}
