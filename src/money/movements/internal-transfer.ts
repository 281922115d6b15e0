import { formatAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { onProfileAs } from '../ledger/conversion.ts'
import { onPlatform, onProfile } from '../ledger/entries.ts'
import type { Decision, View } from './decision.ts'
import type { Transfer } from '../ledger/transfer.ts'

type InternalTransferRequest = Partial<
  Pick<Transfer, 'identity_id' | 'account_id' | 'ref_id' | 'group_id' | 'memo' | 'metadata'>
> & {
  from_profile_id: string
  to_profile_id: string
  /** The asset and the amount that the receiver gets; `minor` is in minor units. */
  asset: string
  minor: bigint
  /** The identity, account and metadata of the credit, which replace those of the debit. */
  receiver?: Pick<Transfer, 'identity_id' | 'account_id' | 'metadata'>
  /** The debited balance: the transferred asset, or an asset that converts to it. */
  balanceAsset: string
}

/**
 * Moves money from profile to profile (API behaviour, Internal transfers): a debit and a credit, COMPLETED at once,
 * with one group_id. Each leg sums to zero against the platform's account `internal`. A conversion happens in the
 * debit leg.
 */
export function internalTransfer(
  customerId: string,
  { from_profile_id, to_profile_id, asset, minor, balanceAsset, receiver, ...asked }: InternalTransferRequest,
  { now, newId }: Pick<View, 'now' | 'newId'>,
): Decision {
  const amount = formatAmount(minor, decimalsOf(asset))
  const [debitId, creditId] = [newId(), newId()]
  const group_id = asked.group_id ?? newId()
  const side = {
    customer_id: customerId,
    identity_id: asked.identity_id,
    account_id: asked.account_id,
    group_id,
    status: 'COMPLETED',
    asset,
    amount,
    fee: '0',
    total: amount,
    memo: asked.memo,
    metadata: asked.metadata,
    created_at: now.text,
    updated_at: now.text,
  } as const
  const conversion = balanceAsset === asset ? undefined : {}
  return {
    transfer: {
      ...side,
      id: debitId,
      profile_id: from_profile_id,
      // A ref_id is unique among the customer's transfers, so only the debit has it.
      ref_id: asked.ref_id,
      type: 'INTERNAL_TRANSFER_DEBIT',
      direction: 'DEBIT',
      balance_asset: balanceAsset,
      auto_conversion: conversion,
    },
    entries: [
      ...onProfileAs(from_profile_id, balanceAsset, -minor, asset),
      onPlatform('internal', asset, minor),
    ],
    otherLeg: {
      transfer: {
        ...side,
        ...receiver,
        id: creditId,
        profile_id: to_profile_id,
        type: 'INTERNAL_TRANSFER_CREDIT',
        direction: 'CREDIT',
        balance_asset: asset,
      },
      entries: [onPlatform('internal', asset, -minor), onProfile(to_profile_id, asset, minor)],
    },
  }
}
