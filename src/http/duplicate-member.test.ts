import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SEED } from '../../test/seed.ts'

import { duplicateMember } from './duplicate-member.ts'

const found = (text: string) => duplicateMember(text, JSON.parse(text))?.join('.')

test.each([
  ['{"amount":"1","amount":"2"}', 'amount'],
  ['{"amount":"1","amount":"1"}', 'amount'],
  ['{"amount":"1","\\u0061mount":"2"}', 'amount'],
  ['{"a":{"b":[{"c":1},{"c":1,"d":{},"c":2}]}}', 'a.b.c'],
  ['{"b":[{"x":1}],"metadata":{"a":"1","a":"2"}}', 'metadata.a'],
  ['{"a" : 1 , "a" : 2}', 'a'],
  ['{"":1,"":2}', ''],
  ['{"note":"a:b","x":1,"x":2}', 'x'],
])('%s has %j twice', (text, name) => expect(found(text)).toBe(name))

test.each([
  '{}',
  '[]',
  '"a:b"',
  '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}',
  '{"time":"12:30:00","note":"\\":\\"","a:b":{"a:b":"{\\"x\\":1,\\"x\\":2}"}}',
])('%s has nothing twice', (text) => expect(found(text)).toBeUndefined())

test('endless nesting is no error', () => {
  expect(found(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`)).toBeUndefined()
  expect(found(`${'['.repeat(5_000)}{"a":1,"a":2}${']'.repeat(5_000)}`)).toBe('a')
})

test('the output of JSON.stringify has no duplicate member', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => found(JSON.stringify(value)) === undefined),
    { seed: SEED },
  )
})
