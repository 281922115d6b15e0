import type { Origin } from '../../contract/actor.ts'
import { forAll, transaction, type Database } from '../../db/database.ts'
import type { DepositPlace } from '../../money/movements/deposit.ts'
import type { MagicDeposit } from '../../networks/simulated/magic-amounts.ts'
import { receiveWire } from '../../networks/simulated/wires.ts'
import { announceWire } from '../../rails/wires/pending-wires.ts'

/**
 * Lets a wire of a magic amount arrive at the simulated bank, which credits it or sends it back later. `minor` is in minor
 * units of the asset. Returns the id of the PENDING transfer. The bank receives the wire first: if the process dies in
 * between, the bank's wire ends without a transfer.
 */
export async function announceSimulatedWire(
  db: Database,
  customer_id: string,
  wire: { profile_id: string; asset: string; minor: bigint; place?: DepositPlace; memo?: string },
  outcome: MagicDeposit,
  origin: Origin,
): Promise<string> {
  const { profile_id, asset, minor, place, memo } = wire
  const reference = await receiveWire(forAll(db), {
    ...{ customer_id, profile_id, asset, minor: minor.toString(), sentBack: outcome === 'FAILED_LATER' },
    ...(place && { place }),
    ...(memo !== undefined && { memo }),
  })
  const announced = { profile_id, asset, minor, place, record: memo === undefined ? {} : { memo } }
  const id = await transaction(db, (tx) => announceWire(tx, customer_id, reference, announced, origin))
  return id!
}
