import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../db/database.ts'
import type { Moment } from '../db/ids.ts'

/** The addresses that networks gave out for deposits, as they are stored. Their MACs are made by whoever stores one. */

export interface DepositAddressRow {
  id: string
  customer_id: string
  profile_id: string
  crypto_network: CryptoNetwork
  address: string
  conversion_target_asset: 'NO_CONVERSION' | 'USD'
  ref_id: string | null
  identity_id: string | null
  account_id: string | null
  metadata: Record<string, string> | null
  created_at: string
}

export const DEPOSIT_ADDRESS_COLUMNS = `id, customer_id, profile_id, crypto_network, address, conversion_target_asset,
  ref_id, identity_id, account_id, metadata, created_at`

/** Stores an address. `derivation` names its key; absent where the node has it. */
export async function storeDepositAddress(
  tx: Transaction,
  now: Moment,
  given: Omit<DepositAddressRow, 'created_at'> & { derivation: string | undefined },
): Promise<DepositAddressRow> {
  const { rows } = await tx.query<DepositAddressRow>(
    `
    insert into deposit_addresses (customer_id, id, created_at, profile_id, crypto_network, address,
                                   conversion_target_asset, ref_id, identity_id, account_id, metadata, derivation)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    returning ${DEPOSIT_ADDRESS_COLUMNS}`,
    [
      given.customer_id,
      given.id,
      now.text,
      given.profile_id,
      given.crypto_network,
      given.address,
      given.conversion_target_asset,
      given.ref_id,
      given.identity_id,
      given.account_id,
      given.metadata,
      given.derivation,
    ],
  )
  return rows[0]!
}

/** Which of these addresses are deposit addresses, of any customer. */
export async function depositAddressesAmong(
  db: Queryable,
  addresses: readonly string[],
): Promise<Set<string>> {
  const { rows } = await db.query<{ address: string }>(
    'select address from deposit_addresses where address = any ($1)',
    [addresses],
  )
  return new Set(rows.map(({ address }) => address))
}
