import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { median } from './callers.ts'
import { TICKS_A_SECOND } from './cpu.ts'
import type { Peer, PeerTransfer } from './peers.ts'
import type { TableRow } from './write-tables.ts'

/** The first owner has many accounts; each of the others has few. */
const ACCOUNTS = { first: 100, other: 10 }
const OTHERS = 1_000
const ITEMS = 100
/** One owner, whose accounts pay each other or whose first pays all. */
const OF_ONE = [
  ...[1, 256].map((callers) => ({ owners: 1, callers, items: 1, payers: ACCOUNTS.first })),
  { owners: 1, callers: 256, items: 1, payers: 1 },
  { owners: 1, callers: 1, items: ITEMS, payers: ACCOUNTS.first },
]
const OF_MANY = [100, OTHERS].map((owners) => ({ owners, callers: 256, items: 1, payers: ACCOUNTS.other }))
type Case = (typeof OF_ONE)[number]

/** Measures each case with each program in turn, and returns a row for each, with the medians of the rounds. */
export async function measurePeers(
  peers: readonly Peer[],
  rounds: number,
  seconds: number,
): Promise<TableRow[]> {
  const opened = peers.map((peer) => ({ peer, accounts: [] as string[][] }))
  const seen = new Map<string, Seen[]>()
  for (const cases of [OF_ONE, OF_MANY]) {
    // A program may slow down with the number of its ledgers, so the others' are opened after the first's was measured.
    for (const { peer, accounts } of opened)
      if (cases === OF_ONE) accounts.push(await peer.open(0, ACCOUNTS.first))
      else while (accounts.length <= OTHERS) accounts.push(await peer.open(accounts.length, ACCOUNTS.other))
    for (let round = 1; round <= rounds; round++)
      for (const load of cases)
        for (const { peer, accounts } of opened) {
          if (load.items > 1 && peer.bulk === undefined) continue
          const key = keyOf(load, peer)
          const result = await measure(peer, accounts, load, seconds)
          console.log(`  ${round} ${key} ${Math.round(result.perSecond)}/s`)
          seen.set(key, [...(seen.get(key) ?? []), result])
        }
  }
  for (const peer of peers) await peer.close()
  return [...OF_ONE, ...OF_MANY].flatMap((load) =>
    peers.flatMap((peer) => {
      const results = seen.get(keyOf(load, peer))
      if (results === undefined) return []
      const middle = (figure: (result: Seen) => number) => median(results.map(figure))
      return [
        {
          ledger: peer.name,
          owners: load.owners,
          callers: load.callers,
          'in a request': load.items,
          'paying accounts': load.owners * load.payers,
          'a second': Math.round(middle((result) => result.perSecond)),
          'p50 ms': Number(middle((result) => result.p50Ms).toFixed(2)),
          'p99 ms': Number(middle((result) => result.p99Ms).toFixed(2)),
          'CPU us of a transfer': Math.round(middle((result) => result.cpuUs)),
          'refused %': Math.round(100 * middle((result) => result.refused)),
        },
      ]
    }),
  )
}

const keyOf = (load: Case, { name }: Peer) => `${JSON.stringify(load)} ${name}`

interface Seen {
  perSecond: number
  p50Ms: number
  p99Ms: number
  cpuUs: number
  /** The share of requests that were refused or not answered. */
  refused: number
}

async function measure(
  peer: Peer,
  accountsOf: readonly string[][],
  { owners, callers, items, payers }: Case,
  seconds: number,
): Promise<Seen> {
  const below = (count: number) => Math.floor(Math.random() * count)
  const next = (owner: number): PeerTransfer => {
    const accounts = accountsOf[owner]!
    const from = below(payers)
    const to = (from + 1 + below(accounts.length - 1)) % accounts.length
    return { owner, from: accounts[from]!, to: accounts[to]!, key: randomUUID() }
  }
  const latencies: number[] = []
  const refusals: unknown[] = []
  const before = await busyMicros()
  const start = performance.now()
  const end = start + seconds * 1_000
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < end) {
        const sent = performance.now()
        const owner = owners === 1 ? 0 : 1 + below(owners)
        const made =
          items === 1
            ? peer.transfer(next(owner))
            : peer.bulk!(Array.from({ length: items }, () => next(owner)))
        await made.then(
          () => latencies.push(performance.now() - sent),
          (error: unknown) => refusals.push(error),
        )
      }
    }),
  )
  const perSecond = (items * latencies.length) / ((performance.now() - start) / 1_000)
  const cpuUs = ((await busyMicros()) - before) / (items * latencies.length)
  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)]!
  const refused = refusals.length / (refusals.length + latencies.length)
  if (refused > 0) console.log(refusals[0])
  return { perSecond, p50Ms: percentile(0.5), p99Ms: percentile(0.99), cpuUs, refused }
}

/** The CPU time of all processes of the machine but this one, which is the caller. */
async function busyMicros(): Promise<number> {
  const [user, nice, system, , , irq, softIrq] = (await readFile('/proc/stat', 'utf8'))
    .split('\n', 1)[0]!
    .split(/ +/)
    .slice(1)
    .map(Number) as [number, number, number, number, number, number, number]
  const own = process.cpuUsage()
  return ((user + nice + system + irq + softIrq) / TICKS_A_SECOND) * 1e6 - own.user - own.system
}
