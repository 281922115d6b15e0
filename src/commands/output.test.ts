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
  expect(table(['name'], [['a']], { isTerminal: true, hasColour: true })).toContain('\u001b[1m')
})
