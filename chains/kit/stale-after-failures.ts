import { NodeFailure } from '../../src/networks/node-failure.ts'

/**
 * Wraps an adapter: after each call that fails because of the node, the next one checks the node's chain again. By then the
 * same URL may lead to another node. The next call then fails for that reason, before anything is believed or signed.
 */
export function staleAfterFailures<Adapter extends object>(
  { markStale }: { markStale: () => void },
  adapter: Adapter,
): Adapter {
  const watched = Object.entries(adapter).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [name, value]
    const call = (...asked: unknown[]) => {
      const answer = (value as (...asked: unknown[]) => unknown)(...asked)
      if (!(answer instanceof Promise)) return answer
      return answer.catch((error: unknown) => {
        if (isOfNode(error)) markStale()
        throw error
      })
    }
    return [name, call]
  })
  return Object.fromEntries(watched) as Adapter
}

const isOfNode = (error: unknown): boolean =>
  error instanceof NodeFailure || (error instanceof AggregateError && error.errors.some(isOfNode))
