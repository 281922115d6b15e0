/** What the console says about policies: rules in words, differences, and the statement that approvers sign. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffOf } from '../src/diff.ts'
import { changesInWords, isSame, isUnpriced, ruleInWords } from '../src/policy-words.ts'
import { readStatement } from '../src/statement.ts'
import { canonicalJson } from '../../src/contract/canonical-json.ts'
import { statementText } from '../../src/governance/approvals/approval-statement.ts'

const lines = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 })

test('a difference has all lines of both texts, in their order', () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const found = diffOf(before, after)
      const without = (kind: string) => found.filter((one) => one.kind !== kind).map(({ text }) => text)
      expect(without('+')).toEqual(before)
      expect(without('−')).toEqual(after)
      if (before.join() === after.join()) expect(found.every(({ kind }) => kind === ' ')).toBe(true)
    }),
  )
  const one = diffOf(['a', 'b', 'c', 'd'], ['a', 'c', 'x', 'd'])
  expect(one.map(({ kind, text }) => kind + text)).toEqual([' a', '−b', ' c', '+x', ' d'])
  const long = Array.from({ length: 3_000 }, (_, index) => `old ${index}`)
  const added = long.map((text) => text.replace('old', 'new'))
  expect(diffOf(long, added).map(({ text }) => text)).toEqual([...long, ...added])
})

type Rule = Parameters<typeof ruleInWords>[0]

test('a payment below a limit in USD was asked about for want of a price', () => {
  const rule = (asset: string, period_seconds = 0): Rule => ({
    ...{ id: 'a', action: 'APPROVE', approvals: 1 },
    limit: { amount: '5000', asset, period_seconds },
  })
  expect(isUnpriced(rule('USD'), { asset: 'ETH' })).toBe(true)
  expect(isUnpriced(rule('USD'), { asset: 'ETH', notional_value: '1700' })).toBe(true)
  expect(isUnpriced(rule('USD'), { asset: 'ETH', notional_value: '5000.01' })).toBe(false)
  expect(isUnpriced(rule('USD', 86_400), { asset: 'ETH', notional_value: '1700' })).toBe(false)
  expect(isUnpriced(rule('USD'), { asset: 'USD' })).toBe(false)
  expect(isUnpriced(rule('ETH'), { asset: 'ETH' })).toBe(false)
})

test.each<[Rule, string]>([
  [{ id: 'a', action: 'ALLOW' }, 'Allows payments.'],
  [
    {
      id: 'b',
      match: {
        transfer_types: ['CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL'],
        networks: ['POLYGON_POS'],
        assets: ['USDP'],
      },
      limit: { amount: '250000.50', asset: 'USD', period_seconds: 86_400 },
      action: 'BLOCK',
    },
    'Blocks crypto withdrawals or wires of USDP over Polygon PoS beyond 250\u202f000.50 USD in any 24 hours, counted for all payments together.',
  ],
  [
    {
      id: 'c',
      match: { destination: 'ADDRESS_BOOK' },
      limit: { amount: '1000', asset: 'USD', period_seconds: 0, per: 'PROFILE' },
      action: 'ALLOW',
    },
    'Allows payments to approved addresses of the address book up to 1\u202f000 USD each.',
  ],
  [
    {
      id: 'd',
      limit: { amount: '1', asset: 'BTC', period_seconds: 604_800, per: 'DESTINATION' },
      action: 'APPROVE',
      approvals: 2,
      role: 'RISK',
    },
    'Asks 2 approvers of the role RISK about payments beyond 1 BTC in any 7 days, counted for each destination.',
  ],
])('a rule in words: %j', (rule, words) => {
  expect(ruleInWords(rule)).toBe(words)
})

test('a change of a policy in words names each rule, the order and the terms', () => {
  const [a, b] = [
    { id: 'a', action: 'ALLOW' },
    { id: 'b', action: 'BLOCK' },
  ] as [Rule, Rule]
  const before = { rules: [a, b] }
  expect(changesInWords(before, before)).toEqual([])
  expect(changesInWords(before, { rules: [b, a] })).toEqual(['The order of the rules changes.'])
  expect(
    changesInWords(before, {
      rules: [
        { ...a, action: 'BLOCK' },
        { ...b, description: 'why' },
      ],
    }),
  ).toEqual(['Rule a: Blocks payments. Before: Allows payments.', 'Rule b changes, as the lines show.'])
  expect(changesInWords(before, { rules: [b], changes: { subjects: ['POLICY'], approvals: 1 } })).toEqual([
    'Rule a ends: Allows payments.',
    'New: Changes of policy need 1 approver of the role APPROVER.',
  ])
  // The members of an object have no order.
  expect(isSame({ rules: [a] }, { rules: [{ action: 'ALLOW', id: 'a' }] })).toBe(true)
})

const change = {
  subject: 'POLICY',
  operation: 'policy.set',
  target: { type: 'policy', id: 'customer' },
  values: { rules: [{ id: 'a', action: 'BLOCK' }] },
}
const initiator = { type: 'OPERATOR', id: 'ada' } as const
const digest = createHash('sha256')
  .update(canonicalJson(['customer', initiator, change]))
  .digest('hex')
const of = {
  ...{ approval_id: 'approval', customer_id: 'customer', required: 1, role: 'APPROVER', rule_id: null },
  ...{ policy_version: 1, initiator, deadline: '2026-01-01T00:00:00Z' },
  subject: { ...change.target, operation: change.operation, digest },
}
const textsOf = (changes: Partial<typeof of> = {}) => ({
  APPROVE: statementText('APPROVE', { ...of, ...changes }),
  REJECT: statementText('REJECT', { ...of, ...changes }),
})
const read = (shown: object = change, texts = textsOf()) =>
  readStatement('approval', { change: shown } as never, texts)

test('a statement is read where its digest is that of the change that is shown', async () => {
  expect(await read()).toMatchObject({ decision: 'APPROVE', subject: { digest } })
  // jsonb does not keep the order of members.
  const { values, ...others } = change
  expect(await read({ values, ...others })).toMatchObject({ subject: { digest } })
  const other = { ...change, values: { rules: [] } }
  await expect(read(other)).rejects.toThrow('The digest does not match the change that is shown.')
  const elsewhere = { ...change, target: { type: 'policy', id: 'other' } }
  await expect(read(elsewhere)).rejects.toThrow('The digest does not match')
  await expect(read(change, textsOf({ approval_id: 'other' }))).rejects.toThrow('not of this approval')
  const mixed = { ...textsOf(), REJECT: textsOf({ policy_version: 2 }).REJECT }
  await expect(read(change, mixed)).rejects.toThrow('not of the same payment or change')
  const swapped = { APPROVE: textsOf().REJECT, REJECT: textsOf().APPROVE }
  await expect(read(change, swapped)).rejects.toThrow('not of this approval')
})
