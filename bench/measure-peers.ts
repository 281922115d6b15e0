import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { median } from './callers.ts'
import { TICKS_A_SECOND } from './cpu.ts'
import type { Peer, PeerTransfer } from './peers.ts'
import type { TableRow } from './write-tables.ts'

const ACCOUNTS = 100
const ITEMS = 100
/** One hot account pays everybody else; or all pay each other. */
const CASES = [
  ...[1, 32, 256].map((callers) => ({ callers, items: 1, hot: false })),
  ...[32, 256].map((callers) => ({ callers, items: 1, hot: true })),
  ...[1, 4].map((callers) => ({ callers, items: ITEMS, hot: false })),
]

/** Measures each case with each program in turn, and returns a row for each, with the medians of the rounds. */
export async function measurePeers(
  peers: readonly Peer[],
  rounds: number,
  seconds: number,
): Promise<TableRow[]> {
  const opened: { peer: Peer; accounts: string[] }[] = []
  for (const peer of peers) opened.push({ peer, accounts: await peer.open(ACCOUNTS) })
  const seen = new Map<string, Seen[]>()
  for (let round = 1; round <= rounds; round++)
    for (const [index, load] of CASES.entries())
      for (const { peer, accounts } of opened) {
        if (load.items > 1 && peer.bulk === undefined) continue
        const key = `${index} ${peer.name}`
        const result = await measure(peer, accounts, load, seconds)
        console.log(`  ${round} ${peer.name} ${JSON.stringify(load)} ${Math.round(result.perSecond)}/s`)
        seen.set(key, [...(seen.get(key) ?? []), result])
      }
  for (const peer of peers) await peer.close()
  return CASES.flatMap(({ callers, items, hot }, index) =>
    peers.flatMap(({ name }) => {
      const results = seen.get(`${index} ${name}`)
      if (results === undefined) return []
      const middle = (figure: (result: Seen) => number) => median(results.map(figure))
      return [
        {
          ledger: name,
          callers,
          'in a request': items,
          'paying accounts': hot ? 1 : ACCOUNTS,
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
  accounts: readonly string[],
  { callers, items, hot }: (typeof CASES)[number],
  seconds: number,
): Promise<Seen> {
  const anyOther = (than: string): string => {
    const found = accounts[Math.floor(Math.random() * accounts.length)]!
    return found === than ? anyOther(than) : found
  }
  const next = (): PeerTransfer => {
    const from = hot ? accounts[0]! : anyOther('')
    return { from, to: anyOther(from), key: randomUUID() }
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
        const made = items === 1 ? peer.transfer(next()) : peer.bulk!(Array.from({ length: items }, next))
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
