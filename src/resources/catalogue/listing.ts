import { Type, type Static } from 'typebox'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { Amount } from '../../contract/fields.ts'
import type { Networks } from '../../networks/network.ts'

/** The terms of an asset on a network, in amounts of the asset. */
export const listingFields = {
  decimals: Type.Integer({ description: 'Decimals of an amount on this network.' }),
  withdrawal_fee: Amount('Scheduled fee of a withdrawal.'),
  withdrawal_minimum: Amount('Smallest amount of one withdrawal.'),
  withdrawal_maximum: Amount('Largest amount of one withdrawal.'),
  deposit_minimum: Amount(
    'Smaller deposits wait until those at their address reach it together; 0 without a minimum.',
  ),
}
type Listing = { [Field in keyof typeof listingFields]: Static<(typeof listingFields)[Field]> }

/** Returns the terms of an asset on a network that carries it: the fee and limits that apply to withdrawals. */
export function listingOf(symbol: string, network: CryptoNetwork, networks: Networks): Listing {
  const asset = findAsset(symbol)!
  const { decimals, fee, minimum, maximum } = asset.networks[network]!
  return {
    decimals: Math.min(decimals, asset.decimals),
    withdrawal_fee: fee,
    withdrawal_minimum: minimum,
    withdrawal_maximum: maximum,
    deposit_minimum: networks.get(network)?.minimumDeposit?.(symbol) ?? '0',
  }
}
