import { Type, type Static } from 'typebox'
import { CRYPTO_NETWORKS, NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { forAll, inTransaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { insertOnce } from './insert-once.ts'
import { newId, readClock } from '../../db/ids.ts'
import {
  Metadata,
  NamedObject,
  Network,
  NIL_UUID,
  OneOf,
  RefId,
  Timestamp,
  Uuid,
} from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import {
  DEPOSIT_ADDRESS_COLUMNS,
  storeDepositAddress,
  type DepositAddressRow,
} from '../../networks/deposit-addresses.ts'
import { placeKey, type AreGiven } from '../../networks/given-addresses.ts'
import { readCursor, startCursor } from '../../networks/network-cursors.ts'
import type { Networks } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { requireMayDeposit } from './holders.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { lockOpenProfile } from './profile.ts'
import { audited } from '../../audit/audited.ts'
import { requireRoom } from './record-limits.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'

export const ConversionTarget = OneOf(
  ['NO_CONVERSION', 'USD'],
  'What a deposit of a platform-issued stablecoin is credited as.',
  { default: 'NO_CONVERSION' },
)

export const DepositAddress = NamedObject('DepositAddress', {
  id: Uuid('Id of the address.'),
  customer_id: Uuid('Customer.'),
  profile_id: Uuid('Profile that is credited.'),
  crypto_network: Network,
  address: Type.String({ description: 'The address.' }),
  compatible_crypto_networks: Type.Array(Network, {
    description: 'Networks on which a deposit to this address is credited.',
  }),
  conversion_target_asset: ConversionTarget,
  ref_id: Type.Optional(RefId),
  identity_id: Uuid('Identity that deposits; the nil UUID where the record names none.'),
  account_id: Type.Optional(Uuid('Account that deposits.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
})
export type DepositAddress = Static<typeof DepositAddress>

export const depositAddressToWire = (networks: Networks, row: DepositAddressRow): DepositAddress => ({
  ...presentOf(row),
  identity_id: row.identity_id ?? NIL_UUID,
  compatible_crypto_networks: readNetworks(networks, row.crypto_network),
})

/**
 * Returns the networks on which an address can be paid and that this deployment reads. A simulated address has no
 * private key. So it is never listed for a real network, and a real address never for a simulated network.
 */
function readNetworks(networks: Networks, network: CryptoNetwork): CryptoNetwork[] {
  const own = networks.get(network)
  return compatibleNetworks(network).filter((other) => {
    const adapter = networks.get(other)
    return adapter?.scanDeposits !== undefined && adapter.asksNode === own?.asksNode
  })
}

/** Returns the networks on which an address of this network can be paid: EVM networks share their addresses. */
export const compatibleNetworks = (network: CryptoNetwork): CryptoNetwork[] =>
  NETWORKS[network].family === 'evm'
    ? CRYPTO_NETWORKS.filter((other) => NETWORKS[other].family === 'evm')
    : [network]

export interface NewDepositAddress {
  profile_id: string
  crypto_network: CryptoNetwork
  conversion_target_asset?: DepositAddress['conversion_target_asset']
  ref_id?: string
  identity_id?: string
  account_id?: string
  metadata?: Record<string, string>
}

/**
 * Creates an address for a profile. Throws unavailable where the network is not connected, already-exists for the ref_id,
 * not-found for the records it names, and the refusals of a withdrawal for a profile or identity that may not withdraw. Without
 * `origin`, the caller records the change.
 */
export async function insertDepositAddress(
  db: Database | Transaction,
  { networks, rowMacs }: { networks: Networks; rowMacs: RowMacs },
  customerId: string,
  body: NewDepositAddress,
  { origin }: { origin?: Origin } = {},
): Promise<DepositAddress> {
  const adapter = networks.get(body.crypto_network)
  if (adapter?.newDepositAddress === undefined) {
    throw problem.unavailable(
      `crypto_network ${body.crypto_network} is not connected: it provides no addresses`,
    )
  }
  return insertOnce({
    constraint: 'deposit_addresses_ref_id',
    async find() {
      const known = await selectByRefId(db, rowMacs, customerId, body.ref_id)
      return known && depositAddressToWire(networks, known)
    },
    async insert() {
      await requireMayDeposit(db, customerId, body)
      await requireRoomForAddress(db, customerId, body.profile_id)
      for (const network of readNetworks(networks, body.crypto_network))
        await beginReading(forAll(db), networks, network)
      // A node that gives addresses may be slow, so it is asked before the transaction begins.
      const addressFor = await adapter.newDepositAddress!(body.crypto_network).catch((error: unknown) => {
        if (!(error instanceof NodeFailure)) throw error
        throw problem.unavailable(`${body.crypto_network} gives no address now; none was created`, error)
      })
      return inTransaction(db, async (tx) => {
        await lockOpenProfile(tx, customerId, body.profile_id)
        await requireRoom(tx, customerId, 'deposit_addresses')
        const now = await readClock(tx)
        const id = newId(now)
        const { address, derivation, keep } = addressFor(id)
        const row = await storeDepositAddress(tx, now, {
          id,
          customer_id: customerId,
          profile_id: body.profile_id,
          crypto_network: body.crypto_network,
          address,
          derivation,
          conversion_target_asset: body.conversion_target_asset ?? 'NO_CONVERSION',
          ref_id: body.ref_id ?? null,
          identity_id: body.identity_id ?? null,
          account_id: body.account_id ?? null,
          metadata: body.metadata ?? null,
        })
        await keep?.(tx, customerId)
        await rowMacs.seal(tx, 'deposit_addresses', customerId, id)
        if (origin !== undefined)
          recordChanges(tx, customerId, now, [audited(origin, 'deposit_address.create', id)])
        return depositAddressToWire(networks, row)
      })
    },
  })
}

/**
 * Most deposit addresses of a profile: each address costs a sweep of its own. Concurrent requests may exceed the
 * limit slightly.
 */
export const ADDRESSES_PER_PROFILE_MAX = 10_000

async function requireRoomForAddress(db: Queryable, customerId: string, profileId: string): Promise<void> {
  const { rowCount } = await db.query(
    'select 1 from deposit_addresses where customer_id = $1 and profile_id = $2 offset $3 limit 1',
    [customerId, profileId, ADDRESSES_PER_PROFILE_MAX - 1],
  )
  if (rowCount! > 0)
    throw problem.badRequest(
      `profile_id ${profileId} has ${ADDRESSES_PER_PROFILE_MAX} deposit addresses, the most allowed`,
      'profile_id',
    )
}

/**
 * Stores the first scan cursor before the address is returned. Otherwise a worker that runs for the first time later
 * would miss deposits.
 */
async function beginReading(db: Queryable, networks: Networks, network: CryptoNetwork): Promise<void> {
  const adapter = networks.get(network)
  if (adapter?.initialCursor === undefined) return
  const { cursor: known } = await readCursor(db, network)
  const cursor = await adapter.initialCursor(known ?? null).catch((error: unknown) => {
    throw problem.unavailable(`the node of ${network} does not answer; no address was created`, error)
  })
  if (cursor !== undefined) await startCursor(db, network, cursor, known)
}

async function selectByRefId(db: Queryable, macs: RowMacs, customerId: string, refId: string | undefined) {
  if (refId === undefined) return undefined
  const { rows } = await db.query<DepositAddressRow>(
    `select ${DEPOSIT_ADDRESS_COLUMNS} from deposit_addresses where customer_id = $1 and ref_id = $2`,
    [customerId, refId],
  )
  return (await macs.genuine(db, 'deposit_addresses', customerId, rows))[0]
}

/** Finds the customer's deposit address that this text spells, on any network that shares addresses with `network`. */
export async function selectDepositAddress(
  db: Queryable,
  customerId: string,
  network: CryptoNetwork,
  address: string,
): Promise<DepositAddressRow | undefined> {
  const { rows } = await db.query<DepositAddressRow>(
    `
    select ${DEPOSIT_ADDRESS_COLUMNS}
    from deposit_addresses
    where customer_id = $1 and address = $2 and crypto_network = any ($3::text[])`,
    [customerId, canonicalAddress(network, address, { testNetworks: true }), compatibleNetworks(network)],
  )
  return rows[0]
}

/** Makes a function that tells which addresses Bursar gave out for deposits, as `<customer> <address>`: their MACs are right. */
export const givenBy =
  (macs: RowMacs): AreGiven =>
  async (db, places) => {
    const given = new Set<string>()
    if (places.length === 0) return given
    const { rows } = await db.query<Seal & { customer_id: string; address: string }>(
      `
      select r.customer_id, r.address, ${sealOf('deposit_addresses')}
      from deposit_addresses r
      where r.customer_id = any ($1::uuid[]) and r.address = any ($2::text[])`,
      [
        [...new Set(places.map(({ customer_id }) => customer_id))],
        [...new Set(places.map(({ address }) => address))],
      ],
    )
    for (const row of rows)
      if (macs.objectionTo('deposit_addresses', row) === undefined) given.add(placeKey(row))
    return given
  }
