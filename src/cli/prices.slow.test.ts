import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startFakeKraken } from '../../test/exchange.ts'
import { actionsOfCommands, serveBursar, startBursar, ownDatabase } from '../../test/support.ts'
import { MARKETS } from '../contract/markets.ts'
import type { MarketStatus } from '../resources/markets/price-status.ts'
import { atEnd, ownFolder } from '../../test/at-end.ts'

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/XBTUSD_60.csv.gz', import.meta.url))

const database = await ownDatabase()
const folder = await ownFolder()

const start = (args: string[]) =>
  startBursar(['prices', ...args], { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder })

const bursar = (...args: string[]) => start(args).ended

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await bursar(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^[^\n]+\n$/)
  return JSON.parse(stdout) as T
}

const statusOf = async (market: string) => {
  const { markets } = await json<{ markets: MarketStatus[] }>('status')
  expect(markets.map((one) => one.market)).toEqual([...MARKETS])
  return markets.find((one) => one.market === market)!
}

test.each<[string, string[]]>([
  ['', ['import', 'follow', 'status']],
  ['import', ['<file>', '--market <market>', '--layout', '--interval <length>', '--again', '--json']],
  ['follow', ['--exchange <name>', '--markets <markets>', '--url', '--once', '--json', 'ccxt']],
  ['status', ['--json']],
])('help of bursar prices %s', async (command, expected) => {
  const { code, stdout } = await bursar(...(command === '' ? [] : [command]), '--help')
  expect(code).toBe(0)
  for (const word of expected) expect(stdout).toContain(word)
})

test.each<[string, string[], RegExp]>([
  ['market', ['import', 'a.csv', '--market', 'DOGEUSD'], /there is no market DOGEUSD; there are ETHEUR, /],
  [
    'layout',
    ['import', 'a.csv', '--market', 'BTCUSD', '--layout', 'x'],
    /Allowed choices are kraken, kraken-vwap, binance, .*, price/,
  ],
  ['interval', ['import', 'a.csv', '--market', 'BTCUSD', '--interval', '16d'], /at most 15 days/],
  ['list of markets', ['follow', '--exchange', 'kraken', '--markets', ','], /no market/],
])('a bad %s is refused', async (_name, args, message) => {
  const { code, stderr } = await bursar(...args)
  expect(code).toBe(2)
  expect(stderr).toMatch(message)
})

test('import reports its result as text or JSON, without a progress bar outside a terminal', async () => {
  expect(await json('import', FIXTURE, '--market', 'BTCUSD')).toEqual({
    market: 'BTCUSD',
    file: 'XBTUSD_60.csv.gz',
    records: 744,
    done_before: 0,
    unfinished: 0,
    interval_minutes: 60,
    minutes_changed: 44_640,
    overwritten: 0,
  })
  const again = await bursar('import', FIXTURE, '--market', 'BTCUSD')
  expect(again).toEqual({
    code: 0,
    stdout: 'XBTUSD_60.csv.gz was already imported to BTCUSD: 744 records.\n',
    stderr: '',
  })
  const forced = await bursar('import', FIXTURE, '--market', 'BTCUSD', '--again', '--interval', '1h')
  expect(forced.stdout).toBe('XBTUSD_60.csv.gz: 744 records of 60 min, 0 minutes of BTCUSD changed.\n')
  expect(await statusOf('BTCUSD')).toMatchObject({
    market: 'BTCUSD',
    source: 'REAL',
    first_time: '2025-01-01T00:00:00.000000Z',
    last_time: '2025-01-31T23:59:00.000000Z',
    minutes: 44_640,
    imports: [
      { file: 'XBTUSD_60.csv.gz', records: 744, finished: true },
      { file: 'XBTUSD_60.csv.gz', records: 744, finished: true },
    ],
  })
  const { stdout } = await bursar('status')
  expect(stdout).toMatch(/^market +source +minutes +first_time +last_time +imports\n/)
  expect(stdout).toMatch(/^BTCUSD +REAL +44640 {2}2025-01-01T00:00:00\.000000Z {2}2025-01-31T\S+ {2}2$/m)
  expect(stdout).toMatch(/^ETHEUR +0$/m)
})

test('import advises a repeat for a file whose last record had not ended', async () => {
  const hour = Math.floor(Date.now() / 3_600_000) * 3600
  const file = join(folder, 'hours.csv')
  await writeFile(file, [hour - 3600, hour].map((time) => `${time},1,1,1,1,1,1\n`).join(''))
  const { code, stdout } = await bursar('import', file, '--market', 'BCHUSD', '--interval', '1h')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout:
      'hours.csv: 2 records of 60 min, 60 minutes of BCHUSD changed.\n' +
      '1 records had not ended yet and were skipped; import the file again to include them.\n',
  })
  const status = await bursar('status')
  expect(status.stdout).toMatch(/^BCHUSD +REAL .* 1, 1 unfinished *$/m)
  expect(status.stdout).toContain(
    'BCHUSD: hours.csv: the import is incomplete, or the last records had not ended. Import it again to resume.\n',
  )
})

test('an error is reported by its message alone', async () => {
  const file = join(folder, 'bad.csv')
  await writeFile(file, 'timestamp,price\n1700000000,x\n')
  expect(await bursar('import', file, '--market', 'BTCUSD')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'bad.csv, line 2, column 2 (price) is not a decimal number above 0: "x"\n',
  })
})

test('follow prints each round and ends cleanly on SIGTERM', async () => {
  const kraken = await startFakeKraken()
  atEnd(kraken.close)
  const exchange = ['--exchange', 'kraken', '--markets', 'ETHUSD', '--url', kraken.url]
  const command = start(['follow', ...exchange, '--json'])
  await command.printed((stdout) => stdout.includes('\n'))
  expect(JSON.parse(command.stdout())).toMatchObject({ exchange: 'kraken', markets: [{ market: 'ETHUSD' }] })
  expect((await command.stop()).code).toBe(0)
  expect((await statusOf('ETHUSD')).minutes).toBeGreaterThanOrEqual(719 * 60)
  expect(await actionsOfCommands(database.db)).toContain('market.follow')
})

test('a sandbox has simulated prices from its start', async () => {
  const own = await ownDatabase()
  await serveBursar({
    DATABASE_URL: own.url,
    BURSAR_DATA_DIR: join(folder, 'sandbox'),
    BURSAR_SIMULATED_PRICE_DAYS: '1',
  })
  const { rowCount } = await own.db.query(`select from markets where source = 'SIMULATED'`)
  expect(rowCount).toBe(MARKETS.length)
})
