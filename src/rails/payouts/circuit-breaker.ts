import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import type { Payer } from '../../networks/network.ts'

/** What asks the node of a network. The signer process is another party. */
const ASK_NODE = [
  'ready',
  'sign',
  'broadcast',
  'checkStatus',
  'replace',
  'usedBy',
  'rebroadcast',
] as const satisfies readonly (keyof Payer)[]

/**
 * The adapter for one round of settlement. After the first call that its node does not answer, every further call to the
 * node fails at once with the same error, so that the round waits for one timeout instead of several for each customer. A
 * refusal does not open the circuit: the node answered at once, and the refusal may concern one customer only.
 */
export function withCircuitBreaker(adapter: Payer): Payer {
  let down: NodeFailure | undefined
  const unlessDown =
    (ask: (...given: unknown[]) => Promise<unknown>) =>
    async (...given: unknown[]): Promise<unknown> => {
      if (down !== undefined) throw down
      try {
        return await ask.apply(adapter, given)
      } catch (error) {
        if (error instanceof NodeFailure && !(error instanceof NodeRefusal)) down = error
        throw error
      }
    }
  const guarded = ASK_NODE.flatMap((name) => {
    const ask = adapter[name] as ((...given: unknown[]) => Promise<unknown>) | undefined
    return ask === undefined ? [] : [[name, unlessDown(ask)] as const]
  })
  return { ...adapter, ...(Object.fromEntries(guarded) as Partial<Payer>) }
}
