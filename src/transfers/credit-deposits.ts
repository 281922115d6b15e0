import { parseAmount } from '../assets/amount.ts'
import { findAsset, type CryptoNetwork } from '../assets/catalogue.ts'
import { transaction, violatedConstraint, type Database, type Transaction } from '../db/database.ts'
import type { Context } from '../http/operation.ts'
import { notionalUsd, usdPrices } from '../ledger/usd-prices.ts'
import { deposit, type DepositPlace } from '../ledger/movements/deposit.ts'
import { compatibleNetworks } from '../ledger/records/deposit-address.ts'
import type { Arrival, NetworkAdapter } from '../networks/networks.ts'

/**
 * Credits what has come in at deposit addresses on the networks that can be read (spec 2.1, crypto deposits), and with
 * it starts the orchestrations whose rules name the address. One worker at a time reads a network; an output or log
 * is credited once, which the database guarantees, so that a block may be read again after a crash.
 * Gives how many deposits it credited. Throws what failed, after the other networks have been read.
 */
export async function creditDeposits(
  context: Pick<Context, 'db' | 'ledger' | 'networks' | 'settings'>,
): Promise<number> {
  let credited = 0
  const failures: unknown[] = []
  for (const [network, adapter] of context.networks) {
    if (network === 'WIRE' || adapter.arrivals === undefined) continue
    try {
      credited += await transaction(context.db, (tx) => readOn(tx, context, network, adapter))
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `deposits on ${failures.length} networks were not read`)
  return credited
}

/** Reads a network on from its cursor, unless another worker does. The cursor moves once all is credited. */
async function readOn(
  tx: Transaction,
  context: Pick<Context, 'db' | 'ledger' | 'settings'>,
  network: CryptoNetwork,
  adapter: NetworkAdapter,
): Promise<number> {
  const lock = await tx.query<{ mine: boolean }>(
    'select pg_try_advisory_xact_lock($1, hashtext($2)) as mine',
    [READING_LOCK, network],
  )
  if (!lock.rows[0]!.mine) return 0
  const { rows } = await tx.query<{ cursor: string }>(
    'select cursor from network_cursors where network = $1',
    [network],
  )
  const { cursor, arrivals } = await adapter.arrivals!(rows[0]?.cursor ?? null)
  let credited = 0
  const failures: unknown[] = []
  for (const arrival of arrivals) {
    try {
      const owner = await ownerOf(context.db, network, arrival.address)
      if (owner !== undefined && (await credit(context, network, arrival, owner))) credited += 1
    } catch (error) {
      failures.push(error)
    }
  }
  // The cursor stays, and all is read again; what is credited stays credited.
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} deposits were not credited`)
  await tx.query(
    `
    insert into network_cursors (network, cursor, updated_at) values ($1, $2, clock_timestamp())
    on conflict (network) do update set cursor = excluded.cursor, updated_at = excluded.updated_at`,
    [network, cursor],
  )
  return credited
}

/** Held while a network is read, beside the network's name. */
const READING_LOCK = 7_311_007

type Owner = DepositPlace & {
  customer_id: string
  profile_id: string
  conversion_target_asset: 'NO_CONVERSION' | 'USD'
}

/** Whose address it is, whoever's. */
async function ownerOf(db: Database, network: CryptoNetwork, address: string): Promise<Owner | undefined> {
  const { rows } = await db.query<Owner>(
    `
    select id, customer_id, profile_id, identity_id, account_id, metadata, conversion_target_asset
    from deposit_addresses
    where address = $1 and crypto_network = any ($2::text[])`,
    [address, compatibleNetworks(network)],
  )
  return rows[0]
}

/** Credits an arrival; false when it was credited before, or there is nothing to credit. */
async function credit(
  { db, ledger, settings }: Pick<Context, 'db' | 'ledger' | 'settings'>,
  network: CryptoNetwork,
  { address, asset, amount, crypto_tx_hash, crypto_tx_index }: Arrival,
  owner: Owner,
): Promise<boolean> {
  // Whoever likes may send nothing, or a token that is none of ours.
  const known = findAsset(asset)
  if (known === undefined) return false
  const minor = parseAmount(amount, known.decimals)!
  if (minor === 0n) return false
  const arrived = deposit(owner.customer_id, {
    profile_id: owner.profile_id,
    type: 'CRYPTO_DEPOSIT',
    asset,
    minor,
    arrivedAt: `custody:${network}`,
    place: owner,
    convertToUsd: owner.conversion_target_asset === 'USD',
    record: {
      crypto_network: network,
      crypto_tx_hash,
      crypto_tx_index,
      destination_address: address,
      notional_value: notionalUsd(minor, known, await usdPrices(db, settings.mode === 'sandbox')),
    },
  })
  try {
    await ledger.submit(owner.customer_id, arrived)
    return true
  } catch (error) {
    if (violatedConstraint(error) !== 'transfers_arrival') throw error
    return false
  }
}
