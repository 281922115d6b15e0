import { strict as assert } from 'node:assert'
import { decimalsOf, findAsset } from '../assets/catalogue.ts'
import { onPlatform, onProfile, type Entry } from './entries.ts'

/** Whether one asset can be had for another: it is the same, or both are USD or issued by the platform as USD. */
export const convertible = (from: string, to: string): boolean => from === to || (isUsd(from) && isUsd(to))

const isUsd = (asset: string) => asset === 'USD' || findAsset(asset)?.platformStablecoin === true

/** The same number in minor units of another asset, one to one; undefined where that one has too few decimals. */
export function inUnitsOf(to: string, minor: bigint, from: string): bigint | undefined {
  const finer = decimalsOf(to) - decimalsOf(from)
  if (finer >= 0) return minor * 10n ** BigInt(finer)
  const unit = 10n ** BigInt(-finer)
  return minor % unit === 0n ? minor / unit : undefined
}

/**
 * Changes a profile's balance of `balanceAsset` by `amount` of `asset` (signed minor units). Where they differ it is
 * converted, one to one, against the platform's conversion account: each asset's side sums to zero with the rest of
 * the posting. The caller has checked that the amount is one of both assets.
 */
export function onProfileAs(
  profile_id: string,
  balanceAsset: string,
  amount: bigint,
  asset: string,
): Entry[] {
  if (balanceAsset === asset) return [onProfile(profile_id, asset, amount)]
  assert(convertible(balanceAsset, asset), `${asset} is not had for ${balanceAsset} one to one`)
  const moved = inUnitsOf(balanceAsset, amount, asset)
  assert(moved !== undefined, `${asset} was converted to ${balanceAsset}, which has fewer decimals`)
  return [
    onProfile(profile_id, balanceAsset, moved),
    onPlatform('conversion', balanceAsset, -moved),
    onPlatform('conversion', asset, amount),
  ]
}
