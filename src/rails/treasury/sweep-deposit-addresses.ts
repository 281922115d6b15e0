import { parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { originOfLoop } from '../../contract/actor.ts'
import type { Transaction } from '../../db/database.ts'
import { networkFeeEntries } from '../../money/ledger/entries.ts'
import { pricesIn, type RailsContext } from '../context.ts'
import { LedgerTransaction } from '../../money/ledger/ledger-transaction.ts'
import { freezesOfSigning } from '../../money/records/freezes.ts'
import type { EndedSweep, IsFrozen } from '../../networks/sweep-round.ts'

/**
 * Takes one step of sweeping on every network that has deposit addresses to sweep: their balances go to the hot wallet, and the
 * cost is posted. The networks are swept at once, so that a node that hangs or fails delays no other network. Returns how many
 * steps were taken. Throws the failures after all networks have ended.
 */
export async function sweepDepositAddresses({
  db,
  networks,
  settings,
}: Pick<RailsContext, 'db' | 'networks' | 'settings'>): Promise<number> {
  const prices = await pricesIn({ db, settings })
  const sweeps = [...networks.values()].flatMap(
    (adapter) => adapter.sweep?.({ post: postSweep, isFrozen, prices }) ?? [],
  )
  const settled = await Promise.allSettled(sweeps)
  const failures = settled.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
  )
  if (failures.length > 0)
    throw new AggregateError(failures, `sweeping failed on ${failures.length} networks`)
  return settled.reduce((sum, outcome) => sum + (outcome.status === 'fulfilled' ? outcome.value : 0), 0)
}

/** Tells whether the network, or everything, is frozen: then its deposit addresses are not swept. */
export const isFrozen: IsFrozen = async (tx, network) => (await freezesOfSigning(tx, { network })).length > 0

/** Posts what a sweep cost. The swept amount itself stays in custody. */
export async function postSweep(
  tx: Transaction,
  { customer_id, id, network, networkFee: { asset, amount } }: EndedSweep,
): Promise<void> {
  const ledger = await LedgerTransaction.open(tx, customer_id, [])
  const entries = networkFeeEntries(network, asset, parseAmount(amount, decimalsOf(asset))!)
  ledger.post({ transfer_id: id, event: 'SWEPT', entries, origin: originOfLoop('sweeps') })
  await ledger.write()
}
