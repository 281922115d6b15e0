import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { evmNode } from './node.ts'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'

const MIB = 1024 * 1024
/** As node.ts has it. */
const REPLY_BYTES_MAX = 64 * MIB

test('an endless reply is read up to the limit only', async () => {
  let sent = 0
  const chunk = Buffer.alloc(MIB, 'x')
  const server = createServer((request, reply) => {
    request.resume()
    reply.writeHead(200, { 'content-type': 'application/json' })
    const more = () => {
      while (!reply.destroyed) {
        sent += chunk.length
        if (!reply.write(chunk)) return void reply.once('drain', more)
      }
    }
    more()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  const failure = await evmNode(`http://127.0.0.1:${port}/secret`)
    .call('eth_blockNumber')
    .catch((error: unknown) => error)
  // The failure counts as no answer, so the client asks for smaller parts.
  expect(failure).toBeInstanceOf(NodeFailure)
  expect(failure).not.toBeInstanceOf(NodeRefusal)
  expect((failure as Error).message).toMatch(/^the node does not answer: /)
  expect(sent).toBeGreaterThan(REPLY_BYTES_MAX / 2)
  expect(sent).toBeLessThan(REPLY_BYTES_MAX + 16 * MIB)
})
