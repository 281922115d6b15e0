import { statSync } from 'node:fs'
import { InvalidArgumentError, type Command } from 'commander'
import { followExchange, type FollowRound } from '../resources/markets/follow-exchange.ts'
import { importPrices, type ImportResult } from '../resources/markets/import-prices.ts'
import { MARKETS, type Market } from '../contract/markets.ts'
import { priceStatus } from '../resources/markets/price-status.ts'
import { LAYOUT_NAMES } from '../resources/markets/price-layouts.ts'
import { COVERS_MINUTES_MAX } from '../money/records/write-prices.ts'
import type { Origin } from '../contract/actor.ts'
import { audited, recordNow } from '../audit/audited.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { transaction, type Database } from '../db/database.ts'
import { inDatabase, inMigratedDatabase } from './command-line.ts'
import { group } from './define.ts'
import { stopSignal } from './exit.ts'
import { print } from './output.ts'
import { startProgress } from './progress.ts'
import { tableOf } from './table.ts'
import { printError } from './own-process.ts'

const WORDS = {
  '<file>': ['file'],
  '--market <market>': ['market, for example BTCUSD', market],
  '--layout <layout>': [
    'order of the columns, if neither the header nor their count identifies it',
    LAYOUT_NAMES,
  ],
  '--columns <columns>': [
    'names of the columns in the header, or their positions: time=startTime,open=openPrice,high=..,low=..,close=.. or time=1,price=2',
    columnsTold,
  ],
  '--interval <length>': [
    'length of each record, if it cannot be derived from the file: 1m, 5m, 1h, 1d',
    intervalMinutes,
  ],
  '--again': ['re-import a file, overwriting prices that were imported after it'],
  '--exchange <name>': ['name of the exchange in ccxt: kraken, coinbase, bitstamp, ...'],
  '--markets <markets>': ['comma-separated, for example BTCUSD,ETHUSD', markets],
  '--url <url>': ["URL of the exchange's API (default: the URL in ccxt)"],
  '--once': ['update each market once, then exit'],
} as const

export function priceCommands(program: Command): void {
  const about = 'market history: import, follow an exchange, status'
  const prices = group(program, ['prices', about], inMigratedDatabase, WORDS)
  prices.command(
    'import <file> --market <market> [--layout <layout>] [--columns <columns>] [--interval <length>] [--again]',
    {
      about:
        'import a CSV file of prices, plain, gzipped or zipped, as exchanges, data sites and spreadsheets write it',
      async run({ db, origin }, { file: path, market, layout, columns, interval, again, json }) {
        const bar = startProgress(statSync(path, { throwIfNoEntry: false })?.size ?? 0, { quiet: json })
        const asked = { path, market, layout, columns, intervalMinutes: interval, again, origin }
        return importPrices(db, { ...asked, onBytes: bar.step }).finally(bar.stop)
      },
      says: describeImport,
    },
  )
  prices.command('follow --exchange <name> --markets <markets> [--url <url>] [--once]', {
    about: 'keep prices up to date from an exchange, through the package ccxt, until stopped',
    json: 'print a line of JSON for each round',
    async run({ db, origin }, { exchange, markets, url, once = false, json }) {
      await recordFollow(db, origin, exchange, markets)
      await followExchange(db, {
        ...{ exchange, markets, url, once, signal: stopSignal() },
        onRound: (round) => print(json ? round : describeRound(round)),
        onFailure: (error) => printError(`${error.message}; trying again`),
      })
    },
  })
  prices.command('status', {
    in: inDatabase,
    about: 'show the source, the time span, the minutes and the imported files of each market',
    run: ({ db }) => priceStatus(db),
    says({ markets }) {
      const columns = [
        ...(['market', 'source', '>minutes', 'first_time', 'last_time'] as const),
        ['imports', ({ imports }: MarketStatus) => countOf(imports)] as const,
      ]
      const advice = 'the import is incomplete, or the last records had not ended. Import it again to resume.'
      const unfinished = markets.flatMap(({ market, imports }) =>
        unfinishedOf(imports).map(({ file }) => `${market}: ${file}: ${advice}`),
      )
      return [tableOf(markets, columns, undefined), ...unfinished].join('\n')
    },
  })
}

type MarketStatus = Awaited<ReturnType<typeof priceStatus>>['markets'][number]
type Imports = MarketStatus['imports']

const unfinishedOf = (imports: Imports) => imports.filter(({ finished }) => !finished)

function countOf(imports: Imports): string {
  const unfinished = unfinishedOf(imports).length
  if (imports.length === 0) return ''
  return `${imports.length}${unfinished > 0 ? `, ${unfinished} unfinished` : ''}`
}

/** Records once that somebody follows an exchange, because its rounds change prices each minute. */
const recordFollow = (db: Database, origin: Origin, exchange: string, markets: Market[]): Promise<void> =>
  transaction(db, (tx) =>
    recordNow(
      tx,
      PLATFORM_ID,
      ...markets.map((market) => audited(origin, 'market.follow', market, { after: { exchange } })),
    ),
  )

const describeRound = ({ exchange, markets }: FollowRound) =>
  markets
    .map(
      ({ market, candles, minutes_changed: changed }) =>
        `${exchange} ${market}: ${candles} candles, ${changed} minutes changed`,
    )
    .join('\n')

function describeImport(result: ImportResult): string {
  const { market, file, records, done_before, unfinished, overwritten } = result
  const { interval_minutes, minutes_changed, leap } = result
  if (interval_minutes === undefined) return `${file} was already imported to ${market}: ${records} records.`
  return [
    `${file}: ${records} records of ${interval_minutes} min, ${minutes_changed} minutes of ${market} changed.`,
    ...(leap === undefined
      ? []
      : [
          `The first price is ${leap.to}, and the one before it ${leap.from}: check the market and the order of the columns.`,
        ]),
    ...(done_before > 0 ? [`${done_before} records were already imported.`] : []),
    ...(overwritten > 0
      ? [
          `${overwritten} records have the minute of an earlier record of the file, and replaced it: look for times of a place that changes its clocks, or for parts that repeat.`,
        ]
      : []),
    ...(unfinished > 0
      ? [`${unfinished} records had not ended yet and were skipped; import the file again to include them.`]
      : []),
  ].join('\n')
}

function market(text: string): Market {
  if (!(MARKETS as readonly string[]).includes(text))
    throw new InvalidArgumentError(`there is no market ${text}; there are ${MARKETS.join(', ')}.`)
  return text as Market
}

function markets(text: string): Market[] {
  const names = text.split(',').filter((name) => name !== '')
  if (names.length === 0) throw new InvalidArgumentError('no market.')
  return [...new Set(names.map(market))]
}

const COLUMN = /^(time|price|open|high|low|close)=(.+)$/

/** Parses `time=startTime,price=2`. */
function columnsTold(text: string): ReadonlyMap<string, string> {
  const told = text.split(',').map((part) => COLUMN.exec(part)?.slice(1) as [string, string] | undefined)
  if (told.includes(undefined))
    throw new InvalidArgumentError('must be time=<column> with price=<column> or open, high, low and close.')
  return new Map(told as [string, string][])
}

const UNIT_MINUTES: Record<string, number> = { '': 1, m: 1, h: 60, d: 1440, w: 10_080 }

/** Parses `5m`, `1h`, `1d`, or a number of minutes for commander. */
function intervalMinutes(text: string): number {
  const [, count, unit] = /^([0-9]{1,5})([mhdw]?)$/.exec(text) ?? []
  const minutes = Number(count) * (UNIT_MINUTES[unit ?? ''] ?? NaN)
  if (!(minutes >= 1 && minutes <= COVERS_MINUTES_MAX))
    throw new InvalidArgumentError('must be a length such as 1m, 1h or 1d, of at most 15 days.')
  return minutes
}
