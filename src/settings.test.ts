import { expect, test } from 'vitest'
import { BAD_SETTINGS } from '../test/bad-settings.ts'
import { readSettings, SETTINGS, SettingsError } from './settings.ts'

test.each(
  Object.entries(BAD_SETTINGS).flatMap(([name, values]) => values.map((value) => [name, value] as const)),
)('%s=%s is refused', (name, value) => {
  const read = () => readSettings({ [name]: value })
  expect(read).toThrow(SettingsError)
  expect(read).toThrow(new RegExp(`^${name}: [^\n]+$`))
  expect(read).not.toThrow('secret-word')
})

test.each([
  ['postgres://u:p@a,b/db', /several hosts/],
  ['postgres://u:p@x/db?host=a,b', /several hosts/],
  ['postgres://u:p@ss/word@host/db', /percent-encoded/],
  ['postgres://u:p@host/db?sslmode=prefer', /an sslmode that is none of disable, .*verify-full/],
])('%s is refused with the reason', (DATABASE_URL, reason) => {
  expect(() => readSettings({ DATABASE_URL })).toThrow(reason)
})

test.each([
  ['postgres://u:p@/db?host=/run/postgresql', 'postgres://u:p@localhost/db?host=/run/postgresql'],
  ['postgresql:///db?host=/run/postgresql', 'postgresql://localhost/db?host=/run/postgresql'],
  [' postgres://u:p%40%2F%3A%25@h/db ', 'postgres://u:p%40%2F%3A%25@h/db'],
  ['postgres://u:p@%2Frun%2Fpostgresql/db', 'postgres://u:p@%2Frun%2Fpostgresql/db'],
])('%s names a database', (DATABASE_URL, databaseUrl) => {
  expect(readSettings({ DATABASE_URL }).databaseUrl).toBe(databaseUrl)
})

test('an empty setting counts as not set', () => {
  const empty = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, '']))
  expect(readSettings(empty)).toEqual({ ...readSettings({}), environment: empty })
})
