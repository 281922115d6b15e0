import { NodeFailure, NodeRefusal } from '../../networks/node-failure.ts'
import type { Payer } from '../../networks/network.ts'

/**
 * The adapter for one round of settlement. After the first call that its node does not answer, every further call fails
 * at once with the same error, so that the round waits for one timeout instead of several for each customer. A refusal
 * does not open the circuit: the node answered at once, and the refusal may concern one customer only.
 */
export function withCircuitBreaker(adapter: Payer): Payer {
  let down: NodeFailure | undefined
  async function unlessDown<T>(ask: () => Promise<T>): Promise<T> {
    if (down !== undefined) throw down
    try {
      return await ask()
    } catch (error) {
      if (error instanceof NodeFailure && !(error instanceof NodeRefusal)) down = error
      throw error
    }
  }
  return {
    ...adapter,
    ...(adapter.ready !== undefined && { ready: () => unlessDown(() => adapter.ready!()) }),
    sign: (tx, withdrawals) => unlessDown(() => adapter.sign(tx, withdrawals)),
    broadcast: (withdrawals) => unlessDown(() => adapter.broadcast(withdrawals)),
    checkStatus: (withdrawals) => unlessDown(() => adapter.checkStatus(withdrawals)),
    ...(adapter.replace !== undefined && {
      replace: (tx, withdrawals) => unlessDown(() => adapter.replace!(tx, withdrawals)),
    }),
  }
}
