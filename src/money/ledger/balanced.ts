import { strict as assert } from 'node:assert'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Entry } from './entries.ts'

/** Throws an assertion unless the assets exist and the entries sum to zero for each. */
export function requireBalanced(entries: Entry[]): void {
  const sums = new Map<string, bigint>()
  for (const { asset, amount } of entries) sums.set(asset, (sums.get(asset) ?? 0n) + amount)
  for (const [asset, sum] of sums) {
    decimalsOf(asset)
    assert(sum === 0n, `a ledger transaction must balance: ${asset} sums to ${sum}`)
  }
}
