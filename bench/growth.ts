import { originOfLoop } from '../src/contract/actor.ts'
import type { Database } from '../src/db/database.ts'
import { internalTransfer } from '../src/money/movements/internal-transfer.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { verify } from '../src/money/verify/verify.ts'
import { measureLedger } from './callers.ts'
import { newOwner, type Bench, type Owner } from './service.ts'
import type { TableRow } from './write-tables.ts'

/** What needs the program and the folder of the database. */
interface Tools {
  /** Starts a service on the database and stops it. Resolves to the seconds until it was ready. */
  start: () => Promise<number>
  /** Copies the folder of the database, as a backup does. */
  copy: () => Promise<void>
}

const CUSTOMERS = 1_000
const CALLERS = 512

/**
 * Makes this many transfers of a thousand customers, and measures the ledger when a tenth of them is there and when all are:
 * its rate, maintenance, and the bytes of each table for a transfer. "times" above 1 is what grows faster than its rows.
 */
export async function measureGrowth(bench: Bench, transfers: number, tools: Tools): Promise<TableRow[]> {
  const customers: Owner[] = []
  while (customers.length < CUSTOMERS) customers.push(await newOwner(bench.db))
  await grow(bench.db, customers, transfers / 10)
  const small = await measure(bench, customers, tools, 'small')
  await grow(bench.db, customers, transfers)
  const large = await measure(bench, customers, tools, 'large')
  return [...small].flatMap(([what, value]) => {
    const grown = large.get(what)
    // A table that stayed small is left out.
    return grown === undefined
      ? []
      : { what, small: round(value), large: round(grown), times: round(grown / value) }
  })
}

const round = (value: number) => Number(value.toPrecision(3))

/** Posts internal transfers, of one customer after the other, until there are about this many transfers. */
async function grow(db: Database, customers: Owner[], transfers: number): Promise<void> {
  const ledger = new Ledger(db)
  const origin = originOfLoop('bench')
  const missing = transfers - (await countOf(db))
  // Each movement makes a debit and a credit.
  const each = Math.ceil(missing / 2 / customers.length)
  for (const { customerId, profileIds } of customers) {
    let sent = 0
    const call = async () => {
      while (sent < each) {
        const n = sent++
        const [from, to] = [0, 1].map((next) => profileIds[(n + next) % profileIds.length]!) as [
          string,
          string,
        ]
        await ledger.submit(customerId, {
          origin,
          balances: [from, to].map((profile_id) => ({ profile_id, asset: 'USDP' })),
          decide: (view) =>
            internalTransfer(
              customerId,
              { from_profile_id: from, to_profile_id: to, asset: 'USDP', minor: 1n, balanceAsset: 'USDP' },
              view,
            ),
        })
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, call))
  }
}

const countOf = async (db: Database): Promise<number> =>
  Number((await db.query<{ count: string }>('select count(*) as count from transfers')).rows[0]!.count)

async function measure(
  bench: Bench,
  customers: Owner[],
  { start, copy }: Tools,
  name: string,
): Promise<Map<string, number>> {
  const { db } = bench
  const seen = new Map<string, number>()
  seen.set('transfers', await countOf(db))
  seen.set('vacuum and analyze, s', await secondsOf(() => db.query('vacuum analyze')))
  for (const [what, owners, callers] of [
    ['one customer, 512 callers', customers.slice(0, 1), CALLERS],
    ['100 customers, 512 callers', customers.slice(0, 100), CALLERS],
    ['all customers, 512 callers', customers, CALLERS],
    ['a lone caller', customers.slice(0, 1), 1],
  ] as const) {
    const { perSecond, p99Ms } = await measureLedger(bench, owners, callers, `${name}-${what}`)
    seen.set(`${what}: a second`, perSecond)
    seen.set(`${what}: p99 ms`, p99Ms)
  }
  seen.set('start until ready, s', await start())
  seen.set('a copy of the folder, s', await secondsOf(copy))
  seen.set(
    'verify, s',
    await secondsOf(async () => {
      const { disagreements } = await verify(db)
      if (disagreements.length > 0) throw new Error(`verify found ${disagreements.length} disagreements`)
    }),
  )
  const count = await countOf(db)
  for (const { name: table, heap, indexes } of await tablesOf(db)) {
    seen.set(`${table}: rows, bytes a transfer`, Number(heap) / count)
    seen.set(`${table}: indexes, bytes a transfer`, Number(indexes) / count)
  }
  return seen
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

/** The bytes of the tables that are a hundredth of the database or more, largest first. A partition counts as its table. */
async function tablesOf(db: Database) {
  const { rows } = await db.query<{ name: string; heap: string; indexes: string }>(`
    with sizes as (
      select coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as name,
             sum(pg_table_size(c.oid)) as heap, sum(pg_indexes_size(c.oid)) as indexes
      from pg_class c
      where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
      group by 1)
    select name, heap, indexes from sizes
    where heap + indexes > pg_database_size(current_database()) / 100.0
    order by heap + indexes desc`)
  return rows
}
