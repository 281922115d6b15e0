import { connect, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fetchToken, newCustomer, withdrawalOf, ownTestService } from '../../test/support.ts'

const service = await ownTestService()
await service.app.listen({ host: '127.0.0.1', port: 0 })
const port = (service.app.server.address() as AddressInfo).port

/** Sends the headers of a request and disconnects, while the signature of the token is verified. */
async function sendAndGo(method: string, path: string, token: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const body = method === 'POST' ? 'content-type: application/json\r\ncontent-length: 9\r\n' : ''
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${body}\r\n`)
  socket.end()
  await new Promise((resolve) => socket.resume().on('close', resolve))
}

/** Calls `sendAndGo` with new tokens of a new client, so that the process has not verified them yet. */
async function goTimes(count: number, method: string, path: string) {
  const customer = await newCustomer(service)
  for (let n = 0; n < count; n++) await sendAndGo(method, path, await fetchToken(service.app, customer))
  await pause(50)
  return customer
}

test('the bulk requests of a client that disconnects before its token is checked do not count', async () => {
  const path = '/v2/transfer/crypto-withdrawals/bulk'
  const customer = await goTimes(12, 'POST', path)
  const withdrawals = [withdrawalOf(customer, { ref_id: 'one' })]
  expect((await customer.call('POST', path, { withdrawals })).status).toBe(200)
})

test('the list requests of a client that disconnects before its token is checked keep no turn', async () => {
  const customer = await goTimes(32, 'GET', '/v2/profiles')
  const answer = customer.call('GET', '/v2/profiles').then(({ status }) => status)
  expect(await Promise.race([answer, pause(2_000, 'waits')])).toBe(200)
})
