import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { newCustomer, withdrawalOf, ownTestService } from '../../test/support.ts'

const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const BURST = 20

const service = await ownTestService({
  BURSAR_RATE_LIMIT_PER_SECOND: '1',
  BURSAR_RATE_LIMIT_BURST: String(BURST),
})
const address = await service.app.listen({ host: '127.0.0.1', port: 0 })

/** Sends requests one after the other until one is a 429. Returns how many were not. */
async function sendUntilRefused(path: string, body?: string): Promise<number> {
  const { call } = await newCustomer(service)
  const options = {
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { payload: body }),
  }
  for (let sent = 0; sent <= BURST; sent++) {
    const { status } = await call(body === undefined ? 'GET' : 'POST', path, undefined, options)
    if (status === 429) return sent
    expect(status).toBe(400)
  }
  return Infinity
}

test.each([
  ['a small body', WITHDRAWALS, '{}', BURST],
  ['a body of 12 KiB', WITHDRAWALS, `{"memo":"${'x'.repeat(12_300)}"}`, BURST / 4],
  ['a path of 17 KiB', `/v2/transfer/transfers?x=${'x'.repeat(17_000)}`, undefined, BURST / 5],
])('%s counts by its length', async (_, path, body, expected) => {
  const sent = await sendUntilRefused(path, body)
  // The bucket fills while a busy machine sends.
  expect(sent).toBeGreaterThanOrEqual(expected)
  if (expected < BURST) expect(sent).toBeLessThan(BURST)
})

test('a body has the length, the values and the depth that its operation needs', async () => {
  const customer = await newCustomer(service)
  const send = async (path: string, payload: string) => {
    const headers = { 'content-type': 'application/json' }
    const { status, body } = await customer.call<{ detail: string }>('POST', path, undefined, {
      payload,
      headers,
    })
    return `${status} ${body.detail}`
  }
  expect(await send('/v2/transfer/fees/crypto-withdrawal', ' '.repeat(17_000))).toBe(
    '413 the body is larger than 16384 bytes',
  )
  expect(await send(WITHDRAWALS, `[${'1,'.repeat(5_000)}1]`)).toMatch(
    /^400 the body has more than (1024|4096) values$/,
  )
  expect(await send(WITHDRAWALS, '['.repeat(3_000))).toBe('400 the body must be nested at most 32 deep')
})

test('two lines of Idempotency-Key are refused, and a key with a comma is none', async () => {
  const customer = await newCustomer(service)
  const payload = JSON.stringify(withdrawalOf(customer))
  const send = async (keys: string[]) => {
    const headers = {
      authorization: `Bearer ${customer.token}`,
      'content-type': 'application/json',
      'idempotency-key': keys,
    }
    const sent = request(`${address}${WITHDRAWALS}`, { method: 'POST', headers })
    sent.end(payload)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return `${answer.statusCode} ${(JSON.parse(await text(answer)) as { detail: string }).detail}`
  }
  expect(await send(['a1', 'a2'])).toBe('400 Idempotency-Key is given more than once')
  expect(await send(['a1, a2'])).toMatch(/^403 /)
})
