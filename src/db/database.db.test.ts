import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../test/seed.ts'
import { ownDatabase } from '../../test/support.ts'
import { openDatabase } from './database.ts'
import { arrayLiteral } from './array-literal.ts'
import { atEnd } from '../../test/at-end.ts'

test('connections override the planner settings of the database', async () => {
  const { url, owner } = await ownDatabase(1)
  const name = new URL(url).pathname.slice(1)
  for (const setting of ['enable_seqscan = on', 'jit = on', `timezone = 'Asia/Tokyo'`])
    await owner.query(`alter database ${name} set ${setting}`)
  const fresh = openDatabase(url, { max: 1, onError: () => undefined })
  atEnd(() => fresh.end())
  const { rows } = await fresh.query(
    `select name, setting from pg_settings where name in ('enable_seqscan', 'jit', 'TimeZone') order by name`,
  )
  expect(rows).toEqual([
    { name: 'TimeZone', setting: 'UTC' },
    { name: 'enable_seqscan', setting: 'off' },
    { name: 'jit', setting: 'off' },
  ])
})

test('PostgreSQL reads each array as it was given', async () => {
  const { db } = await ownDatabase(1)
  const special = fc.constantFrom(
    '',
    'null',
    'NULL',
    'Null',
    '{}',
    ',',
    ' ',
    '\n',
    '"',
    '\\',
    "'",
    'a b',
    'é',
  )
  const element = fc.oneof(fc.string({ unit: 'binary' }), special, fc.constant(null))
  await fc.assert(
    fc.asyncProperty(fc.array(element), async (values) => {
      // PostgreSQL stores no NUL character, and the contract refuses it.
      fc.pre(!values.some((value) => value?.includes('\0')))
      // Repeated, because an element that equals the one before is not looked at again.
      const given = values.flatMap((value) => [value, value])
      const { rows } = await db.query<{ read: unknown }>('select $1::text[] as read', [arrayLiteral(given)])
      expect(rows[0]!.read).toEqual(given)
    }),
    runs(400),
  )
})
