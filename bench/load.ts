import { connect, type Socket } from 'node:net'
import type { Load, LoadResult } from './http-load.ts'

/**
 * The load generator, in a separate process: reads its task from its first argument and prints its measurements. It
 * shares two cores with the measured service, so it implements just enough HTTP itself. A general client takes as
 * long for a request as the service (autocannon: 42 us of CPU; this: 15).
 */
const load = JSON.parse(process.argv[2]!) as Load
const { hostname, port } = new URL(load.baseUrl)
const latencies: number[] = []
let sent = 0
/** The number of requests scheduled so far, under a fixed rate. */
let due = 0
let refused = 0

const start = performance.now()
const end = start + load.seconds * 1000
await Promise.all(Array.from({ length: load.clients }, client))
const seconds = (performance.now() - start) / 1000

latencies.sort((a, b) => a - b)
const at = (share: number) => Number((latencies[Math.floor(latencies.length * share)] ?? NaN).toFixed(2))
const { user, system } = process.cpuUsage()
const seen: LoadResult = {
  perSecond: latencies.length / seconds,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
  p999Ms: at(0.999),
  shareOverSecond: latencies.filter((latency) => latency > 1_000).length / latencies.length,
  refused,
  cpuSeconds: (user + system) / 1e6,
}
console.log(JSON.stringify(seen))

/** One connection. It sends a request once the last is answered; under a fixed rate, not before the request's time. */
function client(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true })
    // Joined once the answer is complete: searching each part of a large answer takes longer than receiving it.
    let parts: string[] = []
    let missing = Infinity
    let before = 0
    const send = () => void socket.write(requestOf(sent++))
    const next = () => {
      before = performance.now()
      if (load.perSecond !== undefined) {
        const now = before
        before = start + (1000 * due++) / load.perSecond
        if (before >= end) return void socket.end(resolve)
        if (before > now) return void setTimeout(send, before - now)
      } else if (before >= end) return void socket.end(resolve)
      send()
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
      const answer = parts.join('')
      const good = answer.startsWith('HTTP/1.1 200 ')
      if (good && load.itemsEach !== undefined) count(answer, performance.now() - before)
      else if (good) latencies.push(performance.now() - before)
      else refused += 1
      parts = []
      missing = Infinity
      next()
    })
  })
}

/** Counts the withdrawals that one answer has made and refused. */
function count(answer: string, milliseconds: number): void {
  const made = answer.split('{"transfer":').length - 1
  for (let index = 0; index < made; index++) latencies.push(milliseconds)
  refused += load.itemsEach! - made
}

function contentLength(answer: string): number {
  const at = answer.search(/content-length: /i)
  return Number.parseInt(answer.slice(at + 'content-length: '.length, at + 30), 10)
}

function requestOf(n: number): string {
  if (load.itemsEach !== undefined)
    return post('/v2/transfer/crypto-withdrawals/bulk', manyOf(load.itemsEach, n))
  return post('/v2/transfer/crypto-withdrawals', bodyOf(n))
}

function manyOf(count: number, n: number): string {
  const bodies = Array.from({ length: count }, (_, index) => bodyOf(n * count + index))
  return `{"withdrawals":[${bodies.join()}]}`
}

function bodyOf(n: number): string {
  const isHot = load.hotShare !== undefined && Math.random() < load.hotShare
  const profile = load.profileIds[isHot ? 0 : n % load.profileIds.length]
  return `{"profile_id":"${profile}","asset":"USDP","crypto_network":"ETHEREUM","amount":"1.25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"${load.prefix}-${n}"}`
}

function post(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: bursar\r\nAuthorization: Bearer ${load.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
