import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { table } from './table.ts'

const COLUMNS = ['name', '>count', 'flag']
const ROWS = [
  ['a', 1, undefined],
  ['long one', 22, true],
]
const PLAIN = ['name      count  flag', 'a             1', 'long one     22  true'].join('\n')

test('output to a pipe has columns of any width', () => {
  expect(table(COLUMNS, ROWS, { width: undefined, hasColour: false })).toBe(PLAIN)
  expect(table(['name'], [], { width: undefined, hasColour: false })).toBe('name')
  const wide = table(['id', 'hash'], [['a'.repeat(90), 'b'.repeat(90)]], {
    width: undefined,
    hasColour: false,
  })
  expect(wide.split('\n')).toEqual([
    expect.stringMatching(/^id +hash$/),
    `${'a'.repeat(90)}  ${'b'.repeat(90)}`,
  ])
})

test('no cell makes a line or gives the terminal an order', () => {
  const cell = 'Acme\nverified  yes\u001b[31m\u202e'
  expect(table(['name'], [[cell]], { width: undefined, hasColour: false })).toBe(
    'name\nAcme\\u000averified  yes\\u001b[31m\\u202e',
  )
})

test('a terminal gets the same columns, with bold headings unless NO_COLOR is set', () => {
  expect(table(COLUMNS, ROWS, { width: 80, hasColour: false })).toBe(PLAIN)
  const coloured = table(COLUMNS, ROWS, { width: 80, hasColour: true })
  expect(coloured).toContain('\u001b[1mname\u001b[22m')
  expect(stripVTControlCharacters(coloured)).toBe(PLAIN)
})

test('a table wider than the terminal becomes a block of lines per row', () => {
  const id = '0192f3a4-0000-7000-8000-000000000001'
  const columns = ['customer_id', 'name', 'created_at', 'disabled_at', '>profiles']
  const rows = [
    [id, 'Acme', '2026-01-31T09:30:00.123456Z', null, 2],
    [id, 'Beta', '2026-02-01T09:30:00.123456Z', '2026-02-02T09:30:00.123456Z', 0],
  ]
  expect(table(columns, rows, { width: 80, hasColour: false })).toBe(
    [
      `customer_id: ${id}`,
      'name:        Acme',
      'created_at:  2026-01-31T09:30:00.123456Z',
      'profiles:    2',
      '',
      `customer_id: ${id}`,
      'name:        Beta',
      'created_at:  2026-02-01T09:30:00.123456Z',
      'disabled_at: 2026-02-02T09:30:00.123456Z',
      'profiles:    0',
    ].join('\n'),
  )
  const coloured = table(columns, rows, { width: 80, hasColour: true })
  expect(coloured).toContain('\u001b[1mcustomer_id:\u001b[22m 0192f3a4')
  expect(table(COLUMNS, ROWS, { width: PLAIN.indexOf('\n'), hasColour: false })).toBe(PLAIN)
  expect(table(COLUMNS, ROWS, { width: PLAIN.indexOf('\n') - 1, hasColour: false })).not.toBe(PLAIN)
})
