import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { afterAll, expect, test } from 'vitest'
import { resolverFor, type Resolve } from './resolve.ts'
import { targetRules } from './targets.ts'

const LIVE = targetRules({ mode: 'live' })
const closes: (() => void)[] = []
afterAll(() => closes.forEach((close) => close()))

/** Starts a DNS server that answers each query like this, or not at all. */
async function startServer(answerTo: (query: Buffer) => Buffer | undefined): Promise<string> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const answer = answerTo(query)
    if (answer !== undefined) socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  closes.push(() => socket.close())
  return `127.0.0.1:${socket.address().port}`
}

const [TYPE_A, TYPE_AAAA] = [1, 28]
const ADDRESSES: Record<number, Buffer> = {
  [TYPE_A]: Buffer.from([8, 8, 4, 4]),
  [TYPE_AAAA]: Buffer.from('26064700470000000000000000001111', 'hex'),
}

/** Answers a query with one address: header, the question repeated, one record (RFC 1035, 4.1). */
function oneAddress(query: Buffer): Buffer {
  let end = 12
  while (query[end] !== 0) end += query[end]! + 1
  const question = query.subarray(12, end + 5)
  const type = query.readUInt16BE(end + 1)
  const data = ADDRESSES[type]!
  return Buffer.from([
    ...[query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0],
    ...question,
    ...[0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length, ...data],
  ])
}

const resolved = (resolve: Resolve, name: string) =>
  new Promise((done) => {
    resolve(name, (error, addresses) => done(error === null ? addresses : error.code))
  })

test('a public name has the addresses that the DNS answers', async () => {
  const resolve = resolverFor(LIVE, [await startServer(oneAddress)])
  expect(await resolved(resolve, 'hooks.example.com')).toEqual([
    { address: '8.8.4.4', family: 4 },
    { address: '2606:4700:4700::1111', family: 6 },
  ])
})

test('names whose servers never answer end in time, and hold up no other name', async () => {
  const resolve = resolverFor(LIVE, [await startServer(() => undefined)])
  const working = resolverFor(LIVE, [await startServer(oneAddress)])
  const start = performance.now()
  const dead = Array.from({ length: 50 }, (_, index) => resolved(resolve, `dead-${index}.example.com`))
  await Promise.all([lookup('localhost'), resolved(working, 'hooks.example.com')])
  expect(performance.now() - start).toBeLessThan(900)
  for (const code of await Promise.all(dead)) expect(['ETIMEOUT', 'ECANCELLED']).toContain(code)
  expect(performance.now() - start).toBeLessThan(6_000)
})

test('names of the own network are those of the system', async () => {
  const silent = [await startServer(() => undefined)]
  const rules = targetRules({ mode: 'live', webhookAllowedNetworks: '127.0.0.0/8,::1' })
  for (const resolve of [resolverFor(rules, silent), resolverFor(targetRules({ mode: 'sandbox' }), silent)])
    expect(await resolved(resolve, 'localhost')).toContainEqual({ address: '127.0.0.1', family: 4 })
})
