/*
 * Invariants of every conversion, for any amount and any two assets:
 * 1. only USD and USD stablecoins of the platform convert to each other;
 * 2. the number stays the same, to the last decimal, or the conversion is refused: nothing is rounded;
 * 3. with the other side of the movement, the entries sum to zero per asset.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../test/seed.ts'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { ASSETS, decimalsOf } from '../../contract/assets/catalogue.ts'
import { convertible, inUnitsOf, onProfileAs } from './conversion.ts'
import { requireBalanced } from './balanced.ts'
import { onPlatform, onProfile } from './entries.ts'

const SYMBOLS = ASSETS.map(({ symbol }) => symbol)
const USD_AND_ITS_COINS = ['USD', 'USDP', 'PYUSD', 'USDG']
const PROFILE = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'

/** Signed minor units; about half end in zeros, so that both few and many decimals are common. */
const anyMinor = fc
  .tuple(fc.bigInt({ min: -(10n ** 21n), max: 10n ** 21n }), fc.integer({ min: 0, max: 20 }))
  .map(([digits, zeros]) => digits * 10n ** BigInt(zeros))
const anyAsset = fc.constantFrom(...SYMBOLS)
const anyCoin = fc.constantFrom(...USD_AND_ITS_COINS)
const withSeed = runs(2_000)

/** The same conversion by way of the decimal string. */
function byText(to: string, minor: bigint, from: string): bigint | undefined {
  const size = minor < 0n ? -minor : minor
  const there = parseAmount(formatAmount(size, decimalsOf(from)), decimalsOf(to))
  return there !== undefined && minor < 0n ? -there : there
}

test('convertible pairs of assets', () => {
  for (const from of [...SYMBOLS, 'NOTHING']) {
    for (const to of [...SYMBOLS, 'NONE', 'constructor']) {
      const both = USD_AND_ITS_COINS.includes(from) && USD_AND_ITS_COINS.includes(to)
      expect([from, to, convertible(from, to)]).toEqual([from, to, from === to || both])
    }
  }
})

test('an amount in units of another asset is the same number; undefined exactly when decimals would be lost', () => {
  let [exact, lost] = [0, 0]
  fc.assert(
    fc.property(anyAsset, anyMinor, anyAsset, (to, minor, from) => {
      const there = inUnitsOf(to, minor, from)
      expect(there).toBe(byText(to, minor, from))
      if (there === undefined) lost++
      else exact++
      if (there !== undefined) expect(inUnitsOf(from, there, to)).toBe(minor)
    }),
    withSeed,
  )
  // Both cases must be common.
  expect(Math.min(exact, lost)).toBeGreaterThan(withSeed.numRuns / 20)
})

test.each([
  ['USD', 10n ** 18n, 'USDP', 100n],
  ['USD', 10n ** 16n, 'USDP', 1n],
  ['USD', 10n ** 16n - 1n, 'USDP', undefined],
  ['USD', 10n ** 15n, 'USDP', undefined],
  ['USD', -(10n ** 16n), 'USDP', -1n],
  ['USDP', 1n, 'USD', 10n ** 16n],
  ['USDG', -1n, 'PYUSD', undefined],
  ['PYUSD', 1n, 'USDG', 10n],
  ['USD', 0n, 'USDP', 0n],
] as const)('in units of %s, %s of %s are %s', (to, minor, from, there) => {
  expect(inUnitsOf(to, minor, from)).toBe(there)
})

test('a profile changes by the requested number, and the entries sum to zero per asset', () => {
  fc.assert(
    fc.property(anyCoin, anyMinor, anyCoin, (balanceAsset, minor, asset) => {
      const moved = byText(balanceAsset, minor, asset)
      if (moved === undefined) {
        expect(() => onProfileAs(PROFILE, balanceAsset, minor, asset)).toThrow('has fewer decimals')
        return
      }
      const entries = onProfileAs(PROFILE, balanceAsset, minor, asset)
      requireBalanced([...entries, onPlatform('bank', asset, -minor)])
      expect(entries.filter(({ profile_id }) => profile_id !== null)).toEqual([
        onProfile(PROFILE, balanceAsset, moved),
      ])
      const others = entries.filter(({ profile_id }) => profile_id === null)
      expect(others).toEqual(
        balanceAsset === asset
          ? []
          : [onPlatform('conversion', balanceAsset, -moved), onPlatform('conversion', asset, minor)],
      )
    }),
    withSeed,
  )
})

test('an asset that is not converted is one entry, for every asset', () => {
  fc.assert(
    fc.property(anyAsset, anyMinor, (asset, minor) => {
      expect(onProfileAs(PROFILE, asset, minor, asset)).toEqual([onProfile(PROFILE, asset, minor)])
    }),
    withSeed,
  )
})
