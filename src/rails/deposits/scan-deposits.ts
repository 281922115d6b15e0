import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction } from '../../db/database.ts'
import { keepRenewing, LEASE_MS } from '../leases.ts'
import { type NetworkAdapter } from '../../networks/network.ts'
import { leaseCursor, moveCursor, renewCursorLease } from '../../networks/network-cursors.ts'
import { ChainReorganised, type DepositScan } from '../../networks/found-deposits.ts'
import type { RailsContext } from '../context.ts'
import { recordRefills } from '../treasury/found-refills.ts'
import { stopForReorganisation, takeBack } from './deposit-reorganisations.ts'
import { recordIncoming } from './record-deposits.ts'

/**
 * Scans a network from its cursor, and records the deposits in the transaction that moves the cursor. Returns whether there
 * is more to read at once; false, and reads nothing, while another worker reads.
 */
export async function scanDeposits(
  { db, ledger }: Pick<RailsContext, 'db' | 'ledger'>,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<boolean> {
  if (adapter.scanDeposits === undefined) return false
  const lease = await leaseCursor(db, network, LEASE_MS)
  if (lease === undefined) return false
  try {
    // With no transaction open, because nodes may take long and connections are few.
    const stop = keepRenewing([lease], (own) => renewCursorLease(db, network, own, LEASE_MS))
    let scan: DepositScan
    try {
      scan = await adapter.scanDeposits(lease.cursor)
    } finally {
      await stop()
    }
    // Before the cursor moves, because the network reports a removed deposit once.
    if (scan.removed !== undefined) await takeBack(db, network, scan.removed)
    await transaction(db, async (tx) => {
      const isMoved = await moveCursor(tx, network, lease, scan.cursor)
      // Another worker was faster, and has recorded these deposits.
      if (!isMoved) return renewCursorLease(tx, network, lease, null)
      await recordIncoming(tx, ledger, network, scan.found)
      await recordRefills(tx, network, scan.refills ?? [])
      await scan.keep?.(tx)
    })
    if (scan.failed !== undefined && scan.failed.length > 0)
      throw new AggregateError(scan.failed, `${scan.failed.length} addresses of ${network} were not read`)
    return scan.isBehind ?? false
  } catch (error) {
    await renewCursorLease(db, network, lease, null)
    if (error instanceof ChainReorganised) await stopForReorganisation(db, network, adapter, error.message)
    throw error
  }
}
