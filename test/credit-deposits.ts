import type { RailsContext } from '../src/rails/context.ts'
import { creditDepositsOn, readable, type Crediting } from '../src/rails/deposits/credit-deposits.ts'

/**
 * Credits payments to deposit addresses on the networks that can be read (API behaviour, Deposit addresses), each network
 * by itself, so that a node that hangs delays no other network. Returns how many deposits it credited. Throws the failures
 * after all networks have ended.
 */
export async function creditDeposits(context: Crediting & Pick<RailsContext, 'networks'>): Promise<number> {
  const rounds = await Promise.allSettled(
    readable(context.networks).map(([network, adapter]) => creditDepositsOn(context, network, adapter)),
  )
  const failures = rounds.flatMap((round) => (round.status === 'rejected' ? [round.reason as unknown] : []))
  if (failures.length > 0)
    throw new AggregateError(failures, `deposits on ${failures.length} networks were not read`)
  return rounds.reduce((sum, round) => sum + (round.status === 'fulfilled' ? round.value.credited : 0), 0)
}
