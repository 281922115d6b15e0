import { minorUnits } from '../../contract/assets/precision.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { problem } from '../../contract/problems.ts'
import type { BankAccount } from '../../networks/bank/bank-account.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { amountOrTotal } from './crypto-withdrawal.ts'
import { onProfileAs } from '../ledger/conversion.ts'
import { onPlatform } from '../ledger/entries.ts'
import type { Decision, View } from './decision.ts'
import type { FiatAccount } from '../records/fiat-account.ts'
import type { Transfer } from '../ledger/transfer.ts'

/** The asset of wires. The sandbox's bank takes no fee. */
export const WIRE_ASSET = 'USD'
const WIRE_MAXIMUM = '10000000'

/**
 * Returns the amount of a wire in cents, from `amount` or `total`, which are equal without a fee. Throws bad-request,
 * unavailable where no bank is connected, exceed-precision, below-min- or exceed-max-withdraw-limit. `named` is the
 * client's name for the amount, where it is neither.
 */
export function wireAmount(
  { asset, amount, total }: { asset: string; amount?: string; total?: string },
  networks: Networks,
  named?: string,
): bigint {
  const { field: given, asked } = amountOrTotal({ amount, total })
  const field = named ?? given
  requireWires({ asset }, networks)
  const decimals = decimalsOf(asset)
  const minor = minorUnits(field, asked, { asset, decimals })
  if (minor === 0n)
    throw problem.belowMinimum(field, { asset, minimum: formatAmount(1n, decimals), amount: '0' })
  if (minor > parseAmount(WIRE_MAXIMUM, decimals)!) {
    throw problem.aboveMaximum(field, {
      asset,
      maximum: WIRE_MAXIMUM,
      amount: formatAmount(minor, decimals),
    })
  }
  return minor
}

/** Throws bad-request for an asset other than USD, and unavailable where no bank is connected. */
export function requireWires({ asset }: { asset: string }, networks: Networks, field = 'asset'): void {
  if (asset !== WIRE_ASSET)
    throw problem.badRequest(`${field} ${asset} cannot be sent by wire: it must be ${WIRE_ASSET}`, field)
  requireBank(networks)
}

/** Returns the bank that wires go through. Throws unavailable where no bank is connected. */
export function requireBank(networks: Networks): NetworkAdapter {
  const bank = networks.get('WIRE')
  if (bank === undefined) throw problem.unavailable('fiat_network WIRE is not connected to a bank')
  return bank
}

/** Returns the platform's bank account for customers' wires. Throws unavailable where no bank is connected. */
export function requireBankAccount(networks: Networks): BankAccount {
  const { bankAccount } = requireBank(networks)
  if (bankAccount === undefined) throw problem.unavailable('fiat_network WIRE has no account for deposits')
  return bankAccount
}

type FiatWithdrawalRequest = Partial<
  Pick<Transfer, 'identity_id' | 'account_id' | 'ref_id' | 'group_id' | 'memo' | 'metadata'>
> & {
  profile_id: string
  fiat_account: FiatAccount
  /** In cents. */
  minor: bigint
  /** The debited balance: USD, or an asset that converts to it. */
  balanceAsset: string
}

/** Builds the record and entries of a wire to a bank account: profile -total, in flight +amount. */
export function fiatWithdrawal(
  customerId: string,
  { profile_id, fiat_account, minor, balanceAsset, ...asked }: FiatWithdrawalRequest,
  { now, newId }: Pick<View, 'now' | 'newId'>,
): Decision {
  const amount = formatAmount(minor, decimalsOf(WIRE_ASSET))
  return {
    transfer: {
      id: newId(),
      customer_id: customerId,
      profile_id,
      identity_id: asked.identity_id,
      account_id: asked.account_id,
      ref_id: asked.ref_id,
      group_id: asked.group_id,
      type: 'WIRE_WITHDRAWAL',
      direction: 'DEBIT',
      status: 'PENDING',
      asset: WIRE_ASSET,
      balance_asset: balanceAsset,
      amount,
      fee: '0',
      total: amount,
      auto_conversion: balanceAsset === WIRE_ASSET ? undefined : {},
      fiat_account_id: fiat_account.id,
      memo: asked.memo,
      metadata: asked.metadata,
      created_at: now.text,
      updated_at: now.text,
    },
    entries: [
      ...onProfileAs(profile_id, balanceAsset, -minor, WIRE_ASSET),
      onPlatform('in_flight:WIRE', WIRE_ASSET, minor),
    ],
    payee: fiat_account,
  }
}
