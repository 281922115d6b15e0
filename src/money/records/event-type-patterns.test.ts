import { expect, test } from 'vitest'
import { matchesType, requireKnownTypes } from './event-type-patterns.ts'

test.each([
  ['transfer.crypto_withdrawal.completed', ['*'], true],
  ['transfer.crypto_withdrawal.completed', ['transfer.*'], true],
  ['transfer.crypto_withdrawal.completed', ['transfer.crypto_withdrawal.*'], true],
  ['transfer.crypto_withdrawal.completed', ['orchestration.*', 'transfer.crypto_withdrawal.completed'], true],
  ['transfer.crypto_withdrawal.completed', ['transfer.crypto_withdrawal'], false],
  ['transfer.crypto_withdrawal.completed', ['orchestration.*'], false],
  ['transfers.of_others', ['transfer.*'], false],
  ['account.approved', ['fiat_account.*'], false],
  ['fiat_account.approved', ['account.*'], false],
])('%s is one of %j: %s', (type, patterns, matches) => {
  expect(matchesType(type, patterns)).toBe(matches)
})

test('a pattern that matches no type is a typing error', () => {
  requireKnownTypes(['*', 'transfer.*', 'webhook.disabled'], 'event_types')
  for (const pattern of ['transfers.*', 'transfer.crypto_withdrawal.complete', 'transfer'])
    expect(() => requireKnownTypes(['*', pattern], 'event_types')).toThrow(
      `event_types has ${pattern}, which matches no event type`,
    )
})
