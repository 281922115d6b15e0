/* One node is no witness: every question that an adapter asks its node is judged in docs/decisions/one-node.md. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')

/** Members of an adapter that ask no node. */
const ASKS_NO_NODE = [
  'review',
  'checkWithSigner',
  'askSigner',
  'minimumDeposit',
  'refusesDestination',
  'readHash',
]

test('each member of an adapter that asks a node has its row', () => {
  const source = read('src/networks/network.ts')
  const adapter = source.slice(source.indexOf('export interface Payer'))
  const members = [...adapter.matchAll(/^ {2}(\w+)\??\(/gm)].map(([, name]) => name!)
  expect(members.length).toBeGreaterThan(30)
  const rows = read('docs/decisions/one-node.md').match(/^\| `.*$/gm)!
  const questions = rows.flatMap((row) =>
    [...row.split('|')[1]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
  )
  const named = (name: string) => questions.includes(name) || ASKS_NO_NODE.includes(name)
  expect(members.filter((name) => !named(name))).toEqual([])
  // A member that is gone keeps no row.
  expect([...questions, ...ASKS_NO_NODE].filter((name) => !members.includes(name))).toEqual([])
})
