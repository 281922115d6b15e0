import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { DOCUMENTED_OPTIONS } from '../../test/bitcoin-node.ts'
import { NodeUnreachable, bitcoinRpc } from '../kit/json-rpc.ts'

const MIB = 1024 * 1024
/** More than a client reads. */
const ENDLESS_BYTES = 256 * MIB

/** How much of the node's answer was sent. */
let sentBytes = 0

function* answer(): Generator<string> {
  const chunk = 'x'.repeat(MIB)
  yield '{"id":"0","error":null,"result":"'
  for (sentBytes = 0; sentBytes < ENDLESS_BYTES; sentBytes += MIB) yield chunk
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

test('the client stops reading an answer without an end', async () => {
  const failure = await rpc.call('getblockchaininfo').catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(NodeUnreachable)
  expect((failure as Error).message).toMatch(/answers with more than \d+ bytes$/)
  // The rest stays in the buffers between client and server, and part of it is never sent.
  expect(sentBytes).toBeLessThan(ENDLESS_BYTES)
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
