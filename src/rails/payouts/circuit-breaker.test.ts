import { expect, test } from 'vitest'
import type { Payer } from '../../networks/network.ts'
import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import { withCircuitBreaker } from './circuit-breaker.ts'

/** An adapter whose node answers nothing: it counts the calls that reach the node. */
function unreachable(failure: NodeFailure) {
  const asked: string[] = []
  const ask = (name: string) => () => {
    asked.push(name)
    return Promise.reject(failure)
  }
  const names = ['ready', 'sign', 'broadcast', 'checkStatus', 'replace', 'usedBy', 'rebroadcast'] as const
  const adapter = Object.fromEntries(names.map((name) => [name, ask(name)])) as unknown as Required<Payer>
  return { asked, names, adapter }
}

test('a node that does not answer is asked once, whatever is to be asked', async () => {
  const { adapter, asked, names } = unreachable(new NodeFailure('it is down'))
  const round = withCircuitBreaker(adapter) as unknown as Record<string, () => Promise<unknown>>
  for (const name of names) await expect(round[name]!()).rejects.toThrow('it is down')
  expect(asked).toEqual(['ready'])
})

test('a node that refuses is asked again', async () => {
  const { adapter, asked, names } = unreachable(new NodeRefusal('not this one'))
  const round = withCircuitBreaker(adapter) as unknown as Record<string, () => Promise<unknown>>
  for (const name of names) await expect(round[name]!()).rejects.toThrow('not this one')
  expect(asked).toEqual(names)
})

test('what an adapter does not have stays absent', () => {
  const { adapter } = unreachable(new NodeFailure('it is down'))
  const { replace: _, usedBy: __, ...less } = adapter
  expect(Object.keys(withCircuitBreaker(less))).toEqual(Object.keys(less))
})
