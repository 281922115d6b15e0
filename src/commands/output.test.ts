import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { table } from './output.ts'

const ROWS = [
  ['a', 1, undefined],
  ['long one', 22, true],
]

test('a pipe is given columns', () => {
  expect(table(['name', '>count', 'flag'], ROWS, { isTerminal: false, hasColour: false })).toBe(
    ['name      count  flag', 'a             1', 'long one     22  true'].join('\n'),
  )
  expect(table(['name'], [], { isTerminal: false, hasColour: false })).toBe('name')
})

test('a terminal gets lines, and colours unless NO_COLOR is set', () => {
  const plain = table(['name', '>count', 'flag'], ROWS, { isTerminal: true, hasColour: false })
  expect(plain).toContain('│ long one │    22 │ true │')
  expect(plain).not.toContain('\u001b')
  const coloured = table(['name', '>count', 'flag'], ROWS, { isTerminal: true, hasColour: true })
  expect(coloured).toContain('\u001b[1mname\u001b[22m')
  expect(coloured).toContain('\u001b[90m│\u001b[39m long one')
  expect(stripVTControlCharacters(coloured)).toBe(plain)
})
