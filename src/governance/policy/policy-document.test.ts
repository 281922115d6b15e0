import { expect, test } from 'vitest'
import { canonicalJson } from '../../contract/canonical-json.ts'
import { completeDocument, type NewPolicyDocument } from './policy-document.ts'

test('a rule without an id gets the same one every time, and no two rules get one', () => {
  const rule = { action: 'BLOCK', match: { assets: ['BTC'], transfer_types: ['CRYPTO_WITHDRAWAL'] } } as const
  const ids = (...rules: unknown[]) =>
    completeDocument({ rules: rules as NewPolicyDocument['rules'] }).rules.map(({ id }) => id)
  const [id] = ids(rule)
  expect(id).toMatch(/^rule-[0-9a-f]{12}$/)
  expect(ids({ match: { transfer_types: ['CRYPTO_WITHDRAWAL'], assets: ['BTC'] }, action: 'BLOCK' })).toEqual(
    [id],
  )
  expect(ids(rule, rule)).toEqual([id, `${id}-2`])
  expect(ids({ id, action: 'BLOCK' }, rule)).toEqual([id, `${id}-2`])
})

test.each<[string, NewPolicyDocument['rules'][number]]>([
  ['rules.0.approvals is required', { action: 'APPROVE' }],
  ['rules.0.approvals goes with', { action: 'ALLOW', approvals: 1 }],
  ['rules.0.role goes with', { action: 'BLOCK', role: 'ADMIN' }],
  ['rules.0.match.assets: asset NONE is unknown', { action: 'BLOCK', match: { assets: ['NONE'] } }],
  ['limit.asset: asset NONE', { action: 'BLOCK', limit: { amount: '1', asset: 'NONE', period_seconds: 0 } }],
  [
    'limit.amount has more than 2',
    { action: 'BLOCK', limit: { amount: '.001', asset: 'USD', period_seconds: 0 } },
  ],
  [
    'limit.amount has more than 8',
    { action: 'BLOCK', limit: { amount: '1.000000001', asset: 'BTC', period_seconds: 0 } },
  ],
])('a rule without sense is refused: %s', (message, rule) => {
  expect(() => completeDocument({ rules: [rule] })).toThrow(message)
})

test('two rules with one id are refused', () => {
  expect(() =>
    completeDocument({
      rules: [
        { id: 'a', action: 'BLOCK' },
        { id: 'a', action: 'ALLOW' },
      ],
    }),
  ).toThrow('an id of its own')
})

test('canonical JSON does not depend on the order of members, at any depth', () => {
  expect(canonicalJson({ b: [{ d: 1, c: '2' }], a: null })).toBe('{"a":null,"b":[{"c":"2","d":1}]}')
})
