import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

// A collector of OpenTelemetry that keeps what it gets over OTLP, which is Protocol Buffers.

/** The fields of a message by their numbers: bytes, or a number. */
type Message = Map<number, (Buffer | bigint)[]>

function messageOf(bytes: Buffer): Message {
  const fields: Message = new Map()
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => bytes.subarray(at, (at += length))
  while (at < bytes.length) {
    const key = Number(varint())
    const kind = key & 7
    const value = kind === 0 ? varint() : take(kind === 1 ? 8 : kind === 5 ? 4 : Number(varint()))
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value])
  }
  return fields
}

const bytesOf = (message: Message, field: number) => (message.get(field) ?? []) as Buffer[]
const textOf = (message: Message, field: number) => bytesOf(message, field)[0]?.toString('utf8') ?? ''
const hexOf = (message: Message, field: number) => bytesOf(message, field)[0]?.toString('hex') ?? ''
const inside = (messages: Message[], field: number) =>
  messages.flatMap((message) => bytesOf(message, field).map(messageOf))

/** The text, or the whole number, of each attribute. */
const attributesOf = (message: Message, field: number): Record<string, string | number> =>
  Object.fromEntries(
    inside([message], field).map((pair) => {
      const [value] = inside([pair], 2)
      return [textOf(pair, 1), value!.has(3) ? Number(value!.get(3)![0]) : textOf(value!, 1)]
    }),
  )

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentId: string
  name: string
  startNanos: bigint
  endNanos: bigint
  attributes: Record<string, string | number>
  failed: boolean
  resource: Record<string, string | number>
}

/** Points of a metric: the value, or the count and the buckets of a histogram. */
export interface ReceivedPoint {
  name: string
  kind: 'gauge' | 'sum' | 'histogram'
  attributes: Record<string, string | number>
  value: number
  buckets: number[]
}

const fixed64 = (message: Message, field: number) => bytesOf(message, field)[0]?.readBigUInt64LE() ?? 0n

function spansOf(body: Buffer): ReceivedSpan[] {
  return inside([messageOf(body)], 1).flatMap((group) => {
    const [resource] = inside([group], 1)
    return inside(inside([group], 2), 2).map((span) => ({
      traceId: hexOf(span, 1),
      spanId: hexOf(span, 2),
      parentId: hexOf(span, 4),
      name: textOf(span, 5),
      startNanos: fixed64(span, 7),
      endNanos: fixed64(span, 8),
      attributes: attributesOf(span, 9),
      failed: inside([span], 15).some((status) => status.get(3)?.[0] === 2n),
      resource: attributesOf(resource!, 1),
    }))
  })
}

const KINDS = [
  ['gauge', 5],
  ['sum', 7],
  ['histogram', 9],
] as const

function pointsOf(body: Buffer): ReceivedPoint[] {
  const metrics = inside(inside(inside([messageOf(body)], 1), 2), 2)
  return metrics.flatMap((metric) =>
    KINDS.flatMap(([kind, field]) =>
      inside(inside([metric], field), 1).map((point) => {
        const isHistogram = kind === 'histogram'
        const [counts] = bytesOf(point, 6)
        return {
          name: textOf(metric, 1),
          kind,
          attributes: attributesOf(point, isHistogram ? 9 : 7),
          value: isHistogram ? Number(fixed64(point, 4)) : (bytesOf(point, 4)[0]?.readDoubleLE() ?? 0),
          buckets: !isHistogram || counts === undefined ? [] : eachOf(counts),
        }
      }),
    ),
  )
}

const eachOf = (packed: Buffer): number[] =>
  Array.from({ length: packed.length / 8 }, (_, index) => Number(packed.readBigUInt64LE(index * 8)))

/** Starts a collector for the test. */
export async function startCollector() {
  const spans: ReceivedSpan[] = []
  let points: ReceivedPoint[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = Buffer.concat(parts)
      if (request.url === '/v1/traces') spans.push(...spansOf(body))
      else if (request.url === '/v1/metrics') points = pointsOf(body)
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, spans, points: () => points }
}
