import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { eachAlone } from '../../db/each-alone.ts'
import {
  recordUnattributed,
  selectUnattributed,
  sumAtAddress,
  type AtAddress,
  type Unattributed,
} from '../deposits/unattributed.ts'

const ADDRESSES_MAX = 200

interface SweptAddress {
  customer_id: string
  address: string
}

/**
 * Compares the amounts swept from deposit addresses with the deposits there, once deposits are read up to the blocks of the
 * sweeps. An internal transfer, which a contract makes while it runs, is the value of no transaction and in no log: no scan
 * finds it, but a sweep takes it along. It is recorded as UNATTRIBUTED for an operator, and never becomes the platform's
 * silently. Calls `report` with each recorded amount. Asks no node.
 */
export async function auditSweeps(
  db: Database,
  network: CryptoNetwork,
  report: (found: Unattributed) => void,
): Promise<void> {
  const { rows } = await db.query<SweptAddress & { read: string }>(
    `
    select distinct s.customer_id, s.address, split_part(c.cursor, ':', 1) as read
    from network_cursors c
    join sweeps s on s.network = c.network
    where c.network = $1 and c.cursor ~ '^[0-9]+:0x' and s.audit_block is not null
      and s.audit_block <= split_part(c.cursor, ':', 1)::bigint
    limit $2`,
    [network, ADDRESSES_MAX],
  )
  await eachAlone(
    rows,
    ({ address }) => `sweeps of ${network} ${address}`,
    async ({ read, ...place }) => {
      const found = await transaction(db, (tx) => auditPlace(tx, network, place, read))
      for (const finding of found) report(finding)
    },
  )
}

/** Audits the sweeps of an address up to a block. Their rows are locked, so that one worker audits them. */
async function auditPlace(
  tx: Transaction,
  network: CryptoNetwork,
  { customer_id, address }: SweptAddress,
  read: string,
): Promise<Unattributed[]> {
  const { rows: sweeps } = await tx.query<{
    id: string
    asset: string
    crypto_tx_hash: string
    audit_block: string
  }>(
    `
    select id, asset, crypto_tx_hash, audit_block
    from sweeps
    where customer_id = $1 and network = $2 and address = $3 and audit_block <= $4
    order by audit_block, id
    for update`,
    [customer_id, network, address, read],
  )
  const found: Unattributed[] = []
  const last = new Map(sweeps.map((sweep) => [sweep.asset, sweep]))
  for (const [asset, { crypto_tx_hash, audit_block }] of last) {
    const place = { customer_id, network, address, asset }
    // Deposits after the last sweep are still at the address.
    const amount = (await leftWith(tx, place, read)) - (await sumAtAddress(tx, place, audit_block))
    await recordUnattributed(tx, place, { amount, crypto_tx_hash })
    if (amount > 0n) found.push({ ...place, amount: formatAmount(amount, decimalsOf(asset)), crypto_tx_hash })
  }
  await tx.query('update sweeps set audit_block = null where customer_id = $1 and id = any ($2::uuid[])', [
    customer_id,
    sweeps.map(({ id }) => id),
  ])
  return found
}

/**
 * Does work that may find or credit missed deposits, and subtracts them from the unattributed amounts at their addresses on
 * the network. The next sweep of an address computes its amount again.
 */
export async function takingFromUnattributed<T>(
  db: Database,
  network: CryptoNetwork,
  work: () => Promise<T>,
): Promise<T> {
  const places = await selectUnattributed(db, network)
  const before = await Promise.all(places.map((place) => sumAtAddress(db, place, null)))
  const result = await work()
  for (const [index, { amount, crypto_tx_hash, ...place }] of places.entries()) {
    const found = (await sumAtAddress(db, place, null)) - before[index]!
    if (found <= 0n) continue
    const left = parseStoredAmount(amount, decimalsOf(place.asset)) - found
    await transaction(db, (tx) => recordUnattributed(tx, place, { amount: left, crypto_tx_hash }))
  }
  return result
}

/**
 * The amount that has left an address with its sweeps up to a block, in minor units. For the native asset it includes the
 * gas that the sweeps paid, less the hot wallet's top-ups. Sweeps whose blocks are not read yet are left out.
 */
async function leftWith(
  tx: Transaction,
  { customer_id, network, address, asset }: AtAddress,
  read: string,
): Promise<bigint> {
  const { rows } = await tx.query<{ moved: string; paid: string; received: string }>(
    `
    select coalesce(sum(amount) filter (where kind = 'SWEEP' and state = 'DONE' and asset = $4), 0) as moved,
           coalesce(sum(network_fee) filter (where kind = 'SWEEP' and state in ('DONE', 'FAILED')), 0) as paid,
           coalesce(sum(amount) filter (where kind = 'TOP_UP' and state = 'DONE'), 0) as received
    from sweeps
    where customer_id = $1 and network = $2 and address = $3 and (audit_block is null or audit_block <= $5)`,
    [customer_id, network, address, asset, read],
  )
  const { moved, paid, received } = rows[0]!
  const minor = (amount: string) => parseStoredAmount(amount, decimalsOf(asset))
  if (asset !== NETWORKS[network].gasAsset) return minor(moved)
  return minor(moved) + minor(paid) - minor(received)
}
