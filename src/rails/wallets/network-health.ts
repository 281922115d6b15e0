import type { Queryable } from '../../db/database.ts'
import { keptFor } from '../../db/kept.ts'
import type { PayoutNetwork } from '../../networks/network.ts'

/** The health of a network as clients see it: nothing about its nodes or the hot wallet. */
export interface NetworkHealth {
  allStopped: boolean
  stopped: ReadonlySet<string>
  /** Networks on which withdrawals wait for a node, or for fees to fall. */
  delayed: ReadonlySet<string>
}

/** Time for which an answer is reused, because clients ask more often than it changes. */
const KEPT_MS = 10_000

/** Returns the health of all networks, at most ten seconds old. Throws when it cannot be read. */
export const networkHealth = keptFor(KEPT_MS, readNetworkHealth)

export async function readNetworkHealth(db: Queryable): Promise<NetworkHealth> {
  const frozen = await db.query<{ kind: string; network: string }>(
    "select kind, subject as network from freezes where kind in ('ALL', 'NETWORK') and lifted_at is null",
  )
  // Only withdrawals that have not ended have a due_at, so the index is short.
  const waiting = await db.query<{ network: PayoutNetwork }>(`
    select distinct network
    from outgoing_transfers
    where due_at is not null and waiting_code in ('NODE_DOWN', 'NODE_BEHIND', 'FEE_ABOVE_CEILING')`)
  return {
    allStopped: frozen.rows.some(({ kind }) => kind === 'ALL'),
    stopped: new Set(frozen.rows.filter(({ kind }) => kind === 'NETWORK').map(({ network }) => network)),
    delayed: new Set(waiting.rows.map(({ network }) => network)),
  }
}
