import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Database } from '../src/db/database.ts'
import { listHistoricalPrices } from '../src/resources/markets/list-historical-prices.ts'
import { INCREMENT_MINUTES, INCREMENTS } from '../src/resources/markets/increments.ts'
import { MARKETS } from '../src/resources/markets/markets.ts'
import { beginSimulation, simulateUpToNow } from '../src/resources/markets/simulate-prices.ts'

const YEARS_MINUTES = 5 * 365 * 1440
/** 2021-01-01, in minutes. */
const FIRST = 26_824_320
const DAYS_OF_ALL = 30
const LARGE = 'BTCUSD'

export interface PriceImportFigure {
  points: number
  fileMiB: number
  seconds: number
  pointsPerSecond: number
  /** The highest resident memory of the import so far, in MiB, after each share of its time. */
  memoryMiB: { quarter: number; half: number; end: number }
  againSeconds: number
}

export interface PriceReadFigure {
  what: string
  points: number
  total: number
  p50Ms: number
  p99Ms: number
  /** A look-up of the same number of rows by their primary keys, by the same driver. */
  lookUpP50Ms: number
  lookUpP99Ms: number
  /** The ratio of the p99 values. */
  times: number
}

/**
 * Measures import, simulation, reads and size on disk, with five years of minutes of one market and 30 days of all
 * others.
 */
export async function measurePrices(
  db: Database,
  { databaseUrl, dataDir }: { databaseUrl: string; dataDir: string },
) {
  const file = join(dataDir, 'XBTUSD_1.csv')
  await writeMinutes(file)
  const imported = await measureImport(file, databaseUrl, dataDir)
  const { simulated, memory } = await measureSimulation(db)
  const disk = await sizeOnDisk(db)
  await db.query('vacuum analyze price_minutes, price_points')
  return { imported, simulated: { ...simulated, ...memory }, disk, reads: await measureReads(db) }
}

/** Writes five years of minutes in the format of Kraken's download. */
async function writeMinutes(file: string): Promise<void> {
  const out = createWriteStream(file)
  let price = 290_000
  for (let n = 0; n < YEARS_MINUTES; n++) {
    const open = price
    price = Math.max(1_000, price + Math.round((Math.random() - 0.5) * 400))
    const tenths = (units: number) => `${Math.floor(units / 10)}.${units % 10}`
    const [high, low] = [Math.max(open, price) + 37, Math.min(open, price) - 41]
    const line = `${(FIRST + n) * 60},${tenths(open)},${tenths(high)},${tenths(low)},${tenths(price)},1.24500000,17\n`
    if (!out.write(line)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
}

/** Runs the built `bursar prices import` in a separate process. */
async function measureImport(file: string, databaseUrl: string, dataDir: string): Promise<PriceImportFigure> {
  const run = async () => {
    const start = performance.now()
    const child = spawn(
      process.execPath,
      ['dist/main.js', 'prices', 'import', file, '--market', LARGE, '--json'],
      {
        env: { ...process.env, DATABASE_URL: databaseUrl, BURSAR_DATA_DIR: dataDir },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const memory: number[] = []
    const watch = setInterval(() => {
      void readFile(`/proc/${child.pid}/status`, 'utf8').then(
        (status) => memory.push(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? NaN) / 1024),
        () => clearInterval(watch),
      )
    }, 100)
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    await once(child, 'exit')
    clearInterval(watch)
    const { minutes_changed } = JSON.parse(line) as { minutes_changed: number }
    return { seconds: (performance.now() - start) / 1000, memory, minutes_changed }
  }
  const { seconds, memory, minutes_changed } = await run()
  const again = await run()
  const at = (share: number) => Math.round(memory[Math.floor((memory.length - 1) * share)] ?? NaN)
  return {
    points: minutes_changed,
    fileMiB: Math.round((await stat(file)).size / 2 ** 20),
    seconds: rounded(seconds),
    pointsPerSecond: Math.round(minutes_changed / seconds),
    memoryMiB: { quarter: at(0.25), half: at(0.5), end: at(1) },
    againSeconds: rounded(again.seconds),
  }
}

async function measureSimulation(db: Database) {
  const start = performance.now()
  const before = process.cpuUsage()
  await beginSimulation(db, DAYS_OF_ALL)
  for (const market of MARKETS) await simulateUpToNow(db, market)
  const { user, system } = process.cpuUsage(before)
  const seconds = (performance.now() - start) / 1000
  return {
    simulated: { markets: MARKETS.length - 1, days: DAYS_OF_ALL, seconds: rounded(seconds) },
    memory: { nodeCpuSeconds: rounded((user + system) / 1e6) },
  }
}

/** Measures both price tables with their indexes: rows, MiB, and bytes per priced minute and per point served. */
async function sizeOnDisk(db: Database) {
  const { rows } = await db.query<{ minutes: string; points: string; bytes: string }>(`
    select (select sum(minutes) from price_points where increment_minutes = 40320) as minutes,
           (select count(*) from price_points) as points,
           pg_total_relation_size('price_minutes') + pg_total_relation_size('price_points') as bytes`)
  const [{ minutes, points, bytes }] = rows as [(typeof rows)[0]]
  return {
    minutes: Number(minutes),
    rollUps: Number(points),
    MiB: Math.round(Number(bytes) / 2 ** 20),
    bytesPerMinute: rounded(Number(bytes) / Number(minutes)),
    bytesPerPointServed: rounded(Number(bytes) / (Number(minutes) + Number(points))),
  }
}

interface Reply {
  prices: unknown[]
  total_count: number
}

async function measureReads(db: Database): Promise<PriceReadFigure[]> {
  const end = FIRST + YEARS_MINUTES
  const at = (minute: number) => `${new Date(minute * 60_000).toISOString().slice(0, 19)}Z`
  const queries: [string, Record<string, unknown>][] = [
    ...INCREMENTS.map((increment): [string, Record<string, unknown>] => [
      `${increment}, whole range`,
      { increment },
    ]),
    ['ONE_MINUTE, page of 1000', { increment: 'ONE_MINUTE', 'pagination.limit': 1000 }],
    [
      'ONE_MINUTE, page of 1000, deep',
      { increment: 'ONE_MINUTE', 'pagination.limit': 1000, 'pagination.offset': 2_000_000 },
    ],
    ...Object.entries({ '1 hour': 60, '1 day': 1440, '1 month': 43_200, '5 years': YEARS_MINUTES }).map(
      ([name, minutes]): [string, Record<string, unknown>] => [
        `max_data_points=500, ${name}`,
        {
          max_data_points: '500',
          'pagination.limit': 500,
          // No bound is the start of an increment, so that both ends are counted in the finest points.
          'range.begin': at(end - minutes - 777 > FIRST ? end - minutes - 777 : FIRST),
          'range.end': at(minutes === YEARS_MINUTES ? end : end - 777),
        },
      ],
    ),
  ]
  const figures: PriceReadFigure[] = []
  for (const [what, query] of queries) {
    const ask = () =>
      listHistoricalPrices.run({ shared: db, params: { market: LARGE }, query } as never) as Promise<Reply>
    const { prices, total_count } = await ask()
    const points = prices.length
    const [read, lookUp] = await timeInTurns([ask, await prepareLookUp(db, Math.max(points, 1))])
    figures.push({
      what,
      points,
      total: total_count,
      ...read!,
      lookUpP50Ms: lookUp!.p50Ms,
      lookUpP99Ms: lookUp!.p99Ms,
      times: rounded(read!.p99Ms / lookUp!.p99Ms),
    })
  }
  return figures
}

/** Enough rounds that twenty calls lie above the p99, so that no single disturbance decides it. */
const ROUNDS = 2_000

/** Times the calls in turns, so that a disturbance of the machine affects all of them. */
async function timeInTurns(works: (() => Promise<unknown>)[]): Promise<{ p50Ms: number; p99Ms: number }[]> {
  const latencies: number[][] = works.map(() => [])
  for (let round = -ROUNDS / 10; round < ROUNDS; round++) {
    for (const [index, work] of works.entries()) {
      const before = performance.now()
      await work()
      if (round >= 0) latencies[index]!.push(performance.now() - before)
    }
  }
  return latencies.map((all) => {
    all.sort((a, b) => a - b)
    const at = (share: number) => rounded(all[Math.floor(all.length * share)]!)
    return { p50Ms: at(0.5), p99Ms: at(0.99) }
  })
}

/** Looks up this many points by their primary keys. */
async function prepareLookUp(db: Database, points: number): Promise<() => Promise<unknown>> {
  const increment = INCREMENT_MINUTES.FIVE_MINUTES
  const { rows } = await db.query<{ starts_at: number }>(
    `select starts_at from price_points
     where market_id = (select id from markets where market = $1) and increment_minutes = $2
     order by starts_at limit $3`,
    [LARGE, increment, points],
  )
  const id = MARKETS.indexOf(LARGE) + 1
  const starts = rows.map(({ starts_at }) => starts_at)
  return async () => {
    const found = await db.query({
      name: 'look-up',
      text: `select starts_at, sum, minutes from price_points
             where market_id = $1 and increment_minutes = $2 and starts_at = any ($3::integer[])`,
      values: [id, increment, starts],
    })
    if (found.rows.length !== starts.length) throw new Error('a point is not there')
  }
}

const rounded = (value: number) => Number(value.toFixed(2))
