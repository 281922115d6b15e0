import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { originOfLoop } from '../src/contract/actor.ts'
import type { Database } from '../src/db/database.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createInternalTransfer } from '../src/resources/transfers/create-internal-transfer.ts'
import { httpLoad, type LoadResult } from './http-load.ts'

/** Loads shaped like those for which other ledgers and payment hubs publish figures (docs/performance.md, "Shapes of others"). */

export interface Shape {
  what: string
  callers: number
  'offered a second': number | ''
  'done a second': number
  'p50 ms': number
  'p99 ms': number
  'p99.9 ms': number
  'over 1 s': string
  refused: number
}

export interface ShapeBench {
  baseUrl: string
  token: string
  customerId: string
  /** Funded, 100 of them. */
  profileIds: string[]
  process: ChildProcess
}

/** Workers and accounts of pgledger's script. */
const WORKERS = 20
const ACCOUNTS = [50, 10]
/** Formance's benchmark: its callers, and the transactions in each request. */
const FORMANCE_CALLERS = 100
const FORMANCE_ITEMS = 50
/** The contention of Blnk's load test: 440 transactions a second, 308 of them of one balance. */
const BLNK_PER_SECOND = 440
const BLNK_HOT_SHARE = 0.7
const MOJALOOP_PER_SECOND = 1_000
/** Connections of a load with a fixed rate. A request that finds none free waits, and its wait counts. */
const OPEN_CONNECTIONS = 256

/** Measures each shape for this many seconds. */
export async function measureShapes(db: Database, api: ShapeBench, seconds: number): Promise<Shape[]> {
  const shapes: Shape[] = []
  for (const accounts of ACCOUNTS)
    shapes.push(
      rowOf(
        `pgledger: internal transfers between ${accounts} profiles, no HTTP`,
        WORKERS,
        await measureTransfers(db, api, accounts, seconds),
      ),
    )
  const load = { ...api, seconds, clients: FORMANCE_CALLERS }
  shapes.push(rowOf('Formance: single', FORMANCE_CALLERS, await httpLoad({ ...load, prefix: 'single' })))
  // A customer may have four bulk requests under way, so the hundred callers share four connections.
  const bulk = await httpLoad({ ...load, clients: 4, itemsEach: FORMANCE_ITEMS, prefix: 'bulk' })
  shapes.push(rowOf(`Formance: ${FORMANCE_ITEMS} in a request`, 4, bulk))
  const contention = { perSecond: BLNK_PER_SECOND, hotShare: BLNK_HOT_SHARE, clients: OPEN_CONNECTIONS }
  const blnk = await httpLoad({ ...api, seconds, ...contention, prefix: 'blnk' })
  shapes.push(rowOf('Blnk: 70 % of one profile', OPEN_CONNECTIONS, blnk, BLNK_PER_SECOND))
  return shapes
}

export interface Steady extends Shape {
  minutes: number
  'peak MiB': number | undefined
  'bytes a withdrawal': number
}

/** Offers Mojaloop's rate for this long, and measures memory and the growth of the database. */
export async function measureSteady(db: Database, api: ShapeBench, seconds: number): Promise<Steady[]> {
  const before = await databaseBytes(db)
  const load = { ...api, seconds, perSecond: MOJALOOP_PER_SECOND, clients: OPEN_CONNECTIONS }
  const seen = await httpLoad({ ...load, prefix: 'steady' })
  const grown = (await databaseBytes(db)) - before
  return [
    {
      minutes: Number((seconds / 60).toFixed(1)),
      ...rowOf('Mojaloop: withdrawals', OPEN_CONNECTIONS, seen, MOJALOOP_PER_SECOND),
      'peak MiB': await peakMiB(api.process),
      'bytes a withdrawal': Math.round(grown / (seen.perSecond * seconds)),
    },
  ]
}

/** The API process's highest resident memory in MiB; only Linux reports it. */
export async function peakMiB({ pid }: ChildProcess): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kib = /VmHWM:\s+(\d+)/.exec(status)?.[1]
  return kib === undefined ? undefined : Math.round(Number(kib) / 1024)
}

async function databaseBytes(db: Database): Promise<number> {
  const { rows } = await db.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
  return Number(rows[0]!.bytes)
}

function rowOf(what: string, callers: number, seen: LoadResult, offered?: number): Shape {
  return {
    what,
    callers,
    'offered a second': offered ?? '',
    'done a second': Math.round(seen.perSecond),
    'p50 ms': seen.p50Ms,
    'p99 ms': seen.p99Ms,
    'p99.9 ms': seen.p999Ms,
    'over 1 s': `${(seen.shareOverSecond * 100).toFixed(3)} %`,
    refused: seen.refused,
  }
}

/** Measures internal transfers between random profiles. Each worker makes its next as soon as its last is done. */
async function measureTransfers(
  db: Database,
  { customerId, profileIds }: ShapeBench,
  accounts: number,
  seconds: number,
): Promise<LoadResult> {
  const ledger = new Ledger(db)
  const any = () => Math.floor(Math.random() * accounts)
  const latencies: number[] = []
  const start = performance.now()
  const end = start + seconds * 1000
  const worker = async () => {
    while (performance.now() < end) {
      const from = any()
      const to = (from + 1 + Math.floor(Math.random() * (accounts - 1))) % accounts
      const body = {
        from_profile_id: profileIds[from],
        to_profile_id: profileIds[to],
        asset: 'USDP',
        amount: '1.25',
      }
      const before = performance.now()
      const origin = originOfLoop('bench')
      await createInternalTransfer.run({ db, ledger, customerId, origin, query: {}, body } as never)
      latencies.push(performance.now() - before)
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, worker))
  return resultOf(latencies, (performance.now() - start) / 1000)
}

function resultOf(latencies: number[], seconds: number): LoadResult {
  latencies.sort((a, b) => a - b)
  const at = (share: number) => Number(latencies[Math.floor(latencies.length * share)]!.toFixed(2))
  return {
    perSecond: latencies.length / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    p999Ms: at(0.999),
    shareOverSecond: latencies.filter((latency) => latency > 1_000).length / latencies.length,
    refused: 0,
    cpuSeconds: 0,
  }
}
