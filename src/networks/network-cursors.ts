import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Database, Queryable, Transaction } from '../db/database.ts'

/** Up to where each network is read for deposits. Workers lease a network to read it, so that one of them reads at a time. */

/** Cursors that are kept, to go on from after a reorganisation. */
const EARLIER_MAX = 64

export interface CursorLease {
  cursor: string | null
  leased_until: string | null
}

/** The cursor of a network, undefined before its first scan, and those before it, the newest first. */
export async function readCursor(
  db: Queryable,
  network: CryptoNetwork,
): Promise<{ cursor?: string; earlier: string[] }> {
  const { rows } = await db.query<{ cursor: string; earlier: string[] }>(
    'select cursor, earlier from network_cursors where network = $1',
    [network],
  )
  return rows[0] ?? { earlier: [] }
}

/** Stores the first cursor of a network in place of `known`, unless a worker was faster. */
export async function startCursor(
  db: Queryable,
  network: CryptoNetwork,
  cursor: string,
  known: string | undefined,
): Promise<void> {
  await db.query(
    `
    insert into network_cursors (network, cursor, updated_at) values ($1, $2, clock_timestamp())
    on conflict (network) do update set cursor = excluded.cursor, updated_at = excluded.updated_at
    where network_cursors.cursor = $3`,
    [network, cursor, known],
  )
}

/** Moves the cursor of a leased network and ends the lease. Returns false where another worker has moved it. */
export async function moveCursor(
  tx: Transaction,
  network: CryptoNetwork,
  lease: CursorLease,
  cursor: string,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `
    insert into network_cursors as c (network, cursor, updated_at) values ($1, $2, clock_timestamp())
    on conflict (network) do update
      set cursor = excluded.cursor, updated_at = excluded.updated_at, leased_until = null,
          earlier = case when c.cursor = excluded.cursor then c.earlier
                         else (array_prepend(c.cursor, c.earlier))[1:${EARLIER_MAX}] end
      where c.cursor = $3`,
    [network, cursor, lease.cursor],
  )
  return rowCount !== 0
}

/** Sets the cursor after a reorganisation: nothing before it counts any more. */
export async function resetCursor(tx: Transaction, network: CryptoNetwork, cursor: string): Promise<void> {
  await tx.query(
    `update network_cursors set cursor = $2, earlier = '{}', leased_until = null where network = $1`,
    [network, cursor],
  )
}

/**
 * Leases a network for reading; undefined while another worker has a lease. One that would outlast a new one shows that the
 * clock was set back, and is ignored.
 */
export async function leaseCursor(
  db: Database,
  network: CryptoNetwork,
  ms: number,
): Promise<CursorLease | undefined> {
  const { rows } = await db.query<{ cursor: string; leased_until: string }>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
    where network = $1 and (leased_until is null or leased_until <= clock_timestamp()
                            or leased_until > clock_timestamp() + make_interval(secs => $2::float8 / 1000))
    returning cursor, leased_until`,
    [network, ms],
  )
  if (rows[0] !== undefined) return rows[0]
  const { cursor } = await readCursor(db, network)
  return cursor === undefined ? { cursor: null, leased_until: null } : undefined
}

/** Renews a worker's own lease, or ends it where `ms` is null. A lost one is not taken again: its cursor may be old. */
export async function renewCursorLease(
  db: Queryable,
  network: CryptoNetwork,
  lease: CursorLease,
  ms: number | null,
): Promise<void> {
  if (lease.leased_until === null) return
  const { rows } = await db.query<Pick<CursorLease, 'leased_until'>>(
    `
    update network_cursors set leased_until = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    where network = $1 and leased_until = $2
    returning leased_until`,
    [network, lease.leased_until, ms],
  )
  lease.leased_until = rows[0]?.leased_until ?? null
}
