import { parseAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import type { Transaction } from '../db/database.ts'
import { networkFeeEntries } from '../ledger/entries.ts'
import type { Context } from '../context.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { freezesOfSigning } from '../records/freezes.ts'
import { usdPrices } from '../records/usd-prices.ts'
import type { EndedSweep, IsFrozen } from '../networks/network.ts'

/**
 * Takes sweeping a step on, on every network that has deposit addresses to sweep: what lies there goes to the hot
 * wallet, and what that has cost is posted. The networks are taken on together, so that one whose node hangs or fails
 * holds up no other. Gives how many steps were taken. Throws what failed, after all have been.
 */
export async function sweepDepositAddresses({
  db,
  networks,
  settings,
}: Pick<Context, 'db' | 'networks' | 'settings'>): Promise<number> {
  const prices = await usdPrices(db, settings.mode === 'sandbox')
  const sweeps = [...networks.values()].flatMap(
    (adapter) => adapter.sweep?.({ post: postSweep, isFrozen, prices }) ?? [],
  )
  const settled = await Promise.allSettled(sweeps)
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failures.length > 0)
    throw new AggregateError(failures, `sweeping failed on ${failures.length} networks`)
  return settled.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0)
}

/** Whether the network, or everything, is frozen: then its deposit addresses are not swept. */
export const isFrozen: IsFrozen = async (tx, network) => (await freezesOfSigning(tx, { network })).length > 0

/** What is swept stays in custody; what sweeping has cost has left it. */
export async function postSweep(
  tx: Transaction,
  { customer_id, id, network, networkFee: { asset, amount } }: EndedSweep,
): Promise<void> {
  const ledger = await LedgerTransaction.open(tx, customer_id, [])
  const entries = networkFeeEntries(network, asset, parseAmount(amount, decimalsOf(asset))!)
  ledger.post({ transfer_id: id, event: 'SWEPT', entries })
  await ledger.write()
}
