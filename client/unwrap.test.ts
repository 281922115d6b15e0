import { isFull, unwrap, BursarSignatureError, type ThinEvent } from './src/index.ts'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { signatureHeaders } from '../src/http/outbound/signature.ts'
import { newSigningSecret } from '../src/money/records/webhook-secrets.ts'

// `unwrap` against requests that the service and npm `standardwebhooks` sign.

const SECRET = 'whsec_YnVyc2FyLXdlYmhvb2stdGVzdC1zZWNyZXQtMzJieXQ='
const BODY =
  '{"id":"0199a3f4-5b6c-7d8e-9f01-23456789abcd","type":"transfer.crypto_withdrawal.completed","source":"com.paxos","time":"2026-01-01T00:00:00Z","object":"event","is_test":false}'
const ID = '0199a3f4-5b6c-7d8e-9f01-23456789abcd'
const SECONDS = 1_767_225_600
const HEADERS = {
  'webhook-id': ID,
  'webhook-timestamp': String(SECONDS),
  'webhook-signature': 'v1,U7QLaZ/jgcGMj+co2FHRGihls5TePoDIwM0+eZ2Za3c=',
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: SECONDS * 1000 })
})
afterEach(() => {
  vi.useRealTimers()
})

const faultOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(BursarSignatureError)
  const { name, reason } = error as BursarSignatureError
  expect(name).toBe('BursarSignatureError')
  return reason
}

test('the vector of the contract is verified, from headers of every kind', async () => {
  const event: ThinEvent = await unwrap(BODY, HEADERS, SECRET)
  expect(event).toEqual(JSON.parse(BODY))
  expect(isFull(event)).toBe(false)
  const upper = Object.fromEntries(
    Object.entries(HEADERS).map(([name, value]) => [name.toUpperCase(), value]),
  )
  const lists = Object.fromEntries(Object.entries(HEADERS).map(([name, value]) => [name, [value]]))
  for (const headers of [new Headers(HEADERS), upper, lists])
    expect((await unwrap(BODY, headers, SECRET)).id).toBe(ID)
  expect((await unwrap(new TextEncoder().encode(BODY), HEADERS, SECRET)).id).toBe(ID)
  expect((await unwrap(BODY, HEADERS, SECRET.slice('whsec_'.length))).id).toBe(ID)
})

test('during a rotation, either secret verifies, at either end', async () => {
  const [old, fresh, other] = [newSigningSecret(), newSigningSecret(), newSigningSecret()]
  const signed = signatureHeaders([fresh, old], { id: ID, timestampSeconds: SECONDS, body: BODY })
  for (const secrets of [old, fresh, [other, old], [fresh, old]])
    expect((await unwrap(BODY, signed, secrets)).id).toBe(ID)
  expect(await faultOf(unwrap(BODY, signed, other))).toBe('SIGNATURE')
})

test('a signature of npm standardwebhooks is verified, also of a FULL body with letters of all kinds', async () => {
  const full = {
    ...(JSON.parse(BODY) as object),
    specversion: '1.0',
    subject: ID,
    datacontenttype: 'application/json',
    timestamp: '2026-01-01T00:00:00Z',
    object_type: 'transfer_status_change',
    data: { id: ID, memo: 'Miete für März 🏠' },
  }
  const body = JSON.stringify(full)
  const signature = new Webhook(SECRET).sign(ID, new Date(SECONDS * 1000), body)
  const event = await unwrap(body, { ...HEADERS, 'webhook-signature': signature }, SECRET)
  expect(event).toEqual(full)
  expect(isFull(event) && event.object_type === 'transfer_status_change' && event.data.memo).toBe(
    'Miete für März 🏠',
  )
})

describe('a request is refused', () => {
  test.each<[string, Partial<typeof HEADERS>, string]>([
    ['without an id', { 'webhook-id': '' }, 'HEADERS'],
    ['without a signature', { 'webhook-signature': '' }, 'HEADERS'],
    ['with a time that is no number', { 'webhook-timestamp': '2026-01-01' }, 'TIMESTAMP'],
    ['with a negative time', { 'webhook-timestamp': '-1767225600' }, 'TIMESTAMP'],
    ['that is 301 s old', { 'webhook-timestamp': String(SECONDS - 301) }, 'TIMESTAMP'],
    ['from 301 s in the future', { 'webhook-timestamp': String(SECONDS + 301) }, 'TIMESTAMP'],
    ['with another time in the tolerance', { 'webhook-timestamp': String(SECONDS - 299) }, 'SIGNATURE'],
    ['with another id', { 'webhook-id': `${ID}0` }, 'SIGNATURE'],
    [
      'with another version',
      { 'webhook-signature': HEADERS['webhook-signature'].replace('v1', 'v1a') },
      'SIGNATURE',
    ],
    ['with a shorter signature', { 'webhook-signature': 'v1,U7QLaZ' }, 'SIGNATURE'],
    ['with a signature that is not base64', { 'webhook-signature': `v1,${'!'.repeat(44)}` }, 'SIGNATURE'],
    [
      'with 17 signatures',
      { 'webhook-signature': `${'v1,x '.repeat(16)}${HEADERS['webhook-signature']}` },
      'SIGNATURE',
    ],
  ])('%s', async (_, changes, reason) => {
    expect(await faultOf(unwrap(BODY, { ...HEADERS, ...changes }, SECRET))).toBe(reason)
  })

  test('with a header twice', async () => {
    const twice = { ...HEADERS, 'webhook-id': [ID, ID] }
    expect(await faultOf(unwrap(BODY, twice, SECRET))).toBe('HEADERS')
  })

  test('with another body, by a byte', async () => {
    expect(await faultOf(unwrap(`${BODY} `, HEADERS, SECRET))).toBe('SIGNATURE')
    expect(await faultOf(unwrap(BODY.replace('false', 'true'), HEADERS, SECRET))).toBe('SIGNATURE')
  })

  test.each(['', 'null', '[]', '{"id":"x","type":"y"}', 'not JSON'])(
    'with the signed body %s',
    async (body) => {
      const signed = signatureHeaders([SECRET], { id: ID, timestampSeconds: SECONDS, body })
      expect(await faultOf(unwrap(body, signed, SECRET))).toBe('BODY')
    },
  )
})

test('the tolerance can be changed', async () => {
  vi.setSystemTime((SECONDS + 3_000) * 1000)
  expect(await faultOf(unwrap(BODY, HEADERS, SECRET))).toBe('TIMESTAMP')
  expect((await unwrap(BODY, HEADERS, SECRET, { toleranceSeconds: 3_600 })).id).toBe(ID)
})

test.each<[string, string | string[]]>([
  ['no secret', []],
  ['an empty secret', ''],
  ['a short secret', 'whsec_AAAA'],
  ['a secret that is not base64', 'whsec_not-base64-not-base64-not-base64'],
  ['a good and a bad secret', [SECRET, 'whsec_AAAA']],
])('%s is a mistake of the program, which the error does not repeat', async (_, secrets) => {
  const error = await unwrap(BODY, HEADERS, secrets).catch((thrown: Error) => thrown)
  expect(error).toBeInstanceOf(TypeError)
  expect((error as Error).message).not.toContain('AAAA')
})

test('a body that a framework has parsed, or not read, is refused with its reason', async () => {
  for (const body of [undefined, {}, JSON.parse(BODY) as object, null, 5])
    expect(await faultOf(unwrap(body as never, HEADERS, SECRET))).toBe('BODY')
  expect((await unwrap(Buffer.from(BODY), HEADERS, SECRET)).id).toBe(ID)
})
