/*
 * Invariants of imports:
 * 1. overlapping files, in any order and any number of times, leave the same tables as one sorted file;
 * 2. the price of a time comes from a candle that covers it, and the finest candle wins, in any order;
 * 3. an error in a file names line and column, and the records before it stay;
 * 4. an interrupted import continues where it stopped;
 * 5. a candle that has not ended is skipped, and is imported when the file is imported again.
 */
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { zipSync } from 'fflate'
import { beforeEach, describe, expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import { ownDatabase } from '../../../test/support.ts'
import { transaction, type Database } from '../../db/database.ts'
import { importPrices, minuteUnderWay, type ImportOptions } from './import-prices.ts'
import { MARKETS, type Market } from '../../contract/markets.ts'
import { priceStatus } from './price-status.ts'
import { timeOf } from './price-layouts.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { ownFolder } from '../../../test/at-end.ts'

const database = await ownDatabase()
const folder = await ownFolder()
beforeEach(async () => {
  await database.owner.query('truncate price_minutes, price_points, price_imports')
  await database.db.query('update markets set source = null')
})

const MARKET: Market = 'BTCUSD'
const FIXTURE = fileURLToPath(new URL('../../../test/fixtures/XBTUSD_60.csv.gz', import.meta.url))

async function importText(text: string | Buffer, options: Partial<ImportOptions> & { name?: string } = {}) {
  const { name = `${randomUUID()}.csv`, ...rest } = options
  const path = join(folder, name)
  await writeFile(path, text)
  return importPrices(database.db, { path, market: MARKET, ...rest })
}

/** Reads everything stored about a market except its id. */
async function contentOf(market: Market = MARKET): Promise<unknown> {
  const { db } = database
  const [minutes, points] = await Promise.all([
    db.query<Record<string, unknown>>(
      `select minute, covers_minutes, second, trim_scale(price) as price, exact_increment, open, high, low, close
       from price_minutes
       where market_id = (select id from markets where market = $1) order by minute`,
      [market],
    ),
    db.query<Record<string, unknown>>(
      `select increment_minutes, starts_at, minutes, trim_scale(sum) as sum, counts,
              exact_increment, open, high, low, close
       from price_points
       where market_id = (select id from markets where market = $1) order by 1, 2`,
      [market],
    ),
  ])
  return { minutes: minutes.rows, points: points.rows }
}

const minutesOf = async (market: Market = MARKET) => {
  const { minutes } = (await contentOf(market)) as { minutes: { minute: number; price: string }[] }
  return minutes.map(({ minute, price }) => [minute, price] as const)
}

/** 2026-01-05, a Monday, in minutes. */
const START = 29_459_520
const csv = (rows: (string | number)[][]) => rows.map((row) => `${row.join(',')}\n`).join('')

test('overlapping files, in any order and more than once, leave the same tables as one sorted file', async () => {
  const prices = fc.uniqueArray(
    fc.record({
      minute: fc.integer({ min: 0, max: 60_000 }),
      units: fc.integer({ min: 1, max: 99_999_999 }),
    }),
    { selector: ({ minute }) => minute, minLength: 1, maxLength: 120 },
  )
  const pieces = fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 6 })
  let market = 0
  await fc.assert(
    fc.asyncProperty(prices, pieces, async (rows, cuts) => {
      const [one, other] = [MARKETS[market++ % MARKETS.length]!, MARKETS[market++ % MARKETS.length]!]
      const lines = rows
        .sort((a, b) => a.minute - b.minute)
        .map(({ minute, units }) => [(START + minute) * 60, `${Math.floor(units / 100)}.${units % 100}5`])
      await importText(csv(lines), { market: one, again: true })
      // Any pieces in any order, then two pieces that cover everything, the later one first.
      const spans = [
        ...cuts.map(([a, b]) => [a % lines.length, (b % lines.length) + 1] as const),
        [Math.floor(lines.length / 3), lines.length] as const,
        [0, Math.ceil(lines.length / 2)] as const,
      ]
      for (const [from, to] of spans) {
        const piece = lines.slice(Math.min(from, to), Math.max(from, to))
        if (piece.length > 0) await importText(csv(piece.reverse()), { market: other, again: true })
      }
      expect(await contentOf(other)).toEqual(await contentOf(one))
      await database.owner.query('truncate price_minutes, price_points')
    }),
    runs(30),
  )
})

test('candles of different lengths, in any order, leave the finest of each minute', async () => {
  const files: [string, number][] = [
    [csv([[START * 60, 1, 1, 1, 1, 9, 9]]), 1440],
    [csv([[(START + 60) * 60, 2, 2, 2, 2, 9, 9]]), 60],
    [csv([[(START + 65) * 60, 3, 3, 3, 3, 9, 9]]), 1],
  ]
  const expected = Array.from({ length: 1440 }, (_, n) => [
    START + n,
    n === 65 ? '3' : n >= 60 && n < 120 ? '2' : '1',
  ])
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]
  const seen = new Set<string>()
  for (const order of orders) {
    await database.owner.query('truncate price_minutes, price_points')
    for (const index of order) {
      const [text, intervalMinutes] = files[index]!
      await importText(text, { intervalMinutes, again: true })
    }
    expect(await minutesOf()).toEqual(expected)
    seen.add(JSON.stringify(await contentOf()))
  }
  expect(seen.size).toBe(1)
})

describe('layouts', () => {
  const T = START * 60
  test.each<[string, string, Partial<ImportOptions>, (readonly [number, string])[]]>([
    [
      "Kraken's, whose candle is the average of its four prices",
      csv([
        [T, '10.1', '10.4', '10', '10.2', '1.5', 3],
        [T + 60, 20, 20, 20, 20, 0, 0],
      ]),
      {},
      [
        [START, '10.175'],
        [START + 1, '20'],
      ],
    ],
    [
      "Coinbase's with its header, newest first",
      `time,low,high,open,close,volume\n${csv([
        [T + 60, 1, 2, 1, 2, 9],
        [T, 1, 3, 1, 1, 9],
      ])}`,
      {},
      [
        [START, '1.5'],
        [START + 1, '1.5'],
      ],
    ],
    [
      "Coinbase's without a header, with times in ISO 8601",
      csv([
        ['2026-01-05T00:00:00Z', 1, 3, 1, 1, 9],
        ['2026-01-05T00:01:00.000Z', 1, 3, 1, 1, 9],
      ]),
      {},
      [
        [START, '1.5'],
        [START + 1, '1.5'],
      ],
    ],
    [
      'timestamp,price: of several in a minute the last counts',
      csv([
        [T + 59, 3],
        [T + 1, 1],
        [T + 60, 4],
      ]),
      {},
      [
        [START, '3'],
        [START + 1, '4'],
      ],
    ],
    [
      'a header in any order, milliseconds, a byte order mark, Windows line ends and quotes',
      `\ufeff"Volume","Price","Timestamp"\r\n"1","2.50","${T}123"\r\n`,
      {},
      [[START, '2.5']],
    ],
    ['a layout that is named', csv([[T, 5, 'EUR', 'x']]), { layout: 'price' }, [[START, '5']]],
    [
      'a time without a zone, which is UTC, and one with an offset',
      'date,price\n2026-01-05 00:00:30,1\n2026-01-05T01:01:00+01:00,2\n2026-01-05T00:02,3\n',
      {},
      [
        [START, '1'],
        [START + 1, '2'],
        [START + 2, '3'],
      ],
    ],
    [
      'the interval told',
      csv([[T, 7, 7, 7, 7, 1, 1]]),
      { intervalMinutes: 2 },
      [
        [START, '7'],
        [START + 1, '7'],
      ],
    ],
  ])('%s', async (_name, text, options, expected) => {
    await importText(text, options)
    expect(await minutesOf()).toEqual(expected)
    await database.owner.query('truncate price_minutes, price_points')
    await importText(gzipSync(text), { ...options, again: true })
    expect(await minutesOf()).toEqual(expected)
  })

  test.each([
    ["Kraken's file name", 'XBTUSD_5.csv', [0, 5], 5],
    ['the spacing', 'hours.csv', Array.from({ length: 40 }, (_, n) => n * 60 + (n > 30 ? 120 : 0)), 60],
    ['the spacing, with gaps', 'minutes.csv', Array.from({ length: 40 }, (_, n) => n * 60 + (n % 7)), 1],
    ['a spacing between two lengths', 'odd.csv', Array.from({ length: 40 }, (_, n) => n * 45), 15],
  ])('%s gives the length of a candle', async (_name, name, minutes, expected) => {
    const text = csv(minutes.map((minute) => [(START + minute) * 60, 1, 1, 1, 1, 1, 1]))
    const { interval_minutes } = await importText(text, { name, again: true })
    expect(interval_minutes).toBe(expected)
    expect(await minutesOf()).toHaveLength(minutes.length * expected)
  })

  test.each([
    ['1767571200', 29_459_520, 0],
    ['1767571259.9', 29_459_520, 59],
    ['1767571200000', 29_459_520, 0],
    ['1767571200000000', 29_459_520, 0],
    ['1767571200000000000', 29_459_520, 0],
    ['5.1.2026 23:59', 29_460_959, 0],
    ['2026/01/05', 29_459_520, 0],
    ['0', 0, 0],
    ['2026-01-05', 29_459_520, 0],
    ['2026-01-05 23:59:59 UTC', 29_460_959, 59],
    ['2026-01-04T21:00-0300', 29_459_520, 0],
    ['2024-02-29', 28_486_080, 0],
  ])('%s is a time', (text, minute, second) => {
    expect(timeOf(text)).toEqual({ minute, second })
  })

  test.each([
    '',
    'x',
    '-1',
    '1e9',
    '2026-02-29',
    '2026-13-01',
    '2026-00-01',
    '2026-01-05T24:00',
    '17675712000',
    '1969-12-31',
  ])('%j is no time', (text) => {
    expect(timeOf(text)).toBeUndefined()
  })
})

describe('the files of exchanges and data sites', () => {
  // 2026-01-05 is a Monday. Each file has the same two days, of 10 and of 93050.4.
  const [T, DAY] = [START * 60, 24 * 60]
  const kline = (time: string, price: string, day: number) =>
    [
      `${time}`,
      price,
      price,
      price,
      price,
      '1',
      `${(T + day * 86_400 + 86_399) * 1000}`,
      '1',
      '1',
      '1',
      '1',
      '0',
    ].join(',')
  const ohlc = (time: string, price: string) => [time, price, price, price, price, '1'].join(',')
  /** Both days with their date, what follows it, and the candle. */
  const dated = (between: string, suffix: string, separator = ',') =>
    [
      ['2026', '01', '05', '10'],
      ['2026', '01', '06', '93050.4'],
    ]
      .map(([year, month, day, price]) =>
        [[year, month, day].join(between) + suffix, price, price, price, price, '1'].join(separator),
      )
      .join('\n') + '\n'
  const days = (suffix: string, line: (time: string, price: string, day: number) => string = kline) =>
    [line(`${T}${suffix}`, '10', 0), line(`${T + 86_400}${suffix}`, '93050.4', 1), ''].join('\n')
  const HEADER =
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore'
  const files: [string, string | Buffer, string?][] = [
    ["Binance's klines in milliseconds", days('000')],
    ["Binance's klines in microseconds, as since 2025", days('000000')],
    ["Binance's klines of futures, with a header", `${HEADER}\n${days('000')}`],
    [
      "Binance's klines, zipped",
      Buffer.from(zipSync({ 'BTCUSDT-1d-2026-01.csv': Buffer.from(days('000')) })),
      'BTCUSDT-1d.zip',
    ],
    ["Kraken's seven columns", days('', (time, price) => [time, price, price, price, price, 1, 1].join(','))],
    [
      "Kraken's older eight columns",
      days('', (time, price) => [time, price, price, price, price, '7', 1, 1].join(',')),
    ],
    [
      'CoinGecko',
      'snapped_at,price,market_cap,total_volume\n2026-01-05 00:00:00 UTC,10,1,1\n2026-01-06 00:00:00 UTC,93050.4,1,1\n',
    ],
    [
      'CoinMarketCap: byte order mark, semicolons, quotes, and the end of the day as timestamp',
      `\ufeff"timeOpen";"timeClose";"timeHigh";"timeLow";"name";"open";"high";"low";"close";"volume";"marketCap";"timestamp"\n${[
        ['2026-01-06', '93050.4'],
        ['2026-01-05', '10'],
      ]
        .map(([day, price]) =>
          [
            ...[
              `"${day}T00:00:00.000Z"`,
              `"${day}T23:59:59.999Z"`,
              `"${day}T01:00:00.000Z"`,
              `"${day}T02:00:00.000Z"`,
            ],
            ...['"2781"', price, price, price, price, '1', '1', `"${day}T23:59:59.999Z"`],
          ].join(';'),
        )
        .join('\n')}\n`,
    ],
    ['Excel in Europe', 'date;price\r\n05.01.2026;10\r\n06.01.2026 00:00;93050,4\r\n'],
    ['Excel in Europe, with thousands', 'date;price\r\n5.1.2026;10,0\r\n6.1.2026;93.050,4\r\n'],
    [
      'Excel in France, with a narrow space',
      'date;price\r\n05.01.2026;10,0\r\n06.01.2026;93\u202f050,40\r\n',
    ],
    [
      'Excel as text with tabs, in UTF-16',
      Buffer.from('\ufeffdate\tprice\r\n2026-01-05\t10\r\n2026-01-06\t93050.4\r\n', 'utf16le'),
    ],
    [
      'investing.com, where a day above 12 tells the month from the day',
      '"Date","Price","Open","High","Low","Vol.","Change %"\n"01/13/2026","10","10","10","10","1K","0%"\n"01/06/2026","93,050.4","93,050.4","93,050.4","93,050.4","1K","0%"\n"01/05/2026","10.0","10.0","10.0","10.0","1K","0%"\n',
    ],
    ['days before months', 'date,price\n13/01/2026,10\n06/01/2026,93050.4\n05/01/2026,10\n'],
    ['Bybit', days('000', ohlc).replace(/^/, 'startTime,openPrice,highPrice,lowPrice,closePrice,volume\n')],
    ['OKX', days('000', ohlc).replace(/^/, 'ts,o,h,l,c,vol\n')],
    ['Messari', days('', ohlc).replace(/^/, 'timestamps,open,high,low,close,volume\n')],
    ['OANDA', dated('-', 'T00:00:00.000000000Z').replace(/^/, 'time,mid.o,mid.h,mid.l,mid.c,volume\n')],
    [
      'CoinAPI',
      dated('-', 'T00:00:00.0000000Z;2026-01-06T00:00:00.0000000Z;x;x', ';').replace(
        /^/,
        'time_period_start;time_period_end;time_open;time_close;price_open;price_high;price_low;price_close;volume_traded\n',
      ),
    ],
    [
      'Dukascopy',
      'Gmt time,Open,High,Low,Close,Volume\n05.01.2026 00:00:00.000,10,10,10,10,1\n06.01.2026 00:00:00.000,93050.4,93050.4,93050.4,93050.4,1\n',
    ],
    [
      'MetaTrader 5',
      dated('.', '\t00:00:00', '\t').replace(
        /^/,
        '<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\n',
      ),
    ],
    ['MetaTrader 4', dated('.', ',00:00')],
    [
      'Stooq',
      dated('', ',000000')
        .replaceAll(/^(?=\d)/gm, 'BTC,D,')
        .replace(/^/, '<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>\n'),
    ],
    ['HistData', dated('', ' 000000', ';')],
    ['BitMEX', dated('-', 'D00:00:00.000000000').replace(/^/, 'timestamp,open,high,low,close,volume\n')],
    [
      "Yahoo's table",
      'Date,Open,High,Low,Close,Volume\n"Jan 06, 2026",93050.4,93050.4,93050.4,93050.4,1\n"Jan 05, 2026",10,10,10,10,1\n',
    ],
    [
      'a title, comments and the address of the site before the header',
      '# made by hand\n#\nhttps://example.com/prices\ndate,price\n2026-01-05,10\n2026-01-06,93050.4\n',
    ],
    [
      'a row of NaN for a day without trades',
      'date,price\n2026-01-04,NaN\n2026-01-05,10\n2026-01-06,93050.4\n',
    ],
    ['prices with the sign of a currency', 'date,price\n2026-01-05,$10.00\n2026-01-06,"$93,050.40"\n'],
  ]
  test.each(files)('%s', async (_name, text, name = 'prices.csv') => {
    const { interval_minutes, overwritten } = await importText(text, {
      name: `${randomUUID()}-${name}`,
      intervalMinutes: DAY,
      again: true,
    })
    expect({ interval_minutes, overwritten }).toEqual({ interval_minutes: DAY, overwritten: 0 })
    const minutes = new Map(await minutesOf())
    expect(
      [START, START + DAY - 1, START + DAY, START + 2 * DAY - 1].map((minute) => minutes.get(minute)),
    ).toEqual(['10', '10', '93050.4', '93050.4'])
  })

  test.each<[string, string | Buffer, RegExp]>([
    [
      'dates that two readings fit',
      'date,price\n01/05/2026,10\n',
      /, line 2, column 1 \(date\) is ambiguous: "01\/05\/2026"/,
    ],
    [
      'numbers that two readings fit',
      'date;price\n2026-01-05;93,050\n',
      /, line 2, column 2 \(price\) is ambiguous: "93,050"/,
    ],
    [
      'a month of 13',
      'date,price\n13/01/2026,1\n01/13/2026,1\n',
      /, line 3, column 1 \(date\) is not a time: "01\/13\/2026"$/,
    ],
    ['JSON of Coinbase', `[[${T},9,11,10,10,1]]`, /: this is JSON, not CSV: export or convert it as CSV$/],
    ['JSON with a byte order mark', '\ufeff {"prices":[]}', /: this is JSON, /],
    ['a web page', '\n<!doctype html>', /: this is a web page or XML, /],
    ['Parquet', Buffer.from('PAR1xxxxxxxx'), /: this is a Parquet file, /],
    ['an old workbook', Buffer.from('d0cf11e0a1b11ae1', 'hex'), /: this is an Excel workbook \(\.xls\), /],
    [
      'a workbook',
      Buffer.from(zipSync({ '[Content_Types].xml': Buffer.from('<x/>') })),
      /: this is an Excel workbook \(\.xlsx\), not CSV: save it as CSV$/,
    ],
    [
      'an archive of two files',
      Buffer.from(zipSync({ 'a.csv': Buffer.from('1,2'), 'b.csv': Buffer.from('1,2') })),
      /: the archive has several files \(a\.csv, b\.csv\): unpack it, and import each one$/,
    ],
    ['an archive of none', Buffer.from(zipSync({ 'a/': Buffer.from('') })), /: the archive has no file$/],
    [
      'half of an archive',
      Buffer.from(zipSync({ 'a.csv': Buffer.from(days('000')) })).subarray(0, 80),
      /, after line [0-9]+: (?:invalid zip data|the archive ends too early)$/,
    ],
  ])('what cannot be read is named: %s', async (_name, text, message) => {
    await expect(importText(text, { intervalMinutes: DAY })).rejects.toThrow(message)
  })

  test('hours in local time across the end of summer time: the hours that come twice are counted', async () => {
    const hours = ['01:00', '02:00', '02:00', '03:00'].map((hour) => `2024-10-27 ${hour},1,1,1,1`)
    const text = ['date,open,high,low,close', ...hours, ''].join('\n')
    expect(await importText(text, { intervalMinutes: 60 })).toMatchObject({
      records: 4,
      overwritten: 1,
      minutes_changed: 180,
    })
  })
})

describe('an error in a file names line and column:', () => {
  const T = START * 60
  const good = [T, 1, 1, 1, 1, 1, 1]
  test.each<[string, string | Buffer, Partial<ImportOptions>, RegExp]>([
    [
      'no such time',
      csv([good, ['yesterday', 1, 1, 1, 1, 1, 1]]),
      {},
      /, line 2, column 1 \(timestamp\) is not a time: "yesterday"$/,
    ],
    [
      'no number',
      csv([good, [T + 60, 1, 'x', 1, 1, 1, 1]]),
      {},
      /, line 2, column 3 \(high\) is not a decimal number above 0: "x"$/,
    ],
    [
      'zero',
      `price,time\n0.00,${T}\n`,
      {},
      /, line 2, column 1 \(price\) is not a decimal number above 0: "0.00"$/,
    ],
    ['below zero', csv([[T, -1]]), {}, /, line 1, column 2 \(price\) is not a decimal/],
    ['a float of a program', csv([[T, '1e-5']]), {}, /, line 1, column 2 \(price\) is not a decimal/],
    ['too long', csv([[T, '1'.repeat(60)]]), {}, /"1{40}…"$/],
    [
      'too few columns',
      csv([good, [T + 60, 1]]),
      {},
      /, line 2: 2 columns where 7 are due \(timestamp, open, /,
    ],
    [
      'an unknown layout',
      csv([[T, 1, 1, 1]]),
      {},
      /, line 1: 4 columns match no layout; specify the layout: kraken, /,
    ],
    [
      'a header without a price',
      `time,volume\n${T},1\n`,
      {},
      /, line 1: the header must contain a time .*; it has time, volume; name them by --columns/,
    ],
    ['the future', csv([['2100-01-01', 1]]), {}, /, line 1, column 1 \(timestamp\) is in the future$/],
    [
      'half a minute',
      csv([good, [T + 61, 1, 1, 1, 1, 1, 1]]),
      {},
      /, line 2, column 1 \(timestamp\) is not the start of a minute/,
    ],
    [
      'two lengths',
      csv([good, [T + 90 * 60, 1, 1, 1, 1, 1, 1]]),
      { intervalMinutes: 60 },
      /, line 2, column 1 \(timestamp\) is not a multiple of 60 minutes from the first$/,
    ],
    [
      'too few candles',
      csv([good, [T + 3600, 1, 1, 1, 1, 1, 1]]),
      {},
      /: 2 candles are too few to determine their length: specify the interval$/,
    ],
    ['an open quote', `${csv([[T, 1]])}"${T},1\n`, {}, /, line [23]: Quote Not Closed/],
    ['one endless line', 'x'.repeat(1_000_000), {}, /, line 1: Max Record Size/],
    ['no line', '', {}, /: the file contains no price$/],
    ['a header and no more', 'timestamp,price\n', {}, /: the file contains no price$/],
    [
      'half of a gzip file',
      gzipSync(csv(Array.from({ length: 999 }, (_, n) => [T + n * 60, n + 1]))).subarray(0, 900),
      {},
      /, after line [0-9]+: unexpected end of file$/,
    ],
  ])('%s', async (_name, text, options, message) => {
    await expect(importText(text, options)).rejects.toThrow(message)
  })

  test('no file', async () => {
    const missing = importPrices(database.db, { path: join(folder, 'none.csv'), market: MARKET })
    await expect(missing).rejects.toThrow('ENOENT')
  })
})

test('a candle that has not ended is skipped', async () => {
  const now = await minuteUnderWay(database.db)
  const hour = now - (now % 60)
  const text = csv([hour - 60, hour].map((minute) => [minute * 60, 1, 1, 1, 1, 1, 1]))
  const result = await importText(text, { intervalMinutes: 60 })
  expect(result).toMatchObject({ records: 2, unfinished: 1, minutes_changed: 60 })
})

describe('the order of the columns', () => {
  /** Thirty minutes that open at 93500, close at 93501 and lie between 93495 and 93505. */
  const rowsOf = (...fields: (string | number)[]) =>
    csv(Array.from({ length: 30 }, (_, minute) => [(START + minute) * 60, ...fields]))
  const candle = async () => {
    const { rows } = await database.db.query<Record<string, string>>(
      `select trim_scale(open) as open, trim_scale(high) as high, trim_scale(low) as low, trim_scale(close) as close
       from price_minutes where minute = $1`,
      [START],
    )
    return rows[0]
  }
  const RIGHT = { open: '93500', high: '93505', low: '93495', close: '93501' }

  test.each([
    ['Kraken', [93500, 93505, 93495, 93501, 1.5, 9]],
    ['KuCoin', [93500, 93501, 93505, 93495, 1.5, 140251]],
    ['Bitfinex', [93500, 93501, 93505, 93495, 1.5]],
    ['Coinbase', [93495, 93505, 93500, 93501, 1.5]],
    ['the usual five', [93500, 93505, 93495, 93501, 1.5]],
    ['Gate.io', [140251, 93501, 93505, 93495, 93500, 1.5]],
    ['HTX', [93500, 93501, 93495, 93505, 1.5, 140251, 9]],
  ])('without a header follows from the candles: %s', async (_name, fields) => {
    await importText(rowsOf(...fields), { again: true })
    expect(await candle()).toEqual(RIGHT)
  })

  test('in which a candle has a low above its high is refused by its line', async () => {
    const text = `time,open,high,low,close\n${rowsOf(93500, 93495, 93505, 93501)}`
    await expect(importText(text)).rejects.toThrow(
      /, line 2: open 93500, high 93495, low 93505 and close 93501 are no candle; /,
    )
    expect(await candle()).toBeUndefined()
  })

  test('that two orders fit with other prices is asked for', async () => {
    // The volume may be the open of another layout.
    const text = rowsOf(93500, 93500, 93500, 93495, 93497, 9)
    await expect(importText(text)).rejects.toThrow(
      /: the columns may be those of .* or .*; specify the layout$/,
    )
    await importText(text, { layout: 'gateio' })
    expect(await candle()).toMatchObject({ open: '93497', close: '93500' })
  })

  test('is told by the names or positions of the columns', async () => {
    const columns = new Map([
      ['time', 'When'],
      ['price', '3'],
    ])
    await importText('volume,When,ReferenceRateUSD\n1,2026-01-05,10\n', { columns, intervalMinutes: 1 })
    expect(await minutesOf()).toEqual([[START, '10']])
  })

  test('is doubted where the first price is far from the one before it', async () => {
    expect((await importText(rowsOf(90, 90, 90, 90, 1, 1))).leap).toBeUndefined()
    const next = csv([[(START + 30) * 60, 140251, 140251, 140251, 140251, 1, 1]])
    const { leap } = await importText(next, { intervalMinutes: 1 })
    expect(leap).toEqual({ from: '90', to: '140251' })
  })
})

describe('a file whose last record had not ended', () => {
  const HOURS = 1000
  const oldestFirst = Array.from({ length: HOURS }, (_, n) => [
    (START + n * 60) * 60,
    n,
    n + 1,
    n,
    n + 1,
    1,
    1,
  ]).slice(1)
  const last = START + (HOURS - 1) * 60

  /** The database with its clock set to this minute, and with a limited number of connections. */
  const at = (now: number, connections = Infinity) => {
    const { db } = database
    let made = 0
    return {
      query: (text: string, values?: unknown[]) =>
        /^select floor.* as now$/.test(text) ? Promise.resolve({ rows: [{ now }] }) : db.query(text, values),
      connect: () => (++made > connections ? Promise.reject(new Error('no connection')) : db.connect()),
    } as unknown as Database
  }
  const imports = async () => {
    const { markets } = await priceStatus(database.db)
    return markets.find(({ market }) => market === MARKET)!.imports
  }
  const records = oldestFirst.length

  test.each([
    ['oldest first', oldestFirst, records - 1],
    ['newest first', oldestFirst.toReversed(), 0],
  ])('%s, is imported to its end after the record has ended', async (_name, rows, done) => {
    const path = join(folder, `${randomUUID()}.csv`)
    await writeFile(path, csv(rows))
    const importAt = (db: Database) => importPrices(db, { path, market: MARKET, intervalMinutes: 60 })

    const first = await importAt(at(last + 59))
    expect(first).toMatchObject({
      records,
      done_before: 0,
      unfinished: 1,
      minutes_changed: (records - 1) * 60,
    })
    expect(await imports()).toMatchObject([{ records: done, finished: false }])
    const tooSoon = await importAt(at(last + 59))
    expect(tooSoon).toMatchObject({ records, done_before: done, unfinished: 1, minutes_changed: 0 })
    expect(await imports()).toMatchObject([{ records: done, finished: false }])

    const second = await importAt(at(last + 60))
    expect(second).toMatchObject({ records, done_before: done, unfinished: 0, minutes_changed: 60 })
    expect(await imports()).toMatchObject([{ records, finished: true }])
    expect(await importAt(at(last + 60))).toMatchObject({ records, done_before: records, minutes_changed: 0 })
    expect(await minutesOf()).toHaveLength(records * 60)
  })

  test.each([
    ['oldest first', oldestFirst],
    ['newest first', oldestFirst.toReversed()],
  ])('%s, and whose import died after each of its batches, loses nothing', async (_name, rows) => {
    const text = csv(rows)
    for (const batches of [1, 2]) {
      await database.owner.query('truncate price_minutes, price_points, price_imports')
      const path = join(folder, `${randomUUID()}.csv`)
      await writeFile(path, text)
      const importAt = (db: Database) => importPrices(db, { path, market: MARKET, intervalMinutes: 60 })
      await expect(importAt(at(last + 59, batches))).rejects.toThrow('no connection')
      expect((await minutesOf()).length).toBeGreaterThan(0)
      expect(await importAt(at(last + 60))).toMatchObject({ records, unfinished: 0 })
      expect(await imports()).toMatchObject([{ records, finished: true }])
      expect(await minutesOf()).toHaveLength(records * 60)
    }
  })
})

test('an interrupted import continues where it stopped, and a finished import is not read again', async () => {
  const rows = Array.from({ length: 50_000 }, (_, n) => [(START - 60_000 + n) * 60, n + 1])
  const whole = csv(rows)
  const broken = `${csv(rows.slice(0, 45_000))}bad,1\n`
  await expect(importText(broken, { name: 'a.csv' })).rejects.toThrow('line 45001, column 1')
  expect((await minutesOf()).length).toBe(40_000)
  const status = async () => {
    const { markets } = await priceStatus(database.db)
    return markets.find(({ market }) => market === MARKET)!
  }
  expect((await status()).imports).toEqual([{ file: 'a.csv', records: 40_000, finished: false }])

  // Like a process that was killed after two batches of a good file.
  const first = await importText(whole, { name: 'b.csv' })
  expect(first).toMatchObject({ records: 50_000, done_before: 0, minutes_changed: 10_000 })
  await database.db.query(`update price_imports set finished = false, records = 40000 where name = 'b.csv'`)
  const second = await importText(whole, { name: 'c.csv' })
  expect(second).toMatchObject({ records: 50_000, done_before: 40_000, minutes_changed: 0 })
  const third = await importText(whole, { name: 'c.csv' })
  expect(third).toEqual({
    market: MARKET,
    file: 'c.csv',
    records: 50_000,
    done_before: 50_000,
    unfinished: 0,
    overwritten: 0,
    minutes_changed: 0,
  })
  expect(await status()).toMatchObject({
    source: 'REAL',
    minutes: 50_000,
    first_time: expect.any(String) as string,
  })
})

test('a later correction replaces prices, and so does a repeated import', async () => {
  const before = csv([[START * 60, 1]])
  await importText(before)
  await importText(csv([[START * 60, 2]]))
  expect(await minutesOf()).toEqual([[START, '2']])
  await importText(before)
  expect(await minutesOf()).toEqual([[START, '2']])
  await importText(before, { again: true })
  expect(await minutesOf()).toEqual([[START, '1']])
})

test('real prices replace simulated ones, and never the other way round', async () => {
  const simulate = () =>
    transaction(database.db, async (tx) => {
      const id = await lockMarket(tx, MARKET, 'SIMULATED')
      if (id === undefined) return 'refused'
      return writePrices(tx, id, {
        coversMinutes: 1,
        minute: [START, START + 1],
        second: [0, 0],
        prices: [['8', '9']],
      })
    })
  expect(await simulate()).toBe(2)
  await expect(importText('timestamp,price\n')).rejects.toThrow('no price')
  expect(await minutesOf()).toHaveLength(2)
  await importText(csv([[START * 60, 1]]))
  expect(await minutesOf()).toEqual([[START, '1']])
  expect(await simulate()).toBe('refused')
  expect(await minutesOf()).toEqual([[START, '1']])
})

test("a month of hours in the layout of Kraken's download", async () => {
  const result = await importPrices(database.db, { path: FIXTURE, market: MARKET })
  expect(result).toMatchObject({
    records: 744,
    interval_minutes: 60,
    minutes_changed: 744 * 60,
    unfinished: 0,
  })
  // The average over the month, computed separately: all hours have equal weight.
  const lines = gunzipSync(await readFile(FIXTURE))
    .toString()
    .trim()
    .split('\n')
  const tenths = (text: string) => BigInt(text.replace('.', ''))
  const sum = lines.reduce(
    (total, line) =>
      total +
      line
        .split(',')
        .slice(1, 5)
        .map(tenths)
        .reduce((a, b) => a + b),
    0n,
  )
  const { rows } = await database.db.query<{ sum: string }>(
    'select trim_scale(sum(sum) * 40 / 60) as sum from price_points where increment_minutes = 1440',
  )
  expect(rows[0]!.sum).toBe(String(sum))
})
