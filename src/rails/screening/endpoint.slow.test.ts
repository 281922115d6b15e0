/*
 * Only a 2xx with exactly {"decision":"ALLOW"}, in time, allows a payment. Everything else that an endpoint may do holds
 * it, and exactly {"decision":"REJECT"} rejects it.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { startReceiver, type Answering } from '../../../test/receivers.ts'
import { freePort } from '../../../test/free-port.ts'
import { newSigningSecret } from '../../money/records/webhook-secrets.ts'
import { ScreeningEndpoint, type ScreeningVerdict } from './endpoint.ts'

const ALLOW = '{"decision":"ALLOW"}'
const QUESTION = {
  id: randomUUID(),
  kind: 'WITHDRAWAL',
  customer_id: randomUUID(),
  details: { amount: '10', asset: 'USDP' },
} as const
const TIMEOUT_MS = 300

async function ask(answer: Answering): Promise<ScreeningVerdict> {
  const receiver = await startReceiver(answer)
  return askAt(receiver.url)
}

async function askAt(url: string, secrets = [newSigningSecret()]): Promise<ScreeningVerdict> {
  const endpoint = new ScreeningEndpoint(url, secrets, TIMEOUT_MS)
  try {
    return await endpoint.ask(QUESTION)
  } finally {
    await endpoint.close()
  }
}

const says =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}) =>
  (_: unknown, response: ServerResponse) =>
    void response.writeHead(status, headers).end(body)

test.each([ALLOW, ` {\n "decision" : "ALLOW" } \n`])('%j allows', async (text) => {
  for (const status of [200, 201, 299])
    expect(await ask(says(status, text)), `${status}`).toEqual({ outcome: 'ALLOW' })
})

test('REJECT rejects', async () => {
  expect(await ask(says(200, '{"decision":"REJECT"}'))).toEqual({
    outcome: 'REJECT',
    detail: 'the screening endpoint answered REJECT',
  })
})

test.each<[string, Answering, RegExp]>([
  ['a redirect to an ALLOW', says(302, ALLOW, { location: 'http://127.0.0.1:1/' }), /answered 302$/],
  ['an ALLOW with an error', says(500, ALLOW), /answered 500$/],
  ['an ALLOW with not found', says(404, ALLOW), /answered 404$/],
  ['nothing', says(204, ''), /neither ALLOW nor REJECT/],
  ['another word', says(200, '{"decision":"ALLOWED"}'), /neither ALLOW nor REJECT/],
  ['lower case', says(200, '{"decision":"allow"}'), /neither ALLOW nor REJECT/],
  ['a further member', says(200, '{"decision":"ALLOW","score":1}'), /neither ALLOW nor REJECT/],
  ['two decisions', says(200, '{"decision":"REJECT","decision":"ALLOW"}'), /neither ALLOW nor REJECT/],
  ['an array', says(200, `[${ALLOW}]`), /neither ALLOW nor REJECT/],
  ['plain text', says(200, 'ALLOW'), /neither ALLOW nor REJECT/],
  ['a page', says(200, `<html>${ALLOW}</html>`), /neither ALLOW nor REJECT/],
  ['a byte order mark', says(200, `\u{200b}${ALLOW}`), /neither ALLOW nor REJECT/],
  ['a huge answer', says(200, ALLOW + ' '.repeat(5_000_000)), /too long or has no end/],
  [
    'a compressed answer',
    says(200, gzipSync(ALLOW), { 'content-encoding': 'gzip' }),
    /gave a compressed answer$/,
  ],
  ['silence', () => undefined, /no answer within 0.3 s$/],
  [
    'an ALLOW whose end does not come in time',
    (_, response) => void response.writeHead(200).write(ALLOW),
    /too long or has no end/,
  ],
  [
    'an ALLOW that comes too late',
    (_, response) => void setTimeout(() => response.writeHead(200).end(ALLOW), TIMEOUT_MS + 200),
    /no answer within 0.3 s$/,
  ],
  [
    'half of the promised bytes',
    (_, response) =>
      response.writeHead(200, { 'content-length': '40' }).write(ALLOW, () => response.destroy()),
    /too long or has no end/,
  ],
  ['a broken connection', (_, response) => void response.destroy(), /closed before the answer$/],
])('%s holds', async (_, answer, detail) => {
  const verdict = await ask(answer)
  expect(verdict).toMatchObject({ outcome: 'HOLD', detail: expect.stringMatching(detail) as unknown })
})

test('an endpoint that is down, or has no TLS, holds', async () => {
  const port = await freePort()
  expect(await askAt(`http://127.0.0.1:${port}/`)).toEqual({
    outcome: 'HOLD',
    detail: 'the screening endpoint: the connection was refused',
  })
  const receiver = await startReceiver(says(200, ALLOW))
  const { outcome } = await askAt(receiver.url.replace('http:', 'https:'))
  expect(outcome).toBe('HOLD')
  expect(receiver.received).toEqual([])
})

test('a question is signed as webhooks are, by each secret of a rotation', async () => {
  const receiver = await startReceiver(says(200, ALLOW))
  const [current, before] = [newSigningSecret(), newSigningSecret()]
  await askAt(receiver.url, [current, before])
  const [{ headers, body }] = receiver.received as [(typeof receiver.received)[0]]
  for (const secret of [current, before])
    expect(new Webhook(secret).verify(body, headers)).toEqual({ ...QUESTION })
  expect(headers['webhook-id']).toBe(QUESTION.id)
  expect(() => new Webhook(newSigningSecret()).verify(body, headers)).toThrow()
})

test('the end of the process ends a question, which holds', async () => {
  const receiver = await startReceiver(() => undefined)
  const endpoint = new ScreeningEndpoint(receiver.url, [newSigningSecret()], 30_000)
  const stopping = new AbortController()
  const asked = endpoint.ask(QUESTION, stopping.signal)
  await expect.poll(() => receiver.received.length).toBe(1)
  stopping.abort()
  expect(await asked).toMatchObject({ outcome: 'HOLD' })
  await endpoint.close()
})
