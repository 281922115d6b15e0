import { strict as assert } from 'node:assert'
import { decimalsOf, findAsset } from '../../contract/assets/catalogue.ts'
import { onPlatform, onProfile, type Entry } from './entries.ts'

/**
 * Whether one asset converts to the other: they are equal, or both are USD or USD stablecoins issued by the platform. With
 * `usdc`, which the operator decides, USDC of another issuer counts as one of them.
 */
export const convertible = (from: string, to: string, { usdc = false } = {}): boolean =>
  from === to || (isUsd(from, usdc) && isUsd(to, usdc))

const isUsd = (asset: string, usdc: boolean) =>
  asset === 'USD' || findAsset(asset)?.platformStablecoin === true || (usdc && asset === 'USDC')

/**
 * Converts minor units of one asset to the same number in another asset. Undefined where the other has too few
 * decimals.
 */
export function inUnitsOf(to: string, minor: bigint, from: string): bigint | undefined {
  if (to === from) return minor
  const finer = decimalsOf(to) - decimalsOf(from)
  if (finer >= 0) return minor * 10n ** BigInt(finer)
  const unit = 10n ** BigInt(-finer)
  return minor % unit === 0n ? minor / unit : undefined
}

/**
 * Changes a profile's balance of `balanceAsset` by `amount` of `asset` (signed minor units). Different assets are
 * converted one to one against the platform's conversion account, so that each asset sums to zero within the posting.
 * The caller has checked that both assets can represent the amount.
 */
export function onProfileAs(
  profile_id: string,
  balanceAsset: string,
  amount: bigint,
  asset: string,
): Entry[] {
  if (balanceAsset === asset) return [onProfile(profile_id, asset, amount)]
  assert(
    convertible(balanceAsset, asset, { usdc: true }),
    `${balanceAsset} does not convert to ${asset} one to one`,
  )
  const moved = inUnitsOf(balanceAsset, amount, asset)
  assert(moved !== undefined, `${asset} was converted to ${balanceAsset}, which has fewer decimals`)
  return [
    onProfile(profile_id, balanceAsset, moved),
    onPlatform('conversion', balanceAsset, -moved),
    onPlatform('conversion', asset, amount),
  ]
}
