import { transaction, type Database } from '../../../src/db/database.ts'
import type { EvmChain } from '../chain.ts'
import type { DepositKeys } from '../deposit-keys.ts'
import { aboveCeiling, feesNow } from '../fees.ts'
import { collectingFailures, stepEach, endedTopUpsIn } from '../../kit/sweeps.ts'
import { followSweeps } from './follow.ts'
import { refreshStale } from './holdings.ts'
import { worthSweeping } from './plan.ts'
import { beginSweep } from './sign.ts'
import { sweepGasPrice } from './worth.ts'
import type { SweepRound } from '../../../src/networks/sweep-round.ts'
import { freeWhatHasEnded } from '../../../src/networks/network-transactions.ts'

/**
 * Moves deposits from their addresses to the hot wallet, step by step: gas for a token's transfer from the hot wallet (the
 * top-up), the token, then the native asset. A step is one transaction, which is stored before it is broadcast. An address has
 * at most one step under way. An amount that is not worth the fee stays until more is deposited or fees fall
 * (`leastWorthSweeping`). The database transaction that ends a step posts its fee.
 *
 * On a frozen network nothing is signed, and stored transactions are still followed. Returns the number of steps taken. Throws
 * an AggregateError of all failures, once the other addresses are done.
 */
export async function sweep(
  db: Database,
  chain: EvmChain,
  keys: DepositKeys,
  round: SweepRound,
): Promise<number> {
  await chain.ready()
  const fees = await feesNow(chain)
  return collectingFailures(async (failed) => {
    const following = { db, chain, keys, fees, round, failed }
    const followed = await followSweeps(following)
    await refreshStale(db, chain)
    const isCheap = fees.current <= chain.sweeps.feeCeiling && aboveCeiling(fees, chain) === undefined
    if (!isCheap || (await transaction(db, (tx) => round.isFrozen(tx, chain.network)))) return followed
    await freeWhatHasEnded(db, chain.network, endedTopUpsIn(db))
    const market = { fees, gasPrice: sweepGasPrice(chain, fees), prices: round.prices }
    const losses = new Map<string, string>()
    const places = await worthSweeping(db, chain, market, failed)
    const begun = await stepEach(
      places,
      ({ address }) => `sweep of ${address}`,
      failed,
      (place) => beginSweep(db, chain, { keys, market }, place, { ...round, losses }),
    )
    for (const reason of losses.values()) failed(new Error(reason))
    return followed + begun + (await followSweeps(following, 'SIGNED'))
  })
}
