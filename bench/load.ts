import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Load, LoadResult } from './http-load.ts'

/**
 * The load generator, in a separate process: reads its task from its input and prints its measurements. It
 * shares two cores with the measured service, so it implements just enough HTTP itself. A general client takes as
 * long for a request as the service (autocannon: 42 us of CPU; this: 15).
 */
const load = JSON.parse(await text(process.stdin)) as Load
const { hostname, port } = new URL(load.baseUrl)
const latencies: number[] = []
let sent = 0
let refused = 0

const start = performance.now()
const end = start + load.seconds * 1000
await Promise.all(Array.from({ length: load.clients }, client))
const seconds = (performance.now() - start) / 1000

latencies.sort((a, b) => a - b)
const percentile = (share: number) =>
  Number((latencies[Math.floor(latencies.length * share)] ?? NaN).toFixed(2))
const seen: LoadResult = {
  perSecond: latencies.length / seconds,
  p50Ms: percentile(0.5),
  p99Ms: percentile(0.99),
  refused,
}
console.log(JSON.stringify(seen))

/** One connection, which sends a request once the last is answered. */
function client(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true })
    // Joined once the answer is complete: searching each part of a large answer takes longer than receiving it.
    let parts: string[] = []
    let missing = Infinity
    let before = 0
    const next = () => {
      before = performance.now()
      if (before >= end) socket.end(resolve)
      else socket.write(requestOf(sent++))
    }
    socket.setEncoding('latin1')
    socket.once('connect', next)
    socket.once('error', reject)
    socket.on('data', (chunk: string) => {
      parts.push(chunk)
      if (missing === Infinity) {
        const answer = parts.join('')
        const head = answer.indexOf('\r\n\r\n')
        if (head === -1) return
        missing = head + 4 + contentLength(answer) - answer.length
      } else missing -= chunk.length
      if (missing > 0) return
      if (parts.join('').startsWith('HTTP/1.1 200 ')) latencies.push(performance.now() - before)
      else refused += 1
      parts = []
      missing = Infinity
      next()
    })
  })
}

function contentLength(answer: string): number {
  const at = answer.search(/content-length: /i)
  return Number.parseInt(answer.slice(at + 'content-length: '.length, at + 30), 10)
}

function requestOf(n: number): string {
  const { customers, paths, prefix } = load
  const { token, profileIds } = customers[n % customers.length]!
  const headers = `HTTP/1.1\r\nHost: bursar\r\nAuthorization: Bearer ${token}\r\n`
  if (paths !== undefined) return `GET ${paths[n % paths.length]} ${headers}\r\n`
  const profile = profileIds[Math.floor(n / customers.length) % profileIds.length]
  const body = `{"profile_id":"${profile}","asset":"USDP","crypto_network":"ETHEREUM","amount":"1.25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"${prefix}-${n}"}`
  return `POST /v2/transfer/crypto-withdrawals ${headers}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
