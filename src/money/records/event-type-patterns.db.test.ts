import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ownDatabase } from '../../../test/support.ts'
import { EVENT_TYPES } from '../../contract/event-types.ts'
import { matchesType, typeMatches } from './event-type-patterns.ts'

const database = await ownDatabase()

const TYPES = [...Object.keys(EVENT_TYPES), 'transfer.of_a_later_version.completed', 'transferXcrypto']

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
