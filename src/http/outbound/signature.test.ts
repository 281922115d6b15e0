import { describe, expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { newSigningSecret } from '../../money/records/webhook-secrets.ts'
import { signatureHeaders } from './signature.ts'

const SECRET = 'whsec_YnVyc2FyLXdlYmhvb2stdGVzdC1zZWNyZXQtMzJieXQ='
const BODY =
  '{"id":"0199a3f4-5b6c-7d8e-9f01-23456789abcd","type":"transfer.crypto_withdrawal.completed","source":"com.paxos","time":"2026-01-01T00:00:00Z","object":"event","is_test":false}'
const ID = '0199a3f4-5b6c-7d8e-9f01-23456789abcd'

describe('signatures', () => {
  test('equal the vector of the contract', () => {
    expect(signatureHeaders([SECRET], { id: ID, timestampSeconds: 1_767_225_600, body: BODY })).toEqual({
      'webhook-id': ID,
      'webhook-timestamp': '1767225600',
      'webhook-signature': 'v1,U7QLaZ/jgcGMj+co2FHRGihls5TePoDIwM0+eZ2Za3c=',
    })
  })

  test('of two secrets verify with either, and with no third', () => {
    const [current, previous, other] = [newSigningSecret(), newSigningSecret(), newSigningSecret()]
    const headers = signatureHeaders([current, previous], {
      id: ID,
      timestampSeconds: Math.floor(Date.now() / 1000),
      body: BODY,
    })
    for (const secret of [current, previous])
      expect(new Webhook(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY))
    expect(() => new Webhook(other).verify(BODY, headers)).toThrow()
    expect(() => new Webhook(current).verify(BODY.replace('com.paxos', 'com.other'), headers)).toThrow()
    expect(() => new Webhook(current).verify(BODY, { ...headers, 'webhook-id': 'another' })).toThrow()
  })
})
