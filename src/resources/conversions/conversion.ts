import { Type, type Static } from 'typebox'
import {
  Amount,
  AssetSymbol,
  Metadata,
  NamedObject,
  OneOf,
  RefId,
  Timestamp,
  Uuid,
} from '../../contract/fields.ts'
import { presentOf } from '../../db/rows.ts'
import type { Transfer, TransferRow } from '../../money/ledger/transfer.ts'

/**
 * A conversion of a profile's USD or stablecoins, one to one (API behaviour, Stablecoin conversions). It is an internal
 * transfer of a profile to itself. Its id is the id of the debit and of the group; no other transfer has the id of its
 * group.
 */
export const StablecoinConversion = NamedObject('StablecoinConversion', {
  id: Uuid('Id of the conversion, and of the transfer that debits it.'),
  profile_id: Uuid('Profile whose balances change.'),
  amount: Amount('Amount of both assets.'),
  source_asset: AssetSymbol,
  target_asset: AssetSymbol,
  status: OneOf(['SETTLED'], 'Conversions settle at once.'),
  ref_id: Type.Optional(RefId),
  identity_id: Type.Optional(Uuid('Identity that asked for it.')),
  account_id: Type.Optional(Uuid('Account that asked for it.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
  settled_at: Timestamp('When the balances changed.'),
})
export type StablecoinConversion = Static<typeof StablecoinConversion>

export const CONVERSION_COLUMNS =
  'id, profile_id, amount, balance_asset, asset, ref_id, identity_id, account_id, metadata, created_at, updated_at'

/** In SQL: whether a transfer is the debit of a conversion. The condition of the partial index `transfers_conversions`. */
export const IS_CONVERSION = "type = 'INTERNAL_TRANSFER_DEBIT' and group_id = id"

/** A row of a debit. Each debit of a conversion has both assets. */
export type ConversionRow = Pick<
  TransferRow,
  | 'id'
  | 'profile_id'
  | 'amount'
  | 'balance_asset'
  | 'asset'
  | 'ref_id'
  | 'identity_id'
  | 'account_id'
  | 'metadata'
> &
  Pick<TransferRow, 'created_at' | 'updated_at'>

export function conversionOf(debit: Transfer | ConversionRow): StablecoinConversion {
  const { id, profile_id, amount, balance_asset, asset, created_at, updated_at } = debit
  const { ref_id, identity_id, account_id, metadata } = debit
  return presentOf({
    ...{ id, profile_id, amount, source_asset: balance_asset, target_asset: asset, status: 'SETTLED' },
    ...{ ref_id, identity_id, account_id, metadata, created_at, updated_at, settled_at: created_at },
  }) as StablecoinConversion
}
