import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { DOCUMENTED_OPTIONS } from '../../test/bitcoin-node.ts'
import { bitcoinRpc, NodeUnreachable, replyBytesMax, type RpcCall } from '../kit/json-rpc.ts'

const MIB = 1024 * 1024
/** More than a client may read, and small enough for a test. */
const ENDLESS_BYTES = 32 * MIB

/** The length of the node's answer to each call, and how much of it was sent. */
let answerBytes = 0
let sentBytes = 0

function* answer(): Generator<string> {
  const chunk = 'x'.repeat(64 * 1024)
  yield '{"id":"0","error":null,"result":"'
  for (let sent = 0; sent < answerBytes;) {
    const part = chunk.slice(0, answerBytes - sent)
    sent += part.length
    sentBytes = sent
    yield part
  }
  yield '"}'
}

const server = createServer((request, reply) => {
  request.resume().once('end', () => {
    Readable.from(answer()).pipe(reply)
  })
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const rpc = bitcoinRpc({ rpcUrl: `http://127.0.0.1:${port}`, rpcUser: 'bursar', rpcPassword: 'secret' })
afterAll(() => server.close())

test.each([
  [1, 'getblockchaininfo'],
  [1, 'testmempoolaccept'],
  [3, 'getnetworkinfo'],
])('the client reads the answers to %i calls of %s up to their limit only', async (count, method) => {
  const calls = Array.from({ length: count }, (): RpcCall => [method])
  const most = replyBytesMax(calls)
  answerBytes = ENDLESS_BYTES
  const failure = await rpc.batch(calls).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(NodeUnreachable)
  expect((failure as Error).message).toMatch(new RegExp(`answers with more than ${most} bytes$`))
  // The rest stays in the buffers between client and server, and part of it is never sent.
  expect(sentBytes).toBeLessThan(most + 16 * MIB)
})

test('an answer of exactly the limit is read', async () => {
  answerBytes = replyBytesMax([['getblockchaininfo']]) - 1024
  expect(await rpc.call<string>('getblockchaininfo')).toHaveLength(answerBytes)
})

test('a transaction and a list may be longer than other answers', async () => {
  answerBytes = MIB
  expect(await rpc.call<string>('gettransaction')).toHaveLength(MIB)
  expect(await rpc.call<string>('listsinceblock')).toHaveLength(MIB)
})

// Parsing 8 MiB takes 0.8 s, so this test computes the larger limits. The tests above read up to the smaller ones.
test('the limit of a request is the sum of its calls, and at most that of a list', () => {
  expect(replyBytesMax([['getblockcount']])).toBe(64 * 1024)
  expect(replyBytesMax([['getblockcount'], ['getbalance']])).toBe(2 * 64 * 1024)
  expect(replyBytesMax([['gettransaction']])).toBe(8 * MIB)
  expect(replyBytesMax([['getblockcount'], ['listunspent']])).toBe(128 * MIB)
  expect(replyBytesMax(Array.from({ length: 100 }, () => ['gettransaction', 'x'] as const))).toBe(128 * MIB)
})

test('the list of methods for the worker has every method that the family calls, and no other', () => {
  const folder = new URL('.', import.meta.url)
  const files = readdirSync(folder).filter((file) => !file.includes('.test.'))
  const called = files.flatMap((file) =>
    [
      ...readFileSync(new URL(file, folder), 'utf8').matchAll(
        /(?:call(?:<[^(]*>)?\(\s*|\[|method = )'([a-z]{8,})'/g,
      ),
    ].map(([, method]) => method!),
  )
  const [api, worker] = ['bursar-api', 'bursar'].map((user) =>
    DOCUMENTED_OPTIONS.find((option) => option.startsWith(`rpcwhitelist=${user}:`))!
      .split(':')[1]!
      .split(','),
  )
  // Bitcoin Cash Node alone has this estimate, and it has no list.
  const all = new Set(called.filter((method) => method !== 'estimatefee'))
  expect([...worker!].sort()).toEqual([...all].sort())
  expect(api!.filter((method) => !all.has(method))).toEqual([])
})
