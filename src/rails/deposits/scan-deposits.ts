import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Queryable } from '../../db/database.ts'
import { keepRenewing, LEASE_MS } from '../leases.ts'
import { type NetworkAdapter } from '../../networks/network.ts'
import { ChainReorganised, type DepositScan } from '../../networks/found-deposits.ts'
import type { RailsContext } from '../context.ts'
import { recordRefills } from '../treasury/found-refills.ts'
import { stopForReorganisation, takeBack } from './deposit-reorganisations.ts'
import { recordIncoming } from './record-deposits.ts'

/** Cursors that are kept, to go on from after a reorganisation. */
const EARLIER_MAX = 64

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
  const lease = await takeLease(db, network)
  if (lease === undefined) return false
  try {
    // With no transaction open, because nodes may take long and connections are few.
    const stop = keepRenewing([lease], (own) => renewLease(db, network, own, LEASE_MS))
    let scan: DepositScan
    try {
      scan = await adapter.scanDeposits(lease.cursor)
    } finally {
      await stop()
    }
    // Before the cursor moves, because the network reports a removed deposit once.
    if (scan.removed !== undefined) await takeBack(db, network, scan.removed)
    await transaction(db, async (tx) => {
      const { rowCount } = await tx.query(
        `
        insert into network_cursors as c (network, cursor, updated_at) values ($1, $2, clock_timestamp())
        on conflict (network) do update
          set cursor = excluded.cursor, updated_at = excluded.updated_at, leased_until = null,
              earlier = case when c.cursor = excluded.cursor then c.earlier
                             else (array_prepend(c.cursor, c.earlier))[1:${EARLIER_MAX}] end
          where c.cursor = $3`,
        [network, scan.cursor, lease.cursor],
      )
      // Another worker was faster, and has recorded these deposits.
      if (rowCount === 0) return renewLease(tx, network, lease, null)
      await recordIncoming(tx, ledger, network, scan.found)
      await recordRefills(tx, network, scan.refills ?? [])
      await scan.keep?.(tx)
    })
    if (scan.failed !== undefined && scan.failed.length > 0)
      throw new AggregateError(scan.failed, `${scan.failed.length} addresses of ${network} were not read`)
    return scan.isBehind ?? false
  } catch (error) {
    await renewLease(db, network, lease, null)
    if (error instanceof ChainReorganised) await stopForReorganisation(db, network, adapter, error.message)
    throw error
  }
}

interface Lease {
  cursor: string | null
  leased_until: string | null
}

/**
 * Leases a network for reading; undefined while another worker has a lease. One that would outlast a new one shows that the
 * clock was set back, and is ignored.
 */
async function takeLease(db: Database, network: CryptoNetwork): Promise<Lease | undefined> {
  const { rows } = await db.query<{ cursor: string; leased_until: string }>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
    where network = $1 and (leased_until is null or leased_until <= clock_timestamp()
                            or leased_until > clock_timestamp() + make_interval(secs => $2::float8 / 1000))
    returning cursor, leased_until`,
    [network, LEASE_MS],
  )
  if (rows[0] !== undefined) return rows[0]
  const { rowCount } = await db.query('select 1 from network_cursors where network = $1', [network])
  return rowCount === 0 ? { cursor: null, leased_until: null } : undefined
}

/** Renews a worker's own lease, or ends it where `ms` is null. A lost one is not taken again: its cursor may be old. */
async function renewLease(db: Queryable, network: CryptoNetwork, lease: Lease, ms: number | null) {
  if (lease.leased_until === null) return
  const { rows } = await db.query<Pick<Lease, 'leased_until'>>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    where network = $1 and leased_until = $2
    returning leased_until`,
    [network, lease.leased_until, ms],
  )
  lease.leased_until = rows[0]?.leased_until ?? null
}
