import { measureLedger, median } from './callers.ts'
import { TICKS_A_SECOND, ticksOf } from './cpu.ts'
import { newOwner, type Bench, type Owner } from './service.ts'
import type { TableRow } from './write-tables.ts'

/** The numbers of customers among whom the ledger's callers are divided. */
const CUSTOMERS = [1, 2, 8, 100, 1_000]
/** A busy customer has many profiles. All customers of the larger groups have few. */
const PROFILES = { busy: 100, other: 10 }
const CALLERS = 512

/** Measures the ledger without HTTP for each number of customers in turn, with the CPU time of all processes. */
export async function measureCustomers(bench: Bench): Promise<TableRow[]> {
  const owners: Owner[] = []
  while (owners.length < Math.max(...CUSTOMERS))
    owners.push(await newOwner(bench.db, owners.length < 8 ? PROFILES.busy : PROFILES.other))
  const rows = CUSTOMERS.map((customers) => ({
    customers,
    seen: [] as { perSecond: number; cpuUs: number; p99Ms: number }[],
  }))
  for (let round = 0; round <= bench.rounds; round++)
    for (const { customers, seen } of rows) {
      const prefix = `customers${round}-${customers}`
      const before = await ticksOf(process.pid)
      const { perSecond, p99Ms } = await measureLedger(bench, owners.slice(0, customers), CALLERS, prefix)
      const seconds = ((await ticksOf(process.pid)) - before) / TICKS_A_SECOND
      // The first round warms up.
      if (round > 0) seen.push({ perSecond, p99Ms, cpuUs: (seconds * 1e6) / (perSecond * bench.seconds) })
    }
  return rows.map(({ customers, seen }) => {
    const rate = median(seen.map(({ perSecond }) => perSecond))
    const micros = median(seen.map(({ cpuUs }) => cpuUs))
    return {
      customers,
      'per second': Math.round(rate),
      'p99 ms': median(seen.map(({ p99Ms }) => p99Ms)),
      'CPU us of a movement': Math.round(micros),
      '% of both cores': Math.round((rate * micros) / 2e4),
    }
  })
}
