import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { measureCallers, measureLedger, median, type CallersResult } from './callers.ts'
import { httpLoad } from './http-load.ts'
import { newCaller, withApi, type Bench, type Caller } from './service.ts'
import type { TableRow } from './write-tables.ts'

const TEXTBOOK_ACCOUNTS = 1000
const TEXTBOOK_CONNECTIONS = 32
const CALLERS = [1, 32, 256, 1024]
/** Many customers, each with a few profiles. */
const CUSTOMERS = 100
const PROFILES = 10
/** Makes the textbook's ref_ids unique over all rounds. */
let textbookCalls = 0

interface Row {
  what: string
  callers: number
  perSecond: number[]
  p50Ms: number[]
  p99Ms: number[]
}

export interface Writes {
  rows: Row[]
  /** For the page; "times" is relative to the textbook over 32 connections. */
  table: TableRow[]
  peakMiB: number | undefined
}

/** Measures withdrawals over HTTP, of the textbook ledger, of the ledger without HTTP, and of one hot profile. */
export async function measureWrites(bench: Bench): Promise<Writes> {
  const { db, seconds, rounds } = bench
  await db.query(await readFile(new URL('textbook.sql', import.meta.url), 'utf8'))
  await db.query(
    `insert into textbook_accounts (id, balance) select gen_random_uuid(), 1e12 from generate_series(1, $1)`,
    [TEXTBOOK_ACCOUNTS],
  )
  const rows = new Map<string, Row>()
  const note = (what: string, callers: number, seen: CallersResult) => {
    const key = `${what} ${callers}`
    const row = rows.get(key) ?? { what, callers, perSecond: [], p50Ms: [], p99Ms: [] }
    rows.set(key, row)
    row.perSecond.push(Math.round(seen.perSecond))
    row.p50Ms.push(seen.p50Ms)
    row.p99Ms.push(seen.p99Ms)
    console.log(`  ${key}: ${Math.round(seen.perSecond)}/s`)
  }
  const peakMiB = await withApi(bench, async (api) => {
    const load = { baseUrl: api.baseUrl, customers: [api], clients: 256, seconds }
    const customers: Caller[] = []
    while (customers.length < CUSTOMERS) customers.push(await newCaller(bench, api.baseUrl, PROFILES))
    for (let round = 1; round <= rounds; round++) {
      console.log(`Round ${round} of ${rounds}`)
      for (const connections of [1, TEXTBOOK_CONNECTIONS])
        note('textbook', connections, await measureTextbook(bench, connections))
      for (const clients of CALLERS)
        note('http', clients, await httpLoad({ ...load, clients, prefix: `a${round}-${clients}` }))
      const hot = [{ ...api, profileIds: api.profileIds.slice(0, 1) }]
      note('http, one hot profile', 256, await httpLoad({ ...load, customers: hot, prefix: `d${round}` }))
      note('http, 100 customers', 256, await httpLoad({ ...load, customers, prefix: `e${round}` }))
      for (const callers of [1, 256])
        note('ledger', callers, await measureLedger(bench, [api], callers, `c${round}-${callers}`))
    }
    return readPeakMiB(api.process)
  })
  return { rows: [...rows.values()], table: tableOf([...rows.values()]), peakMiB }
}

async function measureTextbook({ ownerUrl, seconds }: Bench, connections: number): Promise<CallersResult> {
  const pool = new pg.Pool({ connectionString: ownerUrl, max: connections })
  const { rows } = await pool.query<{ id: string }>('select id from textbook_accounts')
  const anyAccount = () => rows[Math.floor(Math.random() * rows.length)]!.id
  const call = () => {
    const debit = anyAccount()
    let credit = anyAccount()
    while (credit === debit) credit = anyAccount()
    const values = [debit, credit, '1.25', `textbook-${textbookCalls++}`]
    return pool.query({ name: 'textbook', text: 'select textbook_transfer($1, $2, $3, $4)', values })
  }
  try {
    return await measureCallers(connections, seconds, call)
  } finally {
    await pool.end()
  }
}

function tableOf(rows: Row[]): TableRow[] {
  const textbook = rows.find(({ what, callers }) => what === 'textbook' && callers === TEXTBOOK_CONNECTIONS)!
  const base = median(textbook.perSecond)
  return rows.map((row) => ({
    what: row.what,
    callers: row.callers,
    'per second': median(row.perSecond),
    times: Number((median(row.perSecond) / base).toFixed(2)),
    'p50 ms': median(row.p50Ms),
    'p99 ms': median(row.p99Ms),
  }))
}

/** The process's highest resident memory in MiB; only Linux reports it. */
async function readPeakMiB({ pid }: ChildProcess): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kib = /VmHWM:\s+(\d+)/.exec(status)?.[1]
  return kib === undefined ? undefined : Math.round(Number(kib) / 1024)
}
