import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Requests } from './requests.ts'
import { stopListening } from './stop-listening.ts'

test('a request that arrived while the process did not run is answered', async () => {
  const server = createServer(({ url }, response) => response.end(`answered ${url}`))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let told = ''
  client.setEncoding('utf8').on('data', (text: string) => (told += text))
  const ended = once(client, 'close')
  const ask = (path: string) => client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
  ask('/first')
  await vi.waitUntil(() => told.includes('answered /first'))
  const stopped = stopListening(server, { drain: () => undefined, accepted: 0 } as unknown as Requests, 0)
  await vi.waitUntil(() => !server.listening)
  // After this phase of Node's loop, its timers come before what has arrived.
  await setImmediate()
  ask('/second')
  // Longer than an idle connection is kept.
  for (const until = performance.now() + 700; performance.now() < until;);
  await Promise.all([stopped, ended])
  expect(told).toContain('answered /second')
})
