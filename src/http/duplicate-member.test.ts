import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SEED } from '../../test/seed.ts'
import { OPERATIONS } from '../program/app.ts'
import { refusalOfJson } from './duplicate-member.ts'
import { bodyLimitOf } from './mount.ts'

const LIMIT = 65_536
const found = (text: string) => refusalOfJson(text, LIMIT)?.detail

test.each([
  ['{"amount":"1","amount":"2"}', 'amount'],
  ['{"amount":"1","amount":"1"}', 'amount'],
  ['{"amount":"1","\\u0061mount":"2"}', 'amount'],
  ['{"a":{"b":[{"c":1},{"c":1,"d":{},"c":2}]}}', 'a.b.c'],
  ['{"b":[{"x":1}],"metadata":{"a":"1","a":"2"}}', 'metadata.a'],
  ['{"a" : 1 , "a" : 2}', 'a'],
  ['{"":1,"":2}', ''],
  ['{"note":"a:b","x":1,"x":2}', 'x'],
])('%s has %j twice', (text, name) => expect(found(text)).toBe(`${name} is given more than once`))

test.each([
  '{}',
  '[]',
  '"a:b"',
  '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}',
  '{"time":"12:30:00","note":"\\":\\"","a:b":{"a:b":"{\\"x\\":1,\\"x\\":2}"}}',
])('%s has nothing twice', (text) => expect(found(text)).toBeUndefined())

test.each([
  [`[${'1,'.repeat(5_000)}1]`, 'more than 4096 values'],
  [`{"a":[${'[],'.repeat(3_000)}{}]}`, 'more than 4096 values'],
  [`${'['.repeat(5_000)}${']'.repeat(5_000)}`, 'nested at most 32 deep'],
  [`${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`, 'nested at most 32 deep'],
])('%.20s… is refused before it is parsed', (text, rule) => expect(found(text)).toContain(rule))

test('what is in a string is no value and no member', () => {
  const strings = fc.array(fc.oneof(fc.string(), fc.constantFrom('"', '\\', '[{,', '\\"')), { maxLength: 50 })
  fc.assert(
    fc.property(strings, (some) => {
      const long = `${some.join('')}${',[{:'.repeat(2_000)}`
      return found(JSON.stringify({ a: long, b: some })) === undefined
    }),
    { seed: SEED },
  )
})

test('the output of JSON.stringify has no duplicate member', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => found(JSON.stringify(value)) === undefined),
    { seed: SEED },
  )
})

test('any text is answered, also one that is no JSON', () => {
  const pieces = fc.array(fc.constantFrom('{', '}', '[', ']', ':', ',', '"', '\\', 'a', '"a"', ' '), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(pieces, (some) => typeof found(some.join('')) !== 'number'),
    { seed: SEED },
  )
})

test('the example of each operation is within its limit, twice over', () => {
  for (const { example, body: schema = {} } of OPERATIONS)
    for (const body of Object.values(example?.bodies ?? {})) {
      const text = JSON.stringify(body, undefined, 8)
      const bodyLimit = bodyLimitOf(schema)
      expect(text.length).toBeLessThan(bodyLimit / 2)
      expect(refusalOfJson(text, bodyLimit)).toBeUndefined()
    }
})
