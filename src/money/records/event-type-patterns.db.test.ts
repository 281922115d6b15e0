import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cloneDatabase, type TestDatabase } from '../../../test/support.ts'
import { EVENT_TYPES } from '../../contract/event-types.ts'
import { matchesType, requireKnownTypes, typeMatches } from './event-type-patterns.ts'

let database: TestDatabase
beforeAll(async () => void (database = await cloneDatabase()))
afterAll(() => database.drop())

const TYPES = [...Object.keys(EVENT_TYPES), 'transfer.of_a_later_version.completed', 'transferXcrypto']

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

test('PostgreSQL and the program agree on every type and list of patterns', async () => {
  const beginnings = TYPES.flatMap((type) => {
    const parts = type.split('.')
    return parts.slice(1).map((_, index) => `${parts.slice(0, index + 1).join('.')}.*`)
  })
  const pattern = fc.constantFrom('*', ...TYPES, ...beginnings)
  await fc.assert(
    fc.asyncProperty(fc.array(pattern, { minLength: 1, maxLength: 4 }), async (patterns) => {
      const { rows } = await database.db.query<{ type: string }>(
        `select type from unnest($1::text[]) type where ${typeMatches('type', '$2::text[]')}`,
        [TYPES, patterns],
      )
      expect(rows.map(({ type }) => type)).toEqual(TYPES.filter((type) => matchesType(type, patterns)))
    }),
    { numRuns: 100 },
  )
})

test('a pattern that matches no type is a typing error', () => {
  requireKnownTypes(['*', 'transfer.*', 'webhook.disabled'], 'event_types')
  for (const pattern of ['transfers.*', 'transfer.crypto_withdrawal.complete', 'transfer'])
    expect(() => requireKnownTypes(['*', pattern], 'event_types')).toThrow(
      `event_types has ${pattern}, which matches no event type`,
    )
})
